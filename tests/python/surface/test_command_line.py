"""`python -m logspool`: exit codes, errors and help."""

import os
import subprocess
import sys

import pytest

import logspool
from logspool.base import _interpreter
from suite import programs

pytestmark = pytest.mark.real


@pytest.fixture
def command(tmp_path, queue_dir):
    def run(*arguments, terminal=False, **variables):
        return programs.run(
            ["-m", "logspool", *arguments],
            env=programs.environment(programs.INSTALLED, queue_dir, **variables),
            folder=tmp_path,
            deadline_seconds=60,
            terminal=terminal,
        )

    return run


def test_a_missing_command_is_an_error_that_shows_the_usage(command):
    outcome = command()

    assert (2, b"") == (outcome.status, outcome.out)
    assert outcome.err.startswith(b"usage: python -m logspool run")


def test_help_exits_with_success(command):
    outcome = command("--help")

    assert (0, b"") == (outcome.status, outcome.err)
    assert outcome.out.startswith(b"usage: python -m logspool run")


@pytest.mark.parametrize("name", ["run", "config", "preset", "recover", "doctor"])
def test_every_command_has_its_help(command, name):
    outcome = command(name, "--help")

    assert (0, b"") == (outcome.status, outcome.err)
    assert outcome.out.startswith(f"usage: python -m logspool {name}".encode())


@pytest.mark.parametrize("name", ["serve", "query", "tail", "stats", "check-config"])
def test_a_command_of_the_service_names_what_is_missing(command, tmp_path, name):
    outcome = command(name, PATH=str(tmp_path))

    assert (2, b"") == (outcome.status, outcome.out)
    assert b"the program logspool of the package logspool-service" in outcome.err
    assert b"fix: install the wheel of logspool-service" in outcome.err
    assert b"cargo install --path crates/logspool-server" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rnu"], b"no command is named 'rnu'; the nearest one is 'run'"),
        (["xyzzy"], b"no command is named 'xyzzy'; there are "),
        (["run"], b"name a script, -m and a module, or -- and a command"),
        (["run", "--"], b"name a script, -m and a module, or -- and a command"),
        (["run", "--", "no-such-command"], b"no command is named 'no-such-command'"),
        (["run", "pip"], b"cannot open 'pip': no such file (fix: python -m logspool run -- pip)"),
        (["run", "--fast", "x.py"], b"no option is named '--fast'"),
        (["run", "nowhere.py"], b"cannot open 'nowhere.py': no such file"),
        (["recover", "a", "b"], b"takes one folder at most"),
        (["doctor", "--all"], b"takes one folder at most"),
    ],
)
def test_an_error_is_printed_on_stderr_with_status_2(command, arguments, expected):
    outcome = command(*arguments)

    assert (2, b"") == (outcome.status, outcome.out)
    assert expected in outcome.err
    assert b"Traceback" not in outcome.err


def test_doctor_finds_no_problem_on_a_healthy_machine(command):
    outcome = command("doctor")

    assert (0, b"") == (outcome.status, outcome.err), outcome.out
    assert outcome.out.startswith(b"ok: nothing found in ")


def test_doctor_says_in_five_lines_how_fast_and_how_safe_logging_is_here(command, queue_dir):
    lines = command("doctor", str(queue_dir)).out.decode().splitlines()
    slow = _interpreter.slow_paths()

    assert [f"slow on this Python: {name}: {reason}" for name, reason in slow.items()] == lines[5:]
    assert lines[0] == f"ok: nothing found in {queue_dir} that would hurt"
    assert lines[1].startswith(f"version: {logspool.__version__}, native, for cpython 3.")
    assert lines[2] == "speed: " + (f"all fast paths but {', '.join(slow)}" if slow else "all fast paths are on")
    assert lines[3].startswith(f"queue: in {queue_dir}, on ")
    assert lines[4] == "keepers: none"


def test_doctor_reports_that_logspool_is_switched_off(command):
    outcome = command("doctor", LOGSPOOL="off")

    assert 1 == outcome.status
    assert b"install() and run do nothing" in outcome.out


def test_only_terminals_that_want_colours_get_them(command):
    coloured = command("doctor", terminal=True)
    plain = command("doctor", terminal=True, NO_COLOR="1")

    assert b"\x1b[32mok\x1b[0m" in coloured.out
    assert b"\x1b" not in plain.out


@pytest.mark.parametrize("arguments", [["config", "show"], ["preset", "vllm"], ["doctor"], ["--help"]])
def test_a_reader_that_stops_early_is_not_an_error(arguments, tmp_path, queue_dir):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "logspool", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=programs.environment(programs.INSTALLED, queue_dir),
        cwd=tmp_path,
        timeout=60,
    )
    os.close(writer)

    assert (0, b"") == (done.returncode, done.stderr)
