"""`mode="w"`: records that a killed program left for the file are discarded, as is the old content of the file."""

import signal

import pytest

from suite import queue_folder

pytestmark = pytest.mark.real

SECONDS = 60

PROGRAM = """\
import logging, os, signal, sys
from suite import side

def handle():
    logging.basicConfig(filename="app.log", filemode="w", level=logging.INFO, format="%(message)s")

if sys.argv[1] == "before":
    handle()
side.install()
if sys.argv[1] == "after":
    handle()
log = logging.getLogger("app")
for number in range(1000):
    log.info("%s %d", sys.argv[2], number)
if sys.argv[2] == "old":
    os.kill(os.getpid(), signal.SIGKILL)
import logspool
logspool.flush()
print(logspool.stats().recovered, logspool.stats().recovery_discarded)
"""


@pytest.mark.parametrize("handler", ["before", "after"])
def test_records_of_a_killed_program_are_discarded_and_counted(run_program, queue_dir, handler):
    killed, folder = run_program(PROGRAM, handler, "old", deadline_seconds=SECONDS)
    assert killed.status == -signal.SIGKILL
    lacked = 1000 - (folder / "app.log").read_text().count("\n")

    started, _ = run_program(PROGRAM, handler, "new", deadline_seconds=SECONDS)

    assert (folder / "app.log").read_text() == "".join(f"new {number}\n" for number in range(1000))
    recovered, discarded = map(int, started.expect_success().out.split())
    assert recovered == 0
    # The first of them may have been in the file already.
    assert discarded >= lacked
    assert queue_folder.left_in(queue_dir) == []


FORKED = """\
import logging, os, signal
import logspool
from suite import side
logging.basicConfig(filename="app.log", filemode="w", level=logging.INFO, format="%(message)s")
side.install()
log = logging.getLogger("app")
log.info("parent before")
child = os.fork()
if child == 0:
    log.info("child")
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
log.info("parent after")
logspool.recover()
"""


def test_records_of_a_killed_child_of_this_program_are_written(run_program, queue_dir):
    outcome, folder = run_program(FORKED, deadline_seconds=SECONDS)

    outcome.expect_success()
    assert sorted((folder / "app.log").read_text().splitlines()) == ["child", "parent after", "parent before"]
    assert queue_folder.left_in(queue_dir) == []
