"""`python -m logspool top` shows what running processes have in their queues, and says why it cannot."""

import contextlib
import importlib.util
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from suite import mounts, programs

pytestmark = pytest.mark.real

DEADLINE_SECONDS = 60

#: Logs, prints `ready`, and runs until its standard input ends.
LOGS = """\
import logging, sys
import logspool

logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
logspool.install(OPTIONS)
for number in range(7):
    logging.info("record %d", number)
logspool.flush()
print("ready", flush=True)
sys.stdin.read()
"""

STAYS = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n"


@contextlib.contextmanager
def running(text, folder, queue_dir, **variables):
    """Run a program in the background and wait for its line `ready`."""
    environment = programs.environment(programs.INSTALLED, queue_dir, **variables)
    child = programs.start(["-c", text], env=environment, folder=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def top(*arguments, queue_dir, folder, **options):
    """Run the command; return its exit status, output and errors."""
    outcome = programs.run(
        ["-m", "logspool", "top", *arguments],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=folder,
        deadline_seconds=DEADLINE_SECONDS,
        **options,
    )
    return outcome.status, outcome.out.decode(), outcome.err.decode()


@pytest.fixture
def logging_program(tmp_path, queue_dir):
    with running(LOGS.replace("OPTIONS", ""), tmp_path, queue_dir) as child:
        yield child


def test_option_once_prints_a_plain_table(logging_program, tmp_path, queue_dir):
    status, out, err = top("--once", queue_dir=queue_dir, folder=tmp_path)

    assert (status, err) == (0, "")
    head, row, *_ = out.splitlines()
    assert head.split() == ["pid", "output", "written", "records/s", "bytes/s", "waiting", "dropped", "errors", "queue"]
    assert row.split()[:3] == [str(logging_program.pid), str(tmp_path / "app.log"), "7"], out
    assert row.split()[3:8] == ["0", "0", "bytes", "0", "0"] and "lanes" in row
    assert f"{logging_program.pid}: {sys.executable} -c" in out
    assert all(letter.isprintable() for letter in out.replace("\n", ""))


@pytest.mark.parametrize("choice", ["pid", "name"])
def test_one_process_can_be_chosen(logging_program, tmp_path, queue_dir, choice):
    other = tmp_path / "other"
    other.mkdir()
    with running(LOGS.replace("OPTIONS", ""), other, queue_dir, MARK="1") as second:
        arguments = ["--pid", str(second.pid)] if choice == "pid" else ["--name=record %d"]
        status, out, _ = top("--once", *arguments, queue_dir=queue_dir, folder=tmp_path)

    assert status == 0 and str(other / "app.log") in out
    assert (str(tmp_path / "app.log") in out) == (choice == "name")


def test_a_process_is_found_by_its_id_wherever_its_queue_is(logging_program, tmp_path, queue_dir):
    elsewhere = tmp_path / "elsewhere"
    status, out, _ = top("--once", "--pid", str(logging_program.pid), queue_dir=elsewhere, folder=tmp_path)
    assert status == 0 and str(tmp_path / "app.log") in out

    status, _, err = top("--once", queue_dir=elsewhere, folder=tmp_path)
    assert status == 1 and "no running process has a queue" in err and "(fix: " in err
    status, out, _ = top("--once", "--queue-dir", str(queue_dir), queue_dir=elsewhere, folder=tmp_path)
    assert status == 0 and str(tmp_path / "app.log") in out


def test_a_queue_in_memory_of_a_keeper_is_found(tmp_path):
    with mounts.small(tmp_path / "shm", "1100k") as shm, running(LOGS.replace("OPTIONS", ""), tmp_path, shm) as child:
        status, out, err = top("--once", "--pid", str(child.pid), queue_dir=tmp_path / "other", folder=tmp_path)

    assert status == 0 and str(tmp_path / "app.log") in out, err


def test_a_queue_in_plain_memory_is_named_as_such(tmp_path, queue_dir):
    with running(LOGS.replace("OPTIONS", "durability='memory'"), tmp_path, queue_dir) as child:
        status, out, err = top("--once", "--pid", str(child.pid), queue_dir=queue_dir, folder=tmp_path)

    assert (status, out) == (1, "") and "plain memory" in err and "(fix: " in err


def test_a_process_without_logspool_is_named_as_such(tmp_path, queue_dir):
    with running(STAYS, tmp_path, queue_dir) as child:
        status, out, err = top("--once", "--pid", str(child.pid), queue_dir=queue_dir, folder=tmp_path)

    assert (status, out) == (1, "")
    assert f"process {child.pid} ({sys.executable} -c" in err and "does not use logspool (fix: " in err


def test_a_process_that_has_ended_is_named_as_such(tmp_path, queue_dir):
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    text = LOGS.replace("OPTIONS", "").replace('"app.log"', '"fifo", filemode="w"')
    text = (
        text.replace("range(7)", "range(3000)").replace("record %d", "x" * 100 + " %d").replace("logspool.flush()", "")
    )
    with running(text, tmp_path, queue_dir) as child:
        pass
    status, out, err = top("--once", "--pid", str(child.pid), queue_dir=queue_dir, folder=tmp_path)
    os.close(reader)

    assert (status, out) == (1, "") and f"process {child.pid} has ended" in err, err
    assert "of its records are not in their files yet (fix: python -m logspool recover)" in err
    status, out, err = top("--once", "--pid", "4194304", queue_dir=queue_dir, folder=tmp_path)
    assert (status, out) == (1, "") and "no process with the id 4194304 runs (fix: " in err


WRONG = [
    (["--pid", "shop"], "--pid takes the id of a process, not 'shop' (fix: --name shop"),
    (["--pid"], "--pid needs a value (fix: --help)"),
    (["--pid", "1", "--name", "a"], "exclude each other"),
    (["--interval", "0"], "--interval takes seconds"),
    (["--interval", "soon"], "--interval takes seconds"),
    (["--queue-dir", "/not/there"], "is no folder (fix: "),
    (["--twice"], "there is no option '--twice' (fix: --help)"),
    (["shop.py"], "there is no option 'shop.py' (fix: --help)"),
]


@pytest.mark.parametrize("arguments, text", WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_an_invalid_command_line_shows_a_valid_one(tmp_path, queue_dir, arguments, text):
    status, out, err = top(*arguments, queue_dir=queue_dir, folder=tmp_path)

    assert (status, out) == (2, "") and text in err, err


def test_an_unknown_name_lists_the_known_ones(logging_program, tmp_path, queue_dir):
    status, _, err = top("--once", "--name", "nothing of that name", queue_dir=queue_dir, folder=tmp_path)

    assert status == 1 and f"{logging_program.pid} {sys.executable}" in err and "(fix: " in err


def test_in_a_pipe_plain_tables_follow_each_other_until_the_reader_leaves(logging_program, tmp_path, queue_dir):
    child = programs.start(
        ["-m", "logspool", "top", "--interval", "0.1"],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    tables = 0
    while tables < 3:
        line = child.stdout.readline()
        assert line and b"\x1b" not in line
        tables += line.split()[:1] == [b"pid"]
    child.stdout.close()
    child.wait(DEADLINE_SECONDS)
    assert (child.returncode, child.stderr.read()) == (0, b"")
    child.stderr.close()


@contextlib.contextmanager
def on_a_terminal(tmp_path, queue_dir, *arguments):
    """Run the command on a pseudo terminal; yield the child and a function that reads until a text appears."""
    end, terminal = pty.openpty()
    child = programs.start(
        [*arguments],
        env=programs.environment(programs.INSTALLED, queue_dir, TERM="xterm-256color"),
        folder=tmp_path,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen = bytearray()

    def read_until(text):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text is None or text not in seen:
            assert time.monotonic() < deadline, bytes(seen)
            try:
                part = os.read(end, 65536)
            except OSError:  # The last process has closed the terminal.
                part = b""
            if not part:
                assert text is None, bytes(seen)
                return bytes(seen)
            seen.extend(part)
        return bytes(seen)

    try:
        yield child, read_until
    finally:
        child.kill()
        child.wait()
        os.close(end)


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_live_view_ends_by_a_signal_and_restores_the_terminal(logging_program, tmp_path, queue_dir, number, status):
    arguments = ["-m", "logspool", "top", "--interval", "0.1"]
    with on_a_terminal(tmp_path, queue_dir, *arguments) as (child, read_until):
        read_until(str(logging_program.pid).encode())
        child.send_signal(number)
        text = read_until(None)
        child.wait(DEADLINE_SECONDS)

    assert child.returncode == status, text
    assert text.count(b"\x1b[?1049h") == text.count(b"\x1b[?1049l") == 1
    assert text.rindex(b"\x1b[?25h") > text.rindex(b"\x1b[?25l")
    assert b"Traceback" not in text


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")
def test_the_live_view_ends_with_the_process(logging_program, tmp_path, queue_dir):
    arguments = ["-m", "logspool", "top", "--interval=0.1", f"--pid={logging_program.pid}"]
    with on_a_terminal(tmp_path, queue_dir, *arguments) as (child, read_until):
        read_until(str(logging_program.pid).encode())
        logging_program.communicate(b"")
        text = read_until(None)
        child.wait(DEADLINE_SECONDS)

    assert child.returncode == 1 and f"no process with the id {logging_program.pid} runs".encode() in text
    assert text.index(b"\x1b[?1049l") < text.index(b"no process with the id")


def test_without_rich_a_terminal_gets_the_command_that_installs_it(tmp_path, queue_dir):
    code = "import sys; sys.modules['rich'] = None\nfrom logspool.__main__ import main\nsys.exit(main(['top']))\n"
    with on_a_terminal(tmp_path, queue_dir, "-c", code) as (child, read_until):
        text = read_until(None)
        child.wait(DEADLINE_SECONDS)

    assert child.returncode == 1 and b"pip install 'logspool[top]'" in text and b"--once" in text
