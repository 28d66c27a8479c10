"""Checks the options of `ThreadHandler`, once, before anything is built from them.

Every function returns the value in the form that other modules expect, or raises `ValueError`. The error names the
given value, the allowed values and, for names, the most similar valid name.
"""

import logging
import logging.config
import math
import threading
from collections.abc import Collection, Mapping
from typing import Any

from logspool.base._options import meant

#: Default for the maximum number of records in the queue. Chosen: the same as in backgroundlog. 1000 ordinary records
#: take about 1.5 MB.
DEFAULT_QUEUE_SIZE = 1000

#: Default for the maximum number of bytes in the queue, as `_record` estimates them. Chosen: 16 times the size
#: of a full default queue of ordinary records, so that only unusually long messages are limited by it.
DEFAULT_QUEUE_BYTES = 16 * 1024 * 1024

#: Default for the maximum number of seconds that a record waits until the writer looks at the queue.
DEFAULT_FLUSH_INTERVAL = 0.5

#: Default for the maximum duration of a drain at exit, in `close()` and in `flush()`, in seconds.
DEFAULT_SHUTDOWN_TIMEOUT = 5.0

#: Default for the levels whose records wait for room. Chosen: the same as in backgroundlog.
DEFAULT_BLOCKING_LEVELS = frozenset({logging.ERROR, logging.CRITICAL})

#: Minimum and maximum of sizes. The maxima are chosen so that a mistake in the unit (bytes instead of records) is an
#: error, and so that no machine of today is limited.
QUEUE_SIZES = (1, 100_000_000)
QUEUE_BYTES = (4096, 1 << 40)

_ORDER = (
    " (dictConfig builds handlers in the order of their names: give the ThreadHandler a later name,"
    " or describe the wrapped handler inside it)"
)


def checked_handler(value: object) -> logging.Handler:
    """Return the handler for `value`, which is a handler, the name of one, or in `dictConfig` a description of one.

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
    """Return the numbers of `value`, a collection of numbers and names of levels."""
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


def checked_count(name: str, value: object, least: int, most: int) -> int:
    """Return `value`, a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}")
    return value


def checked_patience(name: str, value: object) -> float | None:
    """Return `value` as seconds, 0 or more. The result None means "for ever"; the value may be None or infinity."""
    if value is None or value == math.inf:
        return None
    return checked_seconds(name, value, 0, also=", or None for ever")


def checked_seconds(name: str, value: object, least: float, *, also: str = "") -> float:
    """Return `value` as seconds, from `least` to the longest timeout that the interpreter accepts in one call."""
    most = threading.TIMEOUT_MAX
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValueError(f"{name} must be seconds from {least:g} to {most:g}{also}, not {value!r}")
    return float(value)


def checked_choice(name: str, value: object, *choices: str) -> str:
    """Return `value`, one of `choices`."""
    if value in choices:
        return str(value)
    works = " or ".join(repr(choice) for choice in choices)
    raise ValueError(f"{name}={value!r} does not work here: only {works} does")
