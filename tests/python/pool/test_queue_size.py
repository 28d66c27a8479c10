"""A pool with a bounded queue: the overflow policies for a job that has no room."""

import contextlib
import queue
import signal
import threading

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool, Results = pool_module.Pool, pool_module.Results

from pool.held import Held, until  # noqa: E402


@contextlib.contextmanager
def ringing(error):
    """Let a signal handler raise an exception after 50 ms."""

    def ring(*_):
        raise error

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Full(Held):
    """A held pool whose queue of two jobs is full; its jobs append their number and thread to `done`."""

    def __init__(self, overflow):
        super().__init__(queue_size=2, overflow=overflow)
        self.waiting = [self.pool.submit(self.do, number) for number in range(2)]

    def do(self, number):
        self.done.append((number, threading.current_thread().name))
        return number

    def end(self):
        return [number for number, _ in super().end()]


def test_the_block_policy_waits_for_room():
    held = Full("block")
    threading.Timer(0.1, held.go.set).start()

    future = held.pool.submit(held.do, 2)

    assert held.go.is_set()
    assert future.result(60) == 2
    assert held.end() == [0, 1, 2]


def test_a_signal_or_shutdown_ends_a_blocked_call():
    held = Full("block")

    with pytest.raises(InterruptedError, match="rung"), ringing(InterruptedError("rung")):
        held.pool.submit(held.do, 2)
    threading.Timer(0.05, lambda: held.pool.shutdown(wait=False)).start()
    with pytest.raises(RuntimeError, match="after shutdown"):
        held.pool.submit(held.do, 3)

    assert held.end() == [0, 1]


def test_the_raise_policy_reports_a_full_queue():
    held = Full("raise")

    for method in (held.pool.submit, held.pool.push):
        with pytest.raises(queue.Full, match="as many jobs wait as the pool takes"):
            method(held.do, 2)

    assert held.end() == [0, 1]


@pytest.mark.parametrize("give", ["push", "push_many", "with a timeout"])
def test_interrupts_in_a_job_run_by_its_caller_are_raised_in_the_caller(unraisable, give):
    held = Full("caller_runs")

    def interrupt(kind):
        raise kind

    def push(kind):
        if give == "push_many":
            held.pool.push_many(interrupt, [kind])
        else:
            (held.pool if give == "push" else held.pool.options(timeout=60)).push(interrupt, kind)

    push(ValueError)
    for kind in (KeyboardInterrupt, SystemExit):
        with pytest.raises(kind):
            push(kind)

    assert [type(each.exc_value) for each in unraisable] == [ValueError]
    assert held.pool.stats().failed == 3
    kept = held.pool.submit(interrupt, KeyboardInterrupt)
    assert isinstance(kept.exception(0), KeyboardInterrupt)
    assert held.end() == [0, 1]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_a_signal_ends_a_job_run_by_its_caller_that_waits_for_a_consumer(unraisable, kind):
    held = Full("caller_runs")
    results = Results(1)
    into, ended = held.pool.options(results=results), []

    def count():
        try:
            yield from range(10)
        finally:
            ended.append(True)

    with pytest.raises(kind), ringing(kind()):
        into.push(count)

    assert (list(results), ended, unraisable) == ([0], [True], [])
    assert held.end() == [0, 1]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_ctrl_c_in_a_job_run_by_its_caller_is_raised_even_after_the_time_limit(unraisable, kind):
    held = Full("caller_runs")
    failed = []

    def interrupted():
        until(lambda: failed)
        raise kind

    limited = held.pool.options(timeout=0.01, failed_callback=failed.append)
    with pytest.raises(KeyboardInterrupt) if kind is KeyboardInterrupt else contextlib.nullcontext():
        limited.push(interrupted)

    assert ([type(error) for error in failed], unraisable) == ([TimeoutError], [])
    assert held.end() == [0, 1]


def test_ctrl_c_in_a_callback_of_a_job_run_by_its_caller_is_raised():
    held = Full("caller_runs")

    def interrupt(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        held.pool.options(done_callback=interrupt).push(int)

    assert held.end() == [0, 1]


def test_drop_oldest_cancels_the_job_that_waited_longest():
    held = Full("drop_oldest")

    future = held.pool.submit(held.do, 2)

    assert held.waiting[0].cancelled()
    assert held.pool.stats().dropped == 1
    assert held.end() == [1, 2]
    assert future.result(0) == 2


def test_caller_runs_executes_the_job_in_the_caller():
    held = Full("caller_runs")

    future = held.pool.submit(held.do, 2)

    assert future.result(0) == 2
    assert held.done == [(2, threading.current_thread().name)]
    assert held.end() == [2, 0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_workers": 0}, ValueError, "max_workers must be greater than 0, not 0"),
        ({"queue_size": -1}, ValueError, "queue_size is -1, expected 0"),
        ({"overflow": "drop"}, ValueError, "overflow is \"drop\", expected 'block', 'raise', 'drop_oldest' or"),
        ({"context": "deep"}, ValueError, "context is \"deep\", expected 'none' or 'copy'"),
        ({"at_exit": "never"}, ValueError, "at_exit is 'never', expected one of 'finish', 'cancel', 'abandon'"),
        ({"idle_timeout": -1.0}, ValueError, "idle_timeout is -1.0, expected 0 or more seconds, or None"),
        ({"idle_timeout": "1"}, TypeError, "idle_timeout must be a number of seconds or None, not '1'"),
        ({"exit_timeout": "1"}, TypeError, "exit_timeout must be a number of seconds or None, not '1'"),
        ({"overflow": 1}, TypeError, "overflow must be text, not 1"),
        ({"context": 1}, TypeError, "context must be text, not 1"),
        ({"queue_size": "1"}, TypeError, "queue_size must be a whole number, not '1'"),
        ({"initializer": 3}, TypeError, "initializer must be a callable, not 3"),
        ({"finalizer": 3}, TypeError, "finalizer must be a callable, not 3"),
        ({"max_workers": "2"}, TypeError, "max_workers must be a whole number, not '2'"),
        ({"max_workers": 1.5}, TypeError, "max_workers must be a whole number, not 1.5"),
        ({"queue_sise": 2}, TypeError, "queue_sise"),
    ],
)
def test_invalid_options_are_refused_with_a_clear_message(options, error, message):
    with pytest.raises(error, match=message):
        Pool(**options)
