import logging

from thread_handler_support import HeldHandler, assert_balanced, hold, new_logger

from logspool.thread._handler import ThreadHandler


def test_long_records_are_refused_when_the_byte_bound_is_reached():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1000, queue_bytes=100_000)
    logger = new_logger("bytes", handler)
    hold(logger, wrapped)
    for _ in range(10):
        logger.info("%s", "x" * 30_000)
    stats = handler.stats()

    assert stats.accepted == 4
    assert stats.refused == {"queue_bytes": {logging.INFO: 7}}
    assert 90_000 < stats.queued_bytes <= 100_000
    assert_balanced(stats)
    wrapped.go.set()
    handler.flush()
    assert handler.stats().queued_bytes == 0
    handler.close()


def test_the_text_of_message_exception_and_stack_counts_as_bytes():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, exc_info="text")
    logger = new_logger("bytes", handler)
    hold(logger, wrapped)
    before = handler.stats().queued_bytes
    try:
        raise ValueError("y" * 10_000)
    except ValueError:
        logger.exception("z" * 5_000, stack_info=True)

    assert handler.stats().queued_bytes - before > 15_000
    wrapped.go.set()
    handler.close()


def test_a_record_larger_than_the_bound_is_taken_by_an_empty_queue():
    wrapped = HeldHandler()
    wrapped.go.set()
    handler = ThreadHandler(wrapped, queue_bytes=4096)
    logger = new_logger("bytes", handler)
    logger.info("x" * 10_000)
    handler.flush()
    logger.info("y" * 10_000)
    handler.close()

    assert [len(message) for message in wrapped.messages] == [10_000, 10_000]


def test_a_blocking_level_waits_for_bytes_too():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_bytes=4096, blocking_timeout=0.02)
    logger = new_logger("bytes", handler)
    hold(logger, wrapped)
    logger.error("x" * 4096)

    assert handler.stats().refused == {"blocking_timeout": {logging.ERROR: 1}}
    wrapped.go.set()
    handler.close()
