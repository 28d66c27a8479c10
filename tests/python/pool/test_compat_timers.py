"""fastthreadpool's names: jobs at a given time."""

import threading
import time

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")
Pool = compat.Pool

HOUR = 3600


@pytest.fixture
def pool():
    """Give a pool of one worker."""
    with Pool(1) as made:
        yield made


def take(pool, count):
    """Return the next `count` results, as they come."""
    taken = []
    for _ in range(count):
        assert pool.done_cnt.acquire(timeout=60)
        taken.append(pool.done.popleft())
    return taken


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def stream(*values):
    yield from values


def starts(pool):
    """Return the ways to run a job at a given time; each takes a delay in seconds and a job."""

    def at(delay, *job):
        return pool.submit_at(time.time() + delay, 0, *job)

    def done_at(delay, fn, done_callback, /, *args, **kwargs):
        return pool.submit_done_at(time.time() + delay, 0, fn, done_callback, *args, **kwargs)

    return [pool.submit_later, at, pool.schedule], [pool.submit_done_later, done_at, pool.schedule_done]


@pytest.mark.parametrize("way", [0, 1, 2])
def test_a_job_runs_at_its_time_and_its_results_are_like_those_of_other_jobs(pool, way):
    plain, with_callback = (ways[way] for ways in starts(pool))
    begun = time.monotonic()
    plain(0.05, stream, 1, 2)

    assert [1, 2] == take(pool, 2)
    assert time.monotonic() - begun >= 0.04
    pool.cancel(False, True)
    assert pool.wait_idle(60)
    pool.clear()
    seen = threading.Event()
    with_callback(0.01, dict, lambda result: result == {"fn": 1, "delay": 2} and seen.set(), fn=1, delay=2)
    with_callback(0.01, int, False, "5")
    assert seen.wait(60)
    pool.cancel(False, True)
    assert pool.wait_idle(60)
    assert [] == [*pool.done, *pool.failed]


@pytest.mark.parametrize("way", [0, 1, 2])
def test_exceptions_of_jobs_are_in_failed(pool, way):
    starts(pool)[0][way](0.01, int, "x")

    assert pool.failed_cnt.acquire(timeout=60)
    assert "invalid literal" in str(pool.failed.popleft())


def test_results_of_timed_jobs_have_an_id_and_go_to_the_pools_callback():
    seen, all_there = [], threading.Event()

    def note(entry):
        seen.append(entry)
        if len(seen) == 2:
            all_there.set()

    with Pool(1, done_callback=note, result_id=True) as pool:
        number = pool.submit(int, 1)
        pool.submit_later(0.01, int, 2)
        assert all_there.wait(60)

    assert [(number, 1), (number + 1, 2)] == seen


def test_delayed_jobs_are_listed_until_they_begin(pool):
    go, begun = threading.Event(), threading.Event()
    timers = [pool.submit_later(HOUR, int) for _ in range(2)]
    soon = pool.submit_later(0, lambda: (begun.set(), go.wait(60)))
    assert begun.wait(60)

    assert set(timers) == set(pool.delayed)
    assert not soon.cancel()
    go.set()
    assert pool.wait_idle(60)
    timers[0].cancel()
    assert (timers[1],) == pool.delayed
    assert ((), 0) == (pool.scheduled, pool.pending)


def test_a_due_job_runs_before_waiting_jobs(pool):
    go, begun, done = threading.Event(), threading.Event(), []
    pool.submit(lambda: (begun.set(), go.wait(60)))
    assert begun.wait(60)
    pool.submit(done.append, "waited")
    pool.submit_later(0, done.append, "was due")
    until(lambda: pool._workers.stats().delayed == 0)
    go.set()
    assert pool.wait_idle(60)

    assert ["was due", "waited"] == done


def test_timers_can_be_cancelled_one_by_one_or_all(pool):
    later = [pool.submit_later(HOUR, int) for _ in range(3)]
    at = [pool.submit_at(time.time() + HOUR, interval, int) for interval in (0, 1)]
    every = [pool.schedule(HOUR, int) for _ in range(3)]
    assert {each.timer_id for each in at + every} == set(pool.scheduled)

    assert pool.cancel(False, later[0]) is True
    assert pool.cancel(False, at[0]) is True
    assert pool.cancel(False, every[0]) is True
    assert pool.cancel(False, every[1].timer_id) is True
    assert set(later[1:]) == set(pool.delayed)
    assert {at[1].timer_id, every[2].timer_id} == set(pool.scheduled)
    pool.cancel(False, True)
    assert ((), ()) == (pool.delayed, pool.scheduled)
    pool.cancel(False, later[1])
    pool.cancel(False, every[2])
    assert all(timer.cancelled() for timer in later)


def test_cancelling_timers_keeps_jobs_and_cancelling_jobs_keeps_timers(pool):
    go, begun = threading.Event(), threading.Event()
    pool.submit(lambda: (begun.set(), go.wait(60)))
    assert begun.wait(60)
    timer = pool.submit_later(HOUR, int)
    pool.submit(int)
    pool.cancel()
    assert ((), (timer,)) == (pool.jobs, pool.delayed)
    pool.submit(int)
    pool.cancel(False, timer)
    assert (1, ()) == (len(pool.jobs), pool.delayed)
    go.set()


SERIES = [
    lambda pool, interval, fn: pool.schedule(interval, fn),
    lambda pool, interval, fn: pool.submit_at(time.time() + 0.01, interval, fn),
]


@pytest.mark.parametrize("begin", SERIES)
def test_a_cancelled_series_makes_no_further_calls(pool, begin):
    timer = begin(pool, 0.01, int)
    assert [0] * 5 == take(pool, 5)
    pool.cancel(False, timer)
    assert pool.wait_idle(60)
    count = len(pool.done)

    assert () == pool.scheduled
    assert [0] * count == list(pool.as_completed(wait=0.1))


@pytest.mark.parametrize("begin", SERIES)
def test_a_series_may_be_cancelled_from_its_own_job(pool, begin):
    done, known = [], threading.Event()

    def work():
        assert known.wait(60)
        done.append(1)
        pool.cancel(False, timer)

    timer = begin(pool, 0.01, work)
    known.set()
    take(pool, 1)

    assert [] == list(pool.as_completed(wait=0.1))
    assert ([1], ()) == (done, pool.scheduled)


def test_a_series_at_wall_clock_times_keeps_its_times(pool):
    start = time.time() + 0.01
    timer = pool.submit_at(start, 0.02, time.time)
    moments = take(pool, 5)
    steps = (timer.timer_id.when - start) / 0.02

    assert all(moment >= start + 0.02 * number for number, moment in enumerate(moments))
    assert steps > 4 - 1e-3
    assert abs(steps - round(steps)) < 1e-3
    assert timer.old_timer_id is not None
    pool.cancel(False, timer)


@pytest.mark.parametrize("begin", SERIES)
def test_a_series_skips_times_while_its_job_runs(begin):
    running, most = [], []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.03)
        running.pop()

    with Pool(3) as pool:
        begin(pool, 0.005, work)
        take(pool, 5)
        pool.cancel(False, True)

    assert max(most) == 1


def test_a_time_may_be_a_struct_time(pool):
    when = time.localtime(time.time() + HOUR)
    timer = pool.submit_at(when, 0, int)
    pool.submit_at(time.localtime(), 0, int, "7")

    assert time.mktime(when) == timer.timer_id.when
    assert [7] == take(pool, 1)


def test_a_time_that_has_just_passed_means_now_and_its_series_continues_from_it(pool):
    start = time.time() - 1
    timer = pool.submit_at(start, 0.25, time.time)
    first, second = take(pool, 2)
    steps = (timer.timer_id.when - start) / 0.25

    assert first >= start + 1
    # Due times that have passed meanwhile are skipped.
    assert second >= start + 1.25
    assert abs(steps - round(steps)) < 1e-3
    pool.cancel(False, timer)


@pytest.mark.parametrize("when", [lambda: time.time() - HOUR, lambda: time.localtime(0), time.monotonic])
def test_a_time_long_ago_is_refused(pool, when):
    with pytest.raises(ValueError, match="not so long ago"):
        pool.submit_at(when(), 0, int)


def test_shutdown_does_not_wait_for_jobs_that_are_not_due(pool):
    timers = [pool.submit_later(HOUR, int)]
    pool.schedule(HOUR, int)

    assert pool.wait_idle(60)
    assert [] == list(pool.as_completed())
    assert pool.shutdown(60)
    assert ((), ()) == (pool.delayed, pool.scheduled)
    assert timers[0].cancelled()


def test_after_shutdown_timed_jobs_are_refused(pool):
    pool.shutdown()
    plain, with_callback = starts(pool)
    for start in plain:
        with pytest.raises(compat.PoolStopped):
            start(1, int)
    for start in with_callback:
        with pytest.raises(compat.PoolStopped):
            start(1, int, True)
    pool.clear()
    pool.submit_later(0.01, int, 3)

    assert [3] == take(pool, 1)


def test_program_exit_does_not_wait_for_timers(run_program):
    body = """
import time
from logspool.pool import compat
pool = compat.Pool(1)
pool.submit_later(3600, print, "never")
pool.submit_at(time.time() + 3600, 60, print, "never")
pool.schedule(0.01, print, "tick")
while not pool.done:
    time.sleep(0.001)
"""
    outcome, _ = run_program(body)

    assert {b"tick"} == set(outcome.expect_success().out.splitlines())
    assert outcome.err == b""
