"""The reader of a pipe or terminal goes away while a program logs to it: what was for it is counted, nothing else."""

import json
import os
import pty
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
def test_what_was_for_a_reader_that_is_gone_is_counted_and_a_file_beside_gets_all(tmp_path, queue_dir, mode, kind):
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
