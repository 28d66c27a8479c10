"""Delayed jobs: `submit_later` and `submit_at`."""

import asyncio
import concurrent.futures
import datetime
import gc
import random
import threading
import time
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool

from pool.held import Held, until  # noqa: E402

NEVER = 100_000


def test_a_job_is_done_at_its_time_and_not_before(pool):
    before = time.monotonic()
    timer = pool.submit_later(0.05, lambda *args, **kwargs: (time.monotonic(), args, kwargs), 1, fn=2)
    done, args, kwargs = timer.result(60)

    assert (args, kwargs) == ((1,), {"fn": 2})
    assert before + 0.05 <= timer.when <= done


def test_a_timer_is_a_future(pool):
    timer = pool.submit_later(0.01, pow, 2, 5)

    assert isinstance(timer, pool_module.Timer)
    assert isinstance(timer, pool_module.Future)
    assert isinstance(timer, concurrent.futures.Future)
    assert next(pool_module.as_completed([timer], 60)).result() == 32
    assert "finished returned int" in repr(timer)
    with pytest.raises(ZeroDivisionError):
        pool.submit_later(0, lambda: 1 // 0).result(60)

    async def main():
        return await asyncio.wrap_future(pool.submit_later(0.01, int, 7))

    assert asyncio.run(main()) == 7


def test_jobs_run_in_the_order_of_their_times():
    # No timer is due before the last one is submitted. A caller that is delayed in between changes their order, so the
    # test compares with `when`.
    done, delays = [], [0.5 + number / 200 for number in range(30)]
    with Pool(1) as pool:
        timers = {delay: pool.submit_later(delay, done.append, delay) for delay in random.sample(delays, len(delays))}

    assert done == sorted(delays, key=lambda delay: timers[delay].when)


def test_due_jobs_run_before_waiting_ones_and_ignore_the_bound():
    held = Held(queue_size=1, overflow="raise")
    held.pool.push(held.done.append, "waited")
    timer = held.pool.submit_later(0, held.done.append, "due")
    until(lambda: held.pool.stats().depth == 2)

    assert held.end() == ["due", "waited"]
    assert timer.done()


def test_a_cancelled_timer_is_removed_at_once(pool):
    argument = threading.Event()
    gone = weakref.ref(argument)
    timer, told = pool.submit_later(NEVER, argument.set), []
    timer.add_done_callback(told.append)
    del argument
    assert pool.stats().delayed == 1

    assert timer.cancel()
    assert timer.cancel()
    gc.collect()
    assert (gone(), told, timer.cancelled(), pool.stats().delayed) == (None, [timer], True, 0)
    with pytest.raises(concurrent.futures.CancelledError):
        timer.result(0)


def test_a_due_timer_is_cancelled_like_any_job():
    held = Held()
    timer = held.pool.submit_later(0, held.done.append, "never")
    until(lambda: held.pool.stats().depth == 1)

    assert timer.cancel()
    assert held.end() == []
    timer = Pool(1).submit_later(0, int)
    timer.result(60)
    assert not timer.cancel()


def test_one_timer_thread_serves_all_pools():
    pools = [Pool(2) for _ in range(5)]
    before = threading.active_count()
    timers = [pool.submit_later(NEVER, int) for pool in pools for _ in range(200)]
    threads = [thread.name for thread in threading.enumerate() if thread.name == "logspool-timers"]

    assert threads == ["logspool-timers"]
    assert threading.active_count() <= before + 1
    assert sum(pool.clear() for pool in pools) == 0, "none of them waited for a worker"
    assert all(timer.cancelled() for timer in timers)
    assert [pool.stats().delayed for pool in pools] == [0] * 5


def test_each_of_many_timers_fires_once_or_was_cancelled(pool):
    done, count = [], 20_000
    timers = [pool.submit_later(random.uniform(0, 0.5), done.append, number) for number in range(count)]
    cancelled = {number for number in range(0, count, 3) if timers[number].cancel()}
    concurrent.futures.wait(timers, 60)

    assert sorted(done) == [number for number in range(count) if number not in cancelled]
    assert sum(timer.cancelled() for timer in timers) == len(cancelled)
    assert pool.stats().delayed == 0


def test_an_earlier_timer_does_not_wait_for_a_later_one(pool):
    later = pool.submit_later(NEVER, int)
    for _ in range(50):
        assert pool.submit_later(0.001, int, 3).result(60) == 3
    assert later.cancel()


@pytest.mark.parametrize(
    "when",
    [
        lambda: time.time() + 0.05,
        lambda: datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=0.05),
        lambda: datetime.datetime.now().astimezone() + datetime.timedelta(seconds=0.05),
    ],
    ids=["seconds", "UTC", "local zone"],
)
def test_a_job_is_done_at_a_time_of_the_wall_clock(pool, when):
    timer = pool.submit_at(when(), time.time)

    assert time.time() - 1 < timer.when <= timer.result(60)


def test_a_time_in_the_past_means_now(pool):
    assert pool.submit_at(0, int, 1).result(60) == 1
    assert pool.submit_at(-5.0, int, 2).result(60) == 2
    assert pool.submit_later(-5, int, 3).result(60) == 3


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda pool: pool.submit_later(), TypeError, r"submit_later\(\) missing 1 required positional argument: 'fn'"),
        (lambda pool: pool.submit_at(1), TypeError, r"submit_at\(\) missing 1 required positional argument: 'fn'"),
        (lambda pool: pool.submit_later("1", int), TypeError, "delay must be a number of seconds, not '1'"),
        (lambda pool: pool.submit_at("noon", int), TypeError, "when must be seconds since the epoch .*, not 'noon'"),
        (lambda pool: pool.submit_later(1, None), TypeError, r"submit_later\(\) needs a function, not None"),
        (lambda pool: pool.submit_at(1, None), TypeError, r"submit_at\(\) needs a function, not None"),
        (lambda pool: pool.submit_later(float("nan"), int), ValueError, "delay is not a number"),
        (lambda pool: pool.submit_later(float("inf"), int), OverflowError, "delay is too large: inf s"),
        (lambda pool: pool.submit_at(1e12, int), OverflowError, "when is too large: 1e12 s"),
        (lambda pool: pool.submit_at(datetime.datetime.now(), int), ValueError, "when has no time zone"),
    ],
)
def test_invalid_times_are_refused(pool, call, kind, message):
    with pytest.raises(kind, match=message):
        call(pool)

    assert pool.stats().delayed == 0


def test_shutdown_waits_for_jobs_that_are_not_due():
    with Pool(1) as pool:
        timers = [pool.submit_later(delay, int, 1) for delay in (0, 0.05, 0.1)]
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit_later(0, int)

    assert [timer.result(0) for timer in timers] == [1, 1, 1]
    assert pool.stats().workers == 0


def test_shutdown_can_cancel_jobs_that_are_not_due():
    pool = Pool(1)
    assert pool.submit(int).result(60) == 0
    timers = [pool.submit_later(NEVER, int) for _ in range(10)]
    pool.shutdown(cancel_futures=True)

    assert all(timer.cancelled() for timer in timers)


def test_shutdown_without_waiting_still_runs_jobs_that_are_not_due():
    pool = Pool(1)
    timer = pool.submit_later(0.05, int, 5)
    pool.shutdown(wait=False)

    assert timer.result(60) == 5


def test_a_job_cannot_wait_for_the_shutdown_of_its_own_pool():
    with Pool(1) as pool, pytest.raises(RuntimeError, match="cannot wait for the end of its own pool"):
        pool.submit(pool.shutdown).result(60)


def test_an_unreferenced_pool_lives_until_its_timers_have_run():
    timer = Pool(1).submit_later(0.1, lambda: "done")
    gc.collect()

    assert timer.result(60) == "done"


def test_a_broken_pool_fails_its_delayed_jobs():
    def fail():
        raise OSError("no device")

    pool = Pool(1, initializer=fail)
    timer = pool.submit_later(NEVER, int)
    with pytest.raises(pool_module.BrokenPool):
        pool.submit(int).result(60)
    with pytest.raises(pool_module.BrokenPool):
        timer.result(60)


def test_a_timer_runs_in_the_context_of_its_caller():
    import contextvars

    request = contextvars.ContextVar("request", default="none")
    request.set("outer")
    with Pool(1, context="copy") as pool:
        timer = pool.submit_later(0.01, request.get)
        request.set("later")

    assert timer.result() == "outer"


def test_interpreter_exit_does_not_wait_for_timers(run_program):
    body = """
from logspool.pool import Pool
pool = Pool(1)
timer = pool.submit_later(100_000, print, "never")
timer.add_done_callback(lambda timer: print("cancelled", timer.cancelled()))
pool.schedule(100_000, print, "never")
pool.submit(print, "done").result()
"""
    outcome, _ = run_program(body)

    assert outcome.expect_success().out == b"done\ncancelled True\n"


def test_a_forked_child_has_its_own_timers(run_program):
    body = """
import os
from logspool.pool import BrokenPool, Pool
pool = Pool(1)
timer, schedule = pool.submit_later(0.5, int, 7), pool.schedule(0.05, int)
child = os.fork()
if child == 0:
    try:
        timer.result(10)
    except BrokenPool as error:
        print(error, schedule.cancelled)
    print(pool.submit_later(0.01, int, 2).result(10), pool.stats().delayed, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(status, timer.result(10), schedule.cancelled)
pool.shutdown()
"""
    outcome, _ = run_program(body, options=("-W", "ignore::DeprecationWarning"))

    assert outcome.expect_success().out.decode().splitlines() == [
        "the process was forked while this job waited; it is done in the parent True",
        "2 0",
        "0 7 False",
    ]
