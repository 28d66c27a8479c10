"""Options of `install()` come from arguments, variables and a file, in this order, and each fault names its place."""

import importlib.util
import json
import os

import pytest

import logspool
from logspool import _native
from logspool.commands import _config
from suite import programs

pytestmark = pytest.mark.real

HAS_TOML = any(importlib.util.find_spec(name) for name in ("tomllib", "tomli"))
toml = pytest.mark.skipif(not HAS_TOML, reason="needs tomllib or tomli")

SHOW = """\
import json, sys
import logspool
from logspool.watch import _stats

logspool.install(**json.loads(sys.argv[1]))
options = _stats.options_in_force() or {}
print(json.dumps({name: options.get(name) for name in sys.argv[2:]}))
"""

#: For each option: a text of its variable, a value in TOML, and the values in force for the two.
VALUES = {
    "durability": ("sync", '"interval"', "sync", "interval"),
    "queue_bytes": ("65_536", "131_072", 65536, 131072),
    "queue_total_bytes": ("1048576", "2097152", 1048576, 2097152),
    "queue_dir": None,
    "blocking_levels": ("ERROR, 35", '["CRITICAL", 25]', [35, 40], [25, 50]),
    "blocking_timeout": ("inf", "2", float("inf"), 2.0),
    "flush_interval": ("0.25", "1", 0.25, 1.0),
    "flush_records": ("7", "8", 7, 8),
    "sync_interval": ("2.5", "3.5", 2.5, 3.5),
    "checkpoint_every": ("10", "20", 10, 20),
    "durability_timeout": ("1", "2.0", 1.0, 2.0),
    "durable_levels": ("CRITICAL", "[30]", [50], [30]),
    "shutdown_timeout": ("9", "8", 9.0, 8.0),
    "fallback": ("none", '"none"', None, None),
    "spool_dir": None,
    "spool_bytes": ("1048576", "2097152", 1048576, 2097152),
    "keeper": ("on", "true", True, True),
    "crash_signals": ("0", "false", False, False),
    "uncaught": ("True", "true", True, True),
    "defer_formatting": ("yes", "true", True, True),
    "redact_keys": ("token; secret", '["a;b"]', ["token", "secret"], ["a;b"]),
    "redact_patterns": ('["a;b", "c"]', '["[0-9]{4}"]', ["a;b", "c"], ["[0-9]{4}"]),
    "escape_control": ("on", "true", True, True),
    "deduplicate": ("2.5", "3", 2.5, 3.0),
    "rate_limit": ("7", "8", 7, 8),
    "sample": ("0.1 logger=a", '["1"]', ["0.1 logger=a"], ["1"]),
}

ROWS = {row["name"]: row for row in _native.install_options()}


@pytest.fixture
def run(tmp_path, queue_dir):
    """Give a function that runs a command in a folder and returns its outcome. A variable that is None is not set."""
    (tmp_path / "show.py").write_text(SHOW)

    def run(*arguments, folder=tmp_path, **variables):
        environment = programs.environment(programs.INSTALLED, queue_dir, LOGSPOOL_KEEPER="off")
        del environment["LOGSPOOL_SHUTDOWN_TIMEOUT"]
        environment = {name: text for name, text in {**environment, **variables}.items() if text is not None}
        return programs.run(arguments, env=environment, folder=folder, deadline_seconds=60)

    return run


@pytest.fixture
def in_force(run, tmp_path):
    """Give a function that returns values of options in a program; `given` are the arguments of its `install()`."""

    def in_force(*names, given=None, **variables):
        outcome = run(tmp_path / "show.py", json.dumps(given or {}), *names, **variables).expect_success()
        found = json.loads(outcome.out)
        return found[names[0]] if len(names) == 1 else [found[name] for name in names]

    return in_force


def _variables(column):
    return {f"LOGSPOOL_{name.upper()}": row[column] for name, row in VALUES.items() if row is not None}


def test_every_option_has_a_row_here():
    assert list(ROWS) == list(VALUES)


def test_every_option_is_set_by_its_variable(in_force):
    names = [name for name, row in VALUES.items() if row is not None]
    values = in_force(*names, **_variables(0))

    assert [VALUES[name][2] for name in names] == values


@toml
def test_every_option_is_set_by_the_file(in_force, tmp_path):
    names = [name for name, row in VALUES.items() if row is not None]
    (tmp_path / "own.toml").write_text("".join(f"{name} = {VALUES[name][1]}\n" for name in names))
    values = in_force(*names, LOGSPOOL_CONFIG="own.toml", LOGSPOOL_KEEPER=None)

    assert [VALUES[name][3] for name in names] == values


@toml
def test_arguments_override_variables_which_override_the_file_and_the_defaults(in_force, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.logspool]\nflush_records = 2\nqueue_bytes = 32768\nuncaught = true\n"
    )
    names = ("flush_records", "queue_bytes", "uncaught", "checkpoint_every")
    values = in_force(*names, given={"flush_records": 100}, LOGSPOOL_FLUSH_RECORDS="3", LOGSPOOL_QUEUE_BYTES="65536")

    # The argument equals the default and still overrides the variable.
    assert [100, 65536, True, 50] == values


@toml
def test_a_folder_in_a_file_is_relative_to_the_file(in_force, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "own.toml").write_text('spool_dir = "spool"\n')

    assert str(tmp_path / "etc" / "spool") == in_force("spool_dir", LOGSPOOL_CONFIG="etc/own.toml")


@toml
@pytest.mark.parametrize("text", ["", "[project]\nname = 'logspool'\n", "[tool.other]\nflush_records = 1\n"])
def test_a_project_file_without_our_table_sets_nothing(in_force, tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)

    assert 100 == in_force("flush_records")


def test_handlers_without_install_use_the_options_too(run, tmp_path):
    (tmp_path / "alone.py").write_text(
        "import logspool\nfrom logspool.base import _in_force\nlogspool.StreamHandler()\n"
        "print(_in_force.alone['flush_records'])\n"
    )

    assert b"7\n" == run("alone.py", LOGSPOOL_FLUSH_RECORDS="7").expect_success().out


@toml
def test_run_gives_its_file_to_children_in_other_folders(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.logspool]\nflush_records = 2\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "shows = 'from logspool.watch import _stats; print(_stats.options_in_force()[\"flush_records\"])'\n"
        "subprocess.run([sys.executable, '-c', shows], cwd='other', check=True)\n"
    )

    assert b"2\n" == run("-m", "logspool", "run", "program.py").expect_success().out


WRONG = {
    "LOGSPOOL_QUEUE_BYTES": ("5", "LOGSPOOL_QUEUE_BYTES must ", "unset LOGSPOOL_QUEUE_BYTES for the default, 262144"),
    "LOGSPOOL_FLUSH_RECORDS": ("many", "LOGSPOOL_FLUSH_RECORDS must be a whole number, not 'many'", "the default, 100"),
    "LOGSPOOL_KEEPER": ("perhaps", "LOGSPOOL_KEEPER must be on or off, not 'perhaps'", "the default, false"),
    "LOGSPOOL_FLUSH_INTERVAL": ("soon", "LOGSPOOL_FLUSH_INTERVAL must be a number of seconds, not 'soon'", "0.5"),
    "LOGSPOOL_DURABILITY": ("memori", "LOGSPOOL_DURABILITY ", "the nearest one is "),
    "LOGSPOOL_BLOCKING_LEVELS": ("EROR", "LOGSPOOL_BLOCKING_LEVELS: no level is named 'EROR'", "one is 'ERROR'"),
    "LOGSPOOL_FLUSH_RECORD": ("1", "LOGSPOOL_FLUSH_RECORD is no option", "rename it to LOGSPOOL_FLUSH_RECORDS"),
    "LOGSPOOL_CONFIG": ("absent.toml", "LOGSPOOL_CONFIG: cannot read ", "name a TOML file"),
}


@pytest.fixture
def here(tmp_path, queue_dir, monkeypatch, capsys):
    """Give a function that sets variables in this process and in an empty folder, and checks them.

    It returns the error of `install()`, the exit code of `config check`, and its output on standard error.
    """
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LOGSPOOL")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LOGSPOOL_QUEUE_DIR", str(queue_dir))

    def check(*arguments, **variables):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        with pytest.raises(ValueError) as raised:
            logspool.install()
        code = _config.main(["check", *arguments])
        return str(raised.value), code, capsys.readouterr().err

    return check


@pytest.mark.parametrize("variable", WRONG)
def test_an_invalid_variable_is_an_error_with_its_name_and_a_fix(here, variable):
    text, fault, fix = WRONG[variable]
    error, code, checked = here(**{variable: text})

    assert 1 == code
    for shown in (error, checked):
        assert fault in shown
        assert fix in shown


def test_run_refuses_an_invalid_variable_and_reads_none_when_off(run):
    below = run("-m", "logspool", "run", "show.py", "{}", LOGSPOOL_QUEUE_BYTES="5")
    off = run("show.py", "{}", LOGSPOOL="off", LOGSPOOL_QUEUE_BYTES="5")

    assert (1, 0) == (below.status, off.status)
    assert below.err.startswith(b"python -m logspool run: cannot install: LOGSPOOL_QUEUE_BYTES must be ")
    assert b"Traceback" not in below.err


def test_unrelated_variables_are_not_errors(in_force):
    assert 100 == in_force("flush_records", LOGSPOOL_TOOLS="required", LOGSPOOL_CRASH_STATES="9", LOGSPOOL_SEED="1")


FILES = {
    "unknown": ("flush_record = 1\n", ":1: install() has no option 'flush_record'; the nearest one is 'flush_records'"),
    "type": ("\nqueue_bytes = '5'\n", ":2: queue_bytes must be "),
    "range": ("flush_records = 1\nqueue_bytes = 5\n", ":2: queue_bytes must be "),
    "table": ("[tool.logspool]\nkeeper = true\n", ":1: install() has no option 'tool'"),
    "syntax": ("queue_bytes = \n", ": Invalid value (at line 1, column 15)"),
    "switch": ("keeper = 'on'\n", ":1: keeper must be "),
}


@toml
@pytest.mark.parametrize("name", FILES)
def test_an_error_in_a_file_names_its_line_and_a_fix(here, tmp_path, name):
    text, fault = FILES[name]
    path = tmp_path / "own.toml"
    path.write_text(text)
    error, code, checked = here("own.toml", LOGSPOOL_CONFIG="own.toml")

    assert 1 == code
    for shown in (error, checked):
        assert f"{path}{fault}" in shown
        assert "(fix: " in shown


@toml
def test_check_lists_all_errors_at_once(run, tmp_path):
    (tmp_path / "own.toml").write_text("flush_record = 1\nqueue_bytes = 5\nflush_interval = 'x'\nkeeper = true\n")
    outcome = run("-m", "logspool", "config", "check", "own.toml")

    assert (1, b"") == (outcome.status, outcome.out)
    assert [":1: ", ":2: ", ":3: "] == sorted(
        line.partition("own.toml")[2][:4] for line in outcome.err.decode().splitlines()
    )


@toml
def test_contradicting_options_in_a_file_are_an_error(run, tmp_path):
    (tmp_path / "own.toml").write_text("durability = 'memory'\nkeeper = true\n")
    outcome = run("-m", "logspool", "config", "check", "own.toml")

    assert 1 == outcome.status
    assert b"own.toml:2: keeper=True: with durability='memory' nothing outlives the process" in outcome.err


def test_an_argument_that_contradicts_a_variable_names_the_variable(run):
    outcome = run("show.py", '{"keeper": true}', LOGSPOOL_DURABILITY="memory", LOGSPOOL_KEEPER=None)

    assert 1 == outcome.status
    assert b"keeper=True: with durability='memory'" in outcome.err
    assert b"(durability is set by LOGSPOOL_DURABILITY)" in outcome.err


@toml
def test_check_of_a_valid_file_counts_its_options(run, tmp_path):
    (tmp_path / "own.toml").write_text("flush_records = 1\n")
    outcome = run("-m", "logspool", "config", "check", "own.toml")

    assert (0, f"ok: 1 option set in {tmp_path / 'own.toml'}\n", b"") == (
        outcome.status,
        outcome.out.decode(),
        outcome.err,
    )


@toml
def test_show_lists_each_option_with_its_source(run, tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text("[project]\nname = 'x'\n\n[tool.logspool]\nflush_records = 2\n")
    outcome = run("-m", "logspool", "config", "show", LOGSPOOL_QUEUE_BYTES="65536").expect_success()
    lines = outcome.out.decode().splitlines()

    assert list(ROWS) == [line.removeprefix("# ").split()[0] for line in lines]
    assert "queue_bytes = 65536  # LOGSPOOL_QUEUE_BYTES" in lines
    assert f"flush_records = 2  # {path}:5" in lines
    assert 'durability = "process"  # default' in lines
    assert "keeper = false  # LOGSPOOL_KEEPER" in lines
    assert "# spool_dir is not set" in lines


@toml
def test_the_output_of_show_is_a_file_with_the_same_values(run, in_force, tmp_path):
    names = [name for name, row in VALUES.items() if row is not None]
    shown = run("-m", "logspool", "config", "show", **_variables(0)).expect_success()
    (tmp_path / "shown.toml").write_bytes(shown.out)
    run("-m", "logspool", "config", "check", "shown.toml").expect_success()

    assert [VALUES[name][2] for name in names] == in_force(*names, LOGSPOOL_CONFIG="shown.toml", LOGSPOOL_KEEPER=None)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "say show or check"),
        (["chek"], "no command is named 'chek'; the nearest one is 'check'"),
        (["show", "a"], "takes nothing, not 'a'"),
        (["check", "a", "b"], "takes one file at most"),
    ],
)
def test_an_invalid_command_line_exits_with_status_2(run, arguments, expected):
    outcome = run("-m", "logspool", "config", *arguments)

    assert (2, b"") == (outcome.status, outcome.out)
    assert expected in outcome.err.decode()


def test_a_python_without_a_toml_parser_is_an_error_with_a_fix(run, tmp_path):
    (tmp_path / "own.toml").write_text("flush_records = 1\n")
    (tmp_path / "old.py").write_text(
        "import sys\nsys.modules['tomllib'] = sys.modules['tomli'] = None\nimport logspool\nlogspool.install()\n"
    )
    outcome = run("old.py", LOGSPOOL_CONFIG="own.toml")
    without_file = run("old.py")

    assert (1, 0) == (outcome.status, without_file.status)
    assert b"this Python cannot read TOML, because tomllib came with Python 3.11 (fix: pip install tomli" in outcome.err


def test_recover_and_doctor_use_the_queue_folder_of_the_file(run, tmp_path, queue_dir):
    if not HAS_TOML:
        pytest.skip("needs tomllib or tomli")
    (tmp_path / "pyproject.toml").write_text(f'[tool.logspool]\nqueue_dir = "{queue_dir}"\n')
    (tmp_path / "killed.py").write_text(
        "import logging, os, signal\nimport logspool\nlogspool.install()\n"
        "log = logging.getLogger()\nlog.addHandler(logging.FileHandler('own.log'))\nlog.warning('before')\n"
        "logspool.flush()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = run("killed.py", LOGSPOOL_QUEUE_DIR=None)
    doctor = run("-m", "logspool", "doctor", LOGSPOOL_QUEUE_DIR=None)

    assert -9 == killed.status
    assert os.fsencode(queue_dir) in doctor.out


OFF = """\
import logging, os, sys
import logspool
logging.getLogger().handlers = [logspool.FileHandler("own.log", flush_records=5), logspool.StreamHandler()]
logspool.install()
for number in range(100):
    logging.warning("line %d", number)
    assert open("own.log").read().endswith(f"line {number}\\n")
logging.getLogger().handlers[0].close()
print(len(os.listdir("/proc/self/task")), os.listdir(os.environ["LOGSPOOL_QUEUE_DIR"]))
try:
    logspool.FileHandler("own.log", flush_recods=5)
except TypeError as error:
    print(error)
"""


def test_plain_handlers_are_stock_logging_too_when_logspool_is_off(run, tmp_path):
    (tmp_path / "off.py").write_text(OFF)
    outcome = run("off.py", LOGSPOOL="off").expect_success()

    assert outcome.out.decode().splitlines() == [
        "1 []",
        "FileHandler has no option 'flush_recods'; the nearest one is 'flush_records'",
    ]
    assert "".join(f"line {number}\n" for number in range(100)) == outcome.err.decode()
