"""Texts of a logging call that only Python can make: a traceback, the stack of the caller.

Pipeline stage: *capture* (see ARCHITECTURE.md). Native code calls these functions inside a logging call, in the thread
that logs. Of an exception or a frame, native code keeps only the returned text.
"""

from __future__ import annotations

import logging

from logspool.adoption import _bound_fields

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


def exception_text(exc_info: Any) -> str:
    """Return the traceback of a true `exc_info`, as `Logger._log` and then `Formatter.format` make it.

    Called only if no formatter of the logger overrides `formatException`.
    """
    if isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif not isinstance(exc_info, tuple):
        exc_info = logging.sys.exc_info()  # type: ignore[attr-defined]
    return logging.Formatter.formatException(logging._defaultFormatter, exc_info)  # type: ignore[attr-defined]


def stack_text(frame: FrameType) -> str | None:
    """Return the stack up to `frame`, as `Logger.findCaller` makes it; None if `logging._srcfile` is not set."""
    if not logging._srcfile:  # type: ignore[attr-defined]
        return None
    with logging.io.StringIO() as text:  # type: ignore[attr-defined]
        text.write("Stack (most recent call last):\n")
        logging.traceback.print_stack(frame, file=text)  # type: ignore[attr-defined]
        return text.getvalue().removesuffix("\n")  # type: ignore[no-any-return]


class MadeText:
    """Replaces a message whose text was made already, in stock logging's report of a formatting error."""

    __slots__ = ("_message", "_text")

    def __init__(self, message: object, text: str) -> None:
        self._message, self._text = message, text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return repr(self._message)


def record_names() -> frozenset[str]:
    """Return the names that fields of `extra` may not have, including `taskName` in every version of Python."""
    return frozenset({*_bound_fields.reserved_names(), "taskName"})
