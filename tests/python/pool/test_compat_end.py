"""fastthreadpool's names: the end of a pool and of a program, and a restart."""

import gc
import threading
import time

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")
Pool = compat.Pool

from pool.held_compat import count_to, fail, held  # noqa: E402


def test_a_cleared_pool_starts_again_even_after_shutdown():
    pool, go = held()
    pool.submit(int)
    pool.clear()
    go.set()
    assert pool.wait_idle(60)
    pool.submit(int)
    pool.submit(fail)
    assert pool.wait_idle(60)
    pool.clear()

    assert [0, 0, 0, 0] == [len(pool.done), len(pool.failed), pool.done_cnt.value, pool.failed_cnt.value]
    for end in (pool.shutdown, pool.shutdown_children):
        end()
        with pytest.raises(compat.PoolStopped):
            pool.submit(int)
        assert ((), 0) == (pool.jobs, pool.pending)
        pool.clear()
        assert not pool.is_shutdown
        pool.submit(int, 7)
        assert [7] == list(pool.as_completed())
    assert pool.shutdown(60)


def test_callbacks_and_bounds_still_apply_after_a_restart():
    seen = []
    pool = Pool(1, done_callback=seen.append)
    pool.shutdown()
    pool.clear()
    pool.submit(int, 3)
    assert pool.shutdown(60)
    bounded = Pool(1, done_max=1)
    bounded.shutdown(soon=True)
    bounded.clear()
    bounded.submit(count_to, 3)
    assert not bounded.wait_idle(0.05)

    assert [3] == seen
    assert [0, 1, 2] == list(bounded.as_completed())
    assert bounded.shutdown(60)


def test_shutdown_waits_for_all_jobs_or_returns_false():
    pool, go = held()
    for number in range(10):
        pool.submit(int, number)

    assert pool.is_shutdown is False
    assert pool.shutdown(0.02) is False
    assert pool.is_shutdown is True
    assert pool.join(0) is False
    go.set()
    assert pool.join() is True
    assert list(range(10)) == list(pool.done)
    assert (0, 0, ()) == (pool.alive, pool.child_cnt, pool.children)


def test_a_job_that_waits_for_the_shutdown_of_its_own_pool_fails():
    with Pool(1) as pool:
        pool.submit(lambda: pool.shutdown())
        (failure,) = pool.as_completed()

    assert "own pool" in str(failure)
    assert isinstance(failure, RuntimeError)


def test_shutdown_waits_for_callbacks():
    seen, go = [], threading.Event()
    pool = Pool(1, done_callback=lambda result: go.wait(60) and seen.append(result))
    pool.submit(int)

    assert pool.shutdown(0.05) is False
    go.set()
    assert pool.shutdown(60) is True
    assert [0] == seen


@pytest.mark.parametrize("end", [lambda pool: pool.shutdown(0, soon=True), lambda pool: pool.shutdown_children()])
def test_shutdown_can_skip_waiting_jobs(end):
    pool, go = held()
    pool.submit(int)
    pool.map(int, range(100))
    end(pool)
    go.set()

    assert pool.shutdown(60) is True
    assert not pool.done


def test_shutdown_can_skip_the_rest_of_a_started_map():
    begun, go = threading.Event(), threading.Event()
    pool = Pool(1)
    pool.map(lambda number: (begun.set(), go.wait(60)), range(1000))
    assert begun.wait(60)
    assert pool.shutdown(0, soon=True) is False
    go.set()

    assert pool.shutdown(60)
    assert len(pool.done) == 1


def test_shutdown_that_skips_jobs_does_not_wait_for_a_consumer():
    pool = Pool(1, done_max=1)
    pool.submit(count_to, 10)
    pool.submit(count_to, 10)
    assert not pool.wait_idle(0.05)

    assert pool.shutdown(60, soon=True)
    assert list(range(10)) == list(pool.done)


@pytest.mark.parametrize(("now", "expected"), [(True, 0), (False, 5)])
def test_all_pools_can_be_shut_down_together(now, expected, run_program):
    body = f"""
import threading
from logspool.pool import compat
pools, go, begun = [compat.Pool(1) for _ in range(2)], threading.Event(), threading.Semaphore(0)
for pool in pools:
    pool.submit_done(lambda: (begun.release(), go.wait(60)), False)
    begun.acquire()
    for number in range(5):
        pool.submit(int, number)
threading.Timer(0.05, go.set).start()
compat.Shutdown({now})
print([pool.is_shutdown for pool in pools], [len(pool.done) for pool in pools])
"""
    outcome, _ = run_program(body)

    assert outcome.expect_success().out.decode() == f"[True, True] {[expected] * 2}\n"


def test_program_exit_skips_waiting_jobs_and_finishes_running_ones(run_program):
    body = """
import threading, time
from logspool.pool import compat
def slow():
    begun.set()
    time.sleep(0.1)
    print("ended")
def stream():
    for number in range(10):
        yield number
    print("streamed")
pool, begun = compat.Pool(1), threading.Event()
bounded = compat.Pool(1, done_max=1)
pool.submit(slow)
pool.submit(print, "never")
bounded.submit(stream)
while not bounded.done:
    time.sleep(0.001)
begun.wait(60)
"""
    outcome, _ = run_program(body)

    assert {b"ended", b"streamed"} == set(outcome.expect_success().out.splitlines())
    assert outcome.err == b""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_starts_without_jobs(run_program):
    body = """
import os, threading
from logspool.pool import compat
pool, go, begun = compat.Pool(1), threading.Event(), threading.Event()
pool.submit_done(lambda: (begun.set(), go.wait(60)), False)
pool.submit(int, 1)
begun.wait(60)
child = os.fork()
if child == 0:
    pool.submit(int, 2)
    print(list(pool.as_completed()), pool.pending, flush=True)
    pool.shutdown()
    os._exit(0)
os.waitpid(child, 0)
go.set()
print(list(pool.as_completed()))
"""
    outcome, _ = run_program(body, options=("-W", "ignore::DeprecationWarning"))

    assert [b"[2] 0", b"[1]"] == outcome.expect_success().out.splitlines()


def test_an_unreferenced_pool_finishes_its_jobs_and_its_threads_end():
    done = []
    pool = Pool(2, init_callback=lambda thread: None)
    for number in range(100):
        pool.submit_done(done.append, False, number)
    threads = pool.children
    del pool
    gc.collect()
    deadline = time.monotonic() + 60
    # Short waits: without the GIL, this thread has to run to free objects that it made and a worker released.
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert list(range(100)) == sorted(done)
    assert not any(thread.is_alive() for thread in threads)


def test_a_block_waits_for_its_jobs():
    done = []
    with Pool(1) as pool:
        pool.submit(lambda: (time.sleep(0.02), done.append(1)))

    assert [1] == done
    assert pool.is_shutdown
