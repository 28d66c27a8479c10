"""Settings of the tests with real receivers, and the receivers for each test."""

import contextlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import servers

from receiver_tools import Missing
from service import certificates
from suite import fixtures, tools
from suite.fixtures import queue_dir  # noqa: F401


def pytest_configure(config):
    fixtures.configure(config)


def pytest_collection_modifyitems(items):
    fixtures.modify_items(items)


def pytest_runtest_setup(item):
    fixtures.check_group(item)


@pytest.fixture(scope="session")
def pair(tmp_path_factory):
    """The certificate of an authority, and a certificate of a server with its key."""
    return certificates.server(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server_of(tmp_path, pair):
    """Give a function that makes the server of a route. It is not started, and is killed at the end of the test."""
    with contextlib.ExitStack() as ends:

        def make(route):
            try:
                made = servers.SERVERS[route.server](tmp_path / "server", pair[1], route.secure)
            except Missing as missing:
                tools.missing(str(missing))
            ends.callback(made.end)
            return made

        yield make
