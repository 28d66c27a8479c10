import pytest
from thread_handler_support import ListHandler, assert_balanced, new_logger

from logspool.thread._handler import ThreadHandler


@pytest.mark.parametrize("kind", [OSError, KeyError, SystemExit, GeneratorExit])
def test_an_exception_in_the_wrapped_handler_goes_to_its_handle_error(kind):
    errors = []

    class Failing(ListHandler):
        def emit(self, record):
            if record.msg == "fails":
                raise kind("broken")
            super().emit(record)

        def handleError(self, record):
            import sys

            errors.append((record.msg, sys.exc_info()[0]))

    wrapped = Failing()
    handler = ThreadHandler(wrapped)
    logger = new_logger("errors", handler)
    logger.info("fails")
    logger.info("goes on")
    handler.close()

    assert errors == [("fails", kind)]
    assert wrapped.messages == ["goes on"]
    assert handler.stats().written == 2
    assert_balanced(handler.stats())


def test_a_handle_error_that_raises_does_not_end_the_thread(capsys):
    class Failing(ListHandler):
        def emit(self, record):
            if record.msg == "fails":
                raise OSError("broken")
            super().emit(record)

        def handleError(self, record):
            raise ValueError("broken as well")

    wrapped = Failing()
    handler = ThreadHandler(wrapped)
    logger = new_logger("errors", handler)
    logger.info("fails")
    logger.info("goes on")
    handler.close()

    assert wrapped.messages == ["goes on"]
    assert "broken as well" in capsys.readouterr().err
