"""A receiver for each test."""

import tempfile
from pathlib import Path

import pytest

from service.receiver import Receiver


@pytest.fixture
def receiver():
    """Give a receiver that listens."""
    # The path of a socket is short; those of pytest's folders need not be.
    with tempfile.TemporaryDirectory() as folder, Receiver(Path(folder) / "s") as receiver:
        yield receiver
