import threading

from thread_handler_support import DEADLINE, HeldHandler, ListHandler, hold, new_logger, wait_until

from logspool.thread._handler import ThreadHandler


def test_flush_waits_until_everything_accepted_before_is_handled_and_flushes_the_wrapped_handler():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("flush", handler)
    hold(logger, wrapped)
    logger.info("second")
    results = []
    flusher = threading.Thread(target=lambda: results.append(handler.flush()))
    flusher.start()
    wait_until(lambda: handler._queue.gates)
    assert wrapped.flushes == 0
    wrapped.go.set()
    flusher.join(DEADLINE)

    assert results == [True]
    assert wrapped.messages == ["in hand", "second"]
    assert wrapped.flushes == 1
    handler.close()


def test_flush_returns_after_its_timeout():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped)
    hold(new_logger("flush", handler), wrapped)

    assert handler.flush(0.02) is False
    assert wrapped.flushes == 0
    wrapped.go.set()
    handler.close()


def test_flush_of_a_handler_without_records_starts_no_thread():
    before = threading.active_count()
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)

    assert handler.flush() is True
    assert wrapped.flushes == 1
    assert threading.active_count() == before
    handler.close()


def test_a_record_reaches_the_wrapped_handler_without_any_flush():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    logger = new_logger("flush", handler)
    for number in range(1, 6):
        logger.info("alone")
        wait_until(lambda expected=number: len(wrapped.records) == expected)
    handler.close()


def test_reading_the_file_after_flush_is_exact(tmp_path):
    import logging

    path = tmp_path / "out"
    handler = ThreadHandler(logging.FileHandler(path), blocking_levels={"INFO"})
    logger = new_logger("flush", handler)
    for number in range(200):
        logger.info("%d", number)
        if number % 10 == 0:
            handler.flush()
            assert path.read_text().split() == [str(n) for n in range(number + 1)]
    handler.close()
