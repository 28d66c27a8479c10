"""Jobs: arguments, results, and the places of failures."""

import asyncio
import concurrent.futures
import contextvars
import gc
import sys
import threading
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool


def echo(*args, **kwargs):
    return args, kwargs


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 20])
def test_jobs_get_their_arguments_unchanged(pool, count):
    args = tuple(range(count))
    for names in ([], ["a"], ["fn", "self", "args"]):
        kwargs = {name: object() for name in names}

        assert pool.submit(echo, *args, **kwargs).result() == (args, kwargs)


def test_results_are_returned_and_all_jobs_are_done(pool):
    futures = [pool.submit(pow, number, 2) for number in range(10_000)]

    assert [future.result() for future in futures] == [number**2 for number in range(10_000)]


def test_pushed_jobs_are_done(pool):
    done = []
    for number in range(10_000):
        pool.push(done.append, number)

    assert pool.wait_idle(60)
    assert sorted(done) == list(range(10_000))


def test_jobs_of_one_worker_keep_their_order():
    done = []
    with Pool(1) as pool:
        for number in range(1000):
            pool.push(done.append, number)

    assert done == list(range(1000))


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_of_a_job_is_set_on_its_future_and_the_worker_survives(kind):
    def fail():
        raise kind("why")

    with Pool(1) as pool:
        future = pool.submit(fail)

        with pytest.raises(kind, match="why") as caught:
            future.result(60)
        assert caught.value is future.exception()
        assert caught.traceback[-1].name == "fail"
        assert pool.submit(threading.get_ident).result() == pool.submit(threading.get_ident).result()


def test_exceptions_of_pushed_jobs_go_to_the_unraisable_hook(pool, monkeypatch):
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: caught.append((found.exc_type, found.object)))

    def fail():
        raise SystemExit(3)

    pool.push(fail)
    assert pool.wait_idle(60)

    assert caught == [(SystemExit, fail)]
    assert pool.stats().failed == 1


@pytest.mark.parametrize("method", ["submit", "push"])
def test_a_call_without_a_function_is_refused(pool, method):
    with pytest.raises(TypeError, match=rf"{method}\(\) missing 1 required positional argument: 'fn'"):
        getattr(pool, method)()


def test_an_object_that_is_not_callable_is_refused(pool):
    with pytest.raises(
        TypeError, match=r"submit\(\) needs a function, not 3: give it uncalled, its arguments after it"
    ):
        pool.submit(3)


def test_after_shutdown_new_jobs_are_refused_and_accepted_ones_are_done():
    pool = Pool(1)
    futures = [pool.submit(int, number) for number in range(100)]
    pool.shutdown()

    assert [future.result(0) for future in futures] == list(range(100))
    for method in (pool.submit, pool.push):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            method(int)
    pool.shutdown()


def test_shutdown_can_cancel_jobs_that_have_not_started():
    begun, go = threading.Event(), threading.Event()
    pool = Pool(1)
    first = pool.submit(lambda: (begun.set(), go.wait(60)))
    rest = [pool.submit(int) for _ in range(10)]
    assert begun.wait(60)
    pool.shutdown(wait=False, cancel_futures=True)
    go.set()
    pool.shutdown()

    assert all(future.cancelled() for future in rest)
    assert concurrent.futures.wait(rest, timeout=0).not_done == set()
    assert first.result()[1] is True


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="references to None are counted up to 3.11")
def test_a_push_leaks_no_reference_to_none():
    go = threading.Event()
    with Pool(1) as pool:
        pool.push(go.wait, 60)
        before = sys.getrefcount(None)
        for _ in range(5000):
            pool.push(int)
        after = sys.getrefcount(None)
        go.set()

    assert after - before < 1000


def test_arguments_and_results_are_freed(pool):
    class Thing:
        pass

    thing, made = Thing(), []
    gone = weakref.ref(thing)
    future = pool.submit(lambda each: made.append(weakref.ref(each)) or Thing(), thing)
    del thing
    result = weakref.ref(future.result())
    assert pool.wait_idle(60)
    del future
    gc.collect()

    assert (gone(), made[0](), result()) == (None, None, None)


@pytest.mark.parametrize("verb", ["submit", "push", "push_many", "run"])
def test_a_job_releases_every_reference_that_it_takes(pool, verb):
    class Thing:
        pass

    things = [Thing() for _ in range(4)]
    made = []

    def job(first, *_rest, **_keywords):
        made.append(weakref.ref(result := Thing()))
        return first if len(made) % 2 else result

    async def run_all(count):
        await asyncio.gather(*(pool.run(job, *things[:3], last=things[3]) for _ in range(count)))

    def give(count):
        if verb == "submit":
            for future in [pool.submit(job, *things[:3], last=things[3]) for _ in range(count)]:
                future.result()
        elif verb == "push":
            for _ in range(count):
                pool.push(job, *things[:3], last=things[3])
        elif verb == "push_many":
            pool.push_many(job, *([thing] * count for thing in things))
        else:
            asyncio.run(run_all(count))
        assert pool.wait_idle(60)
        gc.collect()

    give(10)
    before = [sys.getrefcount(each) for each in [*things, job]]
    give(1000)

    assert [sys.getrefcount(each) for each in [*things, job]] == before
    assert [reference() for reference in made if reference() is not None] == []


def test_an_unreferenced_pool_finishes_its_jobs_and_its_threads_end():
    done = []
    pool = Pool(2)
    for number in range(100):
        pool.push(done.append, number)
    threads = pool._threads
    del pool
    gc.collect()
    for thread in threads:
        thread.join(60)

    assert sorted(done) == list(range(100))
    assert not any(thread.is_alive() for thread in threads)


def test_jobs_see_context_variables_of_the_caller_on_request():
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("caller's")

    def look():
        before = variable.get()
        variable.set("job's")
        return before

    with Pool(1) as plain, Pool(1, context="copy") as copying:
        assert plain.submit(look).result() == "default"
        assert [copying.submit(look).result() for _ in range(2)] == ["caller's"] * 2
    assert variable.get() == "caller's"


def test_jobs_may_submit_jobs(pool):
    def count_down(number):
        return pool.submit(count_down, number - 1) if number else "done"

    found = pool.submit(count_down, 50)
    while found != "done":
        found = found.result(60)


def test_stats_count_finished_jobs(pool):
    for _ in range(5):
        pool.submit(int).result()
    assert pool.wait_idle(60)

    stats = pool.stats()
    assert (stats.depth, stats.busy, stats.submitted, stats.dropped, stats.oldest_age) == (0, 0, 5, 0, 0.0)
    assert 1 <= stats.workers <= 2


def test_stats_show_the_age_of_the_oldest_job():
    go, begun = threading.Event(), threading.Event()
    with Pool(1) as pool:
        pool.push(lambda: (begun.set(), go.wait(60)))
        assert begun.wait(60)
        pool.push(int)
        threading.Event().wait(0.1)
        stats = pool.stats()
        go.set()

    assert (stats.depth, stats.busy) == (1, 1)
    assert 0.05 <= stats.oldest_age < 60
