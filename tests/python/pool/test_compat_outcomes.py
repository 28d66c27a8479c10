"""fastthreadpool's names: the places and forms of results and failures."""

import itertools
import logging
import threading
from collections import deque

import pytest

pytestmark = pytest.mark.real

compat = pytest.importorskip("logspool.pool.compat")
Pool = compat.Pool

from pool.held_compat import count_to, fail  # noqa: E402


def test_results_are_in_done_and_failures_in_failed():
    with Pool(2) as pool:
        for number in range(1000):
            pool.submit(pow, number, exp=2)
            pool.submit(fail, number)

    assert [number**2 for number in range(1000)] == sorted(pool.done)
    assert ["why"] * 1000 == [str(error) for error in pool.failed]
    assert isinstance(pool.done, deque)
    assert isinstance(pool.failed, deque)
    assert pool.done.count(0) == 1
    assert list(pool.done.copy()) == list(pool.done)


def test_a_done_callback_gets_all_results_in_its_own_thread():
    seen, threads = [], set()

    def note(result):
        threads.add(threading.current_thread())
        seen.append(result)

    with Pool(2, done_callback=note) as pool:
        for number in range(1000):
            pool.submit(int, number)
        pool.submit_done(int, True, -1)
        pool.map(int, range(1000, 1100))
        workers = set(pool.children)

    assert list(range(-1, 1100)) == sorted(seen)
    assert len(threads) == 1
    assert not threads & workers
    assert not pool.done


def test_a_pool_can_drop_results_and_keep_failures():
    with Pool(1, done_callback=False) as pool:
        pool.submit(int)
        pool.submit_first(int)
        pool.submit_done(int, True, 5)
        pool.submit(fail)

    assert [5] == list(pool.done)
    assert ["why"] == [str(error) for error in pool.failed]


def test_a_failed_callback_gets_the_parts_of_each_failure_in_its_own_thread():
    plain, whole, threads = [], [], set()

    def note(*parts):
        threads.add(threading.current_thread())
        whole.append(parts)

    with Pool(2, failed_callback=plain.append) as pool:
        pool.submit(fail)
    with Pool(2, failed_callback=note, result_id=True, exc_args=True) as pool_with_ids:
        numbers = [pool_with_ids.submit(fail, number, key=number) for number in range(100)]

    assert ["why"] == [str(error) for error in plain]
    assert sorted(zip(numbers, itertools.repeat("why"), range(100))) == sorted(
        (number, str(error), args[0]) for number, error, args, _ in whole
    )
    assert all(kwargs == {"key": args[0]} for _, _, args, kwargs in whole)
    assert len(threads) == 1
    assert not pool.failed
    assert not pool_with_ids.failed


@pytest.fixture
def logger():
    """Give the logger of failed jobs, in the state before the first pool of a program."""
    logger = logging.getLogger("fastthreadpool")
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers.clear()
    yield logger
    logger.handlers[:], logger.propagate = before[:2]
    logger.setLevel(before[2])


def test_each_failure_is_logged_once_with_any_number_of_pools(logger, capsys):
    for _ in range(2):
        with Pool(1, log_level=logging.ERROR) as pool:
            pool.submit(fail)
        assert not pool.failed
    printed = capsys.readouterr().err

    assert ["[ERROR/MainProcess] why"] * 2 == [line for line in printed.splitlines() if line.startswith("[")]
    assert printed.count("ValueError: why") == 2


def test_failures_below_the_level_are_not_logged(logger, capsys):
    with Pool(1, log_level="CRITICAL") as pool:
        pool.submit(fail)

    assert capsys.readouterr().err == ""


def test_a_logger_with_handlers_keeps_them(logger, capsys):
    records, failures = [], []
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    with Pool(1, log_level=logging.ERROR, failed_callback=failures.append) as pool:
        pool.submit(fail)

    assert ["why"] == [record.getMessage() for record in records]
    assert failures == [record.exc_info[1] for record in records]
    assert [handler] == logger.handlers
    assert capsys.readouterr().err == ""


def test_results_and_failures_have_the_id_of_their_job():
    with Pool(2, result_id=True) as pool:
        numbers = {pool.submit(int, number): number for number in range(100)}
        first = pool.submit_first(int, 100)
        failed = pool.submit_done(fail, True)
        stream = pool.submit(count_to, 2)
        pool.map(int, [101])

    expected = {**numbers, first: 100, 0: 101}
    assert expected == {number: result for number, result in pool.done if number != stream}
    assert [(stream, 0), (stream, 1)] == [entry for entry in pool.done if entry[0] == stream]
    assert [(failed, "why")] == [(number, str(error)) for number, error in pool.failed]


@pytest.mark.parametrize("result_id", [False, True])
@pytest.mark.parametrize("exc_args", [False, True])
@pytest.mark.parametrize("exc_stack", [False, True])
def test_failures_have_the_requested_parts(result_id, exc_args, exc_stack):
    with Pool(1, result_id=result_id, exc_args=exc_args, exc_stack=exc_stack) as pool:
        number = pool.submit(fail, 1, key=2)
    (found,) = pool.failed
    parts = list(found) if isinstance(found, tuple) else [found]

    if result_id:
        assert number == parts.pop(0)
    if exc_args:
        assert [(1,), {"key": 2}] == [parts.pop(1), parts.pop(1)]
    (what,) = parts
    if exc_stack:
        assert what.startswith("Traceback (most recent call last):\n")
        assert what.endswith("ValueError: why\n")
        assert ", in fail\n" in what
    else:
        assert (ValueError, "why") == (type(what), str(what))


@pytest.mark.parametrize("take", [True, False, "callback"])
def test_a_job_can_have_its_own_done_callback(take):
    seen = []

    def note(result):
        seen.append((result, threading.current_thread()))

    with Pool(1) as pool:
        pool.submit_done(int, False)
        (worker,) = pool.children
        for submit in (pool.submit_done, pool.submit_done_first):
            submit(int, note if take == "callback" else take, 3)
            submit(count_to, note if take == "callback" else take, 2)

    assert sorted([3, 0, 1] * 2) * (take is True) == sorted(pool.done)
    assert sorted([3, 0, 1] * 2) * (take == "callback") == sorted(result for result, _ in seen)
    assert {worker} >= {thread for _, thread in seen}
    assert not pool.failed


def test_an_exception_in_the_callback_of_a_job_is_a_failure_of_the_job():
    with Pool(1) as pool:
        pool.submit_done(int, fail)

    assert ["why"] == [str(error) for error in pool.failed]


def test_jobs_that_raise_system_exit_are_failures():
    def leave(kind):
        raise kind

    with Pool(1) as pool:
        for kind in (SystemExit, KeyboardInterrupt, GeneratorExit):
            pool.submit(leave, kind)
        pool.submit(int)

    assert [SystemExit, KeyboardInterrupt, GeneratorExit] == [type(error) for error in pool.failed]
    assert [0] == list(pool.done)


@pytest.mark.parametrize(
    "options", [{"done_callback": int}, {"failed_callback": int}, {"log_level": logging.ERROR}], ids=str
)
def test_results_given_to_a_callback_cannot_be_taken_again(options, logger):
    with Pool(1, **options) as pool, pytest.raises(compat.PoolCallback, match=next(iter(options))):
        pool.as_completed()
