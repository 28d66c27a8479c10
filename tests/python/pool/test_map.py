"""`Pool.map`: every result once, in order or not; an error in place of its result; lazily if requested."""

import concurrent.futures
import gc
import itertools
import threading
import weakref

import pytest

pytestmark = pytest.mark.real

Pool = pytest.importorskip("logspool.pool").Pool


def square(number):
    return number * number


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("options", [{}, {"chunksize": 1}, {"chunksize": 300}, {"buffersize": 1}, {"buffersize": 50}])
@pytest.mark.parametrize("shape", [list, tuple, iter, range])
def test_results_are_returned_in_order(pool, count, options, shape):
    items = range(count) if shape is range else shape(range(count))

    assert list(pool.map(square, items, **options)) == [square(number) for number in range(count)]


def test_the_shortest_input_counts(pool):
    assert list(pool.map(pow, [1, 2, 3], [2, 2], buffersize=4)) == [1, 4]
    assert list(pool.map(pow, [1, 2, 3], [2, 2])) == [1, 4]


def test_endless_input_is_read_as_results_are_taken(pool):
    read = []

    def numbers():
        for number in itertools.count():
            read.append(number)
            yield number

    results = pool.map(square, numbers(), buffersize=10)
    assert list(itertools.islice(results, 100)) == [square(number) for number in range(100)]
    results.close()

    assert 100 <= len(read) <= 120
    assert list(results) == []


def test_unordered_results_are_returned_as_they_are_ready(pool):
    go = threading.Event()

    def wait_or_not(number):
        if number == 0:
            go.wait(60)
        return number

    # So few items that each chunk has a single item.
    results = pool.map(wait_or_not, range(4), ordered=False)
    first = list(itertools.islice(results, 3))
    go.set()

    assert sorted(first) == list(range(1, 4))
    assert list(results) == [0]


@pytest.mark.parametrize("options", [{}, {"chunksize": 100}, {"buffersize": 4}])
def test_an_error_is_raised_where_its_result_would_be(pool, options):
    def fail_at_five(number):
        if number == 5:
            raise KeyError(number)
        return number

    results = pool.map(fail_at_five, range(10), **options)

    assert list(itertools.islice(results, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="5") as caught:
        next(results)
    assert caught.traceback[-1].name == "fail_at_five"
    assert list(results) == []


@pytest.mark.parametrize("columns", [1, 2])
def test_stop_iteration_does_not_cut_the_results(pool, columns):
    results = pool.map(lambda *numbers: next(iter(numbers[:0])), *[range(10)] * columns)

    with pytest.raises(RuntimeError, match="StopIteration"):
        next(results)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_timeout_counts_from_the_call(pool, ordered):
    go = threading.Event()
    results = pool.map(go.wait, [60, 60], timeout=0.05, ordered=ordered)
    with pytest.raises(concurrent.futures.TimeoutError):
        next(results)
    go.set()


def test_items_that_nobody_waits_for_are_cancelled():
    begun, go, done = threading.Event(), threading.Event(), []
    with Pool(1) as pool:
        results = pool.map(lambda number: (begun.set(), go.wait(60), done.append(number)), range(10), chunksize=1)
        assert begun.wait(60)
        results.close()
        go.set()

    assert done == [0]


@pytest.mark.parametrize("options", [{}, {"chunksize": 100}, {"buffersize": 150}, {"ordered": False}])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("shape", [list, tuple, range])
def test_a_dropped_iterator_cancels_items_that_have_not_started(options, columns, shape):
    reached, go, done = threading.Event(), threading.Event(), []

    def run(*numbers):
        done.append(numbers)
        if len(done) == 110:
            reached.set()
            go.wait(60)

    with Pool(1) as pool:
        items = range(200) if shape is range else shape(range(200))
        results = pool.map(run, *[items] * columns, **{"chunksize": 25, **options})
        next(results)
        assert reached.wait(60)
        del results
        gc.collect()
        go.set()

    assert len(done) == 110


def test_an_iterator_that_was_never_advanced_runs_everything():
    # As with `ThreadPoolExecutor`: programs use `map` for the side effects of its jobs.
    done = []
    with Pool(1) as pool:
        pool.map(done.append, range(100))

    assert done == list(range(100))


def test_single_results_are_not_kept_alive(pool):
    class Thing:
        pass

    for thing in pool.map(lambda _: Thing(), range(4)):
        gone = weakref.ref(thing)
        del thing
        gc.collect()
        assert gone() is None


def test_results_do_not_keep_the_pool_alive(pool):
    other = Pool(1)
    results, gone = other.map(square, range(10)), weakref.ref(other)
    del other
    gc.collect()

    assert gone() is None
    assert list(results) == [square(number) for number in range(10)]


@pytest.mark.parametrize(
    ("name", "wanted"), [("chunksize", "is 0, expected 1 or more"), ("buffersize", "must be None or > 0, not 0")]
)
def test_sizes_below_one_are_refused(pool, name, wanted):
    with pytest.raises(ValueError, match=f"{name} {wanted}"):
        pool.map(square, [1], **{name: 0})


def test_all_workers_take_part(pool):
    both = threading.Barrier(2, timeout=60)

    assert sorted(pool.map(lambda _: both.wait(), range(2))) == [0, 1]
