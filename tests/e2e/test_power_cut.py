"""A power cut costs no record in mode "sync", and fewer than `checkpoint_every` records in "checkpoint".

In "interval" it costs the records of the last interval; in other modes the records that the kernel has not written
yet. No record is missing in between.
"""

import contextlib
import os
import select
import subprocess
import sys

import power
import pytest

from suite import fixtures, programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

CYCLES = 50 if fixtures.faults_full() else 2
EVERY = 50
INTERVAL_SECONDS = 0.1
#: Far less than the 30 s after which the kernel writes by itself.
SYNCED_SECONDS = 10
#: Calls that have returned before the power goes.
RECORDS = 2_000

PROGRAM = """\
import logging, os, sys
import logspool

handler = logging.FileHandler(sys.argv[1])
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(1)
log.addHandler(handler)
logspool.install(durability=sys.argv[2], checkpoint_every=int(sys.argv[3]), sync_interval=float(sys.argv[4]))
burst = int(sys.argv[5])
# No other file on the disk has this text.
name = os.path.basename(sys.argv[1])
number = 0
while True:
    if number % burst == 0:
        sys.stdin.readline()
    log.info("record %d of %s", number, name)
    # Reported to a process that survives the power cut, once the call has returned.
    os.write(1, b"%d\\n" % number)
    number += 1
"""


@contextlib.contextmanager
def _program(folder, queue_dir, log, mode, interval=3600.0, burst=10**9):
    """Run the program; it logs `burst` records with each line of its standard input."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), mode, str(EVERY), str(interval), str(burst)],
        env=programs.environment(programs.INSTALLED, queue_dir),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with programs.ended(program):
        yield program


def _log(program):
    program.stdin.write(b"\n")
    program.stdin.flush()


def _kept(log):
    """Return how many records are in the file; nothing may be missing in between."""
    text = log.read_text() if log.exists() else ""
    kept = text[: text.rfind("\n") + 1].splitlines()
    assert kept == [f"record {number} of {log.name}" for number in range(len(kept))]
    return len(kept)


def _returned_calls(pipe: int, at_least: int) -> int:
    """Read the program's output; return how many calls have returned by now."""
    text = b""
    while text.count(b"\n") < at_least:
        assert select.select([pipe], [], [], 60)[0], f"{text.count(bytes([10]))} calls have returned, and no more do"
        text += os.read(pipe, 65536)
    while select.select([pipe], [], [], 0)[0]:
        text += os.read(pipe, 65536)
    return text.count(b"\n")


@pytest.mark.parametrize(
    ("mode", "may_be_lost"), [("memory", None), ("process", None), ("checkpoint", EVERY - 1), ("sync", 0)]
)
@pytest.mark.timeout(120 * CYCLES)
@pytest.mark.xdist_group("alone")
def test_a_power_cut_loses_no_more_than_each_mode_allows(tmp_path, mode, may_be_lost):
    lost = []
    with power.disk(tmp_path) as disk:
        for cycle in range(CYCLES):
            with queue_folder.private() as queue_dir:
                log = disk.mount / f"{cycle}.log"
                with _program(tmp_path, queue_dir, log, mode) as program:
                    _log(program)
                    # Each cycle cuts the power at another point between two checkpoints.
                    returned = _returned_calls(program.stdout.fileno(), RECORDS + 7 * cycle)
                    disk.cut()
                    program.kill()
                    program.wait(60)
            disk.unplug()
            disk.plug_in()
            lost.append(max(0, returned - _kept(log)))

    print(f"{mode}: lost {lost}")
    assert may_be_lost is None or max(lost) <= may_be_lost


@pytest.mark.timeout(120 * CYCLES)
@pytest.mark.xdist_group("alone")
def test_a_power_cut_loses_at_most_the_last_interval(tmp_path):
    lost = []
    with power.disk(tmp_path) as disk:
        for cycle in range(CYCLES):
            with queue_folder.private() as queue_dir:
                log = disk.mount / f"{cycle}.log"
                burst = 200 + cycle
                with _program(tmp_path, queue_dir, log, "interval", INTERVAL_SECONDS, burst) as program:
                    for end in range(burst, 4 * burst, burst):
                        _log(program)
                        _returned_calls(program.stdout.fileno(), burst)
                        last = f"record {end - 1} of {log.name}\n".encode()
                        until(lambda last=last: disk.holds(last), SYNCED_SECONDS, "the last record is on the disk")
                    _log(program)
                    _returned_calls(program.stdout.fileno(), burst)
                    disk.cut()
                    program.kill()
                    program.wait(60)
            disk.unplug()
            disk.plug_in()
            # The sync of the third burst may still have been under way; the syncs of the first two were done.
            kept = _kept(log)
            assert kept >= 2 * burst
            lost.append(4 * burst - kept)

    print(f"interval: lost {lost}")
