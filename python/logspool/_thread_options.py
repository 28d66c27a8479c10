"""Checks the options of `ThreadHandler`, once, before anything is built from them.

Every function returns the value in the form the rest of the code trusts, or raises with what was
given, what is allowed and, for names, the nearest valid one.
"""

import logging
import logging.config
import math
import threading
from collections.abc import Collection, Mapping
from typing import Any

from logspool._options import meant

#: Records in the queue. Chosen: that of backgroundlog; about 1.5 MB of ordinary records.
DEFAULT_QUEUE_SIZE = 1000

#: Bytes in the queue, by the estimate of `_thread_record`. Chosen: 16 times what a full default
#: queue of ordinary records takes, so that only unusually long messages meet it.
DEFAULT_QUEUE_BYTES = 16 * 1024 * 1024

#: Seconds a record may wait before the writer looks.
DEFAULT_FLUSH_INTERVAL = 0.5

#: Seconds for the drain at exit, in `close()` and in `flush()`.
DEFAULT_SHUTDOWN_TIMEOUT = 5.0

#: Levels that wait for room. Chosen: that of backgroundlog.
DEFAULT_BLOCKING_LEVELS = frozenset({logging.ERROR, logging.CRITICAL})

#: What an interpreter can wait for in one call; a longer wait means "for ever".
LONGEST_SECONDS = threading.TIMEOUT_MAX

#: Bounds of sizes. The upper ones are chosen so that a slip of units (bytes for records) is an
#: error and no machine of today is limited.
LARGEST_QUEUE_SIZE = 100_000_000
SMALLEST_QUEUE_BYTES = 4096
LARGEST_QUEUE_BYTES = 1 << 40

EXC_INFO_MODES = ("keep", "text")

_ORDER = (
    " (dictConfig builds handlers in the order of their names: give the ThreadHandler a later name,"
    " or describe the wrapped handler inside it)"
)


def checked_handler(value: object) -> logging.Handler:
    """Return the handler meant by `value`: a handler, the name of one, or in `dictConfig` a description.

    Raises:
        TypeError: `value` is none of these.
        ValueError: no handler of that name exists, or `dictConfig` has not built it yet.
    """
    if isinstance(value, logging.Handler):
        return value
    if isinstance(value, str):
        handlers: Mapping[str, logging.Handler] = logging._handlers  # type: ignore[attr-defined]
        named = handlers.get(value)
        if named is not None:
            return named
        known = [name for name in list(handlers) if name]
        raise ValueError(f"wrapped_handler: no handler is named {value!r}; {meant(value, known)}{_ORDER}")
    if isinstance(value, logging.config.ConvertingDict):
        configurator: Any = value.configurator  # type: ignore[attr-defined]
        if any(entry is value for entry in configurator.config["handlers"].values()):
            raise ValueError(f"wrapped_handler: that handler is not built yet{_ORDER}")
        handler: logging.Handler = configurator.configure_handler(value)
        return handler
    raise TypeError(f"wrapped_handler must be a logging.Handler, not {type(value).__name__}")


def checked_levels(value: Collection[int | str] | None) -> frozenset[int]:
    """Return the numbers of `value`, whose items are numbers or names of levels.

    Raises:
        ValueError: an item is no level, or `value` is no collection.
    """
    if value is None:
        return DEFAULT_BLOCKING_LEVELS
    if isinstance(value, (str, bytes, int)):
        raise ValueError(f"blocking_levels must be a collection of levels such as {{'ERROR'}}, not {value!r}")
    return frozenset(_checked_level(item) for item in value)


def _checked_level(item: object) -> int:
    if isinstance(item, str):
        numbers = logging._nameToLevel
        if item in numbers:
            return numbers[item]
        raise ValueError(f"blocking_levels: no level is named {item!r}; {meant(item, numbers)}")
    if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
        return int(item)
    raise ValueError(f"blocking_levels: {item!r} is no level: give a name or a number from 0 up")


def checked_count(name: str, value: object, smallest: int, largest: int) -> int:
    """Return `value`, a whole number in a range.

    Raises:
        ValueError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise ValueError(f"{name} must be a whole number from {smallest} to {largest}, not {value!r}")
    return value


def checked_patience(name: str, value: object) -> float | None:
    """Return `value` as seconds from 0 up; None, or infinity, stands for "for ever".

    Raises:
        ValueError: it is neither.
    """
    if value is None or value == math.inf:
        return None
    return checked_seconds(name, value, 0, also=", or None for ever")


def checked_seconds(name: str, value: object, smallest: float, *, also: str = "") -> float:
    """Return `value` as seconds.

    Raises:
        ValueError: it is no number of the range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not smallest <= value <= LONGEST_SECONDS:
        raise ValueError(f"{name} must be seconds from {smallest:g} to {LONGEST_SECONDS:g}{also}, not {value!r}")
    return float(value)


def checked_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value`, one of `choices`.

    Raises:
        ValueError: it is none of them.
    """
    if value in choices:
        return str(value)
    works = " or ".join(repr(choice) for choice in choices)
    raise ValueError(f"{name}={value!r} does not work here: only {works} does")
