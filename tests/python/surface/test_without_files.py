"""Programs that cannot open files that a process can usually open: no /proc, another root, another user."""

import os
import shutil
import subprocess
import sys

import pytest

from suite import programs

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to unmount /proc, and to change the root or the user"),
]

# Ten times the duration of a start on a busy machine.
SECONDS = 60

PROGRAM = """\
import logging, os, sys
import logspool
logspool.install()
logging.basicConfig(filename="app.log", format="%(message)s", level=logging.INFO)
logging.info("first")
{change}
for number in range(100):
    logging.info("line %d", number)
logging.info("x" * 400_000)
assert logspool.flush()
assert sum(level.accepted for level in logspool.stats().levels.values()) == 102
assert logspool.health().status == "ok", logspool.health()
assert logspool.warning_once(logging.getLogger(), "once")
"""

CHANGES = {
    "a_root_without_the_package": 'os.makedirs("root"); os.chroot("root")',
    "a_user_without_rights": "os.setuid(65534)",
}


@pytest.fixture
def without_proc():
    """Give a command prefix that runs a command without /proc."""
    command = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("needs the command unshare")
    done = subprocess.run([*command, "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot unmount /proc: {done.stderr.strip()}")
    if subprocess.run([*command, sys.executable, "-c", ""], capture_output=True).returncode:
        pytest.skip("this interpreter itself does not start without /proc")
    return command


def _lines(folder):
    return (folder / "app.log").read_text().splitlines()


def test_a_program_without_proc_logs_and_leaves_nothing(tmp_path, queue_dir, without_proc):
    (tmp_path / "program.py").write_text(PROGRAM.format(change="assert not os.path.exists('/proc/self')"))
    environment = programs.environment(programs.STOCK, queue_dir)

    outcome = programs.run(
        ["program.py"], env=environment, folder=tmp_path, deadline_seconds=SECONDS, through=without_proc
    )

    outcome.expect_success()
    assert outcome.err == b""
    assert len(_lines(tmp_path)) == 103
    assert list(queue_dir.glob("*.seg")) == []


def test_a_start_without_proc_delivers_the_records_of_a_killed_program(tmp_path, queue_dir, without_proc):
    killed = "import signal; os.kill(os.getpid(), signal.SIGKILL)"
    (tmp_path / "killed.py").write_text(PROGRAM.format(change=f"logging.info('second'); {killed}"))
    environment = programs.environment(programs.STOCK, queue_dir)

    def run(*words):
        return programs.run(words, env=environment, folder=tmp_path, deadline_seconds=SECONDS, through=without_proc)

    run("killed.py")
    outcome = run("-m", "logspool", "recover")

    outcome.expect_success()
    assert _lines(tmp_path) == ["first", "second"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_program_with(change, tmp_path, queue_dir):
    (tmp_path / "program.py").write_text(PROGRAM.format(change=CHANGES[change]))
    environment = programs.environment(programs.STOCK, queue_dir)

    outcome = programs.run(["program.py"], env=environment, folder=tmp_path, deadline_seconds=SECONDS)

    outcome.expect_success()
    assert len(_lines(tmp_path)) == 103
    told = outcome.err.decode().splitlines()
    assert len(told) == ("user" in change)
    assert all("change the user before the first record" in line for line in told)
