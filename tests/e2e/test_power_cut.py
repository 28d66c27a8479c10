"""A power cut takes fewer than `checkpoint_every` accepted records in mode "checkpoint", and none in mode "sync"."""

import os
import select
import subprocess
import sys

import power
import pytest

from suite import fixtures, programs, queue_folder

pytestmark = pytest.mark.real

CYCLES = 50 if fixtures.faults_full() else 2
EVERY = 50
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
logspool.install(durability=sys.argv[2], checkpoint_every=int(sys.argv[3]), sync_interval=3600.0)
number = 0
while True:
    log.info("record %d end", number)
    # Told to somebody who outlives the power cut, once the call has returned.
    os.write(1, b"%d\\n" % number)
    number += 1
"""


def _returned_calls(pipe: int, at_least: int) -> int:
    """Read what the program tells; return how many calls have returned by now."""
    text = b""
    while text.count(b"\n") < at_least:
        assert select.select([pipe], [], [], 60)[0], f"{text.count(bytes([10]))} calls have returned, and no more do"
        text += os.read(pipe, 65536)
    while select.select([pipe], [], [], 0)[0]:
        text += os.read(pipe, 65536)
    return text.count(b"\n")


@pytest.mark.parametrize(("mode", "may_be_lost"), [("checkpoint", EVERY - 1), ("sync", 0)])
@pytest.mark.timeout(120 * CYCLES)
@pytest.mark.xdist_group("alone")
def test_what_a_power_cut_takes(tmp_path, mode, may_be_lost):
    lost = []
    with power.disk(tmp_path) as disk:
        for cycle in range(CYCLES):
            with queue_folder.private() as queue_dir:
                log = disk.mount / f"{cycle}.log"
                program = subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(log), mode, str(EVERY)],
                    env=programs.environment(programs.INSTALLED, queue_dir),
                    cwd=tmp_path,
                    stdout=subprocess.PIPE,
                )
                with programs.ended(program):
                    # Every cycle at another place between two checkpoints.
                    returned = _returned_calls(program.stdout.fileno(), RECORDS + 7 * cycle)
                    disk.cut()
                    program.kill()
                    program.wait(60)
                    program.stdout.close()
            disk.unplug()
            disk.plug_in()
            text = log.read_text() if log.exists() else ""
            kept = text[: text.rfind("\n") + 1].splitlines()
            assert kept == [f"record {number} end" for number in range(len(kept))]
            lost.append(max(0, returned - len(kept)))

    print(f"{mode}: lost {lost}")
    assert max(lost) <= may_be_lost
