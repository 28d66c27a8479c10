"""CPython's own tests of `ThreadPoolExecutor`, run with `Pool` in its place."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from suite import programs

RUNNER = Path(__file__).with_name("run_thread_pool_tests.py")
# Ten times the duration of these tests; many of them sleep.
SECONDS = 300

# Test -> why it cannot pass with another class. The child processes of the last three import a class by its name from
# `concurrent.futures`; `test_threads.py` has such tests for `Pool`.
EXCEPTIONS = {
    "test_thread_names_default": "expects the name of the class, ThreadPoolExecutor, in the threads' names",
    "test_hang_gh83386": "its child process imports the class from concurrent.futures",
    "test_interpreter_shutdown": "its child process imports the class from concurrent.futures",
    "test_submit_after_interpreter_shutdown": "its child process imports the class from concurrent.futures",
}

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        find_spec("test") is None or find_spec("test.test_concurrent_futures") is None,
        reason="this interpreter comes without its tests of concurrent.futures",
    ),
    pytest.mark.timeout(2 * SECONDS),
]


def test_the_tests_of_the_standard_library_pass_except_the_listed_ones(tmp_path, queue_dir):
    outcome = programs.run(
        [RUNNER, tmp_path / "result.json"],
        env=programs.environment(programs.INSTALLED, queue_dir),
        folder=tmp_path,
        deadline_seconds=SECONDS,
    )
    found = json.loads((tmp_path / "result.json").read_text())

    assert {name: why for name, why in found["failed"].items() if name not in EXCEPTIONS} == {}, outcome.err.decode()
    assert found["ran"] - found["skipped"] >= 30
