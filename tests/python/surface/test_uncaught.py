"""`install(uncaught=True)`: an uncaught exception is in the log, and otherwise the program ends as without it."""

import sys
import threading

import pytest

import logspool

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

CONFIGURED = """\
import logging, sys, threading
import logspool

logging.basicConfig(filename="app.log", format="%(levelname)s %(name)s %(funcName)s:%(lineno)d %(message)s")
logspool.install(uncaught=True)

def fail(error):
    raise error

"""

#: The number of the line in `fail` that raises.
RAISES = CONFIGURED.splitlines().index("    raise error") + 1


def _run(run_program, program):
    outcome, folder = run_program(CONFIGURED + program, side="installed")
    return outcome, (folder / "app.log").read_text()


def test_an_exception_that_ends_the_program_is_logged_and_printed(run_program):
    outcome, log = _run(run_program, "fail(ValueError('on purpose'))")

    assert outcome.status == 1
    begin = f"CRITICAL logspool.uncaught fail:{RAISES} uncaught exception\nTraceback (most recent call last):\n"
    assert log.startswith(begin)
    assert log.endswith("\nValueError: on purpose\n")
    assert outcome.err.decode() == log.partition("\n")[2]


def test_the_record_is_written_before_the_hook_that_was_set_earlier(run_program):
    hooked = CONFIGURED.replace(
        "logspool.install",
        "sys.excepthook = lambda kind, *rest: print(kind.__name__, open('app.log').read().count('uncaught'))\n"
        "logspool.install",
    )

    outcome, _ = run_program(hooked + "fail(ValueError('on purpose'))", side="installed")

    assert (outcome.status, outcome.out, outcome.err) == (1, b"ValueError 2\n", b"")


def test_an_exception_that_ends_a_thread_is_logged_with_the_threads_name(run_program):
    outcome, log = _run(
        run_program,
        "thread = threading.Thread(target=fail, args=(ValueError('on purpose'),), name='reader')\n"
        "thread.start()\nthread.join()\n",
    )

    assert outcome.status == 0
    assert log.startswith(f"CRITICAL logspool.uncaught fail:{RAISES} uncaught exception in thread reader\nTraceback")
    assert outcome.err.startswith(b"Exception in thread reader:\nTraceback")


def test_an_exception_that_python_ignores_is_logged_as_an_error(run_program):
    outcome, log = _run(
        run_program,
        "class Failing:\n"
        "    __del__ = lambda self: fail(ValueError('on purpose'))\n"
        "    __repr__ = lambda self: fail(KeyError())\n"
        "Failing()\n",
    )

    assert outcome.status == 0
    assert log.startswith(f"ERROR logspool.uncaught fail:{RAISES} Exception ignored")
    assert log.endswith("\nValueError: on purpose\n")
    assert b"ValueError: on purpose" in outcome.err


@pytest.mark.parametrize("error", ["KeyboardInterrupt()", "SystemExit(3)"])
def test_a_requested_exit_is_not_logged(run_program, error):
    _, log = _run(
        run_program,
        f"thread = threading.Thread(target=fail, args=({error},))\nthread.start()\nthread.join()\nfail({error})",
    )

    assert log == ""


def test_a_thread_hook_that_calls_the_hook_of_the_program_logs_once(run_program):
    hooked = CONFIGURED.replace(
        "logspool.install", "threading.excepthook = lambda args: sys.excepthook(*args[:3])\nlogspool.install"
    )

    _, folder = run_program(
        hooked + "thread = threading.Thread(target=fail, args=(ValueError(),))\nthread.start()\nthread.join()",
        side="installed",
    )

    assert (folder / "app.log").read_text().count("uncaught exception") == 1


def test_without_a_handler_only_the_interpreter_reports(run_program):
    program = (CONFIGURED + "fail(ValueError('on purpose'))").replace("logging.basicConfig", "dict")

    stock, _ = run_program(program.replace("logspool.install(uncaught=True)", ""), side="stock")
    installed, _ = run_program(program, side="installed")

    assert installed.err.count(b"\n") == stock.err.count(b"\n")
    assert installed.err.startswith(b"Traceback")


def test_a_filter_that_raises_does_not_stop_the_hook_that_was_set_earlier(run_program):
    outcome, _ = _run(
        run_program,
        "logging.getLogger('logspool.uncaught').addFilter(lambda record: fail(KeyError('of the filter')))\n"
        "fail(ValueError('on purpose'))",
    )

    assert outcome.status == 1
    assert b"ValueError: on purpose" in outcome.err
    assert b"KeyError: 'of the filter'" in outcome.err


def test_an_exception_of_a_pool_job_is_logged(run_program):
    outcome, log = _run(
        run_program,
        "from logspool.pool import Pool\nwith Pool(1) as pool:\n    pool.push(fail, ValueError('on purpose'))\n",
    )

    assert outcome.status == 0
    assert log.startswith(f"ERROR logspool.uncaught fail:{RAISES} ")
    assert log.endswith("\nValueError: on purpose\n")


def test_uninstall_restores_the_hooks_that_are_still_ours():
    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    try:
        logspool.install(uncaught=True)
        ours = sys.excepthook
        sys.excepthook = mine = lambda *args: ours(*args)
        logspool.uninstall()

        assert sys.excepthook is mine
        assert (threading.excepthook, sys.unraisablehook) == before[1:]
    finally:
        logspool.uninstall()
        sys.excepthook = before[0]


def test_by_default_only_the_interpreter_reports(run_program):
    outcome, folder = run_program(
        CONFIGURED.replace("uncaught=True", "") + "fail(ValueError('on purpose'))", side="installed"
    )

    assert outcome.status == 1
    assert (folder / "app.log").read_text() == ""


def test_a_handler_without_install_logs_uncaught_exceptions_if_asked(run_program):
    program = CONFIGURED.replace("logspool.install(uncaught=True)", "").replace(
        'logging.basicConfig(filename="app.log", ',
        'logging.basicConfig(handlers=[logspool.FileHandler("app.log", uncaught=True)], ',
    )

    outcome, folder = run_program(program + "fail(ValueError('on purpose'))", side="installed")

    assert outcome.status == 1
    assert (folder / "app.log").read_text().startswith("CRITICAL logspool.uncaught fail:")
