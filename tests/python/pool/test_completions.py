"""Results handed over together: `as_completed`, and `Pool.run` for coroutines."""

import asyncio
import concurrent.futures
import gc
import threading
import time
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool, as_completed = pool_module.Pool, pool_module.as_completed


def test_each_future_is_returned_once(pool):
    futures = [pool.submit(pow, number, 2) for number in range(5000)]

    found = list(as_completed(futures + futures[:10], timeout=60))

    assert set(found) == set(futures)
    assert len(found) == 5000


def test_futures_are_returned_in_the_order_of_completion():
    go = threading.Event()
    with Pool(2) as pool:
        slow, quick = pool.submit(go.wait, 60), pool.submit(int)
        ended = as_completed([slow, quick], timeout=60)
        assert next(ended) is quick
        go.set()
        assert next(ended) is slow
        assert list(ended) == []


def test_futures_of_other_executors_and_cancelled_ones_are_returned_too(pool):
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        futures = [other.submit(int), pool.submit(int), pool_module.Future()]
        futures[2].cancel()

        assert set(as_completed(futures, timeout=60)) == set(futures)


def test_a_timeout_counts_from_the_call_and_reports_how_many_are_left():
    go = threading.Event()
    with Pool(1) as pool:
        ended = as_completed([pool.submit(go.wait, 60), pool.submit(int)], timeout=0.05)
        with pytest.raises(concurrent.futures.TimeoutError, match=r"2 \(of 2\) futures unfinished"):
            next(ended)
        go.set()


def test_futures_are_not_kept_alive(pool):
    ended = as_completed([pool.submit(int) for _ in range(3)])
    for future in ended:
        gone = weakref.ref(future)
        assert pool.wait_idle(60)
        del future
        gc.collect()
        assert gone() is None


def test_coroutines_get_results_and_exceptions(pool):
    def fail():
        raise KeyError("k")

    async def main():
        results = await asyncio.gather(*(pool.run(pow, number, 2) for number in range(5000)))
        with pytest.raises(KeyError, match="k") as caught:
            await pool.run(fail)
        assert caught.traceback[-1].name == "fail"
        return results

    assert asyncio.run(main()) == [number**2 for number in range(5000)]


def test_a_job_that_raises_stop_iteration_ends_its_awaitable(pool):
    async def main():
        with pytest.raises((TypeError, RuntimeError), match="StopIteration"):
            await asyncio.wait_for(pool.run(next, iter(())), 60)

    asyncio.run(main())


def test_the_loop_keeps_running_while_jobs_run_even_beyond_the_queues_bound():
    async def main(pool):
        ticks = 0
        jobs = asyncio.gather(*(pool.run(time.sleep, 0.01) for _ in range(20)))
        while not jobs.done():
            ticks += 1
            await asyncio.sleep(0.001)
        await jobs
        return ticks

    with Pool(1, queue_size=2) as pool:
        assert asyncio.run(main(pool)) > 1


def test_jobs_cancelled_before_they_start_never_run():
    go, begun, done = threading.Event(), threading.Event(), []

    async def main(pool):
        first = pool.run(lambda: (begun.set(), go.wait(60)))
        second = pool.run(done.append, 1)
        await asyncio.to_thread(begun.wait, 60)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go.set()
        await first
        assert pool.wait_idle(60)

    with Pool(1) as pool:
        asyncio.run(main(pool))
    assert done == []


def test_shutdown_with_cancel_cancels_awaitables():
    go, begun = threading.Event(), threading.Event()

    async def main(pool):
        first, second = pool.run(lambda: (begun.set(), go.wait(60))), pool.run(int)
        await asyncio.to_thread(begun.wait, 60)
        pool.shutdown(wait=False, cancel_futures=True)
        go.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.run(int)

    asyncio.run(main(Pool(1)))


def test_loops_of_several_threads_share_a_pool(pool):
    async def main():
        return sum(await asyncio.gather(*(pool.run(int, number) for number in range(500))))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: asyncio.run(main()), range(8)))

    assert found == [sum(range(500))] * 8


def test_a_call_without_a_running_loop_is_an_error(pool):
    with pytest.raises(RuntimeError, match="no running event loop"):
        pool.run(int)


def test_results_for_a_closed_loop_are_dropped_without_an_error(monkeypatch):
    import sys

    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: caught.append(found.exc_type))
    go = threading.Event()

    async def main(pool):
        pool.run(go.wait, 60)

    with Pool(1) as pool:
        asyncio.run(main(pool))
        gc.collect()
        go.set()
        assert pool.submit(int, 3).result(60) == 3

    assert caught in ([], [RuntimeError])
