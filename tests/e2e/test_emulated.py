"""Under user-mode emulation /proc shows a different start time to each thread: no record is missing or duplicated."""

import os

import emulator
import pytest

from suite import lines, programs, queue_folder

pytestmark = pytest.mark.real

COUNT = 10_000
# Ten times the time that a program takes on a busy machine.
SECONDS = 120

PROGRAM = """\
import logging, os, signal, sys, threading
import logspool

logspool.install()
handler = logging.FileHandler("a.log")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)

def work(who, count):
    for number in range(count):
        log.info("%s %d end", who, number)

ends = sys.argv[1]
if ends == "threads":
    threads = [threading.Thread(target=work, args=(f"thread{index}", int(sys.argv[2]) // 4)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    work("main", int(sys.argv[2]))
if ends == "forks":
    if not os.fork():
        work("child", int(sys.argv[2]))
        sys.exit()
    assert os.wait()[1] == 0
    work("after", int(sys.argv[2]))
if ends == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _run(tmp_path, queue_dir, ends, through):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = programs.environment(programs.INSTALLED, queue_dir)
    arguments = [script, ends, str(COUNT)]
    return programs.run(arguments, env=env, folder=tmp_path, deadline_seconds=SECONDS, through=through)


def _expect(path, count, *writers):
    lines.count(path).expect_each_once(dict.fromkeys(writers, range(count)))


@pytest.mark.parametrize("ends", ["alone", "threads", "forks"])
def test_every_record_is_written_once(tmp_path, queue_dir, ends):
    _run(tmp_path, queue_dir, ends, emulator.command()).expect_success()

    writers = {
        "alone": ["main"],
        "threads": [f"thread{index}" for index in range(4)],
        "forks": ["main", "child", "after"],
    }
    _expect(tmp_path / "a.log", COUNT // 4 if ends == "threads" else COUNT, *writers[ends])
    assert queue_folder.left_in(queue_dir) == []


def test_a_later_start_finds_the_records_of_a_killed_program(tmp_path, queue_dir):
    outcome = _run(tmp_path, queue_dir, "killed", emulator.command())
    assert outcome.status == -9, outcome.err.decode()
    text = "import logging, logspool\nlogspool.install()\nlogging.FileHandler('a.log').close()\nlogspool.recover()\n"
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-c", text], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    _expect(tmp_path / "a.log", COUNT, "main")
    assert [name for name in os.listdir(queue_dir) if name.endswith(".seg")] == []


def test_doctor_lists_calls_that_an_emulator_accepts_without_effect(tmp_path, queue_dir):
    env = programs.environment(programs.INSTALLED, queue_dir)
    arguments = ["-m", "logspool", "doctor", queue_dir]
    outcome = programs.run(arguments, env=env, folder=tmp_path, deadline_seconds=SECONDS, through=emulator.command())

    assert outcome.status == 1, outcome.err.decode()
    assert b"madvise(MADV_WIPEONFORK)" in outcome.out
