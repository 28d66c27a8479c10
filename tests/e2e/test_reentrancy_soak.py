"""Signals at 20 kHz whose handler logs, garbage that logs when it is collected at every allocation, and two threads.

A deadlock ends the program by the watchdog of `faulthandler`; every call is accepted or refused, and what was accepted
is in the file once.
"""

import json

import pytest

from suite import fixtures, lines, queue_folder

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# A minute, or ten seconds: a handler that logs is slower than 20 kHz, so the next signal always waits for it.
SIGNALS = 100_000 if fixtures.faults_full() else 20_000
SECONDS = 1800 if fixtures.faults_full() else 200

#: The modes that sync are slower; they are shown by fewer signals.
SIGNALS_OF = {"memory": SIGNALS, "process": SIGNALS, "interval": SIGNALS // 10, "checkpoint": SIGNALS // 40}
SIGNALS_OF["sync"] = SIGNALS // 200
#: Seconds between signals. In a handler that waits for a disk the next one would nest for ever, with any logging: there
#: each signal asks for the next.
PERIOD_OF = {"sync": 0.0}

PROGRAM = """\
import faulthandler, gc, itertools, json, logging, signal, sys, threading, time
from suite import side, stats_view

faulthandler.dump_traceback_later({seconds}, exit=True)
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability=sys.argv[1])
log = logging.getLogger("app")
calls, collected, signals = itertools.count(), itertools.count(), itertools.count()
seen = 0
stop = threading.Event()
period = float(sys.argv[2])

def on_signal(number, frame):
    global seen
    mine = next(signals)
    log.info("signal %d end", mine)
    seen = max(seen, mine + 1)
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
threads = [threading.Thread(target=busy, args=(f"thread{{each}}", ends)) for each in range(2)]
for thread in threads:
    thread.start()
signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.00005, period)
number = 0
while seen < {signals}:
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


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("mode", SIGNALS_OF)
def test_signals_collections_and_threads_that_log_never_hang_and_are_all_accounted(
    run_program, queue_dir, record_property, mode
):
    text = PROGRAM.format(seconds=SECONDS, signals=SIGNALS_OF[mode])
    period = PERIOD_OF.get(mode, 0.00005)
    outcome, folder = run_program(text, mode, str(period), deadline_seconds=SECONDS + 30)

    outcome.expect_success()
    calls, offered, refused, dropped, written, broken = json.loads(outcome.out)
    found = lines.count(folder / "app.log")
    there = sum(map(len, found.numbers.values()))
    summary = f"{calls['signal']} signals, {offered} records, {refused} refused, {there} lines, 0 deadlocks"
    print(summary)
    record_property("summary", summary)
    assert broken == []
    assert dropped == 0
    assert offered == sum(calls.values())
    assert written == there == offered - refused
    assert found.doubled() == {}
    assert found.other == []
    assert outcome.err == b""
    assert queue_folder.left_in(queue_dir) == []
