"""The findings of `doctor` inside a program, each with its fix."""

import json

import pytest

from logspool.commands import _doctor

pytestmark = pytest.mark.real

_PROGRAM = """\
import json, logging, logging.handlers, logspool, multiprocessing, os, time
from logspool.commands import _doctor
def found():
    print(json.dumps([[finding.place, finding.text, finding.fix] for finding in _doctor.findings()]))
"""


@pytest.fixture
def found(run_program):
    def run(body, **variables):
        outcome, folder = run_program(_PROGRAM + body + "\nfound()\n", **variables)
        return json.loads(outcome.expect_success().out.splitlines()[-1]), folder

    return run


def test_doctor_finds_no_problem_in_a_plain_program(found):
    body = "logging.basicConfig(filename='app.log')\nlogspool.install()\nlogging.warning('on')"

    assert [] == found(body)[0]


def test_doctor_reports_two_handlers_on_one_file(found):
    body = """
logging.basicConfig(filename="app.log")
logging.getLogger("shop").addHandler(logging.FileHandler("app.log"))
logspool.install()
"""
    [[place, text, fix]], folder = found(body)

    assert str(folder / "app.log") == place
    assert "is written by 2 handlers, of 'root' and 'shop'" in text
    assert fix


def test_doctor_reports_a_rotating_file_with_several_workers(found):
    body = "logging.getLogger().addHandler(logging.handlers.RotatingFileHandler('app.log'))\nlogspool.install()"
    [[place, text, fix]], folder = found(body, WEB_CONCURRENCY="4")

    assert str(folder / "app.log") == place
    assert "RotatingFileHandler of 'root', and WEB_CONCURRENCY is 4" in text
    assert fix


def test_doctor_reports_a_thread_handler_that_may_wait_forever(found):
    body = "logging.getLogger().addHandler(logspool.ThreadHandler(logging.NullHandler()))"
    [[place, text, fix]], _ = found(body)

    assert "ThreadHandler of 'root'" == place
    assert "blocking_timeout=None" in text
    assert fix


def test_doctor_reports_a_logger_on_the_stock_path_with_its_reason(found):
    body = """
logging.basicConfig(filename="app.log")
logspool.install()
logging.setLogRecordFactory(lambda *args, **kwargs: logging.LogRecord(*args, **kwargs))
logging.getLogger("shop").warning("once")
"""
    found_here, _ = found(body)

    text = "1 call ran Python code in the caller: logging.setLogRecordFactory was called"

    assert ["logger 'shop'", text, "fields by logspool.bind() or extra= need no record factory"] in found_here


def test_doctor_reports_a_queue_that_is_not_on_tmpfs(found, tmp_path):
    if _doctor._filesystem(str(tmp_path)) == "tmpfs":
        pytest.skip("the folder of tests is on tmpfs")
    [[place, text, fix]], _ = found("", LOGSPOOL_QUEUE_DIR=str(tmp_path))

    assert str(tmp_path) == place
    assert "not on tmpfs: a call may wait for the disk" in text
    assert fix
