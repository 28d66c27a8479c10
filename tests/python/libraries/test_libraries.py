"""Programs with libraries that reach into logging: stock and installed print and write the same."""

import importlib.util
import re

import pytest

from libraries.programs import PROGRAMS
from suite import comparing, programs

# Ten times the duration of the slowest library's import on a busy machine.
SECONDS = 120


def _missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def _parameters():
    for program in PROGRAMS:
        missing = [module for module in program.requires if _missing(module)]
        marks = [pytest.mark.skip(reason=f"needs {', '.join(missing)}")] if missing else []
        yield pytest.param(program, id=program.name, marks=marks)


def outputs(run_program, text: str, side: str, moving=(), **more) -> dict[str, bytes]:
    """Run on one side and return the program's files, its output and its exit status."""
    outcome, folder = run_program(text, side=side, deadline_seconds=SECONDS, **more)
    found = {
        "stdout": outcome.out,
        "stderr": outcome.err,
        "exit status": str(outcome.status).encode(),
        **comparing.files(folder),
    }
    for pattern in moving:
        found = {name: re.sub(pattern, b"<moving>", data) for name, data in found.items()}
    return {
        name: comparing.normalise(data, folder, addresses=True)
        for name, data in found.items()
        if "__pycache__" not in name and not name.startswith(".")
    }


@pytest.mark.parametrize("program", list(_parameters()))
def test_output_with_the_library_equals_stock_logging(run_program, program):
    stock, installed = (
        outputs(run_program, program.text, side, moving=program.moving, terminal=program.terminal)
        for side in programs.SIDES
    )

    assert stock["exit status"] == b"0", stock["stderr"].decode()
    difference = comparing.differences(stock, installed)
    assert not difference, difference


INNER_TESTS = """\
import logging, unittest
import pytest

log = logging.getLogger("inner")

def test_records_and_text(caplog):
    with caplog.at_level(logging.DEBUG):
        log.debug("debug %d", 1)
        log.error("error %s", "x", exc_info=ValueError("v"))
    assert caplog.record_tuples == [("inner", 10, "debug 1"), ("inner", 40, "error x")]
    assert caplog.messages == ["debug 1", "error x"]
    assert "ValueError: v" in caplog.text

def test_after_a_thousand_calls(caplog):
    for number in range(1000):
        log.warning("warm %d", number)
    assert len(caplog.records) == 1000
    caplog.clear()
    caplog.set_level(logging.ERROR, logger="inner")
    log.warning("too low")
    log.error("seen")
    assert caplog.messages == ["seen"]
    with caplog.filtering(lambda record: False) if hasattr(caplog, "filtering") else caplog.at_level(60, "inner"):
        log.error("filtered")
    assert caplog.messages == ["seen"]

def test_propagation_and_files(caplog, tmp_path):
    handler = logging.FileHandler(tmp_path / "inner.log")
    log.addHandler(handler)
    log.warning("to both")
    log.propagate = False
    log.warning("to the file")
    log.propagate = True
    log.removeHandler(handler)
    handler.close()
    assert caplog.messages == ["to both"]
    assert (tmp_path / "inner.log").read_text() == "to both\\nto the file\\n"

def test_that_fails_shows_its_log():
    log.warning("shown in the report %d", 1)
    print("printed")
    assert False

def test_with_captured_streams(capsys):
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.warning("onto captured stderr")
    log.removeHandler(handler)
    assert capsys.readouterr().err == "onto captured stderr\\n"

def test_with_captured_descriptors(capfd):
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.warning("onto captured descriptor")
    handler.flush()
    log.removeHandler(handler)
    assert capfd.readouterr().err == "onto captured descriptor\\n"

class TestCase(unittest.TestCase):
    def test_assert_logs(self):
        with self.assertLogs("inner", "INFO") as seen:
            log.info("seen")
        self.assertEqual(seen.output, ["INFO:inner:seen"])

@pytest.fixture
def noisy():
    log.warning("from the fixture")
    yield
    log.warning("from the end of the fixture")

def test_phases(noisy, caplog):
    log.warning("from the test")
    assert [record.message for record in caplog.get_records("setup")] == ["from the fixture"]
    assert caplog.messages == ["from the test"]
"""

_RUN_PYTEST = """\
import sys
from pathlib import Path
from suite import side

if {before}:
    side.install()
Path("test_inner.py").write_text({tests!r})
Path("conftest.py").write_text("from suite import side\\nif not {before}:\\n    side.install()\\n")
import pytest
status = pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-p", "no:hypothesispytest",
    "--no-header", "-v", "-W", "ignore", "--rootdir=.", "-o", "addopts=", "-c", "pytest.ini",
    "--basetemp=temporary", {options}])
Path("status").write_text(str(int(status)))
import shutil
shutil.rmtree("temporary", ignore_errors=True)
"""


@pytest.mark.parametrize("before", [True, False], ids=["installed_before_pytest", "installed_by_a_conftest"])
@pytest.mark.parametrize(
    "options",
    [
        "'-q'",
        "'-o', 'log_cli=true', '-o', 'log_cli_level=INFO'",
        "'--log-file=pytest.log', '--log-file-level=DEBUG'",
        "'-s'",
    ],
    ids=["captured", "log_cli", "log_file", "not_captured"],
)
def test_caplog_and_reports_of_pytest_equal_stock_logging(run_program, before, options):
    text = "open('pytest.ini', 'w').write('[pytest]\\n')\n" + _RUN_PYTEST.format(
        before=before, tests=INNER_TESTS, options=options
    )

    stock, installed = (
        outputs(run_program, text, side, moving=(rb"in \d+\.\d+s",), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        for side in programs.SIDES
    )

    assert stock["status"] == b"1", stock["stdout"].decode()
    assert b"1 failed" in stock["stdout"]
    difference = comparing.differences(stock, installed)
    assert not difference, difference
