"""The options that are in force: those of `install()`, and those of the queue. `process/_install.py` sets them."""

from __future__ import annotations

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: The checked options of the current `install()`; None if logspool is not installed.
installed: dict[str, Any] | None = None

#: Options of the queue that logspool's own handlers use without `install()`; None until the first handler is made.
alone: dict[str, Any] | None = None


def of_queue() -> dict[str, Any] | None:
    """Return the options of the queue, from `install()` or the first handler; None if there is neither."""
    return installed or alone
