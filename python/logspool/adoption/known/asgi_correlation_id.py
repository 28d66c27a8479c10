"""`CorrelationIdFilter` of asgi-correlation-id: it sets the value of a context variable on each record."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any

from logspool.adoption.known._checks import is_function_of, is_text, unknown_release, watch


def describe_filter(candidate: Any) -> tuple[Any, ...] | None:
    """Return attribute, context variable, value without a request, length and watched words; None if the filter has to
    run.
    """
    module = sys.modules["asgi_correlation_id.log_filters"]
    if unknown_release("asgi_correlation_id", "asgi-correlation-id", (4, 1), (5, 0)) is not None:
        return None
    watched: list[tuple[Any, int, int, int]] = []
    watch(vars(module), watched)
    for name, function in (
        ("CorrelationIdFilter.filter", type(candidate).filter),
        ("_trim_string", module._trim_string),
    ):
        if not is_function_of(function, module, name):
            return None
    own = vars(candidate)
    default, length, variable = own.get("default_value", ""), own.get("uuid_length", ""), module.correlation_id
    if "filter" in own or type(variable) is not ContextVar:
        return None
    if not (default is None or is_text(default)) or "default_value" not in own:
        return None
    if not (length is None or (type(length) is int and 0 <= length < 2**31)):
        return None
    return "correlation_id", variable, default, length, tuple(watched)
