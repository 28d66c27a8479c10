"""Builds without the GIL: the package never turns it on, and the lines are the same with it and without."""

import json
import sysconfig

import pytest

from releases.both_sides import BEGIN, compared

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="only builds without the GIL"),
]

#: What the environment says about the GIL, and whether it is on.
CHOICES = [({}, False), ({"PYTHON_GIL": "0"}, False), ({"PYTHON_GIL": "1"}, True)]


@pytest.mark.parametrize("variables, on", CHOICES)
def test_the_gil_stays_as_the_program_chose_it(run_program, variables, on):
    body = """
import io, json, threading
states = [sys._is_gil_enabled()]
import logspool
from logspool import asgi, pool, presets, wsgi
states.append(sys._is_gil_enabled())
logspool.install()
states.append(sys._is_gil_enabled())
log = to_file("app")
threads = [threading.Thread(target=log.info, args=("from %d", number)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
logspool.FileHandler("own.log")
logspool.uninstall()
states.append(sys._is_gil_enabled())
print(json.dumps(states))
"""
    outcome, folder = run_program(BEGIN + body, **variables)
    outcome.expect_success()

    assert [on] * 4 == json.loads(outcome.out)
    assert 4 == (folder / "app.log").read_text().count("\n")
    # Where a module turns the GIL on, the interpreter warns.
    assert b"" == outcome.err


@pytest.mark.parametrize("variables, on", CHOICES)
def test_lines_are_the_same_and_slow_paths_are_named(run_program, variables, on):
    body = """
import json
side.install()
log = to_file("app")

def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError("at the end")

for number in range(3):
    log.info("%d of %s", number, "many", extra={"field": number})
    try:
        fail(3)
    except ValueError:
        log.exception("failed %d", number)
if side.INSTALLED:
    import logspool
    stats = logspool.stats()
    assert {"locks"} <= set(stats.slow_paths) <= {"dicts", "locks"}, stats.slow_paths
    assert 6 == stats.paths["native"], stats.paths
    assert "slow on this Python: locks: " in str(stats)
"""
    files, err = compared(run_program, body, **variables)

    assert 3 == files["app.log"].count("ValueError: at the end")
    assert "" == err
