"""Settings of the Python tests; shared code is in the package `suite`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from suite import fixtures
from suite.fixtures import queue_dir, run_program  # noqa: F401


def pytest_configure(config):
    fixtures.configure(config)


def pytest_collection_modifyitems(items):
    fixtures.modify_items(items)


def pytest_runtest_setup(item):
    fixtures.check_group(item)
