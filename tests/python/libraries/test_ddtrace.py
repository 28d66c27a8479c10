"""ddtrace's log injection needs no record; `known_programs.py` compares its output."""

import importlib.util

import pytest

from suite import programs

PROGRAM = """\
import logging, os
os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false",
    DD_CRASHTRACKING_ENABLED="false", DD_TRACE_AGENT_URL="http://127.0.0.1:1")
from ddtrace import tracer
from ddtrace.contrib.internal.logging.patch import patch
from ddtrace.trace import Span
import logspool

logging.getLogger("ddtrace").disabled = True
log = logging.getLogger("a.b")
handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(dd.trace_id)s %(dd.span_id)s %(message)s"))
log.addHandler(handler)
log.setLevel(logging.INFO)
patch()
logspool.install()

def path():
    found = logspool.stats().loggers["a.b"]
    return found.native, found.by_record, found.stock, found.reason
"""

CASES = {
    "native": """
log.info("one")
tracer.context_provider.activate(Span("x", trace_id=5, span_id=6))
log.info("two")
logspool.flush()
assert open("app.log").read() == "0 0 one\\n5 6 two\\n", open("app.log").read()
assert path() == (2, 0, 0, ""), path()
""",
    "unknown_release": """
import ddtrace
ddtrace.__version__ = "99.0"
log.info("one")
assert path() == (0, 0, 1, "Logger.makeRecord is patched"), path()
""",
    "another_wrapper": """
make = logging.Logger.makeRecord
logging.Logger.makeRecord = lambda self, *args, **kwargs: make(self, *args, **kwargs)
log.info("one")
assert path() == (0, 0, 1, "Logger.makeRecord is patched"), path()
""",
}


@pytest.mark.real
@pytest.mark.skipif(importlib.util.find_spec("ddtrace") is None, reason="needs ddtrace")
@pytest.mark.parametrize("name", CASES)
def test_calls_are_native_only_with_the_wrapper_of_a_known_release(run_program, name):
    end = "tracer.context_provider.activate(None)\n"
    outcome, _ = run_program(PROGRAM + CASES[name] + end, side=programs.INSTALLED, deadline_seconds=120)

    assert outcome.status == 0, outcome.err.decode()
