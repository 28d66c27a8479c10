"""Build and test the package on the other interpreters at hand; see interpreters.py for which those are.

The one that runs this script is left to `make test` and `make faults-ci`, unless `LOGSPOOL_PYTHONS` names it.
Tests under tests/python run on each of them, and of tests/e2e those marked `every_interpreter`.
"""

import time

import environment
import interpreters
import terminal
from run_pytest import run_pytest

MARK = "every_interpreter"

#: What can differ from interpreter to interpreter. The differential table and the other libraries take minutes
#: and run on one interpreter, with `make test`; `make test PYTHON=...` runs them on another.
FOLDERS = [
    f"tests/python/{name}"
    for name in ("stdlib", "endings", "formatting", "pool", "surface", "surprises", "thread_handler", "tracebacks")
]


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
    for interpreter in others:
        terminal.step(f"Python {interpreter.version} ({interpreter.tag})")
        begin = time.monotonic()
        try:
            code = run_pytest(interpreter, FOLDERS, "matrix", libraries=False, profile="matrix")
            if code == 0 and _marked_tests():
                marked = ["tests/e2e", "-m", MARK]
                code = run_pytest(interpreter, marked, "matrix-e2e", libraries=False, profile="matrix")
        except SystemExit as end:
            code = int(end.code or 1)
        results.append((interpreter, code, time.monotonic() - begin))
    terminal.step("matrix")
    for interpreter, code, seconds in results:
        verdict = terminal.paint("passed", "green") if code == 0 else terminal.paint(f"FAILED ({code})", "bold", "red")
        print(f"    {interpreter.tag:6} {interpreter.version:10} {seconds:6.0f} s  {verdict}")
    raise SystemExit(next((code for _, code, _ in results if code), 0))


def _marked_tests() -> bool:
    files = (environment.ROOT / "tests" / "e2e").rglob("test_*.py")
    return any(MARK in path.read_text() for path in files)


if __name__ == "__main__":
    main()
