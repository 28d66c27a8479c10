"""Values whose own code changes the loggers that are just logging them."""

import pytest

pytestmark = pytest.mark.real

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


def test_a_value_may_drop_the_stream_that_it_is_logged_to(run_program):
    # Freed memory is overwritten: whoever still looks at the stream does not get away with it.
    outcome, folder = run_program(_DROPS_THE_STREAM, PYTHONMALLOC="debug")

    outcome.expect_success()
    assert (folder / "first.log").read_text().startswith("plain\n")
    assert (folder / "second.log").read_text() == "inside\ndropping\nafter\n"
