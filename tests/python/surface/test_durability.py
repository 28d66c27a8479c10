"""Durabilities that survive a power cut: the promise of a returned call, and the count of calls without it."""

import json
import os
import signal

import pytest

import logspool

pytestmark = pytest.mark.real

KILLED = """\
import logging, os, signal, sys
import logspool
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(**{options})
log = logging.getLogger("app")
for number in range({calls}):
    log.log({level}, "record %d", number)
sinks = [sink for name, sink in logspool.stats().sinks.items() if name.endswith("app.log")]
print(sinks[0].syncs, sum(row.not_durable for row in logspool.stats().levels.values()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(run_program, calls: int, level: int = 20, **options: object) -> tuple[int, int, int]:
    """Kill a program; return its numbers of lines in the file (without recovery), syncs, and calls not durable."""
    text = KILLED.format(calls=calls, level=level, options=options)
    outcome, folder = run_program(text)
    assert outcome.status == -signal.SIGKILL, outcome.err
    syncs, not_durable = map(int, outcome.out.split())
    return len((folder / "app.log").read_text().splitlines()), syncs, not_durable


def test_sync_leaves_nothing_to_recover(run_program):
    assert killed(run_program, 20, durability="sync") == (20, 20, 0)


def test_checkpoint_mode_waits_in_every_nth_call(run_program):
    lines, syncs, not_durable = killed(
        run_program, 99, durability="checkpoint", checkpoint_every=10, sync_interval=3600.0
    )

    # A sync makes ten records durable at most; a sync between a call and its record makes fewer durable.
    assert 9 <= syncs < 50
    assert not_durable == 0
    assert lines >= 90


def test_durable_levels_wait_in_process_mode(run_program):
    assert killed(run_program, 5, 50, durable_levels=["CRITICAL"]) == (5, 5, 0)
    _, syncs, _ = killed(run_program, 100, 20, durable_levels=["CRITICAL"])
    assert syncs == 0


HANDLER = """\
import logging, os, signal
import logspool
handler = logspool.RotatingFileHandler("app.log", maxBytes=1000, backupCount=100, durability="sync")
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
for number in range(100):
    log.info("record %60d", number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_handlers_accept_the_option_and_rotated_files_are_complete(run_program):
    outcome, folder = run_program(HANDLER, side="stock")

    assert outcome.status == -signal.SIGKILL, outcome.err
    found = [line for path in folder.glob("app.log*") for line in path.read_text().splitlines()]
    assert sorted(int(line.split()[1]) for line in found) == list(range(100))


STALLED = """\
import json, logging, threading, time
import logspool
from suite import side

def read():
    with open("fifo", "rb", buffering=0) as source:
        while source.read(65536):
            pass

handler = logging.FileHandler("fifo")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
side.install(durability="sync", durability_timeout=0.3, shutdown_timeout=1.0)
log.info("%s", "x" * 60_000)  # A pipe is durable when it is written.
first = logspool.health().status
began = time.monotonic()
log.warning("%s", "x" * 60_000)
waited = time.monotonic() - began
health = logspool.health()
level = logspool.stats().levels
print(json.dumps([first, waited, level["INFO"].not_durable, level["WARNING"].not_durable, health.reasons]))
print(logspool.flush(0.1, level="durable"))
threading.Thread(target=read, daemon=True).start()
print(logspool.flush(level="durable"))
print("logspool_not_durable_calls_total{level=\\"WARNING\\"} 1" in logspool.metrics_text())
"""


def test_calls_wait_for_a_stalled_output_until_the_timeout_and_are_counted(run_program, tmp_path):
    folder = tmp_path / "installed"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    # Open for reading and writing: the program's open does not wait, and only the program itself reads, later.
    end = os.open(folder / "fifo", os.O_RDWR)
    try:
        outcome, _ = run_program(STALLED)
    finally:
        os.close(end)

    told, flushed, thawed, counted = outcome.expect_success().out.decode().splitlines()
    first, waited, before, after, reasons = json.loads(told)
    assert (first, before, after) == ("ok", 0, 1)
    assert 0.3 <= waited < 3
    assert any("returned before their record was durable" in reason for reason in reasons)
    assert (flushed, thawed, counted) == ("False", "True", "True")


THREADS = """\
import logging, threading
import logspool
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability="sync")
log = logging.getLogger("app")

def work(name):
    for number in range(25):
        log.info("%d %d", name, number)

threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(1 for _ in open("app.log")), *(sink.syncs for sink in logspool.stats().sinks.values()))
"""


def test_threads_share_syncs(run_program):
    outcome, _ = run_program(THREADS)

    lines, syncs = map(int, outcome.expect_success().out.split())
    assert lines == 16 * 25
    assert syncs < lines / 2


FLUSHED = """\
import logging
import logspool
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability={durability!r}, sync_interval=3600.0)

def syncs():
    return sum(sink.syncs for sink in logspool.stats().sinks.values())

logging.info("first")
print(logspool.flush(20), syncs(), logspool.flush(20, level="durable"), syncs())
logging.info("second")
logging.shutdown()
print(syncs())
"""


@pytest.mark.parametrize("durability", ["memory", "process", "interval", "checkpoint"])
def test_a_durable_flush_syncs_in_every_durability(run_program, durability):
    outcome, _ = run_program(FLUSHED.format(durability=durability))

    flushed, closed = outcome.expect_success().out.decode().splitlines()
    assert flushed == "True 0 True 1"
    assert int(closed) >= 1


FORKED = """\
import logging, os, threading
import logspool
from suite import side
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
side.install(durability="sync")
log = logging.getLogger("app")
ends = threading.Event()

def work():
    while not ends.is_set():
        log.info("thread")

threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
for number in range(10):
    child = os.fork()
    if child == 0:
        log.info("child %d", number)
        with open("app.log") as file:
            os._exit(0 if f"child {number}\\n" in file.read() else 1)
    assert os.waitpid(child, 0)[1] == 0
    log.info("parent %d", number)
ends.set()
[thread.join() for thread in threads]
print(sum(row.not_durable for row in logspool.stats().levels.values()))
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_during_waiting_calls_lose_nothing(run_program):
    outcome, folder = run_program(FORKED, options=("-W", "ignore"), deadline_seconds=120)

    assert outcome.expect_success().out == b"0\n"
    text = (folder / "app.log").read_text().splitlines()
    for who in ("child", "parent"):
        assert [line for line in text if line.startswith(who)] == [f"{who} {number}" for number in range(10)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"durability": "disk"}, "durability must be"),
        ({"sync_interval": 0.0}, "sync_interval must be 0.01 to 3600 seconds"),
        ({"checkpoint_every": 0}, "checkpoint_every must be 1 to"),
        ({"durability_timeout": -1}, "durability_timeout must be 0 or more seconds"),
        ({"durable_levels": ["LOUD"]}, "durable_levels: no level is named 'LOUD'"),
        ({"durable_levels": ["ERROR"], "durability": "memory"}, "durable_levels needs a durability"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_valid_ones(options, text):
    with pytest.raises(ValueError, match=text):
        logspool.install(**options)


def test_flush_has_two_levels():
    with pytest.raises(ValueError, match="'written' or 'durable'"):
        logspool.flush(level="delivered")
