"""What CPython 3.15 brought: the same lines as with stock logging."""

import sys

import pytest

from releases.both_sides import BEGIN, compared
from suite import programs

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.version_info < (3, 15), reason="the programs use what 3.15 brought"),
]


def test_lazy_imports_of_logging_change_no_line(run_program):
    body = """
lazy import logging.handlers
lazy import json as encoder
lazy from collections import abc
lazy import no_such_module_here

log = to_file("app")
log.info("first")
side.install()
memory = to_file("memory")
memory.addHandler(logging.handlers.MemoryHandler(2, target=log.handlers[0]))
for number in range(5):
    log.info("%d: %s", number, encoder.dumps({"n": number}))
    memory.warning("%(key)s", {"key": number})
    try:
        no_such_module_here.attribute
    except ImportError:
        log.exception("no such module")
log.info("%s", isinstance({}, abc.Mapping))
"""
    files, err = compared(run_program, body)

    assert 5 == files["app.log"].count('{"n": ')
    assert 5 <= files["app.log"].count("ModuleNotFoundError: No module named 'no_such_module_here'")
    assert "" == err


def test_lines_are_the_same_if_all_imports_are_lazy(run_program):
    body = """
import asyncio, multiprocessing, threading, time, traceback
side.install()
log = to_file("app", "%(levelname)s %(funcName)s:%(lineno)d %(message)s %(threadName)s %(processName)s %(taskName)s")

def fail():
    raise ValueError("lazy")

async def in_a_task():
    log.info("in %s", "a task")

for number in range(3):
    log.info("%d", number)
    log.info("%(a)s", {"a": number}, extra={"field": number}, stack_info=True)
    try:
        fail()
    except ValueError:
        log.exception("failed")
asyncio.run(in_a_task())
log.info("%s", multiprocessing.current_process().name)
"""
    files, err = compared(run_program, body, options=("-X", "lazy_imports=all"))

    assert 3 == files["app.log"].count("ValueError: lazy")
    assert "" == err


def test_frozen_dicts_are_fields_arguments_and_configurations(run_program):
    body = """
import logging.config
side.install()
log = to_file("app", "%(levelname)s %(message)s %(field)s")
frozen = frozendict(field="frozen", other=3)
for number in range(3):
    log.info("in extra", extra=frozen)
    log.info("%(other)d of %(field)s", frozen, extra=frozendict(field=number))
    log.info("%s", (frozen,), extra={"field": frozen})
    log.info("%s and %r", frozen, frozendict(), extra={"field": {"inner": frozen}})
    logging.LoggerAdapter(log, frozen).info("by an adapter")
    logging.LoggerAdapter(log, frozen, merge_extra=True).info("merged", extra=frozendict(other=4))
    log.info("empty %s", frozendict(), extra=frozen)
try:
    log.info("taken", extra=frozendict(message="name"))
except KeyError as error:
    log.info("refused: %s", error, extra=frozen)
logging.config.dictConfig({"version": 1, "incremental": True, "loggers": frozendict(app=frozendict(level="ERROR"))})
log.info("not shown", extra=frozen)
log.error("%(missing)s", frozen, extra=frozen)
log.error("shown", extra=frozen)
"""
    files, err = compared(run_program, body)

    assert 3 == files["app.log"].count("INFO 3 of frozen")
    assert "not shown" not in files["app.log"]
    assert "KeyError: 'missing'" in err


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONUTF8": "1"}])
def test_files_have_the_encoding_of_the_utf8_mode(run_program, locale):
    body = """
side.install()
log = to_file("app", "%(message)s " + str(sys.flags.utf8_mode))
latin = to_file("latin", encoding="locale")
console = logging.getLogger("console")
console.addHandler(logging.StreamHandler())
for text in ("\\xe4\\u20ac", "plain", "\\U0001f600 \\ud800"):
    log.warning("%s", text)
    latin.warning(text)
console.warning("\\xe4 \\u20ac on the console")
"""
    files, _ = compared(run_program, body, **locale)

    # In the locale `POSIX`, without the mode, the other texts cannot be encoded.
    assert "plain" in files["app.log"]
    assert locale.get("PYTHONUTF8") == "0" or files["app.log"].startswith("\xe4\u20ac")


def test_the_sampling_profiler_runs_beside_the_program(run_program, tmp_path, queue_dir):
    body = (
        BEGIN
        + """
import time
side.install()
log = to_file("app", "%(message)s")

def work(number):
    log.info("%d of %s", number, "many")
    try:
        raise ValueError(number)
    except ValueError:
        log.exception("failed")

ends = time.monotonic() + 0.3
number = 0
while number < 2_000 or time.monotonic() < ends:
    work(number)
    number += 1
log.info("end %d", number)
"""
    )
    folder = tmp_path / "profiled"
    folder.mkdir()
    (folder / "program.py").write_text(body)
    outcome = programs.run(
        ["-m", "profiling.sampling", "run", "--pstats", "-o", "profile.pstats", "program.py"],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=folder,
        deadline_seconds=60,
    )
    lines = (folder / "app.log").read_text().splitlines() if (folder / "app.log").exists() else []
    if not lines and b"ermission" in outcome.err + outcome.out:
        pytest.skip("this machine lets no process read the memory of another")

    assert lines, outcome.err.decode()
    count = int(lines[-1].removeprefix("end "))
    assert 2_000 <= count
    assert [f"{number} of many" for number in range(count)] == [line for line in lines if line.endswith(" of many")]
    assert count == lines.count("Traceback (most recent call last):")
