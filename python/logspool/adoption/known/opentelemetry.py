"""The record factory of opentelemetry-instrumentation-logging: it sets the ids of the current span on each record."""

from __future__ import annotations

import logging
import sys
import weakref
from contextvars import ContextVar
from typing import Any

from logspool.adoption.known._checks import is_function_of, is_text, unknown_release, watch

#: The attributes that the factory sets, in the order of the values of `trace_fields`.
NAMES = ("otelSpanID", "otelTraceID", "otelTraceSampled", "otelServiceName")


def describe_factory(factory: Any) -> tuple[Any, ...] | None:
    """Return attributes, context variable, key of the span in its value, values without a span, a function that returns
    the values of a span, the class with the hook, and watched words; None if the factory has to run.
    """
    module = sys.modules["opentelemetry.instrumentation.logging"]
    if unknown_release("opentelemetry.instrumentation.logging.version", _DISTRIBUTION, (0, 50), (0, 66)) is not None:
        return None
    if not is_function_of(factory, module, "LoggingInstrumentor._instrument.<locals>.record_factory"):
        return None
    propagation, context = sys.modules["opentelemetry.trace.propagation"], sys.modules["opentelemetry.context"]
    watched: list[tuple[Any, int, int, int]] = []
    for each in (module, propagation, context):
        watch(vars(each), watched)
    if not (
        is_function_of(module.get_current_span, propagation, "get_current_span")
        and is_function_of(propagation.get_value, context, "get_value")
        and is_function_of(context.get_current, context, "get_current")
    ):
        return None
    runtime = context._RUNTIME_CONTEXT
    variable = getattr(runtime, "_current_context", None)
    is_known = type(runtime).__name__ == "ContextVarsRuntimeContext" and type(variable) is ContextVar
    if not is_known or module.LoggingInstrumentor._log_hook is not None:
        return None
    cells = dict(zip(factory.__code__.co_freevars, factory.__closure__ or ()))
    if not cells.keys() <= {"inject_context", "old_factory", "provider", "service_name"}:
        return None
    if cells["old_factory"].cell_contents is not logging.LogRecord:
        return None
    if "inject_context" in cells and cells["inject_context"].cell_contents is not True:
        return None
    if cells["service_name"].cell_contents is None:
        # The factory asks for the name at its first record, and keeps it.
        factory("", 0, "", 0, "", (), None)
    service = cells["service_name"].cell_contents
    if not is_text(service):
        return None
    if factory not in _fields:
        _fields[factory] = _Fields(module, propagation.Span, service)
    fields = _fields[factory]
    key = propagation._SPAN_KEY
    return NAMES, variable, key, fields.without, fields.of_span, module.LoggingInstrumentor, tuple(watched)


class _Fields:
    """What one factory sets."""

    def __init__(self, module: Any, span_class: Any, service: str) -> None:
        self._module = module
        self._span_class = span_class
        self._service = service
        #: The values without a span.
        self.without = ("0", "0", False, service)
        # One object for all plans, so that they are recognised as the same.
        self.of_span = self._of_span

    def _of_span(self, span: Any) -> tuple[Any, ...] | None:
        """Return the values of a span, which never change; None for a span of a class that could change them."""
        if not isinstance(span, self._span_class) or span == self._module.INVALID_SPAN:
            return self.without
        if not type(span).__module__.startswith("opentelemetry."):
            return None
        found = span.get_span_context()
        if found == self._module.INVALID_SPAN_CONTEXT:
            return self.without
        ids = format(found.span_id, "016x"), format(found.trace_id, "032x"), found.trace_flags.sampled
        return (*ids, self._service)


#: The fields of each factory that was described.
_fields: weakref.WeakKeyDictionary[Any, _Fields] = weakref.WeakKeyDictionary()

_DISTRIBUTION = "opentelemetry-instrumentation-logging"
