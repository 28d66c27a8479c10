import logging

from thread_handler_support import HeldHandler, ListHandler, hold, new_logger, wait_until

from logspool.thread._handler import ThreadHandler


def test_one_summary_record_reports_the_dropped_records_once_there_is_room():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=2)
    logger = new_logger("summary", handler)
    hold(logger, wrapped)
    for _ in range(11):
        logger.info("burst")
    wrapped.go.set()
    handler.flush()
    wait_until(lambda: len(wrapped.records) == 3)
    summary = wrapped.records[-1]

    assert wrapped.messages == ["in hand", "burst", "10 records dropped"]
    assert (summary.name, summary.levelno) == ("logspool", logging.WARNING)
    handler.close()
    assert len(wrapped.records) == 3


def test_a_second_burst_gets_its_own_summary():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1, flush_interval=0.01)
    logger = new_logger("summary", handler)
    hold(logger, wrapped)
    logger.info("dropped")
    wrapped.go.set()
    wait_until(lambda: "1 records dropped" in wrapped.messages)
    wrapped.entered.clear()
    wrapped.go.clear()
    hold(logger, wrapped)
    logger.info("dropped")
    logger.info("dropped")
    wrapped.go.set()
    wait_until(lambda: "2 records dropped" in wrapped.messages)

    handler.close()
    assert handler.stats().refused_total == 3


def test_the_summary_is_not_counted_as_a_record():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, queue_size=1)
    logger = new_logger("summary", handler)
    hold(logger, wrapped)
    logger.info("dropped")
    wrapped.go.set()
    handler.close()

    assert wrapped.messages == ["in hand", "1 records dropped"]
    assert handler.stats().written == 1


def test_there_is_no_summary_when_nothing_was_dropped():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("summary", handler).info("alone")
    handler.close()

    assert wrapped.messages == ["alone"]


def test_a_permanent_overload_is_summarised_periodically():
    class Endless(ListHandler):
        """Logs more records than the queue has room for, so that the queue is never empty."""

        def emit(self, record):
            super().emit(record)
            if record.name != "logspool" and not done:
                for _ in range(3):
                    logger.info("more")

    done = []
    wrapped = Endless()
    handler = ThreadHandler(wrapped, queue_size=3, flush_interval=0.02)
    logger = new_logger("summary", handler)
    logger.info("first")
    wait_until(lambda: sum(record.name == "logspool" for record in wrapped.records) >= 2)
    assert handler.stats().queued > 0
    done.append(True)
    handler.close()

    told = sum(record.args[0] for record in wrapped.records if record.name == "logspool")
    assert told == handler.stats().refused_total
