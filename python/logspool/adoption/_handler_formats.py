"""Describe how the lines of a handler are formatted: by the collector, by Python, or later by a thread of logspool.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Only the queue of deferred formatters is made here.
"""

from __future__ import annotations

import sys

from logspool import _imports, _native
from logspool.adoption import _formatters, _own_texts
from logspool.adoption import known as known_formatters
from logspool.adoption._descriptions import Format, Formatting
from logspool.base import _in_force

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def describe_format_of(formatter: Any, handler: Any) -> Format:
    """Describe how the lines of a handler with this formatter are made."""
    try:
        return _described_format(formatter, handler)
    except Exception as error:
        # A formatter whose attributes raise, or an attribute that a release of its package does not have.
        import traceback

        parts = ((formatter, _native.watch_part(formatter)),)
        types = ((type(formatter), _native.class_state(type(formatter))),)
        raised = "".join(traceback.format_exception_only(type(error), error)).strip()
        form = f"{type(formatter).__qualname__} cannot be described, so it runs in Python: {raised}"
        return Format(form, types, parts)._replace(**_deferral(form, handler, asked=False))


def _described_format(formatter: Any, handler: Any) -> Format:
    described = known_formatters.describe(formatter)
    if described is not None:
        return described._replace(**_deferral(described.form, handler, asked=False))
    # Each part is watched before it is inspected: a later change makes the answer stale, not wrong.
    parts: tuple[tuple[Any, int], ...] = ((formatter, _native.watch_part(formatter)),)
    types: tuple[tuple[type, int], ...] = ((type(formatter), _native.class_state(type(formatter))),)
    deferring = sys.modules.get("logspool.thread._deferring")
    asked = deferring is not None and type(formatter) is deferring.DeferredFormatter
    if asked:
        inner = describe_format_of(formatter.formatter, None)
        later = _deferral(inner.form, handler, asked)
        return inner._replace(types=types + inner.types, parts=parts + inner.parts, **later)
    style = getattr(formatter, "_style", None)
    if style is not None:
        parts += ((style, _native.watch_part(style)),)
        types += ((type(style), _native.class_state(type(style))),)
    form = _formatters.describe_formatter(formatter)
    return Format(form, types, parts)._replace(**_deferral(form, handler, asked))


def _deferral(form: Formatting | str, handler: Any, asked: bool) -> dict[str, Any]:
    """Return what a description says if the records are formatted later; nothing if they are formatted at once.

    They are if the program has asked for it and a formatter has to run, or if earlier records of the handler still
    wait: the order of the lines stays that of the calls.
    """
    if handler is None:
        return {}
    options = _in_force.of_queue() or {}
    reasons = [] if isinstance(form, str) else [form.own_texts.get(name) for name in _own_texts.EACH_RECORD]
    reason = form if isinstance(form, str) else next(filter(None, reasons), None)
    deferring = sys.modules.get("logspool.thread._deferring")
    is_asked = reason is not None and (asked or options.get("defer_formatting", False))
    if not is_asked and not (deferring is not None and deferring.has_waiting(handler)):
        return {}
    deferral = _imports.part("thread._deferring").deferral()
    deferral.handlers[id(handler)] = handler
    if not is_asked:
        deferral.writer.stays_for_order = True
        reason = reason or "earlier records wait for their formatter"
    return {"form": f"{reason}; a thread of logspool formats the records", "deferral": deferral}
