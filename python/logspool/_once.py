"""Functions that log a message once in a process."""

from __future__ import annotations

import logging
from collections import OrderedDict

from logspool import _native
from logspool.base import _locks

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

# Chosen: a program has some hundred messages of this kind, and each takes about 200 bytes.
_MOST = 10_000

_lock = _locks.guard()
_logged: OrderedDict[tuple[str, int, str], object] = OrderedDict()


def log_once(logger: logging.Logger, level: int, message: Any, *arguments: Any, **options: Any) -> bool:
    """Log a message, unless this process has logged it with this logger and level before.

    Messages are equal if their texts with arguments are equal. 10,000 messages are remembered; beyond them the oldest
    is forgotten. A call whose level is disabled is not remembered. `stats().rules["once"]` counts the calls that log
    nothing.

    Args:
        logger: as `logging.getLogger` returns it.
        level: the number of the level.
        message: as in `logger.log`.
        arguments: the values for the message.
        options: `exc_info`, `stack_info`, `stacklevel` and `extra`, as in `logger.log`.

    Returns:
        Whether the message was logged.
    """
    return _once(logger, level, message, arguments, options)


def _once(
    logger: logging.Logger, level: int, message: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> bool:
    if not logger.isEnabledFor(level):
        return False
    try:
        text = str(message) % arguments if arguments else str(message)
    except (TypeError, ValueError):
        # `logger.log` reports the error.
        text = f"{message} {arguments}"
    mine = object()
    with _lock:
        # A signal handler may do the same between any two steps.
        if _logged.setdefault((logger.name, level, text), mine) is not mine:
            _native.note_once()
            return False
        if len(_logged) > _MOST:
            _logged.popitem(last=False)
    # This function and the public one are between the logger and the program.
    logger.log(level, message, *arguments, **{**options, "stacklevel": options.get("stacklevel", 1) + 2})
    return True


def debug_once(logger: logging.Logger, message: Any, *arguments: Any, **options: Any) -> bool:
    """Log a message at DEBUG once in a process.

    Args:
        logger: as in `log_once`.
        message: as in `log_once`.
        arguments: as in `log_once`.
        options: as in `log_once`.

    Returns:
        Whether the message was logged.
    """
    return _once(logger, logging.DEBUG, message, arguments, options)


def info_once(logger: logging.Logger, message: Any, *arguments: Any, **options: Any) -> bool:
    """Log a message at INFO once in a process.

    Args:
        logger: as in `log_once`.
        message: as in `log_once`.
        arguments: as in `log_once`.
        options: as in `log_once`.

    Returns:
        Whether the message was logged.
    """
    return _once(logger, logging.INFO, message, arguments, options)


def warning_once(logger: logging.Logger, message: Any, *arguments: Any, **options: Any) -> bool:
    """Log a message at WARNING once in a process.

    Args:
        logger: as in `log_once`.
        message: as in `log_once`.
        arguments: as in `log_once`.
        options: as in `log_once`.

    Returns:
        Whether the message was logged.
    """
    return _once(logger, logging.WARNING, message, arguments, options)


def error_once(logger: logging.Logger, message: Any, *arguments: Any, **options: Any) -> bool:
    """Log a message at ERROR once in a process.

    Args:
        logger: as in `log_once`.
        message: as in `log_once`.
        arguments: as in `log_once`.
        options: as in `log_once`.

    Returns:
        Whether the message was logged.
    """
    return _once(logger, logging.ERROR, message, arguments, options)
