import logging
import threading
import time

import pytest
from thread_handler_support import (
    DEADLINE,
    HeldHandler,
    ListHandler,
    assert_balanced,
    hold,
    new_logger,
    wait_until,
)

from logspool.thread._handler import ThreadHandler

pytestmark = pytest.mark.every_interpreter


def test_error_and_critical_wait_for_room_by_default():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1)
    logger = new_logger("block", handler)
    hold(logger, wrapped)
    callers = [
        threading.Thread(target=logger.error, args=("an error",)),
        threading.Thread(target=logger.critical, args=("critical",)),
    ]
    for caller in callers:
        caller.start()
    wait_until(lambda: handler._queue.waiting == 2)
    assert handler.stats().accepted == 1
    wrapped.go.set()
    for caller in callers:
        caller.join(DEADLINE)
    handler.close()

    assert sorted(wrapped.messages) == ["an error", "critical", "in hand"]
    assert handler.stats().refused_total == 0


def test_a_blocking_level_is_dropped_and_counted_after_blocking_timeout():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1, blocking_timeout=0.05)
    logger = new_logger("block", handler)
    hold(logger, wrapped)
    begun = time.monotonic()
    logger.error("no room")
    waited = time.monotonic() - begun
    stats = handler.stats()

    assert stats.refused == {"blocking_timeout": {logging.ERROR: 1}}
    assert waited >= 0.05
    assert_balanced(stats)
    assert not handler._queue.gates
    wrapped.go.set()
    handler.close()


class Permitted(ListHandler):
    """Lets one record through for each permit."""

    def __init__(self):
        super().__init__()
        self.permits = threading.Semaphore(0)

    def emit(self, record):
        assert self.permits.acquire(timeout=DEADLINE)
        super().emit(record)


def test_a_waiting_record_gets_a_free_slot_before_a_later_one_that_does_not_wait():
    wrapped = Permitted()
    handler = ThreadHandler(wrapped, queue_size=2)
    logger = new_logger("block", handler)
    logger.info("first")
    logger.info("second")
    caller = threading.Thread(target=logger.error, args=("waits",))
    caller.start()
    wait_until(lambda: handler._queue.waiting == 1)
    wrapped.permits.release()
    wait_until(lambda: handler.stats().written == 1)
    logger.info("comes later")
    caller.join(DEADLINE)
    wrapped.permits.release(10)
    handler.close()

    assert wrapped.messages[:3] == ["first", "second", "waits"]
    assert handler.stats().refused == {"queue_full": {logging.INFO: 1}}


def test_a_blocking_record_gets_the_first_free_slot_of_a_slow_handler():
    wrapped = Permitted()
    handler = ThreadHandler(wrapped, queue_size=100)
    logger = new_logger("block", handler)
    for _ in range(100):
        logger.info("fills the queue")
    caller = threading.Thread(target=logger.error, args=("waits",))
    caller.start()
    wait_until(lambda: handler._queue.waiting == 1)
    wrapped.permits.release()
    caller.join(DEADLINE)

    assert not caller.is_alive()
    assert handler.stats().queued == 100
    wrapped.permits.release(200)
    handler.close()


def test_blocking_levels_can_be_numbers_or_names():
    handler = ThreadHandler(ListHandler(), blocking_levels=["INFO", logging.DEBUG, 35])

    assert handler._blocking_levels == {logging.INFO, logging.DEBUG, 35}


def test_no_level_waits_when_blocking_levels_is_empty():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1, blocking_levels=())
    logger = new_logger("block", handler)
    hold(logger, wrapped)
    logger.critical("dropped")

    assert handler.stats().refused == {"queue_full": {logging.CRITICAL: 1}}
    wrapped.go.set()
    handler.close()
