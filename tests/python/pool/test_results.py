"""Streams of values from jobs: generator functions, `stream` and `Results`."""

import gc
import queue
import sys
import threading
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool, Results = pool_module.Pool, pool_module.Results

from pool.held import until  # noqa: E402


def numbers(count):
    yield from range(count)
    return "the end"


def test_a_generator_function_streams(pool):
    assert list(pool.stream(numbers, 10_000)) == list(range(10_000))
    assert list(pool.stream(numbers, count=0)) == []


def test_the_values_of_many_jobs_all_arrive(pool):
    results = Results(maxsize=7)
    into = pool.options(results=results)
    for _ in range(50):
        into.push(numbers, 200)
    into.push_many(int, range(200, 300))

    assert sorted(results) == sorted([*range(200)] * 50 + [*range(200, 300)])
    assert list(results) == []


def test_a_worker_produces_no_more_values_ahead_than_the_bound(pool):
    results, begun = Results(3), []

    def count():
        for number in range(20):
            begun.append(number)
            yield number

    pool.options(results=results).push(count)
    until(lambda: len(results) == 3)
    assert not pool.wait_idle(0.1)
    assert begun == [0, 1, 2, 3]

    assert list(results) == list(range(20))


def test_an_exception_of_a_job_is_raised_in_place_of_its_value_and_other_jobs_continue():
    with Pool(1) as pool:
        results = Results()
        into = pool.options(results=results)
        into.push(fail_after, 1)
        into.push(numbers, 2)
        assert next(results) == 0
        with pytest.raises(KeyError, match="why"):
            next(results)

        assert list(results) == [0, 1]
        assert pool.stats().failed == 1


def test_a_job_that_raises_stop_iteration_does_not_look_like_the_end():
    with Pool(1) as pool:
        results = Results()
        into = pool.options(results=results)
        into.push(next, iter(()))
        into.push(int, 7)
        with pytest.raises(RuntimeError, match="a job raised StopIteration") as caught:
            list(results)

        assert isinstance(caught.value.__cause__, StopIteration)
        assert list(results) == [7]


def test_a_stream_that_failed_never_looks_complete():
    told = []
    with Pool(1, done_callback=told.append, failed_callback=told.append) as pool:
        stream = pool.stream(fail_after, 2)
        assert [next(stream), next(stream)] == [0, 1]
        with pytest.raises(KeyError, match="why"):
            next(stream)
    assert told == []


def fail_after(count):
    yield from range(count)
    raise KeyError("why")


def test_a_future_beside_results_has_the_return_value_of_the_generator(pool):
    results = Results()
    into = pool.options(results=results)
    stream, plain, failed = into.submit(numbers, 3), into.submit(pow, 2, 3), into.submit(int, "x")

    assert (stream.result(60), plain.result(60)) == ("the end", 8)
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(60)
    assert sorted(results) == [0, 1, 2, 8]


def test_submit_alone_returns_the_generator(pool):
    assert list(pool.submit(numbers, 3).result(60)) == [0, 1, 2]


def test_push_runs_a_generator_to_its_end(pool, unraisable):
    done = []

    def steps():
        for number in range(3):
            done.append(number)
            yield
        raise KeyError("why")

    pool.push(steps)
    assert pool.wait_idle(60)

    assert done == [0, 1, 2]
    assert [type(each.exc_value) for each in unraisable] == [KeyError]


@pytest.mark.parametrize("how", ["close", "with", "drop"])
def test_a_generator_ends_when_its_stream_is_closed_or_dropped(pool, how):
    ended = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            ended.set()

    stream = pool.stream(endless)
    assert next(stream) == 1
    if how == "close":
        stream.close()
        assert list(stream) == []
    elif how == "with":
        with stream:
            pass
    else:
        del stream
    assert ended.wait(60)
    assert pool.wait_idle(60)


def test_jobs_that_never_run_end_the_results_too():
    pool, go = Pool(1), threading.Event()
    pool.push(go.wait, 60)
    results = Results()
    waiting = pool.options(results=results)
    waiting.push(int)
    waiting.submit_later(1000, int)
    assert pool.clear() == 1
    go.set()

    assert list(results) == []
    pool.shutdown()


def test_get_waits_a_limited_time(pool):
    go, results = threading.Event(), Results()
    pool.options(results=results).push(go.wait, 60)
    with pytest.raises(queue.Empty, match="no value came in time"):
        results.get(0.01)
    go.set()

    assert results.get(60) is True
    with pytest.raises(queue.Empty, match="all jobs have ended"):
        results.get(60)
    with pytest.raises(ValueError, match="timeout must be a number of seconds or None, not nan"):
        results.get(float("nan"))
    with pytest.raises(ValueError, match="timeout must be 0 or more seconds, or None, not -1"):
        results.get(-1)


def test_results_pass_values_from_several_threads_to_several(pool):
    results, found = Results(10), [[], []]
    for _ in range(4):
        pool.options(results=results).push(numbers, 5000)
    takers = [threading.Thread(target=each.extend, args=(results,)) for each in found]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join(60)

    assert sorted(found[0] + found[1]) == sorted([*range(5000)] * 4)


def test_unread_values_are_freed():
    class Value:
        pass

    kept = []

    def make():
        value = Value()
        kept.append(weakref.ref(value))
        return value

    with Pool(1) as pool:
        results = Results()
        pool.options(results=results).push(make)
        assert pool.wait_idle(60)
        assert (bool(results), len(results)) == (True, 1)
        del results
    gc.collect()

    assert kept[0]() is None


def test_a_stream_runs_in_the_context_of_its_caller():
    import contextvars

    request = contextvars.ContextVar("request", default="none")
    request.set("outer")

    def ask():
        yield request.get()

    with Pool(1, context="copy") as pool:
        assert list(pool.stream(ask)) == ["outer"]


def test_a_stream_is_complete_with_a_small_switch_interval(pool):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert sum(pool.stream(numbers, 20_000)) == 20_000 * 19_999 // 2
    finally:
        sys.setswitchinterval(before)


UNTAKEN = """
EXECUTOR
import atexit, sys, threading, time
from logspool.pool import Pool
pool = Pool(1, at_exit=sys.argv[1])
def count():
    try:
        yield from range(5000)
    finally:
        print("closed")
stream = pool.stream(count)
@atexit.register
def rest():
    try:
        print(sum(1 for _ in stream))
    except RuntimeError as error:
        print(error)
print(next(stream))
"""


# Imported before the pool, so that at exit the interpreter ends the pool's threads before the executor's.
EXECUTORS = {
    "no": "",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
executor = ThreadPoolExecutor(2)
""",
    "processes": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
executor = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
""",
}


@pytest.mark.parametrize("at_exit", ["finish", "cancel"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_interpreter_exit_does_not_wait_for_a_consumer_of_values(run_program, at_exit, executor):
    used = EXECUTORS[executor] and EXECUTORS[executor] + "assert executor.submit(int).result() == 0"
    outcome, _ = run_program(UNTAKEN.replace("EXECUTOR", used), at_exit)

    assert outcome.expect_success().out.decode().splitlines() == [
        "0",
        "closed",
        "the interpreter ended while more values came; take them all before, or close() the results",
    ]


TAKERS = [
    "threading.Thread(target=take).start()",
    "Pool(1).push(take)",
    "executor = ThreadPoolExecutor(1); executor.submit(int).result(); executor.submit(take)",
]


@pytest.mark.parametrize("taker", TAKERS)
def test_interpreter_exit_waits_for_consumers_of_values(run_program, taker):
    body = f"""
from concurrent.futures import ThreadPoolExecutor
import threading, time
from logspool.pool import Pool
pool = Pool(1)
def count():
    yield from range(5000)
stream = pool.stream(count)
def take():
    # The exit has begun by then, and checks several times.
    time.sleep(0.5)
    print(sum(1 for _ in stream))
{taker}
"""
    outcome, _ = run_program(body)

    assert outcome.expect_success().out == b"5000\n"


def test_interpreter_exit_does_not_count_a_daemon_that_runs_a_job_itself_as_a_worker(run_program):
    body = """
import threading, time
from logspool.pool import Pool, Results
pool, results, begun = Pool(1, queue_size=1, overflow="caller_runs"), Results(1), threading.Semaphore(0)
into = pool.options(results=results)
def count():
    begun.release()
    yield from range(9)
into.push(count)
begun.acquire()
pool.push(int)
# The queue is full, and so are the results.
threading.Thread(target=into.push, args=(count,), daemon=True).start()
begun.acquire()
time.sleep(0.2)
"""
    outcome, _ = run_program(body)

    outcome.expect_success()


def test_invalid_bounds_are_refused():
    with pytest.raises(ValueError, match="maxsize is -1, expected 0"):
        Results(-1)
    with pytest.raises(TypeError):
        Results("many")
