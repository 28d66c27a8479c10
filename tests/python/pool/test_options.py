"""Options for single jobs: callbacks, time limits, priorities; and the report of failures."""

import gc
import threading
import time
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool

from pool.held import Held, until  # noqa: E402


def fail():
    raise KeyError("why")


def test_callbacks_of_a_job_get_its_result_or_exception(pool):
    done, failed = [], []
    told = pool.options(done_callback=done.append, failed_callback=failed.append)
    told.push(pow, 2, 3)
    told.push(fail)
    assert told.submit(pow, 2, 4).result(60) == 16
    with pytest.raises(KeyError):
        told.submit(fail).result(60)
    assert pool.wait_idle(60)

    assert sorted(done) == [8, 16]
    assert [type(error) for error in failed] == [KeyError, KeyError]
    assert pool.stats().failed == 1, "the other one was its future's"


def test_callbacks_have_run_when_the_future_ends(pool):
    for _ in range(100):
        done = []
        assert pool.options(done_callback=done.append).submit(int, 1).result(60) == 1
        assert done == [1]


def test_callbacks_of_a_pool_are_called_only_for_jobs_without_a_future(unraisable):
    done, failed, own = [], [], []
    with Pool(1, done_callback=done.append, failed_callback=failed.append) as pool:
        pool.push(int, 1)
        pool.push(fail)
        pool.push_many(int, [2, 3])
        pool.submit(int, 4).result(60)
        with pytest.raises(KeyError):
            pool.submit(fail).result(60)
        pool.options(done_callback=own.append, failed_callback=own.append).push(int, 5)
        pool.options(results=pool_module.Results()).push(int, 6)
        pool.push(iter, (7, 8))
        pool.push(lambda: (yield 9))

    assert done[:3] == [1, 2, 3]
    assert done[4:] == [9], "a generator is run, another iterator is a value"
    assert list(done[3]) == [7, 8]
    assert ([type(error) for error in failed], own, unraisable) == ([KeyError], [5], [])


def test_exceptions_of_callbacks_are_reported(pool, unraisable):
    pool.options(done_callback=lambda value: value // 0).push(int, 1)
    pool.options(failed_callback=lambda error: int("x")).push(fail)
    assert pool.wait_idle(60)

    assert sorted(type(each.exc_value).__name__ for each in unraisable) == ["ValueError", "ZeroDivisionError"]
    assert pool.stats().failed == 1


def test_a_failure_without_a_receiver_goes_to_the_hook(pool, unraisable):
    pool.options(done_callback=int).push(fail)
    pool.options(timeout=60).push(fail)
    assert pool.wait_idle(60)

    assert [(type(each.exc_value), each.object) for each in unraisable] == [(KeyError, fail)] * 2
    assert pool.stats().failed == 2


def test_a_job_that_takes_too_long_fails_and_its_worker_survives():
    go, done, failed = threading.Event(), [], []
    with Pool(1) as pool:
        limited = pool.options(timeout=0.02, done_callback=done.append, failed_callback=failed.append)
        late = limited.submit(go.wait, 60)
        with pytest.raises(TimeoutError, match=r"the job ran longer than 0\.02 s"):
            late.result(60)
        limited.push(int, 3)
        assert pool.stats().busy == 1
        go.set()
    assert (done, [type(error) for error in failed]) == ([3], [TimeoutError])
    assert (pool.stats().timed_out, pool.stats().failed) == (1, 0)


def test_waiting_does_not_count_towards_the_time_limit():
    held = Held()
    future = held.pool.options(timeout=0.2).submit(int, 1)
    time.sleep(0.3)
    held.end()

    assert future.result(0) == 1
    assert held.pool.stats().timed_out == 0


def test_a_stream_that_takes_too_long_ends(pool):
    results, ended = pool_module.Results(), threading.Event()

    def endless():
        try:
            while True:
                time.sleep(0.001)
                yield 1
        finally:
            ended.set()

    pool.options(timeout=0.1, results=results).push(endless)
    with pytest.raises(TimeoutError):
        for value in results:
            assert value == 1
    assert list(results) == []
    assert ended.wait(60)
    assert pool.stats().timed_out == 1


def test_jobs_that_end_in_time_leave_no_timers(pool):
    limited = pool.options(timeout=1000)
    futures = [limited.submit(pow, number, 2) for number in range(5000)]

    assert [future.result(60) for future in futures] == [number**2 for number in range(5000)]
    assert (pool.stats().timed_out, pool.stats().delayed) == (0, 0)


def test_a_scheduled_job_that_takes_too_long_is_reported_each_time(pool):
    started, failed = [], []

    def run_until_told():
        started.append(None)
        until(lambda: len(failed) >= len(started))

    schedule = pool.options(timeout=0.01, failed_callback=failed.append).schedule(0.001, run_until_told)
    until(lambda: schedule.runs >= 3)
    schedule.cancel()
    assert pool.wait_idle(60)

    assert {type(error) for error in failed} == {TimeoutError}
    assert pool.stats().timed_out == len(failed) == schedule.runs


def test_jobs_of_priority_first_run_before_all_others():
    held = Held()
    first = held.pool.options(priority="first")
    for name in "abc":
        held.pool.high.push(held.done.append, name)
    first.push(held.done.append, "first")
    first.push_many(held.done.append, ["even more"])

    assert held.end() == ["even more", "first", "a", "b", "c"]


def test_cancel_removes_waiting_jobs_and_clear_also_timers():
    held = Held()
    futures = [held.pool.submit(int) for _ in range(3)] + [held.pool.low.submit(int)]
    timer, schedule = held.pool.submit_later(1000, int), held.pool.schedule(1000, int)

    assert held.pool.cancel() == 4
    assert all(future.cancelled() for future in futures)
    assert (timer.cancelled(), schedule.cancelled, held.pool.stats().delayed) == (False, False, 2)
    held.pool.push(int)
    assert held.pool.clear() == 1
    assert (timer.cancelled(), schedule.cancelled, held.pool.stats().delayed) == (True, True, 0)
    assert held.pool.submit(int, 5).cancel()
    held.end()


def test_a_view_keeps_its_pool_and_cycles_are_collected():
    class Owner:
        def __init__(self):
            self.pool = Pool(1, done_callback=self.note)
            self.view = self.pool.options(done_callback=self.note, failed_callback=self.note)
            self.got = []

        def note(self, value):
            self.got.append(value)

    owner = Owner()
    owner.pool.push(int, 1)
    owner.view.push(int, 2)
    assert owner.pool.wait_idle(60)
    assert owner.got == [1, 2]
    gone = weakref.ref(owner)
    del owner
    until(lambda: gc.collect() * 0 == 0 and gone() is None)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"priority": "urgent"}, ValueError, "priority is \"urgent\", expected 'first', 'high', 'normal' or 'low'"),
        ({"timeout": 0}, ValueError, "timeout must be greater than 0, or None, not 0"),
        ({"timeout": float("nan")}, ValueError, "timeout must be a number of seconds or None, not nan"),
        ({"timeout": float("inf")}, OverflowError, "timeout is too large"),
        ({"timeout": "1"}, TypeError, "timeout must be a number of seconds or None, not '1'"),
        ({"done_callback": 3}, TypeError, "done_callback must be a callable, not 3"),
        ({"failed_callback": 3}, TypeError, "failed_callback must be a callable, not 3"),
        ({"results": []}, TypeError, "results"),
        ({"retries": 3}, TypeError, "retries"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(pool, options, kind, message):
    with pytest.raises(kind, match=message):
        pool.options(**options)
    if "callback" in next(iter(options)):
        with pytest.raises(kind, match=message):
            Pool(1, **options)
