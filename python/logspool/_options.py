"""Check arguments of logspool's functions and classes, and name what was probably meant.

A check returns the value in the form that native code trusts, or raises with what was given and what is allowed.
"""

from __future__ import annotations

import functools
import math
import operator
import os

# `typing` and `difflib` cost more to import than all of logspool; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def unknown_option(owner: str, names: Iterable[str], valid: Iterable[str]) -> TypeError:
    """Return the error for options that `owner` does not have, naming the nearest one that it has."""
    name = min(names)
    return TypeError(f"{owner} has no option {name!r}; {meant(name, valid)}")


def meant(name: str, valid: Iterable[str]) -> str:
    """Say which valid name is most like `name`, or all of them where none is like it."""
    import difflib

    by_folded = {each.casefold(): each for each in valid}
    near = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.5)
    if near:
        return f"the nearest one is {by_folded[near[0]]!r}"
    return f"there are {', '.join(by_folded.values())}" if by_folded else "there is none"


def misspelt(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that `name` is a slip away from.

    A slip is another case, an underscore, two neighbours swapped or a letter left out. A letter more or another one is
    none: `levels` and `stock` are other words than `level` and `stack`.
    """
    known = {each.replace("_", "").casefold(): each for each in valid}
    if name in known.values():
        return None
    folded = name.replace("_", "").casefold()
    if folded in known:
        return known[folded]
    return next((each for key, each in known.items() if len(key) > 3 and _one_slip(folded, key)), None)


def _one_slip(name: str, meant: str) -> bool:
    """Say whether `name` is `meant` with two neighbours swapped or a letter left out."""
    same = 0
    while same < len(name) and same < len(meant) and name[same] == meant[same]:
        same += 1
    left, wanted = name[same:], meant[same:]
    return left == wanted[1:] or (len(left) > 1 and left[1] + left[0] + left[2:] == wanted)


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names that `function` takes by keyword; `self` and `**` are none."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(name for name in names if name != "self")


def known_only(function: _Function) -> _Function:
    """Decorate a function or an `__init__`, so that an unknown option is an error that names the nearest.

    A positional argument too many is an error that names its value. `help()`, `inspect` and editors see the function
    itself.
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
    """Return the checked number of seconds: of any sign, as the standard library takes them."""
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
    """Return the checked seconds that a call of logspool's own waits at most; None is for ever."""
    if value is None:
        return None
    number = seconds("timeout", value)
    if number < 0:
        raise ValueError(f"timeout must be 0 or more seconds, or None, not {value!r}")
    return number


def whole(name: str, value: Any) -> int:
    """Return the checked whole number, which may be of another type than `int`."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None


def check_callable(method: str, function: Any) -> None:
    """Check what a pool is to call, in the words of its native methods."""
    if not callable(function):
        raise TypeError(f"{method}() needs a function, not {function!r}: give it uncalled, its arguments after it")


def default_queue_dir() -> str:
    """Return the folder of the queue where none is given, as the core has it."""
    return f"/dev/shm/logspool-{os.getuid()}"


def absolute(name: str, value: Any) -> str:
    """Return the absolute path of an option."""
    try:
        return os.path.abspath(os.fsdecode(value))
    except TypeError:
        raise TypeError(f"{name} must be a path, not {value!r}") from None


def queue_dir(value: Any) -> str | None:
    """Return the checked folder of the queue, from the option or the environment; None is the default one."""
    source = "queue_dir"
    if value is None:
        value = os.environ.get("LOGSPOOL_QUEUE_DIR") or None
        source = "LOGSPOOL_QUEUE_DIR"
    if value is None:
        return None
    path = absolute(source, value)
    parent = path if os.path.isdir(path) else os.path.dirname(path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"{source}={path!r} is no folder")
    if not os.path.isdir(parent):
        raise ValueError(f"{source}={path!r}: the folder {parent!r} does not exist")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"{source}={path!r}: {parent!r} cannot be written to")
    if parent == path:
        status = os.stat(path)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise ValueError(f"{source}={path!r} must be this user's own with mode 0700: it holds records (chmod 700)")
    return path
