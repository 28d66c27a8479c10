import logging
import threading

import pytest
from thread_handler_support import DEADLINE, ListHandler, new_logger, wait_until

from logspool.thread._handler import ThreadHandler


def test_the_level_of_the_wrapped_handler_is_honoured():
    wrapped = ListHandler()
    wrapped.setLevel(logging.ERROR)
    handler = ThreadHandler(wrapped)
    logger = new_logger("honour", handler)
    logger.info("below")
    logger.error("above")
    handler.close()

    assert wrapped.messages == ["above"]
    assert handler.stats().written == 2


def test_the_filters_of_the_wrapped_handler_run_on_its_thread_and_can_reject():
    idents = set()

    def only_even(record):
        idents.add(threading.get_ident())
        return record.args[0] % 2 == 0

    wrapped = ListHandler()
    wrapped.addFilter(only_even)
    handler = ThreadHandler(wrapped)
    logger = new_logger("honour", handler)
    for number in range(4):
        logger.info("%d", number)
    handler.close()

    assert wrapped.messages == ["0", "2"]
    assert threading.get_ident() not in idents


def test_the_lock_of_the_wrapped_handler_is_held_while_it_emits():
    owned = []

    class Handler(ListHandler):
        def emit(self, record):
            owned.append(self.lock._is_owned())
            super().emit(record)

    wrapped = Handler()
    handler = ThreadHandler(wrapped)
    new_logger("honour", handler).info("locked?")
    handler.close()

    assert owned == [True]


@pytest.mark.parametrize("make", [lambda path: ListHandler(), logging.FileHandler])
def test_the_thread_waits_while_another_thread_holds_the_lock_of_the_wrapped_handler(make, tmp_path):
    wrapped = make(tmp_path / "out")
    handler = ThreadHandler(wrapped)
    logger = new_logger("honour", handler)
    with wrapped.lock:
        logger.info("waits on the thread, not here")
        wait_until(lambda: handler._queue.taken == 1)
        assert handler.stats().written == 0
    assert handler.flush(DEADLINE)
    assert handler.stats().written == 1
    handler.close()


def test_level_and_filters_of_the_thread_handler_apply_in_the_caller():
    idents = set()

    def only_even(record):
        idents.add(threading.get_ident())
        return record.args[0] % 2 == 0

    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    handler.setLevel(logging.INFO)
    handler.addFilter(only_even)
    logger = new_logger("honour", handler)
    logger.debug("%d", 2)
    for number in range(4):
        logger.info("%d", number)
    handler.close()

    assert wrapped.messages == ["0", "2"]
    assert idents == {threading.get_ident()}
    assert handler.stats().offered == 2


def test_the_thread_handler_uses_the_formatter_of_the_wrapped_handler():
    first, second = logging.Formatter("1 %(message)s"), logging.Formatter("2 %(message)s")
    wrapped = ListHandler()
    wrapped.setFormatter(first)
    handler = ThreadHandler(wrapped)

    assert handler.formatter is first
    handler.setFormatter(second)
    assert wrapped.formatter is second
    handler.close()


def test_handle_takes_no_lock_of_the_thread_handler():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("honour", handler)
    held = threading.Event()
    done = threading.Event()

    def hold_lock():
        with handler.lock:
            held.set()
            assert done.wait(DEADLINE)

    thread = threading.Thread(target=hold_lock)
    thread.start()
    held.wait(DEADLINE)
    logger.info("goes through")
    assert handler.flush(DEADLINE)
    done.set()
    thread.join()

    assert wrapped.messages == ["goes through"]
    handler.close()
