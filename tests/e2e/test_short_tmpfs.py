"""Dead processes have filled a small tmpfs: a start delivers their records, and has room for its own queue."""

import json
import os

import pytest

from suite import fixtures, lines, mounts, programs, queue_folder

pytestmark = [pytest.mark.real]

SECONDS = 60
# Enough to fill the tmpfs several times.
PROGRAMS, SIZE = (90, "64m") if fixtures.faults_full() else (30, "2m")
RECORDS = 20

KILLED_ONE_BY_ONE = """\
import json, logging, os, signal, sys
import logspool

programs, records = int(sys.argv[1]), int(sys.argv[2])
# This process does not log, so no live process recovers the records of its children.
logspool.install()
log = logging.getLogger("app")
log.setLevel(logging.INFO)
survives = []
for program in range(programs):
    reader, writer = os.pipe()
    if os.fork() == 0:
        handler = logging.FileHandler(f"{program}.log")
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.info("p%d 0 end", program)
        os.write(writer, b"1" if logspool.stats().queue.survives else b"0")
        # Records logged right before the kill are still queued.
        for number in range(1, records):
            log.info("p%d %d end", program, number)
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    survives.append(os.read(reader, 1) == b"1")
    os.close(reader)
    os.wait()
print(json.dumps(survives))
"""

ONE = """\
import logging
import logspool

logging.basicConfig(filename="one.log", level=logging.INFO, format="%(message)s")
logspool.install()
"""


def _numbers(folder):
    return lines.count(*folder.glob("*.log")).numbers


def _expected(count):
    return {f"p{program}": list(range(RECORDS)) for program in range(count)}


@pytest.fixture
def shm(tmp_path):
    with mounts.small(tmp_path / "shm", SIZE) as folder:
        yield folder


def _run(folder, shm, text, *arguments):
    script = folder / "program.py"
    script.write_text(text)
    env = programs.environment(programs.INSTALLED, shm)
    return programs.run([script, *arguments], env=env, folder=folder, deadline_seconds=SECONDS).expect_success()


def test_killed_programs_with_one_file_each_leave_room_for_the_next_program(tmp_path, shm):
    outcome = _run(tmp_path, shm, KILLED_ONE_BY_ONE, str(PROGRAMS), str(RECORDS))

    assert outcome.err == b""
    assert all(json.loads(outcome.out)), "each has a queue that survives it"
    _run(tmp_path, shm, "import logspool; logspool.recover()")
    assert _numbers(tmp_path) == _expected(PROGRAMS)
    assert queue_folder.left_in(shm) == []


def test_install_on_a_nearly_full_tmpfs_delivers_records_of_every_file(tmp_path, shm):
    _run(tmp_path, shm, KILLED_ONE_BY_ONE, "1", str(RECORDS))
    assert len([path for path in shm.iterdir() if path.suffix == ".seg"]) == 1
    _fill(shm)

    _run(tmp_path, shm, ONE)
    assert _numbers(tmp_path) == _expected(1)
    assert [path.name for path in shm.iterdir()] == ["filled"]


def _fill(shm):
    status = os.statvfs(shm)
    with (shm / "filled").open("wb") as file:
        file.write(b"x" * (status.f_bavail * status.f_bsize * 7 // 8))
