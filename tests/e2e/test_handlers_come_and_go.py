"""One handler for each job: more handlers in one process than can be open at once, and a kill in between."""

import os
import signal

import pytest

from suite import programs, queue_folder

pytestmark = pytest.mark.real

JOBS = 1_000
#: Ten times the time that a busy machine needs.
SECONDS = 100

PROGRAM = """\
import logging, os, signal, sys
from logspool import _native
from suite import side
log = logging.getLogger("app")
log.setLevel(logging.INFO)
side.install(shutdown_timeout=1)
if os.path.exists("fifo"):
    # Later records stay in the queue: recovery finds the records of handlers that were closed long ago.
    frozen = logging.FileHandler("fifo")
    log.addHandler(frozen)

def open_handler(job):
    handler = logging.FileHandler(f"{job}.log")
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    return handler

jobs = int(sys.argv[1])
for job in range(jobs):
    handler = open_handler(job)
    for line in range(3):
        log.info("%d %d", job, line)
    log.removeHandler(handler)
    handler.close()
native, by_record, stock, reason = _native.paths()["app"]
os.write(1, f"{native} {by_record + stock} {reason}".encode())
if len(sys.argv) > 2:
    for job in range(jobs, jobs + 5):
        open_handler(job)
    for line in range(3):
        log.info("%d", line)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def expected(job: int) -> str:
    return "".join(f"{job} {line}\n" for line in range(3))


def test_every_handler_of_many_takes_the_native_path_and_has_its_lines(run_program, queue_dir):
    outcome, folder = run_program(PROGRAM, str(JOBS), deadline_seconds=SECONDS)

    outcome.expect_success()
    assert outcome.out.decode().split(" ", 2)[:2] == [str(3 * JOBS), "0"]
    assert [(folder / f"{job}.log").read_text() for job in range(JOBS)] == [expected(job) for job in range(JOBS)]
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("frozen", [False, True], ids=["healthy", "behind a frozen output"])
def test_recovery_after_a_kill_puts_each_record_into_its_own_file(tmp_path, run_program, queue_dir, frozen):
    folder = tmp_path / programs.INSTALLED
    folder.mkdir()
    if frozen:
        os.mkfifo(folder / "fifo")
        end = os.open(folder / "fifo", os.O_RDWR)
    outcome, folder = run_program(PROGRAM, "300", "kill", deadline_seconds=SECONDS)
    assert outcome.status == -signal.SIGKILL
    if frozen:
        os.close(end)
        (folder / "fifo").unlink()

    run_program("import logspool; logspool.recover()", deadline_seconds=SECONDS)[0].expect_success()

    files = {job: (folder / f"{job}.log").read_text() for job in range(305)}
    assert files == {**{job: expected(job) for job in range(300)}, **dict.fromkeys(range(300, 305), "0\n1\n2\n")}


FORGOTTEN = """\
import collections, logging, warnings
from suite import side
warnings.simplefilter("ignore", ResourceWarning)
side.install()
log = logging.getLogger("app")
log.setLevel(logging.INFO)
for job in range(600):
    handler = logging.FileHandler(f"{job % 7}.log")
    handler.setFormatter(logging.Formatter(f"{job % 50} %(message)s"))
    log.addHandler(handler)
    log.info("%d", job)
    if job % 3 == 0:
        log.handlers.clear()
        del handler
    else:
        log.removeHandler(handler)
        handler.close()
side.settle()
"""


@pytest.mark.parametrize("round_number", range(5))
def test_discarded_handlers_between_others_lose_no_records(run_program, queue_dir, round_number):
    outcome, folder = run_program(FORGOTTEN, deadline_seconds=SECONDS)

    outcome.expect_success()
    for name in range(7):
        lines = (folder / f"{name}.log").read_text().splitlines()
        assert lines == [f"{job % 50} {job}" for job in range(name, 600, 7)]
    assert queue_folder.left_in(queue_dir) == []
