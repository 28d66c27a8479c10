"""Records of killed processes: delivered by `install()`, `recover()` and `python -m logspool recover`."""

import os
import signal

import pytest

from suite import programs, queue_folder
from suite.waiting import until

pytestmark = pytest.mark.real

LINES = 2000

# Usually the program kills itself before all its records are written.
_KILLED = f"""\
import logging, logspool, os, signal
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install()
log = logging.getLogger("app")
for number in range({LINES}):
    log.info("%d", number)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(run_program, queue_dir):
    """Run a program that kills itself, again and again, until it leaves records; return its folder."""

    def kill():
        outcome, folder = run_program(_KILLED)
        assert -signal.SIGKILL == outcome.status
        return folder if queue_folder.left_in(queue_dir) else None

    return until(kill, 60, "a killed program left its segment")


def _run(arguments, folder, queue_dir, **variables):
    return programs.run(
        arguments,
        env=programs.environment(programs.INSTALLED, queue_dir, **variables),
        folder=folder,
        deadline_seconds=60,
    )


def _lines(folder):
    return (folder / "app.log").read_text().splitlines()


def test_install_delivers_for_the_files_of_its_handlers(killed, queue_dir):
    text = "import logging, logspool\nlogging.basicConfig(filename='app.log')\nlogspool.install()\n"
    text += "print(logspool.stats().recovered)\n"
    _run(["-c", text], killed, queue_dir).expect_success()

    assert list(map(str, range(LINES))) == _lines(killed)
    assert [] == queue_folder.left_in(queue_dir)


def test_the_command_delivers_records_and_reports_them(killed, queue_dir):
    outcome = _run(["-m", "logspool", "recover", str(queue_dir)], killed, queue_dir).expect_success()
    again = _run(["-m", "logspool", "recover", str(queue_dir)], killed, queue_dir).expect_success()

    assert list(map(str, range(LINES))) == _lines(killed)
    assert [] == queue_folder.left_in(queue_dir)
    assert b"" == outcome.err
    assert b"nothing to deliver\n" == again.out


def test_recover_returns_a_report(killed, queue_dir):
    text = "import logspool\nreport = logspool.recover()\nprint(len(report.removed), report.kept, report.discarded)\n"
    outcome = _run(["-c", text], killed, queue_dir).expect_success()

    removed, rest = outcome.out.split(maxsplit=1)
    assert int(removed) >= 1
    assert b"{} 0\n" == rest


def test_doctor_lists_leftover_records_and_a_fix(killed, queue_dir):
    outcome = _run(["-m", "logspool", "doctor"], killed, queue_dir)

    assert 1 == outcome.status
    assert f"fix   python -m logspool recover {queue_dir}".encode() in outcome.out
    assert b"\x1b" not in outcome.out


def test_unreadable_leftovers_do_not_stop_the_install(run_program, queue_dir):
    os.chmod(queue_dir, 0o700)
    (queue_dir / "1-2-3-4.seg").write_bytes(b"nonsense" * 100)
    text = "import logging, logspool\nlogging.basicConfig(filename='app.log')\nlogspool.install()\n"
    outcome, _ = run_program(text + "logging.warning('on')\nlogspool.flush()\nprint(open('app.log').read())")

    assert b"WARNING:root:on\n" in outcome.expect_success().out


def test_a_missing_folder_is_an_error(tmp_path, queue_dir):
    outcome = _run(["-m", "logspool", "recover", "/nowhere"], tmp_path, queue_dir)

    assert 1 == outcome.status
    assert b"cannot read '/nowhere': No such file or directory" in outcome.err
