"""Repeated jobs: `schedule` and `schedule_with_delay`."""

import gc
import itertools
import threading
import time
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool

from pool.held import Held, until  # noqa: E402


def times_of(pool, method, interval, count):
    """Return the times at which the first `count` calls began, and the cancelled schedule."""
    begun, enough = [], threading.Event()

    def note():
        begun.append(time.monotonic())
        if len(begun) == count:
            enough.set()

    schedule = getattr(pool, method)(interval, note)
    assert enough.wait(60)
    assert schedule.cancel()
    return begun[:count], schedule


def test_a_fixed_rate_does_not_drift(pool):
    before = time.monotonic()
    begun, schedule = times_of(pool, "schedule", 0.01, 50)

    # Each call is due at a multiple of the interval and never begins before it: delays do not add up.
    calls = [(moment - before) / 0.01 for moment in begun]
    assert all(call >= number + 1 for number, call in enumerate(calls))
    assert calls[-1] < 50 + schedule.missed + 100
    assert schedule.interval == 0.01


def test_a_fixed_delay_counts_from_the_end_of_a_call(pool):
    begun, schedule = times_of(pool, "schedule_with_delay", 0.01, 20)

    assert all(later - earlier >= 0.01 for earlier, later in itertools.pairwise(begun))
    assert schedule.missed == 0


def test_calls_do_not_overlap_and_skipped_ones_are_counted():
    running, most, calls = [], [], []

    def slow():
        running.append(1)
        most.append(len(running))
        time.sleep(0.03)
        calls.append(running.pop())

    with Pool(4) as pool:
        schedule = pool.schedule(0.005, slow)
        until(lambda: len(calls) >= 5)
        schedule.cancel()
        pool.wait_idle(60)

    assert max(most) == 1
    # Six intervals pass during a call, so the next call is due at the sixth or later.
    assert schedule.missed >= 5 * 4
    assert schedule.runs == len(calls)


def test_a_cancelled_schedule_has_ended_and_keeps_nothing_alive(pool):
    job = threading.Event()
    gone = weakref.ref(job)
    schedule = pool.schedule(1000, job.set)
    del job
    assert (schedule.cancelled, schedule.when > time.monotonic(), pool.stats().delayed) == (False, True, 1)
    assert repr(schedule) == "<Schedule every 1000 s, 0 runs, active>"

    assert schedule.cancel()
    assert not schedule.cancel()
    gc.collect()
    assert (gone(), schedule.cancelled, schedule.when, pool.stats().delayed) == (None, True, None, 0)
    assert repr(schedule) == "<Schedule every 1000 s, 0 runs, ended>"


def test_a_job_can_end_its_own_schedule(pool):
    ready, calls = threading.Event(), []

    def once():
        ready.wait(60)
        calls.append(schedule.cancel())

    schedule = pool.schedule(0.01, once)
    ready.set()
    until(lambda: calls)
    assert pool.wait_idle(60)

    assert (calls, schedule.runs, pool.stats().delayed) == ([True], 1, 0)


def test_a_schedule_cancelled_while_its_job_waited_does_not_run():
    held = Held()
    schedule = held.pool.schedule(0.001, held.done.append, "never")
    until(lambda: held.pool.stats().depth == 1)
    assert schedule.cancel()

    assert held.end() == []
    assert schedule.runs == 0


def test_an_exception_of_a_call_is_reported_and_the_schedule_continues(unraisable):
    failed = []
    with Pool(1) as pool:
        own = pool.options(failed_callback=failed.append).schedule(0.005, lambda: 1 // 0)
        until(lambda: own.runs >= 3)
        own.cancel()
        pool.wait_idle(60)
        assert {type(error) for error in failed} == {ZeroDivisionError}
        assert not unraisable
        other = pool.schedule(0.005, lambda: int("x"))
        until(lambda: other.runs >= 3)
    assert len(unraisable) >= 3
    assert pool.stats().failed == len(failed) + len(unraisable)


def test_shutdown_of_the_pool_ends_its_schedules():
    with Pool(1) as pool:
        waiting, running = pool.schedule(1000, int), pool.schedule(0.001, int)
        until(lambda: running.runs)
    runs = running.runs

    assert (waiting.cancelled, running.cancelled) == (True, True)
    time.sleep(0.05)
    assert running.runs == runs
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.schedule(1, int)


def test_values_of_a_schedule_go_to_its_callback_and_its_results(pool):
    results, done = pool_module.Results(5), []
    schedule = pool.options(results=results, done_callback=done.append).schedule(0.001, iter_two)
    found = [results.get(60) for _ in range(6)]
    schedule.cancel()

    assert found == [1, 2, 1, 2, 1, 2]
    assert done[:6] == found


def iter_two():
    yield 1
    yield 2


@pytest.mark.parametrize("method", ["schedule", "schedule_with_delay"])
def test_invalid_intervals_are_refused(pool, method):
    name = {"schedule": "interval", "schedule_with_delay": "delay"}[method]
    call = getattr(pool, method)
    for value, kind, message in [
        (0, ValueError, f"{name} must be greater than 0, not 0"),
        (-1, ValueError, f"{name} must be greater than 0, not -1"),
        (float("nan"), ValueError, f"{name} is not a number"),
        (1e30, OverflowError, f"{name} is too large"),
        ("1", TypeError, f"{name} must be a number of seconds, not '1'"),
    ]:
        with pytest.raises(kind, match=message):
            call(value, int)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'fn'"):
        call(1)
    with pytest.raises(TypeError, match=rf"{method}\(\) needs a function, not None"):
        call(1, None)

    assert pool.stats().delayed == 0
