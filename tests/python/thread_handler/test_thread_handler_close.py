import logging
import threading

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


def test_close_drains_then_closes_the_wrapped_handler_and_ends_the_thread():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("close", handler)
    for number in range(500):
        logger.info("%d", number)
    thread = handler._writer.thread
    handler.close()

    assert len(wrapped.records) == 500
    assert wrapped.closed == 1
    assert not thread.is_alive()


def test_close_may_be_called_again():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("close", handler).info("x")
    handler.close()
    handler.close()

    assert wrapped.messages == ["x"]


def test_a_record_after_close_is_handled_in_the_caller(tmp_path):
    path = tmp_path / "out"
    handler = ThreadHandler(logging.FileHandler(path))
    logger = new_logger("close", handler)
    logger.info("before")
    handler.close()
    logger.info("after")
    stats = handler.stats()

    assert path.read_text() == "before\nafter\n"
    assert (stats.accepted, stats.written) == (2, 2)
    assert_balanced(stats)
    handler.wrapped_handler.close()


def test_close_stops_at_the_deadline_with_one_line_on_stderr(capsys):
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, shutdown_timeout=0.05)
    logger = new_logger("close", handler)
    hold(logger, wrapped)
    for _ in range(4):
        logger.info("stuck")
    handler.close()
    error = capsys.readouterr().err
    stats = handler.stats()

    assert error.count("\n") == 1
    assert "shutdown_timeout of 0.05 s passed, 5 records not written" in error
    assert stats.dropped == {"shutdown_timeout": {logging.INFO: 4}}
    assert stats.queued == 1
    assert_balanced(stats)
    assert wrapped.closed == 0

    logger.info("late")
    assert handler.stats().refused == {"shutdown": {logging.INFO: 1}}

    wrapped.go.set()
    wait_until(lambda: wrapped.closed == 1)
    assert wrapped.messages == ["in hand"]
    assert_balanced(handler.stats())


def test_callers_that_wait_for_room_are_served_by_close():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1)
    logger = new_logger("close", handler)
    hold(logger, wrapped)
    callers = [threading.Thread(target=logger.error, args=("waits",)) for _ in range(3)]
    for caller in callers:
        caller.start()
    wait_until(lambda: handler._queue.waiting == 3)
    closer = threading.Thread(target=handler.close)
    closer.start()
    wait_until(lambda: handler._queue.limit == 0)
    wrapped.go.set()
    for thread in [*callers, closer]:
        thread.join(DEADLINE)

    assert wrapped.messages == ["in hand", "waits", "waits", "waits"]
    assert handler.stats().refused_total == 0


def test_logging_shutdown_drains_and_closes():
    import weakref

    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("close", handler).info("x")
    logging.shutdown([weakref.ref(wrapped), weakref.ref(handler)])

    assert wrapped.messages == ["x"]
    assert wrapped.closed >= 1
