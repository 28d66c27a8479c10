"""Settings of the whole-system tests; code shared with tests/python is in the package `suite` there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from suite import fixtures
from suite.fixtures import queue_dir, run_program  # noqa: F401


def pytest_configure(config):
    fixtures.configure(config)


def pytest_collection_modifyitems(items):
    fixtures.modify_items(items)


def pytest_terminal_summary(terminalreporter):
    """Print the counts of the fault tests, one line each."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "summary":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")


def pytest_runtest_setup(item):
    fixtures.check_group(item)
