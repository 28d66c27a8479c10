"""Defects of fastthreadpool 1.7.0; the pool has none of them."""

import contextvars
import resource
import signal
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
compat = pytest.importorskip("logspool.pool.compat")


def test_a_semaphore_of_one_permit_lets_one_in():
    semaphore, inside, violations = compat.Semaphore(1), [], []
    interval = sys.getswitchinterval()

    def work():
        for _ in range(2_000):
            semaphore.acquire()
            inside.append(None)
            time.sleep(0)
            if len(inside) != 1:
                violations.append(len(inside))
            inside.pop()
            semaphore.release()

    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)

    assert ([], 1) == (violations, semaphore.value)


def test_a_semaphore_returns_true_counts_permits_and_supports_timeouts_and_with():
    semaphore = compat.Semaphore(1)

    assert semaphore.acquire() is True
    assert [False] * 3 == [semaphore.acquire(False) for _ in range(3)]
    assert semaphore.acquire(timeout=0.01) is False
    assert 0 == semaphore.value
    semaphore.release()
    with semaphore:
        assert 0 == semaphore.value
    assert 1 == semaphore.value


def test_map_takes_plain_items_as_they_are():
    with compat.Pool(2) as pool:
        pool.map(abs, range(-5, 5))

    assert ([0, 1, 1, 2, 2, 3, 3, 4, 4, 5], []) == (sorted(pool.done), list(pool.failed))


def test_map_over_waiting_threads_ends():
    with compat.Pool(2) as pool:
        for _ in range(20):
            pool.map(int, range(10_000), direct=False, unpack_args=False)
        assert pool.wait_idle(60)
        assert sum(range(10_000)) * 20 == sum(pool.done)
        assert pool.shutdown(60)


def test_a_job_at_a_time_of_the_wall_clock_is_done():
    fired = threading.Event()
    with compat.Pool(1) as pool:
        pool.submit_at(time.time() + 0.05, 0, fired.set)

        assert fired.wait(60)


@pytest.mark.parametrize(
    "give",
    [
        lambda pool: pool.submit(int),
        lambda pool: pool.submit_done(int, False),
        lambda pool: pool.submit_first(int),
        lambda pool: pool.submit_done_first(int, False),
        lambda pool: pool.submit_later(0, int),
        lambda pool: pool.submit_at(time.time() + 60, 0, int),
        lambda pool: pool.schedule(1, int),
        lambda pool: pool.map(int, [1]),
    ],
)
def test_after_shutdown_jobs_are_refused(give):
    pool = compat.Pool(1)
    pool.shutdown()

    with pytest.raises(compat.PoolStopped) as caught:
        give(pool)
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_job_that_raises_system_exit_leaves_its_worker_alive(kind):
    def leave():
        raise kind

    with compat.Pool(1) as pool:
        pool.submit(leave)
        pool.submit(int, 4)

        assert pool.done_cnt.acquire(timeout=60)
        assert [4] == list(pool.done)
        assert [kind] == [type(error) for error in pool.failed]


def test_context_variables_reach_the_worker():
    variable = contextvars.ContextVar("variable", default="nobody's")
    variable.set("caller's")
    with pool_module.Pool(1, context="copy") as pool:
        assert "caller's" == pool.submit(variable.get).result(60)


def test_a_schedule_keeps_its_rhythm_while_others_work():
    interval, moments, enough = 0.02, [], threading.Event()

    def tick():
        moments.append(time.monotonic())
        if len(moments) == 20:
            enough.set()

    def work():
        while not enough.is_set():
            sum(range(1000))

    with compat.Pool(4) as pool:
        for _ in range(2):
            pool.submit(work)
        try:
            begun = time.monotonic()
            schedule = pool.schedule(interval, tick).timer_id
            first = schedule.when
            assert enough.wait(60)
            last = schedule.when
        finally:
            enough.set()

    assert all(moment >= begun + interval * number for number, moment in enumerate(moments, 1))
    assert last >= begun + interval * 20
    steps = (last - first) / interval
    assert abs(steps - round(steps)) < 1e-3


def test_keyword_arguments_of_a_job_can_have_any_name():
    names = dict.fromkeys(["self", "fn", "args", "done_callback", "delay", "interval", "when", "jobid"], 1)
    with compat.Pool(1) as pool:
        pool.submit(dict, **names)
        pool.submit_done(dict, True, **names)
        pool.submit_first(dict, **names)
        pool.submit_done_first(dict, True, **names)
        pool.submit_later(0, dict, **names)
        pool.submit_done_later(0, dict, True, **names)
        pool.submit_at(time.time() + 0.05, 0, dict, **names)
        pool.submit_done_at(time.time() + 0.05, 0, dict, True, **names)
        for _ in range(8):
            assert pool.done_cnt.acquire(timeout=60)

    assert [names] * 8 == list(pool.done)


def test_a_consumer_of_results_sleeps_until_there_are_some():
    go = threading.Event()
    with compat.Pool(1) as pool:
        pool.submit(go.wait, 60)
        threading.Timer(0.5, go.set).start()
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        results = list(pool.as_completed())
        waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before

    assert [True] == results
    # A thread that polls every 10 ms would wait 50 times.
    assert waits <= 25


@pytest.mark.parametrize(
    "wait",
    [
        lambda pool: compat.Semaphore(0).acquire(),
        lambda pool: list(pool.as_completed()),
        lambda pool: pool.wait_idle(),
        lambda pool: pool.join(),
        lambda pool: pool.done_cnt.acquire(),
    ],
)
def test_a_signal_ends_every_wait(wait):
    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    go = threading.Event()
    with compat.Pool(1) as pool:
        pool.submit(go.wait, 60)
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(Rung):
                wait(pool)
        finally:
            signal.signal(signal.SIGALRM, before)
            go.set()
