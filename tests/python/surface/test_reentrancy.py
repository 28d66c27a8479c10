"""Values whose own code changes the loggers that are just logging them."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

_DROPS_THE_STREAM = """
import gc, logging
import logspool

logspool.install()
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(logging.StreamHandler(open("first.log", "a")))
log.info("plain")

class Dropping:
    dropped = False

    def __str__(self):
        if not self.dropped:
            self.dropped = True
            handler = log.handlers[0]
            log.removeHandler(handler)
            handler.stream.close()
            del handler
            other = logging.FileHandler("second.log")
            log.addHandler(other)
            # Makes a plan without the first handler, so nothing keeps its stream any more.
            log.info("inside")
            gc.collect()
        return "dropping"

log.info("%s", Dropping())
log.info("after")
"""


def test_a_value_can_drop_the_stream_that_it_is_logged_to(run_program):
    # Freed memory is overwritten, so code that still uses the stream fails.
    outcome, folder = run_program(_DROPS_THE_STREAM, PYTHONMALLOC="debug")

    outcome.expect_success()
    assert (folder / "first.log").read_text().startswith("plain\n")
    assert (folder / "second.log").read_text() == "inside\ndropping\nafter\n"


_LAST_PLACE_OF_A_PLAN = """
import logging, threading
import logspool

logspool.install()

class Quiet(logging.Handler):
    def emit(self, record):
        pass

class Dying(logging.Filter):
    def __del__(self):
        # Its plan takes the place in this thread's cache that the call below looks into.
        first.info("inside")
        elsewhere(exchange)

def place(logger):
    return (id(logger) >> 4 ^ id(logger) >> 10) % 64

def loggers():
    for number in range(1000):
        logger = logging.getLogger(f"app{number}")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(Quiet())
        yield logger

def two_in_one_place():
    by_place = {}
    for logger in loggers():
        other = by_place.setdefault(place(logger), logger)
        if other is not logger:
            return other, logger

def elsewhere(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()

def exchange():
    # From here on only that cache holds the plan, the list and the handler.
    first.handlers = []
    second.info("planned")

first, second = two_in_one_place()
dropped = logging.getLogger("dropped")
dropped.setLevel(logging.INFO)
dropped.propagate = False
dropped.addFilter(Dying())
dropped.info("planned")
elsewhere(lambda: setattr(dropped, "filters", []))
second.info("lets go what this thread has cached, and that runs the code above")
print(dropped.filters, first.handlers)
"""


def test_the_last_reference_to_a_handler_can_vanish_during_a_plan_lookup(run_program):
    outcome, _ = run_program(_LAST_PLACE_OF_A_PLAN)

    assert outcome.expect_success().out == b"[] []\n"
