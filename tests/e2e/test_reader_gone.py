"""The reader of a pipe or terminal goes away while a program logs to it: only the records for it are counted."""

import json
import os
import pty
import select
import time
import tty

import pytest

from suite import lines, programs
from suite.waiting import until

pytestmark = pytest.mark.real

HALF = 300
SECONDS = 60

PROGRAM = """\
import json, logging, os, sys
import logspool
from suite import stats_view

console = logging.StreamHandler(sys.stdout)
file = logging.FileHandler("app.log")
log = logging.getLogger("app")
log.setLevel(logging.INFO)
for handler in (console, file):
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
logspool.install(durability=sys.argv[1], durability_timeout=float(sys.argv[2]))

def burst(begin, end):
    for number in range(begin, end):
        log.info("main %d end", number)

burst(0, int(sys.argv[3]))
logspool.flush(30)
sys.stdin.readline()
burst(int(sys.argv[3]), 2 * int(sys.argv[3]))
flushed = logspool.flush(30)
found = stats_view.snapshot()
of_file = logspool.stats().sinks[os.path.abspath("app.log")]
with open("report", "w") as report:
    json.dump({
        "flushed": flushed, "offered": found.offered(), "refused": found.refused(), "dropped": found.dropped(),
        "written": found.written(), "waiting": found.waiting(), "broken": found.broken_identities(),
        "in_file": of_file.total("written"),
    }, report)
# Python itself writes to it at the end.
os.close(1)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        *((mode, "pipe") for mode in ("memory", "process", "interval", "checkpoint", "sync")),
        *((mode, "terminal") for mode in ("process", "sync")),
    ],
)
def test_records_for_a_closed_reader_are_counted_and_another_file_gets_all(tmp_path, queue_dir, mode, kind):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    half = 50 if mode in ("checkpoint", "sync") else HALF
    reader, writer = os.pipe() if kind == "pipe" else pty.openpty()
    if kind == "terminal":
        tty.setraw(writer)
    commands, wakes = os.pipe()
    env = programs.environment(programs.INSTALLED, queue_dir)
    child = programs.start(
        [script, mode, str(SECONDS / 2), str(half)], env=env, folder=tmp_path, stdin=commands, stdout=writer
    )
    os.close(writer)
    os.close(commands)
    with programs.ended(child):
        seen = b""
        while seen.count(b"\n") < half:
            seen += os.read(reader, 1 << 16)
        os.close(reader)
        os.write(wakes, b"\n")
        os.close(wakes)
        until(lambda: child.poll() is not None, SECONDS, "the end of the program")
        status = child.returncode
    (tmp_path / "seen").write_bytes(seen)

    report = json.loads((tmp_path / "report").read_text())
    assert status == 0
    assert lines.count(tmp_path / "seen").numbers["main"][:half] == list(range(half))
    assert lines.count(tmp_path / "app.log").numbers == {"main": list(range(2 * half))}
    assert (report["flushed"], report["broken"], report["waiting"], report["refused"]) == (True, [], 0, 0)
    assert (report["offered"], report["in_file"]) == (2 * half, 2 * half)
    assert (report["written"], report["dropped"]) == (3 * half, half)


NAMED = """\
import logging, sys, time
import logspool

logging.basicConfig(filename="fifo", level=logging.INFO, format="%(message)s")
logspool.install(shutdown_timeout=1.0)
log = logging.getLogger("app")
log.info("main 0 end")
logspool.flush(30)
sys.stdin.readline()
log.info("main 1 end")
log.info("main 2 end")
while not any(sink.error for sink in logspool.stats().sinks.values()):
    time.sleep(0.01)
open("failed", "w").close()
sys.stdin.readline()
log.info("main 3 end")
"""


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_named_pipe_continues_with_its_next_reader_and_hardly_delays_the_exit(tmp_path, queue_dir, comes_back):
    script = tmp_path / "program.py"
    script.write_text(NAMED)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    commands, wakes = os.pipe()
    env = programs.environment(programs.INSTALLED, queue_dir)
    with (tmp_path / "err").open("wb") as errors:
        child = programs.start([script], env=env, folder=tmp_path, stdin=commands, stderr=errors)
    os.close(commands)
    with programs.ended(child):
        until(lambda: _readable(reader), SECONDS, "the first line")
        seen = os.read(reader, 1 << 16)
        os.close(reader)
        os.write(wakes, b"\n")
        until((tmp_path / "failed").exists, SECONDS, "the failing write")
        if comes_back:
            reader = os.open(path, os.O_RDONLY)
        os.write(wakes, b"\n")
        began = time.monotonic()
        os.close(wakes)
        while comes_back and (data := os.read(reader, 1 << 16)):
            seen += data
        until(lambda: child.poll() is not None, SECONDS, "the end of the program")
        seconds, status = time.monotonic() - began, child.returncode
    (tmp_path / "seen").write_bytes(seen)

    told = (tmp_path / "err").read_text()
    assert status == 0
    assert lines.count(tmp_path / "seen").numbers == {"main": list(range(4 if comes_back else 1))}
    assert seconds < 10
    assert told == ("" if comes_back else "logspool: 3 records were not written within 1 s and are dropped\n")


def _readable(descriptor):
    return bool(select.select([descriptor], [], [], 0)[0])
