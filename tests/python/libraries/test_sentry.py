"""The hook of sentry-sdk on `Logger.callHandlers`: it runs in Python with every release, and `stats()` says so."""

import importlib.util

import pytest

from suite import programs

PROGRAM = """\
import logging
import sentry_sdk
import sentry_sdk.consts
import logspool
from sentry_sdk.transport import Transport

events = []

class Collecting(Transport):
    def capture_envelope(self, envelope):
        events.append(envelope.get_event()["logentry"]["message"])

def init():
    sentry_sdk.init(
        dsn="http://key@localhost/1", transport=Collecting, auto_session_tracking=False, shutdown_timeout=0,
        auto_enabling_integrations=False, send_client_reports=False,
    )

log = logging.getLogger("a.b")
handler = logging.FileHandler("app.log")
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
log.addHandler(handler)
log.setLevel(logging.INFO)

def path():
    found = logspool.stats().loggers["a.b"]
    return found.native, found.by_record, found.stock, found.reason
"""

CALLS = """
log.info("one %d", 1)
log.error("two %d", 2)
logspool.flush()
assert open("app.log").read().endswith("INFO one 1\\nERROR two 2\\n"), open("app.log").read()
assert events == ["two %d"], events
"""

CASES = {
    "no_hook": """
logspool.install()
log.info("one %d", 1)
assert path() == (1, 0, 0, ""), path()
""",
    "before_install": f"""
init()
logspool.install()
{CALLS}
assert path() == (0, 2, 0, "Logger.callHandlers is patched"), path()
""",
    "after_install": f"""
logspool.install()
log.info("without a hook")
init()
{CALLS}
assert path() == (1, 2, 0, "Logger.callHandlers is patched"), path()
""",
    "unknown_release": f"""
sentry_sdk.VERSION = sentry_sdk.consts.VERSION = "99.0"
init()
logspool.install()
{CALLS}
assert path() == (0, 2, 0, "Logger.callHandlers is patched"), path()
""",
    "another_hook_around_it": f"""
init()
call = logging.Logger.callHandlers
seen = []
def hook(self, record):
    seen.append(record.getMessage())
    return call(self, record)
logging.Logger.callHandlers = hook
logspool.install()
{CALLS}
assert seen == ["one 1", "two 2"], seen
assert path() == (0, 2, 0, "Logger.callHandlers is patched"), path()
""",
}


@pytest.mark.skipif(importlib.util.find_spec("sentry_sdk") is None, reason="needs sentry_sdk")
@pytest.mark.parametrize("name", CASES)
def test_the_hook_runs_in_python_and_stats_say_so(run_program, name):
    outcome, _ = run_program(PROGRAM + CASES[name], side=programs.INSTALLED, deadline_seconds=120)

    assert outcome.status == 0, outcome.err.decode()
