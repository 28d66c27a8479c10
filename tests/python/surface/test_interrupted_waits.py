"""Ctrl-C and every other signal with a Python handler interrupts waits of logspool, and the counts stay right."""

import json
import os
import signal

import pytest

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("interrupted waits"), pytest.mark.every_interpreter]

# No wait here would end before the signal.
PROGRAM = """\
import json, logging, os, signal, sys, threading, time
import logspool
from suite import stats_view

log = logging.getLogger("app")
log.setLevel(1)
log.propagate = False

def later(number):
    # The wait has begun by then; if not, the signal comes too early to show anything.
    time.sleep(0.3)
    os.kill(os.getpid(), number)

def interrupted(wait):
    threading.Thread(target=later, args=[signal.SIGINT], daemon=True).start()
    try:
        wait()
    except KeyboardInterrupt:
        return True
    return False

def counted(level):
    found = stats_view.snapshot()
    assert found.broken_identities() == []
    return [found.levels[level].offered, found.levels[level].accepted, found.levels[level].refused]

{body}
os.kill(os.getpid(), signal.SIGKILL)
"""

SERVICE = """\
handler = logspool.ServiceHandler("tcp://127.0.0.1:1")
log.addHandler(handler)
logspool.install(shutdown_timeout=float("inf"))
log.info("for nobody")
waits = [
    logspool.flush,
    lambda: logspool.flush(1000),
    lambda: logspool.flush(level="durable"),
    handler.flush,
    lambda: log.removeHandler(handler),
]
print(json.dumps([interrupted(wait) for wait in waits] + [log.handlers == [handler]]), flush=True)
"""

#: A pipe that no process reads: "fifo" is open on both sides, see `with_pipe`.
OUTPUT = """\
log.addHandler(logging.FileHandler("fifo"))
"""

ROOM = (
    OUTPUT
    + """\
logspool.install(blocking_timeout=float("inf"), fallback=None)
while not stats_view.snapshot().refused():
    log.info("%s", "x" * 30_000)
calls = 0

def errors():
    global calls
    while True:
        calls += 1
        log.error("%s", "x" * 10_000)

print(json.dumps([interrupted(errors), calls] + counted("ERROR")), flush=True)
"""
)

DURABLE = (
    OUTPUT
    + """\
logspool.install(durability="sync", durability_timeout=float("inf"))
log.info("%s", "x" * 60_000)  # A pipe is durable when it is written.
is_interrupted = interrupted(lambda: log.warning("%s", "x" * 60_000))
not_durable = logspool.stats().levels["WARNING"].not_durable
print(json.dumps([is_interrupted, not_durable] + counted("WARNING")), flush=True)
"""
)

ENDS = (
    OUTPUT
    + """\
logspool.install(shutdown_timeout=float("inf"), fallback=None)
handler = log.handlers[0]
for _ in range(3):
    log.info("%s", "x" * 60_000)
ends = {"close": handler.close, "setattr": lambda: setattr(handler, "stream", None), "uninstall": logspool.uninstall}
print(json.dumps([interrupted(ends[END])] + counted("INFO")), flush=True)
"""
)

# The signal handler does not raise, so the wait continues; it ends because the handler starts to read the pipe.
HANDLED = (
    OUTPUT
    + """\
def read():
    with open("fifo", "rb", buffering=0) as source:
        while source.read(65536):
            pass

def on_signal(number, frame):
    log.info("inside")
    threading.Thread(target=read, daemon=True).start()

logspool.install()
for _ in range(10):
    log.info("%s", "x" * 30_000)
signal.signal(signal.SIGUSR1, on_signal)
threading.Thread(target=later, args=[signal.SIGUSR1], daemon=True).start()
print(json.dumps([logspool.flush()] + counted("INFO")), flush=True)
"""
)


# An exception of a signal handler is no error of the logging call, whatever its class.
RUNG = (
    OUTPUT
    + """\
def ring(number, frame):
    raise TimeoutError("rung")

logspool.install(shutdown_timeout=float("inf"), fallback=None)
handler = log.handlers[0]
for _ in range(3):
    log.info("%s", "x" * 60_000)
CHANGE
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.3)
began = time.monotonic()
try:
    log.info("waits")
except TimeoutError as error:
    print(json.dumps([str(error), time.monotonic() - began]), flush=True)
"""
)

CHANGES = {
    "the program's own text": "handler.stream.write('text')",
    "its handler turns foreign": "handler.emit = lambda record: None",
    "a handler before it has died": "log.handlers[:] = [logging.FileHandler('other')]; del handler",
}


@pytest.fixture
def with_pipe(tmp_path):
    """Make the pipe "fifo", which no process reads, in the program's folder."""
    folder = tmp_path / "installed"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    # Open for reading and writing, so that the program's open does not wait.
    end = os.open(folder / "fifo", os.O_RDWR)
    yield
    os.close(end)


def told(run_program, body: str) -> list[object]:
    """Run the program, which must reach its end, and return the list that it printed."""
    outcome, _ = run_program(PROGRAM.replace("{body}", body))
    assert outcome.status == -signal.SIGKILL, outcome.err
    return json.loads(outcome.out)


def test_a_signal_interrupts_flushes_and_barriers_that_wait_for_an_unreachable_service(run_program):
    assert told(run_program, SERVICE) == [True] * 6


def test_a_signal_interrupts_a_call_that_waits_for_room_and_its_record_counts_as_refused(run_program, with_pipe):
    interrupted, calls, offered, accepted, refused = told(run_program, ROOM)

    assert interrupted
    assert (offered, accepted, refused) == (calls, calls - 1, {"queue_full": 1})


def test_a_signal_interrupts_a_call_that_waits_for_durability_and_it_is_counted(run_program, with_pipe):
    interrupted, not_durable, offered, accepted, refused = told(run_program, DURABLE)

    assert interrupted
    assert (not_durable, offered, accepted, refused) == (1, 1, 1, {})


@pytest.mark.parametrize("end", ["close", "setattr", "uninstall"])
def test_a_signal_interrupts_closing_a_handler_and_queued_records_still_count(run_program, with_pipe, end):
    assert told(run_program, ENDS.replace("END", repr(end))) == [True, 3, 3, {}]


def test_a_signal_handler_that_raises_nothing_runs_during_a_flush_and_the_flush_continues(run_program, with_pipe):
    assert told(run_program, HANDLED) == [True, 11, 11, {}]


@pytest.mark.parametrize("change", CHANGES)
def test_an_exception_of_a_signal_handler_leaves_a_waiting_call_at_once(run_program, with_pipe, change):
    said, seconds = told(run_program, RUNG.replace("CHANGE", CHANGES[change]))

    assert said == "rung"
    assert seconds < 3
