"""Texts of exceptions that native code keeps or cannot make itself.

Pipeline stage: *capture* (see ARCHITECTURE.md). `crates/logspool-python/src/calls/traceback/` makes the text of an
exception from the texts of its frames, which it keeps. It calls the functions of this module for frames that it has not
seen yet, and for final lines that depend on more than the text of the exception. All texts come from the module
`traceback` of the running Python.
"""

from __future__ import annotations

import builtins
import io
import linecache
import logging
import os
import sys
import traceback
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MemberDescriptorType

from logspool import _native
from logspool.base import _interpreter

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import ModuleType, TracebackType
    from typing import Any

#: Classes of `traceback` that make the text of an exception.
_CLASSES = (traceback.TracebackException, traceback.StackSummary, traceback.FrameSummary)

#: Functions that stock logging calls for the text of an exception, by module. Each Python has some of them.
_CALLED = {
    traceback: (
        "print_exception",
        "walk_tb",
        "_parse_value_tb",
        "_walk_tb_with_full_positions",
        "_get_code_position",
        "_format_final_exc_line",
        "_some_str",
        "_safe_string",
        "_byte_offset_to_character_offset",
        "_extract_caret_anchors_from_line_segment",
        "_display_width",
        "_compute_suggestion_error",
        "_find_incompatible_extension_module",
        "_format_note",
        "_get_cross_language_hint",
        "_wlen",
        "_zip_display_width",
    ),
    linecache: ("getline", "getlines", "checkcache", "updatecache", "lazycache"),
}

#: Types of class attributes that are no functions.
_VALUES: tuple[Any, ...] = (str, int, tuple, type(None), GetSetDescriptorType, MemberDescriptorType)


def is_stock() -> bool:
    """Return whether the functions that make the text of an exception are those of the standard library."""
    # The rules by which native code puts the texts together were compared with the known releases only.
    if _interpreter.obstacle():
        return False
    for module, names in _CALLED.items():
        if not all(_is_own(vars(module)[name], module) for name in names if name in vars(module)):
            return False
    if type(vars(linecache).get("cache")) is not dict:
        return False
    for cls in _CLASSES:
        if type(cls) is not type or getattr(traceback, cls.__name__) is not cls:
            return False
        if not all(isinstance(value, _VALUES) or _is_own(value, traceback) for value in vars(cls).values()):
            return False
    return type(os.stat) is BuiltinFunctionType and type(print) is BuiltinFunctionType


def _is_own(function: Any, module: ModuleType) -> bool:
    """Return whether a function, class method or property was defined in the source file of `module`."""
    function = getattr(function, "__func__", None) or getattr(function, "fget", None) or function
    if type(function) is not FunctionType:
        return False
    # From 3.15 on `linecache` is in the interpreter itself.
    return function.__code__.co_filename in (module.__file__, f"<frozen {module.__name__}>")


def frame_texts(tb: TracebackType) -> list[tuple[str, int | None, Any]]:
    """Return for each frame of a traceback its text, its line, and the entry of `linecache` from which the text was
    made: None if there is no entry, False if the entry changes all the time.
    """
    stack, entries = _extracted(tb)
    return [
        ("".join(traceback.StackSummary.from_list([frame]).format()), frame.lineno, entries[frame.filename])
        for frame in stack
    ]


def _extracted(tb: TracebackType) -> tuple[traceback.StackSummary, dict[str, Any]]:
    before: dict[str, Any] = {}
    for _ in range(3):
        stack = _extract(tb)
        entries = {frame.filename: linecache.cache.get(frame.filename) for frame in stack}
        # An entry that is the same before and after belongs to the lines that were read in between. The first time, the
        # lines were read into a new entry.
        changed = [name for name, entry in entries.items() if before.get(name) is not entry]
        if not changed:
            break
        before = entries
    return stack, {**entries, **dict.fromkeys(changed, False)}


def _extract(tb: TracebackType) -> traceback.StackSummary:
    """Return the frames of a traceback as `TracebackException` extracts them."""
    if sys.version_info < (3, 11):
        return traceback.StackSummary.extract(traceback.walk_tb(tb))
    private: Any = traceback
    frames = private._walk_tb_with_full_positions(tb)
    return private.StackSummary._extract_from_extended_frame_gen(frames)  # type: ignore[no-any-return]


def final_lines(value: BaseException, tb: TracebackType | None) -> str:
    """Return the lines after the frames of an exception that is no group."""
    # With a set of seen exceptions, no causes and contexts are read.
    made: Any = traceback.TracebackException(type(value), value, tb, limit=0, compact=True, _seen=set())
    made.exceptions = None
    return "".join(made.format_exception_only())


def final_line(name: str, text: str) -> str:
    """Return the final line of an exception of a class with this name, whose `str` is an instance of a subclass."""
    return traceback._format_final_exc_line(name, text)  # type: ignore[attr-defined,no-any-return]


def connect() -> None:
    """Give native code the functions and objects that it needs for texts of exceptions."""
    _native.set_traceback(
        is_stock=is_stock,
        frame_texts=frame_texts,
        final_lines=final_lines,
        final_line=final_line,
        classes=list(_CLASSES),
        traceback=vars(traceback),
        linecache=vars(linecache),
        sys=vars(sys),
        expected=[
            (sys.modules, "os", os),
            (vars(os), "stat", os.stat),
            (vars(builtins), "print", print),
            (vars(logging), "traceback", traceback),
            (vars(logging), "io", io),
        ],
        cause_message=traceback._cause_message,  # type: ignore[attr-defined]
        context_message=traceback._context_message,  # type: ignore[attr-defined]
        interactive_sources=vars(linecache).get("_interactive_cache"),
        absent_is_final="_source_unavailable" not in vars(linecache),
    )
