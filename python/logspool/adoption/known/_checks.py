"""Checks that the modules of this folder share."""

from __future__ import annotations

import re
import sys
from types import FunctionType

from logspool import _native
from logspool.adoption import _logging_globals

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Distribution -> its release as the program has it, or None. Asked once, because it reads files.
_releases: dict[str, str | None] = {}


def unknown_release(module: str, distribution: str, first: tuple[int, ...], last: tuple[int, ...]) -> str | None:
    """Return why the release of a package is not known, or None if it is from `first` to `last`.

    Only as many numbers of the release are compared as the bound has.
    """
    release = _release(module, distribution)
    if release is None:
        return f"the release of {module} cannot be found out: its formatter runs in Python"
    numbers = tuple(int(number) for number in re.findall(r"\d+", re.split("[a-z+]", release)[0]))
    if numbers[: len(first)] < first or numbers[: len(last)] > last:
        return f"{module} {release} is not known to this release of logspool: its formatter runs in Python"
    return None


def _release(module: str, distribution: str) -> str | None:
    stated = getattr(sys.modules.get(module), "__version__", None)
    if type(stated) is str:
        return stated
    if distribution not in _releases:
        from importlib import metadata

        try:
            _releases[distribution] = metadata.version(distribution)
        except Exception:  # Whatever a broken installation raises, its release is unknown.
            _releases[distribution] = None
    return _releases[distribution]


def is_function_of(value: Any, module: Any, name: str) -> bool:
    """Return whether `value` is the function that a module's own file defines under this name."""
    return (
        type(value) is FunctionType
        and value.__code__.co_filename == getattr(module, "__file__", None)
        and value.__qualname__ == name
    )


def is_text(value: Any) -> bool:
    """Return whether `value` is an exact `str` that encodes to UTF-8."""
    return type(value) is str and _logging_globals.encodes(value)


def watch(mapping: dict[Any, Any], watched: list[tuple[Any, int, int, int]]) -> None:
    """Add the number of a dict's last change to the words on which a description depends.

    Call it before the dict is read.
    """
    watched.append(_native.dict_word(mapping))


def watch_attributes(holder: Any, watched: list[tuple[Any, int, int, int]]) -> None:
    """Add the attributes of an object, whose class keeps them in a plain `__dict__`, to the words.

    From Python 3.13 on the first `__dict__` of an object is a view of values that are stored in the object, and does
    not count their changes. A copy takes its place, which does.
    """
    if sys.version_info >= (3, 13):
        holder.__dict__ = dict(vars(holder))
    watch(vars(holder), watched)
