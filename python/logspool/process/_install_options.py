"""The options of `install()`. A table of the core names and checks them; this module converts values for the core.

A new option needs no line here, unless its values have a new shape.
"""

from __future__ import annotations

import functools
import logging
import os

from logspool import _native
from logspool.base import _interpreter, _options

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


@functools.cache
def rows() -> list[dict[str, Any]]:
    """Return the core's row of each option of `install()`."""
    return _native.install_options()


@functools.cache
def shapes() -> dict[str, str]:
    """Return a dict from each option of `install()` to the shape of its values."""
    return {row["name"]: row["shape"] for row in rows()}


def checked(given: dict[str, Any], *, are_defaults_given: bool = False) -> dict[str, Any]:
    """Return all options of `install()`, checked and with their defaults resolved.

    Raises:
        TypeError, ValueError: the core's table does not allow the value, another option rules it out, a folder cannot
            be used, or the value needs the native core, which this copy does not have.
    """
    options: dict[str, Any] = _native.check_options({name: read(name, shapes()[name], given[name]) for name in given})
    if not are_defaults_given:
        _interpreter.check_promises(given)
    if options["keeper"] and options["durability"] == "memory":
        raise ValueError("keeper=True: with durability='memory' nothing outlives the process for it to deliver")
    options["queue_dir"] = _options.queue_dir(options["queue_dir"])
    if options["spool_dir"] is not None:
        _check_spool_dir(options["spool_dir"])
    return options


def read(name: str, shape: str, value: Any) -> Any:
    """Return the value of an option in the form that the core reads: absolute paths, and levels as numbers."""
    if value is None:
        return None
    if shape == "levels":
        return _levels(name, value)
    if shape == "texts":
        return _texts(name, value)
    return _options.absolute(name, value) if shape == "path" else value


def _check_spool_dir(path: str) -> None:
    there = path
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise ValueError(f"spool_dir={path!r}: {there!r} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"spool_dir={path!r}: {there!r} cannot be written to")


def _texts(option: str, value: Any) -> list[str]:
    if isinstance(value, str):
        raise TypeError(f"{option} must be a collection of texts, not {value!r}; write [{value!r}]")
    texts = list(value)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{option} must be a collection of texts, not one with {text!r}")
    return texts


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
