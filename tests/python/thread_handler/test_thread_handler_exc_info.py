import gc
import logging
import weakref

import pytest
from thread_handler_support import HeldHandler, ListHandler, hold, new_logger

from logspool.thread._handler import ThreadHandler

pytestmark = pytest.mark.every_interpreter


class Marked(Exception):
    pass


def log_exception(logger):
    try:
        raise Marked("what happened")
    except Marked as error:
        logger.exception("it failed")
        return weakref.ref(error)


def test_keep_hands_the_exception_itself_to_the_wrapped_handler():
    wrapped = ListHandler()
    handler = ThreadHandler(wrapped)
    log_exception(new_logger("exc", handler))
    handler.close()

    assert wrapped.records[0].exc_info[0] is Marked
    assert wrapped.records[0].exc_info[2].tb_frame.f_code.co_name == "log_exception"


def test_keep_releases_the_exception_once_it_is_handled():
    class Forgetful(logging.Handler):
        def emit(self, record):
            pass

    handler = ThreadHandler(Forgetful())
    reference = log_exception(new_logger("exc", handler))
    handler.flush()
    gc.collect()

    assert reference() is None
    handler.close()


def test_text_formats_in_the_caller_and_releases_the_exception():
    wrapped = HeldHandler()
    handler = ThreadHandler(wrapped, exc_info="text")
    logger = new_logger("exc", handler)
    hold(logger, wrapped)
    reference = log_exception(logger)
    gc.collect()

    assert reference() is None
    wrapped.go.set()
    handler.close()
    record = wrapped.records[1]
    assert record.exc_info is None
    assert record.exc_text.startswith("Traceback")
    assert record.exc_text.endswith("Marked: what happened")


def test_text_uses_the_formatter_of_the_wrapped_handler():
    class Short(logging.Formatter):
        def formatException(self, exc_info):
            return f"<{exc_info[0].__name__}>"

    wrapped = ListHandler()
    wrapped.setFormatter(Short())
    handler = ThreadHandler(wrapped, exc_info="text")
    log_exception(new_logger("exc", handler))
    handler.close()

    assert wrapped.records[0].exc_text == "<Marked>"


def test_text_does_not_change_the_record_that_other_handlers_see():
    handler = ThreadHandler(ListHandler(), exc_info="text")
    other = ListHandler()
    logger = new_logger("exc", handler)
    logger.addHandler(other)
    log_exception(logger)
    handler.close()

    assert other.records[0].exc_info[0] is Marked
    assert other.records[0].exc_text is None


@pytest.mark.parametrize("mode", ["keep", "text"])
def test_the_text_in_the_file_equals_that_of_stock_logging(mode, tmp_path):
    stock = logging.FileHandler(tmp_path / "stock")
    handler = ThreadHandler(logging.FileHandler(tmp_path / "thread"), exc_info=mode)
    logger = new_logger("exc", handler)
    logger.addHandler(stock)
    log_exception(logger)
    logger.info("with stack", stack_info=True)
    logger.info("no exception", exc_info=True)
    handler.close()
    stock.close()

    assert (tmp_path / "thread").read_text() == (tmp_path / "stock").read_text()
