"""`stats()` and `doctor` say which fast paths an interpreter has not, and calls there give the same lines."""

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from suite import programs

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
LATER_THAN_3_13 = sys.version_info >= (3, 14)
SLOW_HERE = (["dicts"] if FREE_THREADED and LATER_THAN_3_13 else []) + (["locks"] if FREE_THREADED else [])

#: A program that runs a debug build of the same version, where one is installed.
DEBUG_BUILD = shutil.which("python{}.{}-dbg".format(*sys.version_info[:2]))

LOGGING = """\
import json, logging, logging.handlers, sys
from suite import side

side.install()
layout = "%(levelname)s %(funcName)s:%(lineno)d %(message)s %(threadName)s"
logging.basicConfig(filename="app.log", level=logging.DEBUG, format=layout)
log = logging.getLogger("app")
memory = logging.handlers.MemoryHandler(10, target=logging.root.handlers[0])
log.addHandler(memory)

def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError(f"at the end of {depth}")

for turn in range(3):
    log.info("%s has %d of %.2f", "cart", turn, 2.5)
    log.warning("with fields", extra={"shop": turn})
    log.log(logging.INFO, {"plain": turn}, stack_info=True)
    try:
        fail(3)
    except ValueError:
        log.exception("failed %d times", turn)
logging.Logger.critical(log, "an own name for a level")
logging.addLevelName(logging.INFO, "NOTE")
log.info("now a note")
logging.shutdown()
"""

TELL = """
if side.INSTALLED:
    import logspool
    stats = logspool.stats()
    print(json.dumps([dict(stats.slow_paths), str(stats), dict(stats.exceptions), dict(stats.paths)]))
"""


def _both_sides(run_program, before=""):
    """Return the reports and the output of the installed side; the files of both sides are the same."""
    lines = []
    for side in programs.SIDES:
        outcome, folder = run_program(before + LOGGING + TELL, side=side)
        outcome.expect_success()
        lines.append((folder / "app.log").read_text())

    stock, installed = lines
    assert stock.count("\n") > 50
    assert stock == installed
    return json.loads(outcome.out), outcome.err.decode()


def test_slow_paths_of_this_interpreter_are_named_with_a_reason(run_program):
    (slow, shown, _, _), err = _both_sides(run_program)

    assert SLOW_HERE == sorted(slow)
    assert all(reason and "\n" not in reason for reason in slow.values())
    assert [f"slow on this Python: {name}: {slow[name]}" for name in slow] == [
        line for line in shown.splitlines() if line.startswith("slow")
    ]
    assert "" == err


def test_doctor_names_the_slow_paths(run_program):
    outcome, _ = run_program("from logspool.commands import _doctor\n_doctor.main([])")
    lines = [line for line in outcome.out.decode().splitlines() if line.startswith("slow on this Python")]

    assert SLOW_HERE == sorted(line.split(": ")[1] for line in lines)


NEWER = """\
from suite import side
if side.INSTALLED:
    from logspool.base import _interpreter
    _interpreter.NEWEST_KNOWN = (3, 9)
"""
NEWER_TEXT = "Python {}.{} is newer than this release knows: calls are slower".format(*sys.version_info[:2])


def test_a_newer_python_runs_on_the_safe_path_and_says_so_once(run_program):
    (slow, _, exceptions, paths), err = _both_sides(run_program, NEWER)

    assert {"frames", "lines", "locks"} <= slow.keys()
    assert NEWER_TEXT == slow["lines"]
    assert f"logspool: {NEWER_TEXT}\n" == err
    assert 0 == paths["native"]
    assert 0 == exceptions["native"]


def test_doctor_advises_a_release_that_knows_the_python(run_program):
    outcome, _ = run_program(f"{NEWER}import sys\nfrom logspool.commands import _doctor\nsys.exit(_doctor.main([]))")

    assert 1 == outcome.status
    assert 1 == outcome.out.decode().count(f"found  {NEWER_TEXT}")
    assert b"" == outcome.err


@pytest.mark.skipif(not LATER_THAN_3_13 or FREE_THREADED, reason="only later releases with a GIL use dict watchers")
def test_without_a_dict_watcher_left_the_lines_are_the_same(run_program):
    take_all = """\
import ctypes
take = ctypes.PyDLL(None).PyDict_AddWatcher
nothing = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: 0)
try:
    while True:
        take(nothing)
except RuntimeError:
    pass
"""
    (slow, _, _, paths), _ = _both_sides(run_program, take_all)

    assert "all eight" in slow["dicts"]
    assert 0 == paths["stock"]


def test_a_lock_with_another_memory_layout_is_not_used(run_program):
    program = """\
from logspool import _native
class Other:
    __slots__ = ("a", "b", "c", "d")
    def acquire(self): pass
    def release(self): pass
print(_native.lock_self_check(Other()))
print(_native.lock_self_check(object()))
"""
    outcome, _ = run_program(program)

    assert all(outcome.expect_success().out.decode().splitlines())
    assert 2 == len(outcome.out.splitlines())


@pytest.mark.parametrize(
    ("statement", "other", "found"),
    [
        ("logspool.install()", None, "this copy has none"),
        ("import logspool.pool\nlogspool.pool.Pool(queue_size=1)", None, "this copy has none"),
        (
            "logspool.install()",
            "_native.cpython-39-x86_64-linux-gnu.so",
            "this copy has it for cpython-39-x86_64-linux-gnu",
        ),
    ],
)
def test_a_build_without_its_native_module_says_how_to_get_it(run_program, tmp_path, statement, other, found):
    import logspool

    package = tmp_path / "elsewhere" / "logspool"
    shutil.copytree(Path(logspool.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if other:
        (package / other).touch()
    program = f"import sys\nsys.path.insert(0, {os.fspath(package.parent)!r})\nimport logspool\n{statement}"
    outcome, _ = run_program(program)

    [last] = outcome.err.decode().splitlines()[-1:]
    build = sysconfig.get_config_var("SOABI")
    assert f"logspool._native was not built for this Python ({build}); {found}" in last
    assert "python scripts/wheels.py" in last


def test_a_build_with_trace_refs_is_refused_where_its_objects_differ(run_program):
    program = """\
import sys
sys.getobjects = lambda limit: []
import logging, logspool
try:
    logspool.install()
except ImportError as error:
    print(error)
logging.warning("%d still written", 1)
"""
    outcome, _ = run_program(program)
    outcome.expect_success()

    assert ("built with --with-trace-refs" in outcome.out.decode()) == (sys.version_info < (3, 13))
    assert "WARNING:root:1 still written\n" == outcome.err.decode()


@pytest.mark.skipif(DEBUG_BUILD is None, reason="no debug build of this version is at hand, as python3.11-dbg")
def test_a_debug_build_has_its_lines(run_program):
    """A debug build loads the native module of the release build, and CPython checks itself while it runs."""
    import logspool

    package = str(Path(logspool.__file__).parent.parent)
    program = f"""\
import os, sys
if not hasattr(sys, "gettotalrefcount"):
    os.environ["PYTHONPATH"] += os.pathsep + {package!r}
    os.execv({DEBUG_BUILD!r}, [{DEBUG_BUILD!r}, *sys.argv])
"""
    (slow, _, exceptions, paths), err = _both_sides(run_program, program)

    assert "" == err
    assert {} == slow
    assert 0 == exceptions["python"] == paths["stock"]
