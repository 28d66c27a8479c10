"""Checks that a class is unchanged since the standard library defined it.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). The checks run no code of the classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType

from logspool import _native

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Answer = TypeVar("_Answer")

#: (class, name) -> (native replacement, stock function), filled by `_install`.
replaced: dict[tuple[type, str], tuple[Any, Any]] = {}

#: All native methods ever made, in the form of `replaced`. A program may patch a class while logspool is installed and
#: restore the class after `uninstall()`. It then restores a native method. That method does the same as its stock
#: function, so it is treated as the stock function.
native_methods: dict[tuple[type, str], tuple[Any, Any]] = {}

#: The native methods of logspool's own classes, in the form of `replaced`. They are never removed; filled by
#: `_handlers`.
own_methods: dict[tuple[type, str], tuple[Any, Any]] = {}


def is_stock(cls: type, name: str) -> bool:
    """Return whether `cls.__dict__[name]` is the standard library's function or logspool's replacement for it."""
    value = cls.__dict__.get(name)
    for ours in (replaced, own_methods, native_methods):
        known = ours.get((cls, name))
        if known is not None and value is known[0]:
            return True
    # Not `isinstance`: a proxy, such as those of wrapt, names its target as its class.
    if type(value) is FunctionType:
        code = value.__code__
        home = sys.modules.get(cls.__module__)
        return code.co_filename == getattr(home, "__file__", None) and value.__qualname__.endswith("." + name)
    return False


def stock_function(cls: type, name: str) -> Any:
    """Return `cls.__dict__[name]`, or the function that logspool has replaced there."""
    value = cls.__dict__[name]
    for ours in (replaced, own_methods, native_methods):
        known = ours.get((cls, name))
        if known is not None and value is known[0]:
            return known[1]
    return value


def native_method(cls: type, owner: str, name: str) -> tuple[Any, Any] | None:
    """Return the native method for `cls.name` and the stock function it replaces; None if the stock one is patched."""
    if not is_stock(cls, name):
        return None
    value = cls.__dict__[name]
    known = native_methods.get((cls, name))
    if known is None or value not in known:
        known = native_methods[cls, name] = (_native.native_method(cls, owner, name, value), value)
    return known


def kept_answer(ask: Callable[[type], _Answer]) -> Callable[[type], _Answer]:
    """Keep the answer of `ask` about a class until the class, its bases or logspool's methods change."""
    answers: dict[int, tuple[int, _Answer]] = {}

    def answer(cls: type, /) -> _Answer:
        # The state is read first: a later change makes the answer stale, not wrong. No two classes have the same state.
        state = _native.class_state(cls)
        kept = answers.get(id(cls))
        if kept is not None and kept[0] == state != 0:
            return kept[1]
        if len(answers) >= _MOST_CLASSES:
            answers.clear()
        found = ask(cls)
        answers[id(cls)] = state, found
        return found

    return answer


#: Maximum number of classes whose answers are kept.
#:
#: Chosen: programs have a dozen such classes. A program that keeps making classes must not fill the memory.
_MOST_CLASSES = 256


def changed_method(cls: type, base: type, names: tuple[str, ...]) -> str | None:
    """Return the first of `names` that `cls` overrides instead of inheriting it from `base` or its bases."""
    for name in names:
        for owner in cls.__mro__:
            if name in owner.__dict__:
                break
        else:
            continue
        if owner not in base.__mro__:
            return f"{owner.__qualname__}.{name} is overridden"
        if not is_stock(owner, name) and not _is_plain_slot(owner, name):
            return f"{owner.__qualname__}.{name} is patched"
    return None


def first_in(attributes: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` in an object's own attributes. Other threads may change them during the search."""
    return next(filter(attributes.__contains__, names), None)


def defined_on_class(cls: type, names: tuple[str, ...]) -> str | None:
    """Return the first attribute that only an instance should have but that is defined on a class; None if there is
    none."""
    for owner in cls.__mro__:
        for name in names:
            if name in owner.__dict__:
                return f"{owner.__qualname__}.{name} is defined on the class"
    return None


def _is_plain_slot(owner: type, name: str) -> bool:
    # Methods such as `object.__setattr__` are slot wrappers of the type `object`.
    return owner is object and name.startswith("__")
