"""SIGKILL at the n-th system call of one kind: nothing accepted is missing, doubled or torn afterwards.

Two programs log to one rotating file, with backups that are compressed, and to one plain file. One program ends at its
n-th write, pwrite, sync, rename, unlink or truncate, the other continues. A third start finishes the rest.
"""

import contextlib
import gzip
import json
import os

import preloaded
import pytest

from suite import fixtures, lines, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

TIMES = range(1, 201) if fixtures.faults_full() else (1, 2, 3, 5, 8, 13)
# Ten times the time that a program takes on a busy machine.
SECONDS = 60

PROGRAM = """\
import ctypes, json, logging, os, sys, time
import logspool

what = json.loads(sys.argv[1])
options = {"durability": what["durability"]}
shared = logspool.RotatingFileHandler("shared.log", maxBytes=2000, backupCount=5000, compress="gzip", **options)
plain = logspool.FileHandler("plain.log", **options)
log = logging.getLogger("app")
log.setLevel(logging.INFO)
for handler in (shared, plain):
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)

def left_open():
    backups = [name for name in os.listdir(".") if name.startswith("shared.log.")]
    return sum(name[-1].isdigit() or name.endswith(".part") for name in backups)

if what["arm"]:
    ctypes.CDLL(None).fault_arm()
number = 0
while number < what["count"]:
    log.info("%s %d end", what["who"], number)
    os.write(what["witness"], b"%d\\n" % number)
    number += 1
    if not number % 25:
        # So that the thread of the lowest priority can run.
        time.sleep(0.004)
logspool.flush(30)
# For each file: the thread that compresses has the lowest priority, and there may be hundreds.
before, deadline = 0, 0.0
while what["waits"] and (left := left_open()):
    if left != before:
        before, deadline = left, time.monotonic() + 30
    assert time.monotonic() < deadline, sorted(os.listdir("."))
    time.sleep(0.005)
"""


def _start(script, folder, queue_dir, who, durability, *, count, waits=False, **fault):
    reader, writer = os.pipe()
    what = {"who": who, "count": count, "arm": bool(fault), "witness": writer, "waits": waits, "durability": durability}
    env = programs.environment(programs.INSTALLED, queue_dir, **fault)
    child = programs.start([script, json.dumps(what)], env=env, folder=folder, pass_fds=[writer])
    os.close(writer)
    return child, reader


def _seen(reader):
    """Return the accepted numbers, however the program ended."""
    seen = bytearray()
    while data := os.read(reader, 1 << 16):
        seen += data
    os.close(reader)
    whole = seen[: seen.rfind(b"\n") + 1]
    return [int(line) for line in whole.splitlines()]


def _shared(folder):
    backups = sorted(folder.glob("shared.log.*"), key=lambda path: int(path.name.split(".")[2]), reverse=True)
    # Both forms of one backup together would duplicate its lines here.
    text = b"".join(gzip.decompress(path.read_bytes()) for path in backups)
    whole = folder / "whole"
    whole.write_bytes(text + (folder / "shared.log").read_bytes())
    return lines.count(whole)


def _one(library, folder, queue_dir, fault, durability="process"):
    script = folder / "program.py"
    script.write_text(PROGRAM)
    folder = folder / "logs"
    folder.mkdir()
    # A backup has some 110 lines, and both programs work on them.
    most, others = 300 * int(fault["FAULT_AT"]) + 1500, 600
    if durability != "process":
        # Calls may wait for a sync each. In `memory` several processes do not share a file in such a way.
        most, others = 600, 0 if durability == "memory" else 100
    # With few records the program would end before the thread of the lowest priority runs.
    env = {"waits": durability != "process", "LD_PRELOAD": str(library), **fault}
    with contextlib.ExitStack() as ends:
        dies, dies_pipe = _start(script, folder, queue_dir, "dies", durability, count=most, **env)
        ends.enter_context(programs.ended(dies))
        stays, stays_pipe = _start(script, folder, queue_dir, "stays", durability, count=others)
        ends.enter_context(programs.ended(stays))
        accepted = {"dies": _seen(dies_pipe), "stays": _seen(stays_pipe)}
        for child in (dies, stays):
            until(lambda child=child: child.poll() is not None, SECONDS, "the end of a program")
        left = {path.name for path in folder.iterdir()}
        assert stays.returncode == 0
        assert dies.returncode in (0, -9), f"{fault}: {dies.returncode}"
        last, last_pipe = _start(script, folder, queue_dir, "last", durability, count=1, waits=True)
        ends.enter_context(programs.ended(last))
        accepted["last"] = _seen(last_pipe)
        # The program ends by itself if a file is not compressed in time.
        until(lambda: last.poll() is not None, 30 * SECONDS, "the end of the last program")
        assert last.returncode == 0

    for found in (_shared(folder), lines.count(folder / "plain.log")):
        if durability == "memory":
            # The newest lines are gone, and nothing in between.
            accepted["dies"] = range(len(found.numbers["dies"]))
        missing = {who: lost[:10] for who, numbers in accepted.items() if (lost := found.missing(who, numbers))}
        assert missing == {}, fault
        assert found.doubled() == {}, fault
        assert found.out_of_order() == {}, fault
        assert found.other == [], fault
    assert queue_folder.left_in(queue_dir) == [], fault
    return dies.returncode != 0, sum(map(len, accepted.values())), left


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["write", "pwrite", "sync", "rename", "unlink", "truncate"])
def test_a_kill_at_any_call_loses_duplicates_or_tears_no_line(tmp_path, call, when, record_property):
    library = preloaded.build(tmp_path)
    kills = accepted = 0
    for time in TIMES:
        folder = tmp_path / f"at{time}"
        folder.mkdir()
        with queue_folder.private() as queue_dir:
            fault = {"FAULT_CALL": call, "FAULT_AT": str(time), "FAULT_WHEN": when}
            killed, records, _ = _one(library, folder, queue_dir, fault)
        kills += killed
        accepted += records
    summary = f"{kills} kills {when} {call}, {len(TIMES) - kills} ended first, {accepted} records accepted, 0 missing"
    print(summary)
    record_property("summary", summary)
    assert kills > 0


@pytest.mark.parametrize("durability", ["memory", "interval", "checkpoint", "sync"])
def test_a_kill_before_the_plain_form_of_a_backup_is_removed_keeps_the_promise_of_each_durability(
    tmp_path, queue_dir, durability
):
    library = preloaded.build(tmp_path)
    # The compressed form is there, and the plain one is about to go.
    fault = {"FAULT_CALL": "unlink", "FAULT_AT": "1", "FAULT_WHEN": "before"}
    killed, accepted, left = _one(library, tmp_path, queue_dir, fault, durability)

    assert killed
    assert accepted > 1
    if durability == "memory":
        # Elsewhere the other program finishes it.
        assert any(f"{name}.gz" in left for name in left)
