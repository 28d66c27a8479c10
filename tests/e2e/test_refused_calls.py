"""The kernel or a container's filter refuses a system call: no record is missing or doubled.

logspool reports which guarantee is weaker.
"""

import json

import pytest

from suite import lines, programs, queue_folder, seccomp

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not seccomp.can_refuse(), reason="the numbers of this processor's system calls are not known here"
    ),
]

COUNT = 10_000
SECONDS = 60

PROGRAM = """\
import json, logging, os, signal, sys
from suite import seccomp

refused, ends, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
seccomp.refuse(refused)
import logspool
from logspool.commands import _doctor

# On a busy machine the lane fills faster than it is emptied.
logspool.install(blocking_levels=["INFO"], blocking_timeout=30)
handler = logging.FileHandler("a.log")
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)

def work(who, first, end):
    for number in range(first, end):
        log.info("%s %d end", who, number)

work("main", 0, 1)
health = logspool.health()
told = {
    "status": health.status, "reasons": health.reasons, "notes": health.notes,
    "doctor": [str(finding) for finding in _doctor.findings()],
}
with open("told.json", "w") as file:
    json.dump(told, file)
work("main", 1, count)
if ends == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if not os.fork():
    work("child", 0, count)
    sys.exit()
assert os.wait()[1] == 0
"""

#: The refused call -> its name in `health()` and `doctor`, and whether it costs records of a killed program.
CALLS = {
    "membarrier": ("membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)", False),
    "memfd_create": ("memfd_create", False),
    "MADV_WIPEONFORK": ("madvise(MADV_WIPEONFORK)", False),
    "MADV_DONTFORK": ("madvise(MADV_DONTFORK)", False),
    "record locks": ("fcntl(F_SETLK)", True),
    # Not needed: only threads of one process sleep on the word.
    "shared futex": (None, False),
}


def _run(tmp_path, queue_dir, refused, ends):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    env = programs.environment(programs.INSTALLED, queue_dir)
    arguments = [script, refused, ends, str(COUNT)]
    return programs.run(arguments, env=env, folder=tmp_path, deadline_seconds=SECONDS)


def _expect(path, *writers):
    lines.count(path).expect_each_once(dict.fromkeys(writers, range(COUNT)))


@pytest.mark.parametrize("refused", CALLS)
def test_every_record_is_written_once_and_weaker_promises_are_reported(tmp_path, queue_dir, refused):
    outcome = _run(tmp_path, queue_dir, refused, "by itself").expect_success()

    _expect(tmp_path / "a.log", "main", "child")
    assert queue_folder.left_in(queue_dir) == []
    told = json.loads((tmp_path / "told.json").read_text())
    name, costs_records = CALLS[refused]
    shown = told["reasons"] if costs_records else told["notes"]
    assert told["status"] == ("degraded" if costs_records else "ok")
    assert told["notes"] == ([] if costs_records else shown)
    assert len(shown) == (name is not None)
    if name is not None:
        assert shown[0].startswith(f"{name} is refused here (Operation not permitted): ")
        assert "(fix: " in shown[0]
        assert [line for line in told["doctor"] if line.startswith(f"{name}: is refused here")] != []
    if costs_records:
        assert b"the system refuses record locks" in outcome.err
        assert b"it is in memory now" in outcome.err


@pytest.mark.parametrize("refused", [refused for refused, (_, costs_records) in CALLS.items() if not costs_records])
def test_a_later_start_finds_the_records_of_a_killed_program(tmp_path, queue_dir, refused):
    assert _run(tmp_path, queue_dir, refused, "killed").status == -9
    text = (
        "import sys\nfrom suite import seccomp\nseccomp.refuse(sys.argv[1])\n"
        "import logging, logspool\nlogspool.install()\nlogging.FileHandler('a.log').close()\nlogspool.recover()\n"
    )
    env = programs.environment(programs.INSTALLED, queue_dir)
    programs.run(["-c", text, refused], env=env, folder=tmp_path, deadline_seconds=SECONDS).expect_success()

    _expect(tmp_path / "a.log", "main")
    assert [path.name for path in queue_dir.glob("*.seg")] == []


def test_doctor_names_a_refused_call_and_a_fix(tmp_path, queue_dir):
    text = (
        "import sys\nfrom suite import seccomp\nseccomp.refuse('membarrier')\n"
        "from logspool import __main__\nsys.exit(__main__.main(['doctor', sys.argv[1]]))\n"
    )
    env = programs.environment(programs.INSTALLED, queue_dir)
    outcome = programs.run(["-c", text, queue_dir], env=env, folder=tmp_path, deadline_seconds=SECONDS)

    assert outcome.status == 1, outcome.err.decode()
    shown = outcome.out.decode()
    assert "membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)\n  found  is refused here (Operation not permitted)" in shown
    assert "fix   let the container's filter" in shown
