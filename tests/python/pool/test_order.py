"""The order of jobs: lanes, the front of the queue, many jobs at once."""

import queue
import threading

import pytest

pytestmark = pytest.mark.real

Pool = pytest.importorskip("logspool.pool").Pool

from pool.held import Held  # noqa: E402


def test_lanes_and_the_front_of_the_queue_set_the_order_of_jobs():
    held = Held()
    note, pool = held.done.append, held.pool
    pool.low.push(note, "low 1")
    pool.push(note, "normal 1")
    pool.high.push(note, "high 1")
    pool.low.submit(note, "low 2")
    pool.submit(note, "normal 2")
    pool.high.submit(note, "high 2")
    pool.submit_first(note, "first 1")
    pool.submit_first(note, "first 2")

    assert held.end() == ["first 2", "first 1", "high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"]


def test_lanes_return_futures_and_keep_their_pool():
    lane = Pool(1).high

    assert lane.submit(pow, 2, exp=5).result(60) == 32
    with pytest.raises(TypeError, match=r"submit\(\) missing 1 required positional argument: 'fn'"):
        lane.submit()


def test_the_dropped_job_is_from_the_lowest_lane():
    held = Held(queue_size=2, overflow="drop_oldest")
    high, low = held.pool.high.submit(int), held.pool.low.submit(int)
    last = held.pool.submit(int, 3)
    held.end()

    assert (high.result(0), low.cancelled(), last.result(0)) == (0, True, 3)


@pytest.mark.parametrize("count", [0, 1, 3, 1024, 5000])
def test_jobs_pushed_together_run_in_order(count):
    done = []
    with Pool(1) as pool:
        assert pool.push_many(done.append, range(count)) == count
        assert pool.wait_idle(60)
        assert pool.stats().submitted == count

    assert done == list(range(count))


def test_jobs_pushed_together_combine_items_like_map_and_wake_all_workers():
    both, done = threading.Barrier(3, timeout=60), []
    with Pool(3) as pool:
        assert (
            pool.push_many(lambda a, b: (both.wait(), done.append((a, b))), [1, 2, 3], (number for number in "abcd"))
            == 3
        )
        assert pool.wait_idle(60)

    assert sorted(done) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("overflow", ["block", "caller_runs"])
def test_jobs_pushed_together_respect_the_bound(overflow):
    done = []
    with Pool(2, queue_size=10, overflow=overflow) as pool:
        assert pool.push_many(done.append, range(5000)) == 5000

    assert sorted(done) == list(range(5000))


def test_jobs_pushed_together_are_refused_like_single_ones():
    held = Held(queue_size=2, overflow="raise")
    with pytest.raises(queue.Full):
        held.pool.push_many(held.done.append, range(5))
    assert held.end() == [0, 1]
    with pytest.raises(RuntimeError, match="after shutdown"):
        held.pool.push_many(int, [1])
    with pytest.raises(TypeError, match="int"):
        held.pool.push_many(int, 3)


def test_an_error_of_the_input_reaches_the_caller_after_the_earlier_items_were_pushed():
    done = []

    def items():
        yield 1
        raise KeyError("k")

    with Pool(1) as pool, pytest.raises(KeyError, match="k"):
        pool.push_many(done.append, items())

    assert done == [1]
