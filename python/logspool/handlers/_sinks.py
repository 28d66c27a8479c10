"""Access of handlers to the core's table of sinks: the kinds of sinks, their options, and what each kind receives.

A new sink needs no line here: `_native.sink_table()` returns its options, and the core checks their values.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import Any

from logspool import _native
from logspool.adoption import _descriptions, _handler_formats, _logging_globals
from logspool.base import _in_force, _interpreter, _options
from logspool.handlers import _service
from logspool.process import _install_options


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """Return the rows of `_native.sink_table()` by the name of the kind of sink."""
    return {row["kind"]: row for row in _native.sink_table()}


def split(owner: str, kind: str, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the row of a sink, its checked options from `given`, and the options in `given` that `install()` has.

    Raises:
        TypeError, ValueError: there is no such sink or option (the text names the most similar one), or a value is not
            allowed.
    """
    if not isinstance(kind, str):
        raise TypeError(f"{owner}: sink must be the name of a sink, not {kind!r}")
    if kind not in table():
        _native.check_sink(kind, {})
    row = table()[kind]
    shapes = {option["name"]: option["shape"] for option in row["options"]}
    of_install = _install_options.shapes()
    if unknown := given.keys() - shapes.keys() - of_install.keys():
        raise _options.unknown_option(f"{owner}({kind!r})", unknown, (*shapes, *of_install))
    own = {name: _install_options.read(name, shapes[name], value) for name, value in given.items() if name in shapes}
    return row, own, {name: value for name, value in given.items() if name not in shapes}


def sender(own: dict[str, Any]) -> Any:
    """Return the sender of a `ServiceHandler` where there is no native core; None where there is one."""
    if not _interpreter.without_core:
        return None
    from logspool.handlers import _sender

    return _sender.Sender(own, _in_force.of_queue() or {})


def describe(handler: Any, known: type) -> _descriptions.Adoption:
    """Describe a `SinkHandler`. Its records go through the queue, even if the program has customised the handler."""
    descriptor = handler._options.get("descriptor", -1)
    return _descriptions.Adoption(
        kind=handler._kind,
        options=handler._options,
        path="",
        fd=descriptor,
        terminator=handler.terminator if handler._takes == "lines" else "",
        stream=None,
        buffer=None,
        errors="strict",
        interactive=descriptor >= 0 and os.isatty(descriptor),
        is_stream=descriptor >= 0,
        format=describe_format(handler, known),
        watched=(),
    )


def describe_format(handler: Any, known: type) -> _descriptions.Format:
    """Describe how the lines or entries of a `SinkHandler` are made."""
    if handler._takes == "entries":
        return _service.describe_format(handler, known)
    formatter = handler.formatter or logging._defaultFormatter  # type: ignore[attr-defined]
    described = _handler_formats.describe_format_of(formatter, handler)
    reason = _service.customised(handler, known, ("format", *_service.CALLED))
    if reason is None and not (type(handler.terminator) is str and _logging_globals.encodes(handler.terminator)):
        reason = "its terminator is no plain text"
    return described if reason is None else described._replace(form=reason, deferral=None)
