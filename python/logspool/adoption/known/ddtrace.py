"""ddtrace's log injection: a wrapper of `Logger.makeRecord` that sets the ids of the active span on each record."""

from __future__ import annotations

import sys
from typing import Any

from logspool.adoption.known._checks import is_function_of, unknown_release, watch

#: The attributes that the wrapper sets, in its order.
NAMES = ("dd.trace_id", "dd.span_id", "dd.service", "dd.version", "dd.env")

#: The first and the last known release.
FIRST, LAST = (4, 0), (4, 16)

_HOME = "ddtrace.contrib.internal.logging.patch"

#: Functions with this name may change what the wrapper sets.
_EVENT = "trace.log_correlation_context"


def is_record_maker(maker: Any) -> bool:
    """Return whether a wrapper of `Logger.makeRecord` is ddtrace's."""
    module = sys.modules.get(_HOME)
    return module is not None and is_function_of(getattr(maker, "_self_wrapper", None), module, "_w_makeRecord")


def describe_record_maker(maker: Any) -> tuple[Any, ...] | None:
    """Return attributes, a function that returns their values for the current call or None, a class whose changes
    count, and watched words; None if the wrapper has to run.
    """
    del maker
    if unknown_release("ddtrace", "ddtrace", FIRST, LAST) is not None:
        return None
    module, tracing = sys.modules[_HOME], sys.modules["ddtrace._trace.tracer"]
    watched: list[tuple[Any, int, int, int]] = []
    for each in (sys.modules["ddtrace"], module, tracing):
        watch(vars(each), watched)
    tracer, config = module.ddtrace.tracer, module.config
    cls = type(tracer)
    if not is_function_of(cls.get_log_correlation_context, tracing, "Tracer.get_log_correlation_context"):
        return None
    if "get_log_correlation_context" in vars(tracer) or tracing.config is not config or not config._logs_injection:
        return None
    key = id(tracer), id(config), id(tracer.context_provider)
    if key not in _readers:
        _readers.clear()
        # The reader keeps the objects alive, so that no other objects get their ids.
        _readers[key] = _reader(tracer, config, tracing)
    return NAMES, _readers[key], cls, tuple(watched)


def _reader(tracer: Any, config: Any, tracing: Any) -> Any:
    """Return a function that returns what the wrapper sets, or None if the injection is off."""
    provider, item = tracer.context_provider, config._config["_logs_injection"]
    has_listeners, span_class = tracing.core.has_listeners, tracing.Span
    active_of, whole = provider.active, tracer.get_log_correlation_context
    is_default = type(provider).__module__ == "ddtrace.internal.native._native"
    last = (0, 0, "0", "0")

    def read() -> tuple[Any, ...] | None:
        nonlocal last
        # What `config._logs_injection` looks up, which takes as long as all the rest.
        on = item._rc_value
        if on is None:
            on = item._code_value
        if on is None:
            on = item._env_value
        if on is None:
            on = item._default_value
        if not on:
            return None
        if not is_default or tracer.context_provider is not provider or not tracer.enabled or has_listeners(_EVENT):
            return tuple(map(whole().get, NAMES))
        active = active_of()
        if active is None:
            trace = span = "0"
        elif type(active) is span_class:
            span_id, trace_id = active.span_id, active.trace_id
            known_span, known_trace, span, trace = last
            if span_id != known_span or trace_id != known_trace:
                found = whole(active)
                span, trace = found["dd.span_id"], found["dd.trace_id"]
                last = span_id, trace_id, span, trace
        else:
            return tuple(map(whole().get, NAMES))
        return trace, span, config.service or "", config.version or "", config.env or ""

    return read


#: The reader of the current tracer.
_readers: dict[tuple[int, int, int], Any] = {}
