"""Fixtures and settings for pytest, used by the conftest of tests/python and of tests/e2e."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from suite import dispositions, package, programs, queue_folder, without_core
from suite.folders import EVERY_INTERPRETER

# Ten times the duration of the slowest test on a busy machine of two cores.
TEST_DEADLINE_SECONDS = 300


def configure(config: pytest.Config) -> None:
    """Prepare a run; called from `pytest_configure`.

    Registers markers and filters of warnings, resets signals, and gives the test process its own queue folder.
    """
    dispositions.reset()
    _check_package()
    queues = ExitStack()
    os.environ["LOGSPOOL_QUEUE_DIR"] = str(queues.enter_context(queue_folder.private()))
    config.add_cleanup(queues.close)
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line("markers", "real: needs the built package; skipped with SUITE_PACKAGE=stand-in")
    config.addinivalue_line("markers", "full: runs only with LOGSPOOL_FAULTS=full")
    config.addinivalue_line("markers", "quiet: times calls, so nothing else may run beside it")


def modify_items(items: list[pytest.Item]) -> None:
    """Give each test a deadline and skip tests that this run cannot make; from `pytest_collection_modifyitems`."""
    for item in items:
        if package.is_pure():
            without_core.mark(item)
        if item.path.parent.name in EVERY_INTERPRETER and item.path.parent.parent.name == "python":
            item.add_marker(pytest.mark.every_interpreter)
        if item.get_closest_marker("timeout") is None and not item.config.getoption("timeout", None):
            item.add_marker(pytest.mark.timeout(TEST_DEADLINE_SECONDS))
        if item.get_closest_marker("real") and not package.has_a_queue():
            item.add_marker(pytest.mark.skip(reason="needs the built package, the stand-in is stock logging"))
        if item.get_closest_marker("full") and not faults_full():
            item.add_marker(pytest.mark.skip(reason="runs with LOGSPOOL_FAULTS=full"))


def _check_package() -> None:
    """Refuse a run on a package of which the native module was not built, unless it was asked for."""
    if package.is_real() or package.is_pure():
        from logspool import _native

        if bool(getattr(_native, "without_core", "")) != package.is_pure():
            raise pytest.UsageError(f"SUITE_PACKAGE is {package.chosen()!r}, and logspool is {_native.__file__}")


def check_group(item: pytest.Item) -> None:
    """Fail a test whose group has no effect; called from `pytest_runtest_setup`.

    A group of xdist runs its tests in one worker: they do not disturb each other, and they share expensive fixtures.
    """
    is_distributed = hasattr(item.config, "workerinput")
    if is_distributed and item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
        pytest.fail("xdist spreads this test's group over its workers: its version and pytest's do not agree")


def faults_full() -> bool:
    """Return whether this run makes the long fault tests."""
    return os.environ.get("LOGSPOOL_FAULTS") == "full"


@pytest.fixture
def queue_dir():
    """Give a private, empty queue folder."""
    with queue_folder.private() as folder:
        yield folder


@pytest.fixture(autouse=True)
def private_queue(queue_dir, monkeypatch):
    """Give the programs of each test their own queue folder.

    A program that connects to an address also delivers the records that killed programs left for it in the folder, and
    the system gives the port of an earlier test to a later one.
    """
    monkeypatch.setenv("LOGSPOOL_QUEUE_DIR", str(queue_dir))


@pytest.fixture
def run_program(tmp_path: Path, queue_dir: Path):
    """Give a function that runs program text on one side, in a folder of that side.

    `run_program(text, side="installed", deadline_seconds=30, **variables)` returns (Outcome, folder).
    """

    def run(
        text: str,
        *arguments: str,
        side: str = programs.INSTALLED,
        deadline_seconds: float = 30,
        terminal: bool = False,
        options: tuple[str, ...] = (),
        chosen: str | None = None,
        **variables: str,
    ) -> tuple[programs.Outcome, Path]:
        folder = tmp_path / side
        folder.mkdir(exist_ok=True)
        script = tmp_path / "program.py"
        script.write_text(text, encoding="utf-8")
        outcome = programs.run(
            [*options, script, *arguments],
            env=programs.environment(side, queue_dir, chosen, **variables),
            folder=folder,
            deadline_seconds=deadline_seconds,
            terminal=terminal,
        )
        return outcome, folder

    return run
