"""fastthreadpool's names: threads, jobs, `map`, and attributes of a pool."""

import gc
import os
import threading
import weakref

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")
Pool = compat.Pool

from pool.held_compat import count_to, fail, held  # noqa: E402

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("given", "threads"), [(-9999, CORES), (-10_000, CORES), (0, CORES), (1 - CORES, 1), (3, 3)])
def test_the_default_number_of_threads_depends_on_the_number_of_cores(given, threads):
    all_there = threading.Barrier(threads, timeout=60)
    with Pool(given) as pool:
        for _ in range(threads):
            pool.submit(all_there.wait)

        assert list(range(threads)) == sorted(pool.as_completed())
        assert threads == pool.child_cnt


def test_a_pool_without_threads_is_refused():
    with pytest.raises(ValueError, match="number of child threads must be greater than 0"):
        Pool(-CORES)


def test_thread_names_have_the_prefix():
    with Pool(1, child_name_prefix="copy") as named, Pool(1) as plain:
        assert named.submit(lambda: threading.current_thread().name)
        assert plain.submit(lambda: threading.current_thread().name)

        assert [["copy_0"], ["ThreadPool_0"]] == [list(pool.as_completed()) for pool in (named, plain)]


def test_threads_run_the_initializer_and_the_finalizer():
    ended = []

    def prepare(thread, value):
        thread.value = value

    with Pool(2, init_callback=prepare, init_args=(7,), finish_callback=lambda: ended.append(None)) as pool:
        for _ in range(20):
            pool.submit(lambda: threading.current_thread().value)
        assert [7] * 20 == list(pool.as_completed())
        threads = pool.child_cnt

    assert threads == len(ended)


def test_jobs_fail_if_the_initializer_fails():
    go = threading.Event()

    def prepare(thread):
        assert go.wait(60)
        raise KeyError("prepare")

    pool = Pool(1, init_callback=prepare, exc_args=True)
    for number in range(3):
        pool.submit(int, number)
    go.set()
    failures = list(pool.as_completed())

    assert [("'prepare'", (number,), {}) for number in range(3)] == [(str(error), *rest) for error, *rest in failures]
    with pytest.raises(RuntimeError, match="init_callback failed"):
        pool.submit(int)
    assert pool.shutdown(60)


def test_jobs_can_run_before_waiting_ones():
    pool, go = held()
    done = []
    pool.submit(done.append, "first in")
    pool.submit_first(done.append, "before it")
    pool.submit_done_first(done.append, False, "before all")
    go.set()
    pool.shutdown()

    assert ["before all", "before it", "first in"] == done


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_map_processes_each_item_of_any_iterable_once(direct, count):
    with Pool(3) as pool:
        pool.map(int, (number for number in range(count)), direct=direct)

    assert list(range(count)) == sorted(pool.done)
    assert not pool.failed


@pytest.mark.parametrize(
    ("items", "unpack_args", "expected"),
    [
        ([(1, 2), [3, 4]], None, [(1, 2), (3, 4)]),
        (["ab", {5}], None, [("ab",), ({5},)]),
        ([(1, 2)], False, [((1, 2),)]),
        (["ab"], True, [("a", "b")]),
    ],
)
def test_map_unpacks_items_on_request(items, unpack_args, expected):
    with Pool(1) as pool:
        pool.map(lambda *args: args, items, unpack_args=unpack_args)

    assert expected == list(pool.done)


def test_map_continues_after_an_item_that_fails():
    seen = []
    with Pool(2, exc_args=True) as pool:
        pool.map(lambda number: 1 // number, range(-50, 50))
        pool.map(int, ["5", 6], seen.append, unpack_args=False)
        pool.map(int, [7], False)
        pool.map(int, [8], unpack_args=True)

    assert len(pool.done) == 99
    failures = {type(error): (args, kwargs) for error, args, kwargs in pool.failed}
    assert {ZeroDivisionError: ((0,), {}), TypeError: (8, {})} == failures
    assert len(pool.failed) == 2
    assert [5, 6] == sorted(seen)


def test_generator_functions_stream_their_values():
    seen, waits = [], threading.Event()

    def stream():
        yield "first"
        assert waits.wait(60)
        yield "second"

    with Pool(2) as pool:
        pool.submit(stream)
        results = pool.as_completed()
        assert next(results) == "first"
        waits.set()
        assert ["second"] == list(results)
        pool.map(count_to, [3, 4])
        pool.map(count_to, [2], seen.append)
        pool.submit(lambda: count_to(5))

    *values, generator = sorted(pool.done, key=str)
    assert [0, 0, 1, 1, 2, 2, 3] == values
    assert [0, 1, 2, 3, 4] == list(generator)
    assert [0, 1] == seen


def test_a_generator_that_fails_keeps_what_it_yielded():
    def stream():
        yield 1
        fail()

    with Pool(1) as pool:
        pool.submit(stream)

    assert ([1], ["why"]) == (list(pool.done), [str(error) for error in pool.failed])


def test_waiting_jobs_can_be_cancelled_one_by_one_or_all():
    pool, go = held()
    first, second, third, _ = (pool.submit(int, number) for number in range(4))

    assert (True, False) == (pool.cancel(second), pool.cancel(second))
    assert pool.cancel(False) is True
    assert (3, 4) == (len(pool.jobs), pool.pending)
    pool.submit_first(int, 5)
    assert pool.cancel(third)
    assert pool.cancel() is True
    assert ((), 1) == (pool.jobs, pool.pending)
    pool.submit(int, 6)
    go.set()
    assert pool.shutdown(60)
    assert [6] == list(pool.done)
    assert pool.cancel(first) is False


def test_jobs_of_many_threads_have_unique_ids_and_are_done_once():
    numbers = [[] for _ in range(4)]

    def give(mine):
        for number in range(2000):
            mine.append(pool.submit(int, number))

    with Pool(2, result_id=True) as pool:
        givers = [threading.Thread(target=give, args=(mine,)) for mine in numbers]
        for giver in givers:
            giver.start()
        for giver in givers:
            giver.join(60)

    assert {number: result for mine in numbers for result, number in enumerate(mine)} == dict(pool.done)
    assert len(pool.done) == len({number for mine in numbers for number in mine}) == 8000


def test_the_arguments_of_a_cancelled_job_are_freed_at_once():
    class Thing:
        pass

    pool, go = held()
    thing = Thing()
    gone = weakref.ref(thing)
    number = pool.submit(id, thing)
    del thing
    assert gone() is not None
    pool.cancel(number)
    gc.collect()

    assert gone() is None
    go.set()
    assert pool.shutdown(60)


def test_a_caller_can_wait_until_the_pool_is_idle():
    assert Pool(1).wait_idle(0) is True
    pool, go = held()

    assert pool.wait_idle(0.02) is False
    go.set()
    assert pool.wait_idle() is True
    assert pool.shutdown(60)


def test_threads_and_waiting_jobs_can_be_inspected():
    pool, go = held()
    pool.submit(pow, 2, exp=3)
    pool.submit_done(int, False)

    assert (1, 1, 1, 3) == (pool.child_cnt, pool.alive, pool.busy, pool.pending)
    assert all(isinstance(thread, threading.Thread) for thread in pool.children)
    assert ((pow, True, (2,), {"exp": 3}), (int, False, (), {})) == pool.jobs
    assert ((), ()) == (pool.delayed, pool.scheduled)
    pool.cleanup_children()
    go.set()
    assert pool.done_cnt.acquire(timeout=60)
    assert 8 == pool.done.popleft()
    pool.submit(fail)
    assert pool.failed_cnt.acquire(timeout=60)
    assert "why" == str(pool.failed.popleft())
    assert pool.wait_idle(60)
    assert (1, 0, 0, False) == (pool.alive, pool.busy, pool.pending, pool.is_shutdown)
    assert pool.shutdown(60)


def test_the_compat_semaphore_is_that_of_the_pool():
    from logspool.pool import Semaphore

    assert compat.Semaphore is Semaphore
