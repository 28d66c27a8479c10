"""Check arguments of logspool's functions and classes, and suggest the name that was probably meant.

A check returns the value in the form that native code expects, or raises an error that names the given value and the
allowed values.
"""

from __future__ import annotations

import functools
import math
import operator
import os

from logspool.base import _interpreter

# Importing `typing` and `difflib` takes longer than importing all of logspool. Type checkers recognise a variable of
# this name without `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def unknown_option(owner: str, names: Iterable[str], valid: Iterable[str]) -> TypeError:
    """Return the error for options that `owner` does not have. It names the most similar valid option."""
    name = min(names)
    return TypeError(f"{owner} has no option {name!r}; {meant(name, valid)}")


def meant(name: str, valid: Iterable[str]) -> str:
    """Return a text with the valid name most similar to `name`, or with all valid names if none is similar."""
    import difflib

    by_folded = {each.casefold(): each for each in valid}
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.5)
    if near:
        return f"the nearest one is {by_folded[near[0]]!r}"
    return f"there are {', '.join(by_folded.values())}" if by_folded else "there is none"


def misspelt(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name of which `name` is a misspelling, or None.

    A misspelling differs in case or underscores, has two neighbouring letters swapped, or lacks a letter. A name with
    an additional or a different letter is no misspelling: `levels` and `stock` are other words than `level` and
    `stack`.
    """
    known = {each.replace("_", "").casefold(): each for each in valid}
    if name in known.values():
        return None
    folded = name.replace("_", "").casefold()
    if folded in known:
        return known[folded]
    return next((each for key, each in known.items() if len(key) > 3 and _one_slip(folded, key)), None)


def _one_slip(name: str, meant: str) -> bool:
    """Return whether `name` is `meant` with two neighbouring letters swapped or one letter missing."""
    same = 0
    while same < len(name) and same < len(meant) and name[same] == meant[same]:
        same += 1
    left, wanted = name[same:], meant[same:]
    return left == wanted[1:] or (len(left) > 1 and left[1] + left[0] + left[2:] == wanted)


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the keyword arguments of `function`, without `self` and `**`."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(name for name in names if name != "self")


def known_only(function: _Function) -> _Function:
    """Decorate a function or an `__init__`: the error for an unknown option names the most similar valid option.

    The error for a surplus positional argument names its value. `help()`, `inspect` and editors show the decorated
    function.
    """
    valid = keywords(function)
    owner, _, initializer = function.__qualname__.rpartition(".")
    if initializer != "__init__":
        owner = f"{function.__name__}()"
    positional = function.__code__.co_argcount

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if len(given) > positional:
            example = valid[len(valid) - function.__code__.co_kwonlyargcount]
            raise TypeError(f"{owner} takes options by name, as {example}=..., not {given[positional]!r}")
        if unknown := options.keys() - set(valid):
            raise unknown_option(owner, unknown, valid)
        return function(*given, **options)

    return call  # type: ignore[return-value]


def seconds(name: str, value: Any) -> float:
    """Return the checked number of seconds. As in the standard library, it may be negative."""
    kind = type(value)
    if kind is bool or not (hasattr(kind, "__float__") or hasattr(kind, "__index__")):
        raise TypeError(f"{name} must be a number of seconds or None, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(math.inf, value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a number of seconds or None, not {value!r}")
    return number


def timeout(value: Any) -> float | None:
    """Return the checked timeout, in seconds, of a function that only logspool has; None means no limit."""
    if value is None:
        return None
    number = seconds("timeout", value)
    if number < 0:
        raise ValueError(f"timeout must be 0 or more seconds, or None, not {value!r}")
    return number


def whole(name: str, value: Any) -> int:
    """Return the checked whole number as an `int`. The value may have another integer type."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None


def check_callable(method: str, function: Any) -> None:
    """Check that a pool can call the function. The error has the same text as in the native methods of the pool."""
    if not callable(function):
        raise TypeError(f"{method}() needs a function, not {function!r}: give it uncalled, its arguments after it")


def default_queue_dir() -> str:
    """Return the default folder of the queue, which the core determines."""
    return f"/dev/shm/logspool-{os.getuid() if hasattr(os, 'getuid') else 0}"


def absolute(name: str, value: Any) -> str:
    """Return the value of a path option as an absolute path."""
    try:
        return os.path.abspath(os.fsdecode(value))
    except TypeError:
        raise TypeError(f"{name} must be a path, not {value!r}") from None


def queue_dir(value: Any) -> str | None:
    """Return the checked folder of the queue; None means the default folder."""
    if value is None:
        return None
    path = absolute("queue_dir", value)
    if _interpreter.without_core:
        return path  # nothing is put there
    parent = path if os.path.isdir(path) else os.path.dirname(path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"queue_dir={path!r} is no folder")
    if not os.path.isdir(parent):
        raise ValueError(f"queue_dir={path!r}: the folder {parent!r} does not exist")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"queue_dir={path!r}: {parent!r} cannot be written to")
    if parent == path:
        status = os.stat(path)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise ValueError(f"queue_dir={path!r} must be this user's own with mode 0700: it holds records (chmod 700)")
    return path
