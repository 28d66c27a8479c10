"""The fields that `bind` adds to the records of a context, and the names that no field may have."""

from __future__ import annotations

from contextvars import ContextVar

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: The bound fields of the current context. A dict is never changed after it was stored here.
fields: ContextVar[dict[str, Any] | None] = ContextVar("logspool_fields", default=None)

_reserved_names: frozenset[str] = frozenset()


def reserved_names() -> frozenset[str]:
    """Return the names of the attributes that a LogRecord has itself, or gets from a formatter."""
    global _reserved_names
    if not _reserved_names:
        import logging

        record = logging.LogRecord("", 0, "", 0, "", (), None)
        _reserved_names = frozenset({*vars(record), "message", "asctime"})
    return _reserved_names
