"""Futures: the standard library accepts them, also in functions that use their internals."""

import asyncio
import concurrent.futures
import gc
import logging
import threading
import time
import weakref

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool, Future = pool_module.Pool, pool_module.Future


@pytest.fixture
def held():
    """Give (a future that runs until the event is set, a future that waits for the same worker, the event)."""
    go, begun = threading.Event(), threading.Event()
    with Pool(1) as pool:
        running = pool.submit(lambda: (begun.set(), go.wait(60))[1])
        waiting = pool.submit(int, 7)
        assert begun.wait(60)
        yield running, waiting, go
        go.set()


def test_a_future_is_a_standard_library_future(pool):
    future = pool.submit(int)

    assert type(future) is Future
    assert isinstance(future, concurrent.futures.Future)
    assert future.result() == 0
    assert "state=finished returned int" in repr(future)


def test_a_future_reports_its_state(held):
    running, waiting, go = held

    assert (running.running(), running.done(), running.cancelled()) == (True, False, False)
    assert (waiting.running(), waiting.done(), waiting.cancelled()) == (False, False, False)
    assert (running._state, waiting._state) == ("RUNNING", "PENDING")
    go.set()
    assert running.result(60) is True
    assert (running.running(), running.done(), running._state) == (False, True, "FINISHED")


def test_waiting_jobs_can_be_cancelled_and_running_ones_cannot(held):
    running, waiting, go = held

    assert (running.cancel(), waiting.cancel(), waiting.cancel()) == (False, True, True)
    assert waiting.cancelled()
    assert waiting.done()
    for ask in (waiting.result, waiting.exception):
        with pytest.raises(concurrent.futures.CancelledError):
            ask()
    go.set()
    assert running.result(60) is True
    assert running.cancel() is False


def test_a_wait_for_a_result_ends_at_its_deadline(held):
    running, _, _ = held

    for ask in (running.result, running.exception):
        for timeout in (0.02, 0, -1):
            with pytest.raises(concurrent.futures.TimeoutError):
                ask(timeout=timeout)


@pytest.mark.parametrize("arguments", [((1, 2), {}), ((), {"timeuot": 1}), (("soon",), {})])
def test_wrong_arguments_are_refused(held, arguments):
    with pytest.raises(TypeError):
        held[0].result(*arguments[0], **arguments[1])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_callbacks_are_called_in_order_once(held, count):
    running, waiting, go = held
    called = []
    for number in range(count):
        running.add_done_callback(lambda future, number=number: called.append((number, future)))
    go.set()
    waiting.result(60)
    running.add_done_callback(lambda future: called.append("late"))

    assert called == [(number, running) for number in range(count)] + ["late"]


def test_a_callback_that_raises_is_logged_and_the_others_called(held, caplog):
    running, waiting, go = held
    called = []
    running.add_done_callback(lambda _: 1 / 0)
    running.add_done_callback(called.append)
    go.set()
    waiting.result(60)

    assert called == [running]
    (record,) = [each for each in caplog.records if each.name == "concurrent.futures"]
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("exception calling callback for <Future")
    assert record.exc_info[0] is ZeroDivisionError


def test_interrupts_in_a_callback_that_is_called_at_once_are_raised(held, caplog):
    def interrupt(_):
        raise KeyboardInterrupt

    held[1].cancel()

    with pytest.raises(KeyboardInterrupt):
        held[1].add_done_callback(interrupt)
    held[1].add_done_callback(lambda _: 1 / 0)
    assert [each.exc_info[0] for each in caplog.records] == [ZeroDivisionError]


def test_callbacks_of_a_cancelled_job_are_called_at_once(held):
    called = []
    held[1].add_done_callback(called.append)
    held[1].cancel()

    assert called == [held[1]]


def test_wait_and_as_completed_see_each_future_once(pool):
    for _ in range(50):
        futures = [pool.submit(int, number) for number in range(20)]
        assert concurrent.futures.wait(futures, timeout=60).not_done == set()
        assert sorted(each.result() for each in concurrent.futures.as_completed(futures, 60)) == list(range(20))


def test_wait_returns_for_the_first_and_for_an_exception(held):
    running, waiting, go = held
    assert concurrent.futures.wait([running, waiting], timeout=0.02).done == set()
    threading.Timer(0.05, go.set).start()

    found = concurrent.futures.wait([running, waiting], 60, concurrent.futures.FIRST_COMPLETED)

    assert running in found.done


def test_many_threads_wait_for_one_future(held):
    running, _, go = held
    results = []
    threads = [threading.Thread(target=lambda: results.append(running.result(60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    go.set()
    for thread in threads:
        thread.join()

    assert results == [True] * 8


def test_asyncio_accepts_the_pool_and_its_futures():
    async def main(pool):
        loop = asyncio.get_running_loop()
        one = await loop.run_in_executor(pool, pow, 2, 10)
        many = await asyncio.gather(*(asyncio.wrap_future(pool.submit(pow, 2, number)) for number in range(100)))
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(pool, divmod, 1, 0)
        return one, many

    with Pool(2) as pool:
        one, many = asyncio.run(main(pool))

    assert (one, many) == (1024, [2**number for number in range(100)])


def test_asyncio_accepts_a_pool_as_its_default_executor():
    names = []

    def name(*_):
        names.append(threading.current_thread().name)

    async def main(pool):
        loop = asyncio.get_running_loop()
        loop.set_default_executor(pool)
        await loop.run_in_executor(None, name)
        await asyncio.to_thread(name)
        await asyncio.gather(*(loop.run_in_executor(None, name, number) for number in range(100)))
        await loop.shutdown_default_executor()

    pool = Pool(2, "default")
    asyncio.run(main(pool))

    assert len(names) == 102
    assert all(name.startswith("default_") for name in names)
    assert isinstance(pool, concurrent.futures.ThreadPoolExecutor)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(name)


def test_a_closed_loop_shuts_down_its_default_executor():
    pool = Pool(1)
    loop = asyncio.new_event_loop()
    loop.set_default_executor(pool)
    loop.run_until_complete(loop.run_in_executor(None, int))
    loop.close()

    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_a_future_can_be_completed_by_hand():
    future = Future()
    assert future.set_running_or_notify_cancel() is True
    future.set_result(3)

    assert future.result() == 3
    for change in (lambda: future.set_result(4), lambda: future.set_exception(KeyError())):
        with pytest.raises(concurrent.futures.InvalidStateError, match="FINISHED: <Future"):
            change()
    assert (future.result(), future.exception()) == (3, None)
    with pytest.raises(RuntimeError, match="unexpected state: FINISHED"):
        future.set_running_or_notify_cancel()
    failed = Future()
    failed.set_exception(KeyError("k"))
    with pytest.raises(KeyError, match="k"):
        failed.result()
    assert failed._get_snapshot()[:3] == (True, False, None)


def test_futures_are_freed_with_their_contents(pool):
    class Thing:
        pass

    future = pool.submit(Thing)
    thing = weakref.ref(future.result())
    future.itself = future
    future.add_done_callback(lambda _: None)
    pending = Future()
    pending.add_done_callback(lambda _, pending=pending: None)
    gone = weakref.ref(future), weakref.ref(pending)
    assert pool.wait_idle(60)
    del future, pending
    gc.collect()

    assert (thing(), gone[0](), gone[1]()) == (None, None, None)
