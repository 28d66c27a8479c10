"""What the tests of the pool share."""

import sys
import types

import pytest


@pytest.fixture
def pool():
    """Give a pool of two workers."""
    from logspool.pool import Pool

    with Pool(2) as made:
        yield made


@pytest.fixture
def unraisable(monkeypatch):
    """Give the list of what goes to `sys.unraisablehook`; the exceptions are copied out of what CPython reuses."""
    found = []
    monkeypatch.setattr(
        sys,
        "unraisablehook",
        lambda each: found.append(types.SimpleNamespace(exc_value=each.exc_value, object=each.object)),
    )
    return found
