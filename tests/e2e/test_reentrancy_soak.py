"""Signals at 20 kHz whose handler logs, garbage that logs when it is collected at every allocation, and two threads.

The watchdog of `faulthandler` ends the program at a deadlock. Every call is accepted or refused, and every accepted
record is in the file once.
"""

import json

import pytest

from suite import fixtures, lines, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

#: The time for which signals are sent.
SECONDS = {"memory": 1, "process": 2, "interval": 1, "checkpoint": 1, "sync": 1}
if fixtures.faults_full():
    SECONDS = dict.fromkeys(SECONDS, 60)
#: Seconds between signals. In a handler that waits for a disk the next signal would nest for ever, with any logging:
#: there each signal asks for the next.
PERIOD_OF = {"sync": 0.0}

PROGRAM = """\
import faulthandler, gc, itertools, json, logging, signal, sys, threading, time
from suite import side, stats_view

seconds = int(sys.argv[3])
faulthandler.dump_traceback_later(60 + 10 * seconds, exit=True)
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability=sys.argv[1])
log = logging.getLogger("app")
calls, collected, signals = itertools.count(), itertools.count(), itertools.count()
stop = threading.Event()
period = float(sys.argv[2])

depth = 0

def on_signal(number, frame):
    global depth
    # On a machine so busy that a call takes longer than the period, signals would nest for ever.
    if depth == 50:
        return
    depth += 1
    log.info("signal %d end", next(signals))
    depth -= 1
    if not period and not stop.is_set():
        signal.setitimer(signal.ITIMER_REAL, 0.001)

class Node:
    def __init__(self):
        self.me = self

    def __del__(self):
        log.info("collected %d end", next(collected))

def busy(who, ends):
    number = 0
    while not stop.is_set():
        log.info("%s %d end", who, number)
        number += 1
        if not number % 50:
            Node()
            # The signals are the point, and every line is counted afterwards.
            time.sleep(0.002)
    ends.append((who, number))

gc.set_threshold(1)
ends = []
threads = [threading.Thread(target=busy, args=(f"thread{each}", ends)) for each in range(2)]
for thread in threads:
    thread.start()
signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.00005, period)
number = 0
until = time.monotonic() + seconds
while time.monotonic() < until:
    log.info("main %d end", number)
    number += 1
stop.set()
signal.setitimer(signal.ITIMER_REAL, 0)
for thread in threads:
    thread.join()
gc.collect()
gc.set_threshold(700)
ends += [("main", number), ("signal", next(signals)), ("collected", next(collected))]
side.settle(60)
found = stats_view.snapshot()
faulthandler.cancel_dump_traceback_later()
print(json.dumps([dict(ends), found.offered(), found.refused(), found.dropped(), found.written(),
                  found.broken_identities()]))
"""


@pytest.mark.timeout(1800)
# Interpreters differ in the same way in each mode, so one mode runs on all of them.
@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=() if mode == "process" else pytest.mark.one_interpreter) for mode in SECONDS]
)
def test_signals_collections_and_threads_that_log_never_hang_and_every_record_is_counted(
    run_program, queue_dir, record_property, mode
):
    seconds, period = SECONDS[mode], PERIOD_OF.get(mode, 0.00005)
    outcome, folder = run_program(PROGRAM, mode, str(period), str(seconds), deadline_seconds=150 + 10 * seconds)

    outcome.expect_success()
    calls, offered, refused, dropped, written, broken = json.loads(outcome.out)
    found = lines.count(folder / "app.log")
    there = sum(map(len, found.numbers.values()))
    summary = f"{seconds} s: {calls['signal']} signals, {offered} records, {refused} refused, {there} lines, no hang"
    print(summary)
    record_property("summary", summary)
    assert calls["signal"] > seconds
    assert broken == []
    assert dropped == 0
    assert offered == sum(calls.values())
    assert there == offered - refused
    # On a machine that is busy enough records are refused and told of.
    assert lines.refusals_told(found.other, outcome.err) <= refused
    assert [line for line in found.other if not line.endswith(lines.REFUSED)] == []
    assert written == there + len(found.other) + len(found.queue_warnings)
    assert found.doubled() == {}
    assert refused or outcome.err == b""
    assert queue_folder.left_in(queue_dir) == []
