"""The semaphore: it counts permits and excludes, and every wait ends by a permit, a deadline or a signal."""

import signal
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.real

pool = pytest.importorskip("logspool.pool")


def test_permits_are_acquired_and_released():
    semaphore = pool.Semaphore(2)

    assert [semaphore.acquire(), semaphore.acquire(), semaphore.acquire(blocking=False)] == [True, True, False]
    assert semaphore.value == 0
    assert semaphore.release() is None
    semaphore.release(n=2)

    assert semaphore.value == 3
    assert repr(semaphore) == "<Semaphore value=3 waiting=0>"


def test_a_with_block_releases_its_permit_even_when_it_raises():
    semaphore = pool.Semaphore()

    with pytest.raises(KeyError), semaphore as held:
        assert (held, semaphore.value) == (True, 0)
        raise KeyError

    assert semaphore.value == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pool.Semaphore(-1), ValueError, "value is -1, expected 0 or more"),
        (lambda: pool.Semaphore(2**31), ValueError, "at most 2147483647 permits"),
        (lambda: pool.Semaphore("1"), TypeError, "value"),
        (lambda: pool.Semaphore().release(0), ValueError, "n is 0, expected 1 or more"),
        (lambda: pool.Semaphore(2**31 - 1).release(), ValueError, "at most 2147483647 permits"),
        (lambda: pool.Semaphore().acquire(False, 1), ValueError, "timeout for non-blocking"),
        (
            lambda: pool.Semaphore(0).acquire(timeout=float("nan")),
            ValueError,
            "timeout must be a number of seconds or None, not nan",
        ),
        (
            lambda: pool.Semaphore(0).acquire(timeout="1"),
            TypeError,
            "timeout must be a number of seconds or None, not '1'",
        ),
        (lambda: pool.Semaphore(0).release("1"), TypeError, "n must be a whole number, not '1'"),
        (lambda: pool.Semaphore(0).acquire(timeout=1e300), OverflowError, "too large"),
        (lambda: pool.Semaphore().acquire(tiemout=1), TypeError, "acquire.*tiemout"),
    ],
)
def test_invalid_input_is_refused_with_a_clear_message(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_blocking_accepts_any_truth_value():
    semaphore = pool.Semaphore(1)

    assert semaphore.acquire(1) is True
    assert semaphore.acquire(0) is False
    assert semaphore.acquire("", None) is False


def test_a_wait_ends_at_its_deadline_and_leaves_no_counted_waiter():
    semaphore = pool.Semaphore(0)
    began = time.monotonic()

    assert semaphore.acquire(timeout=0.05) is False
    assert semaphore.acquire(True, -1) is False

    assert time.monotonic() - began >= 0.05
    assert "waiting=0" in repr(semaphore)


def test_all_waiters_get_their_permit():
    semaphore, passed = pool.Semaphore(0), []
    threads = [threading.Thread(target=lambda: passed.append(semaphore.acquire(timeout=60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    while "waiting=8" not in repr(semaphore):
        time.sleep(0.001)

    semaphore.release(3)
    for _ in range(5):
        semaphore.release()
    for thread in threads:
        thread.join()

    assert (passed, semaphore.value) == ([True] * 8, 0)


def test_one_permit_excludes_other_threads_even_with_a_forced_thread_switch():
    semaphore, inside, violations, rounds = pool.Semaphore(1), [], [], 2_000
    interval = sys.getswitchinterval()

    def work():
        for _ in range(rounds):
            with semaphore:
                inside.append(None)
                time.sleep(0)
                if len(inside) != 1:
                    violations.append(len(inside))
                inside.pop()

    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert (violations, semaphore.value) == ([], 1)


def test_a_signal_ends_a_wait():
    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    semaphore, before = pool.Semaphore(0), signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Rung):
            semaphore.acquire()
    finally:
        signal.signal(signal.SIGALRM, before)

    assert repr(semaphore) == "<Semaphore value=0 waiting=0>"


def test_a_handler_that_returns_does_not_end_a_wait():
    semaphore = pool.Semaphore(0)
    before = signal.signal(signal.SIGALRM, lambda *_: semaphore.release())
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert semaphore.acquire(timeout=60) is True
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_classes_can_be_subclassed():
    class Named(pool.Semaphore):
        def __init__(self, value, name="n"):
            self.name = name

    with Named(1) as held:
        assert held
    assert repr(Named(2)) == "<test_the_classes_can_be_subclassed.<locals>.Named value=2 waiting=0>"
