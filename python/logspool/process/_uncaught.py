"""Logs exceptions that nothing catches, for `install(uncaught=True)`.

Each hook logs the exception, then calls the hook that was set before: `_endings` installs and removes the hooks.
"""

from __future__ import annotations

import logging
import sys
import threading

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

#: Name of the logger that gets the records.
LOGGER_NAME = "logspool.uncaught"

#: Exceptions by which a program is asked to end.
_REQUESTED = (KeyboardInterrupt, SystemExit)

#: `active` is set while a hook runs in this thread. A program's hook for threads may call `sys.excepthook`.
_hooks = threading.local()


def of_program(before: Callable[..., object]) -> Callable[..., object]:
    """Make a `sys.excepthook` that logs the exception before it calls `before`."""

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        _log_then(before, (kind, value, traceback), logging.CRITICAL, (kind, value, traceback), "uncaught exception")

    return excepthook


def of_thread(before: Callable[..., object]) -> Callable[..., object]:
    """Make a `threading.excepthook` that logs the exception before it calls `before`."""

    def excepthook(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread is not None else threading.get_ident()
        caught = (args.exc_type, args.exc_value, args.exc_traceback)
        _log_then(before, (args,), logging.CRITICAL, caught, "uncaught exception in thread %s", name)

    return excepthook


def of_interpreter(before: Callable[..., object]) -> Callable[..., object]:
    """Make a `sys.unraisablehook` that logs the exception before it calls `before`."""

    def unraisablehook(unraisable: sys.UnraisableHookArgs) -> None:
        caught = (unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback)
        place = f"{unraisable.err_msg or 'Exception ignored in'}: %s"
        _log_then(before, (unraisable,), logging.ERROR, caught, place, _shown(unraisable.object))

    return unraisablehook


#: Each hook as (module, name, the function that makes ours).
HOOKS = (
    (sys, "excepthook", of_program),
    (threading, "excepthook", of_thread),
    (sys, "unraisablehook", of_interpreter),
)


def _log_then(
    before: Callable[..., object],
    arguments: tuple[Any, ...],
    level: int,
    caught: tuple[Any, Any, Any],
    message: str,
    *values: object,
) -> None:
    """Log a caught exception, then call `before`, also if a handler or a filter raises."""
    if getattr(_hooks, "active", False):
        before(*arguments)
        return
    _hooks.active = True
    try:
        if not issubclass(caught[0], _REQUESTED) and not sys.is_finalizing():
            _log(level, caught, message, values)
    finally:
        try:
            before(*arguments)
        finally:
            _hooks.active = False


def _log(level: int, caught: tuple[Any, Any, Any], message: str, values: tuple[object, ...]) -> None:
    logger = logging.getLogger(LOGGER_NAME)
    # Without a handler, `logging.lastResort` would print what the next hook prints.
    if not logger.isEnabledFor(level) or not logger.hasHandlers():
        return
    path, line, function = _place(caught[2])
    logger.handle(logger.makeRecord(logger.name, level, path, line, message, values, caught, function))


def _place(traceback: TracebackType | None) -> tuple[str, int, str]:
    """Return file, line and function that raised the exception."""
    if traceback is None:
        return "(unknown file)", 0, "(unknown function)"
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return code.co_filename, traceback.tb_lineno, code.co_name


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__qualname__}"
