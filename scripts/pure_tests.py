"""Run the Python tests on a copy of the package without its native module, as the wheel `py3-none-any` has it.

`tests/python/suite/without_core.py` lists what differs there; each row has to be true, so a difference that is gone
fails the run. Without arguments the run is short enough for every `make test`; `--all` has all suites that apply.
"""

import argparse
import os
import shutil
import sys

import interpreters
import run_pytest
import terminal
from environment import BUILD, ROOT

#: The suites of a short run: names, options, fields, the handler with a thread, and the records of a service.
SHORT = (
    "tests/python/service/test_service_handler.py",
    "tests/python/surface/test_bind.py",
    "tests/python/surface/test_exports.py",
    "tests/python/surface/test_unknown_options.py",
    "tests/python/thread_handler/test_thread_handler_accounting.py",
    "tests/python/thread_handler/test_thread_handler_arguments.py",
    "tests/python/thread_handler/test_thread_handler_order.py",
)

#: Suites that do not depend on the path of a call.
ALL = (
    "tests/python/service",
    "tests/python/stdlib",
    "tests/python/surface/test_bind.py",
    "tests/python/surface/test_configuration.py",
    "tests/python/surface/test_exports.py",
    "tests/python/surface/test_unknown_options.py",
    "tests/python/surface/test_wrong_arguments.py",
    "tests/python/thread_handler",
    "tests/python/web",
)


def copy_package() -> None:
    """Copy the package without its native modules to the folder that `suite/package.py` names."""
    folder = BUILD / "pure"
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "logspool", folder / "logspool", ignore=ignored)
    os.environ["SUITE_PACKAGE"] = "pure"
    os.environ["PYTHONPATH"] = str(folder)


def main() -> None:
    """Run the tests; the exit code is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="all suites that apply")
    parser.add_argument("arguments", nargs="*", help="arguments for pytest in place of the suites, after `--`")
    options = parser.parse_args()
    interpreter = interpreters.resolve(sys.executable) or interpreters.running()
    terminal.step(f"tests without the native module on Python {interpreter.version} ({interpreter.tag})")
    copy_package()
    suites = options.arguments or (ALL if options.all else SHORT)
    raise SystemExit(run_pytest.run_pytest(interpreter, suites, "pure"))


if __name__ == "__main__":
    main()
