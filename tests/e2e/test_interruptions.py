"""Logging from a signal handler and from the garbage collector at any moment: no hang, no crash, order per origin.

Stock logging reports `reentrant call` here and loses lines; nothing of that kind may happen with logspool installed.
"""

import json

import pytest

from suite import lines, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

SIGNALS = """\
import itertools, json, logging, signal, sys
from suite import side, stats_view

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
count = itertools.count()
seen = 0

def on_signal(number, frame):
    # Signals nest: the number must be this call's own.
    global seen
    mine = next(count)
    log.info("signal %d end", mine)
    seen = max(seen, mine + 1)

signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
number = 0
while seen < 300:
    log.info("main %d end", number)
    number += 1
signal.setitimer(signal.ITIMER_REAL, 0)
seen = next(count)
side.settle()
found = stats_view.snapshot()
print(json.dumps([number, seen, found.refused() + found.dropped(), found.broken_identities()]))
"""


def test_a_signal_handler_that_logs_at_any_moment_loses_no_uncounted_record(run_program, queue_dir):
    outcome, folder = run_program(SIGNALS, deadline_seconds=60)

    outcome.expect_success()
    calls, signals, given_up, broken = json.loads(outcome.out)
    found = lines.count(folder / "app.log")
    missing = found.missing("main", range(calls)) + found.missing("signal", range(signals))
    assert broken == []
    assert len(missing) == given_up
    assert found.doubled() == {}
    # A signal inside a signal's handler is logged before the outer one.
    assert "main" not in found.out_of_order()
    assert found.other == []
    assert outcome.err == b""
    assert queue_folder.left_in(queue_dir) == []


GARBAGE = """\
import gc, json, logging, sys
from suite import side, stats_view

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
gc.set_threshold(50)

class Node:
    def __init__(self, number):
        self.number, self.me = number, self

    def __del__(self):
        log.info("collected %d end", self.number)

    def __str__(self):
        [Node(-1).me for _ in ()]
        return str(self.number)

for number in range(5000):
    log.info("main %s end", Node(number))
gc.collect()
side.settle()
found = stats_view.snapshot()
print(json.dumps([found.refused() + found.dropped(), found.broken_identities()]))
"""


def test_objects_that_log_while_they_are_collected_lose_no_uncounted_record(run_program, queue_dir):
    outcome, folder = run_program(GARBAGE, deadline_seconds=60)

    outcome.expect_success()
    given_up, broken = json.loads(outcome.out)
    found = lines.count(folder / "app.log")
    missing = found.missing("main", range(5000)) + found.missing("collected", range(5000))
    assert broken == []
    assert len(missing) == given_up
    assert found.doubled() == {}
    assert found.other == []
    assert outcome.err == b""
