import logging

from thread_handler_support import HeldHandler, assert_balanced, hold, new_logger

from logspool._thread_handler import ThreadHandler


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
