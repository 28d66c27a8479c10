"""A receiver for each test."""

import tempfile
from pathlib import Path

import pytest

from service.receiver import Receiver


@pytest.fixture
def receiver():
    """Give a listening receiver."""
    # The path of a unix socket must be short; pytest's folders can have long paths.
    with tempfile.TemporaryDirectory() as folder, Receiver(Path(folder) / "s") as receiver:
        yield receiver
