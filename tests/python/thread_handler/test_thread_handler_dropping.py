import logging

from thread_handler_support import HeldHandler, ListHandler, assert_balanced, hold, new_logger, wait_until

from logspool.thread._handler import ThreadHandler
from logspool.thread._queue import NEVER
from logspool.thread._writer import WriterThread


def test_levels_that_do_not_block_are_dropped_and_counted_by_level_when_the_queue_is_full():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=3)
    logger = new_logger("drop", handler)
    hold(logger, wrapped)
    for number in range(5):
        logger.info("info %d", number)
    for _ in range(4):
        logger.warning("too many")
    stats = handler.stats()

    assert stats.refused == {"queue_full": {logging.INFO: 3, logging.WARNING: 4}}
    assert stats.offered == 10
    assert (stats.accepted, stats.queued, stats.written) == (3, 3, 0)
    assert handler.dropped_log_record_count == 7
    assert_balanced(stats)
    wrapped.go.set()
    handler.close()
    assert wrapped.messages[:3] == ["in hand", "info 0", "info 1"]


def test_a_dropped_record_does_not_raise_or_wait():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1)
    logger = new_logger("drop", handler)
    hold(logger, wrapped)
    for _ in range(1000):
        logger.info("dropped")

    assert handler.stats().refused_total == 1000
    wrapped.go.set()
    handler.close()


def test_a_full_queue_whose_thread_has_died_gets_a_new_thread():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped, queue_size=2)
    logger = new_logger("dead", handler)
    queue = handler._queue
    dead = WriterThread(lambda: None)
    dead.start()
    dead.started = 0.0
    dead.join()
    assert queue.claim(dead)
    queue.wake_at = NEVER
    # After the first refused record, every sixteenth call with a refused record checks the thread.
    queue.note_refused("queue_full", logging.INFO, True)
    for number in range(2 + 16):
        logger.info("number %d", number)

    wait_until(lambda: len(wrapped.records) >= 2)
    assert wrapped.messages[:2] == ["number 0", "number 1"]
    handler.close()
    assert_balanced(handler.stats())
