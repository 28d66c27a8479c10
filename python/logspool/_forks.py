"""Functions that run before and after each fork. A system without forks never calls them."""

from __future__ import annotations

import os

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _none() -> None:
    """Do nothing."""


def register(
    *,
    before: Callable[[], Any] = _none,
    after_in_parent: Callable[[], Any] = _none,
    after_in_child: Callable[[], Any] = _none,
) -> None:
    """Register functions as `os.register_at_fork` does, where the system has forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after_in_parent, after_in_child=after_in_child)
