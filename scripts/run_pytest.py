"""Run pytest on one interpreter and insist that something was tested.

Everything after `--` goes to pytest.
The exit code is pytest's, except that a run in which no test passed is a failure.
"""

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import environment
import interpreters
import terminal

NOTHING_TESTED = 5


def run_pytest(
    interpreter: interpreters.Interpreter, arguments: Sequence[str], label: str, *, libraries: bool = True
) -> int:
    """Run pytest in the interpreter's environment and return its exit code."""
    prepared = environment.ensure_for_tests(interpreter, libraries=libraries)
    _compile(prepared.python)
    report = environment.BUILD / "reports" / f"pytest-{label}-{interpreter.tag}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    number = os.environ.get("LOGSPOOL_TEST_WORKERS", str(environment.TEST_WORKERS))
    # Tests that must not share the machine say so with xdist_group.
    workers = ["-n", number, "--dist", "loadgroup"]
    command = [prepared.python, "-X", "faulthandler", "-m", "pytest", f"--junitxml={report}", "--durations=10"]
    command += [*workers, *arguments]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    code = subprocess.run(command, cwd=environment.ROOT, env=variables).returncode
    if code == 0 and passed(report.read_text()) == 0:
        terminal.fail(f"no test passed on Python {interpreter.tag}: everything was skipped or nothing was collected")
        return NOTHING_TESTED
    return code


def _compile(python: str) -> None:
    """Compile what most programs of the tests import. They write no compiled modules, so each would compile it again.

    On 3.14 that takes a third of the time in which such a program starts, logs and ends.
    """
    folders = [str(environment.ROOT / folder) for folder in ("python/logspool", "tests/python/suite")]
    subprocess.run([python, "-m", "compileall", "-q", *folders], check=True)


def passed(report: str) -> int:
    """Count the tests that ran and passed in a JUnit report."""
    suites = ElementTree.fromstring(report).iter("testsuite")
    counts = [
        int(suite.get("tests", 0)) - sum(int(suite.get(kind, 0)) for kind in ("skipped", "failures", "errors"))
        for suite in suites
    ]
    return sum(counts)


def main() -> None:
    """Run pytest on the interpreter named, by default the running one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter: path, command or version")
    parser.add_argument("--label", default="test", help="name of the report in build/reports")
    parser.add_argument("arguments", nargs="*", help="arguments for pytest, after `--`")
    options = parser.parse_args()
    interpreter = interpreters.resolve(options.python)
    if interpreter is None:
        raise terminal.fail(f"{options.python} is no CPython 3.10 or later")
    terminal.step(f"pytest {' '.join(options.arguments)} on Python {interpreter.version} ({interpreter.tag})")
    raise SystemExit(run_pytest(interpreter, options.arguments, options.label))


if __name__ == "__main__":
    main()
