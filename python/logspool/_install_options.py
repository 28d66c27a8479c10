"""The options of `install()`: rows of the core name and check them; here values take the form that the core reads.

A new option has no line here, unless its values have a shape of their own.
"""

from __future__ import annotations

import functools
import logging
import os

from logspool import _native, _options

# `typing` is slow to import; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


@functools.cache
def shapes() -> dict[str, str]:
    """Return each option of `install()` with the shape of its values."""
    return {row["name"]: row["shape"] for row in _native.install_options()}


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Return all options of `install()`, checked and with their defaults resolved.

    Raises:
        TypeError, ValueError: a value that does not fit its row, or another option, or a folder that cannot be used.
    """
    options: dict[str, Any] = _native.check_options({name: read(name, shapes()[name], given[name]) for name in given})
    if options["keeper"] and options["durability"] == "memory":
        raise ValueError("keeper=True: with durability='memory' nothing outlives the process for it to deliver")
    options["queue_dir"] = _options.queue_dir(options["queue_dir"])
    if options["spool_dir"] is not None:
        _check_spool_dir(options["spool_dir"])
    return options


def read(name: str, shape: str, value: Any) -> Any:
    """Return the value of an option in the form that the core reads: a path absolute, levels as their numbers."""
    if value is None:
        return None
    if shape == "levels":
        return _levels(name, value)
    return _options.absolute(name, value) if shape == "path" else value


def _check_spool_dir(path: str) -> None:
    there = path
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise ValueError(f"spool_dir={path!r}: {there!r} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"spool_dir={path!r}: {there!r} cannot be written to")


def _levels(option: str, value: Any) -> list[int]:
    if isinstance(value, (str, int)):
        raise TypeError(f"{option} must be a collection of levels, not {value!r}")
    numbers = set()
    for level in value:
        if isinstance(level, str):
            number = logging._nameToLevel.get(level)
            if number is None:
                known = _options.meant(level, logging._nameToLevel)
                raise ValueError(f"{option}: no level is named {level!r}; {known}")
            level = number
        if isinstance(level, bool) or not isinstance(level, int):
            raise TypeError(f"{option}: a level is a name or a number, not {level!r}")
        if not 0 <= level <= 0xFFFF:
            raise ValueError(f"{option}: a level must be 0 to 65535, not {level}")
        numbers.add(int(level))
    return sorted(numbers)
