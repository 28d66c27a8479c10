import logging

from thread_handler_support import ListHandler, assert_balanced, new_logger

from logspool.thread._handler import ThreadHandler


class Unprintable:
    def __str__(self):
        raise ZeroDivisionError("no text")

    __repr__ = __str__


def test_an_argument_whose_str_fails_is_reported_as_by_stock_logging_and_counted(capsys):
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    new_logger("bad", handler).info("value %s", Unprintable())
    error = capsys.readouterr().err
    stats = handler.stats()

    assert "--- Logging error ---" in error
    assert "ZeroDivisionError: no text" in error
    assert "Call stack:" in error
    assert "test_an_argument_whose_str_fails_is_reported_as_by_stock_logging_and_counted" in error
    assert stats.refused == {"bad_arguments": {logging.INFO: 1}}
    assert_balanced(stats)
    handler.close()
    assert wrapped.records == []


def test_the_wrapped_handler_reports_formatting_errors():
    reported = []

    class Handler(ListHandler):
        def handleError(self, record):
            reported.append(record.msg)

    handler = ThreadHandler(Handler())
    new_logger("bad", handler).info("%d", [1])
    handler.close()

    assert reported == ["%d"]


def test_a_template_that_does_not_fit_its_arguments_is_reported_and_not_raised(capsys, tmp_path):
    handler = ThreadHandler(logging.FileHandler(tmp_path / "out"))
    logger = new_logger("bad", handler)
    logger.info("%d %d", *(1,))
    logger.info("fine")
    handler.close()
    error = capsys.readouterr().err

    assert "not enough arguments for format string" in error
    assert "Message: '%d %d'" in error
    assert handler.stats().written == 2


def test_nothing_is_raised_when_the_report_fails_too(capsys):
    class Handler(ListHandler):
        def handleError(self, record):
            raise RuntimeError("no report either")

    handler = ThreadHandler(Handler())
    new_logger("bad", handler).info("%s", Unprintable())
    handler.close()

    assert "no report either" in capsys.readouterr().err


def test_a_record_stripped_of_fields_does_not_raise():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    record = logging.makeLogRecord({"msg": "bare", "levelno": 20})
    del record.exc_info
    handler.handle(record)
    handler.close()

    assert_balanced(handler.stats())
    assert wrapped.messages == ["bare"]
