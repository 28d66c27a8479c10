"""Build and test the package on the other interpreters at hand; see interpreters.py for which those are.

The interpreter of this script is left to `make test` and `make faults-ci`, unless `LOGSPOOL_PYTHONS` names it.
The folders of `suite/folders.py` run on each of them, less their tests marked `one_interpreter`. Everywhere else, the
tests marked `every_interpreter` do. The last interpreter draws the calls of the formatting tests, once for all.
"""

import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor

import environment
import interpreters
import terminal
from run_pytest import run_pytest

sys.path.insert(0, str(environment.ROOT / "tests" / "python"))

from suite.folders import EVERY_INTERPRETER

MARK = "every_interpreter"

#: Folders in which most tests can differ: `suite/fixtures.py` marks all of their tests.
FOLDERS = [f"tests/python/{name}" for name in EVERY_INTERPRETER]
#: Folders in which some tests can.
PARTLY = ["tests/e2e", "tests/python/surface", "tests/python/thread_handler"]

#: Tests that draw calls, which takes longer than logging them, and log each on several interpreters.
DRAWN = "tests/python/formatting/test_formatting.py"


def main() -> None:
    """Run the matrix and print one line per interpreter at the end."""
    chosen = interpreters.chosen()
    terminal.step("interpreters of the matrix")
    interpreters.show(chosen)
    here = interpreters.running().tag
    others = [each for each in chosen if each.tag != here or interpreters.are_asked_for()]
    if len(others) < len(chosen):
        terminal.note(f"{here} runs `make test`")
    results = []
    # Tests wait more than they compute, so the next interpreter's module is built meanwhile.
    builder = ThreadPoolExecutor(1)
    try:
        ready = [builder.submit(_prepare, interpreter) for interpreter in others]
        for interpreter, prepared in zip(others, ready, strict=True):
            begin = time.monotonic()
            code = _run(interpreter, prepared, others if interpreter is others[-1] else [])
            results.append((interpreter, code, time.monotonic() - begin))
    finally:
        builder.shutdown(cancel_futures=True)
    terminal.step("matrix")
    for interpreter, code, seconds in results:
        verdict = terminal.paint("passed", "green") if code == 0 else terminal.paint(f"FAILED ({code})", "bold", "red")
        print(f"    {interpreter.tag:6} {interpreter.version:10} {seconds:6.0f} s  {verdict}")
    raise SystemExit(next((code for _, code, _ in results if code), 0))


def _prepare(interpreter: interpreters.Interpreter) -> None:
    environment.ensure_for_tests(interpreter, libraries=False)


def _run(
    interpreter: interpreters.Interpreter, prepared: "Future[None]", drawn_for: list[interpreters.Interpreter]
) -> int:
    """Run the tests of an interpreter once it is prepared; return the exit code.

    The drawn calls are logged on the interpreters of `drawn_for`, all of which are prepared.
    """
    try:
        prepared.result()
        terminal.step(f"Python {interpreter.version} ({interpreter.tag})")
        # One run: starting the workers and collecting the tests takes them seconds each.
        chosen = [*FOLDERS, *_marked_files(), "-m", f"{MARK} and not one_interpreter"]
        if drawn_for:
            pythons = [environment.ensure_for_tests(each, libraries=False).python for each in drawn_for]
            os.environ["LOGSPOOL_EXAMPLE_PYTHONS"] = os.pathsep.join(pythons)
        else:
            chosen += ["--ignore", DRAWN]
        code = run_pytest(interpreter, chosen, "matrix", libraries=False)
    except SystemExit as end:
        code = int(end.code or 1)
    return code


def _marked_files() -> list[str]:
    files = (path for folder in PARTLY for path in sorted((environment.ROOT / folder).rglob("test_*.py")))
    return [str(path.relative_to(environment.ROOT)) for path in files if MARK in path.read_text()]


if __name__ == "__main__":
    main()
