"""Fixtures of the pool's tests."""

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
    """Give the list of exceptions passed to `sys.unraisablehook`, copied because CPython reuses the argument."""
    found = []
    monkeypatch.setattr(
        sys,
        "unraisablehook",
        lambda each: found.append(types.SimpleNamespace(exc_value=each.exc_value, object=each.object)),
    )
    return found
