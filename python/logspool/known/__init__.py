"""Formatters of other packages whose lines the collector renders itself.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Each package has one module here and one line for each
class in `FORMATTERS`. A module is imported only if the program uses a formatter of its package. It describes the
formatter, or returns the reason why Python has to run it: a subclass, a patched method, an option that the collector
does not render, a release of the package that the module does not know.
"""

from __future__ import annotations

import importlib
import logging
import sys
from typing import TYPE_CHECKING, Any

from logspool import _native
from logspool._stock_classes import changed_method, first_in

if TYPE_CHECKING:
    from logspool._adopt import Format

#: The class by its module and name -> the module of this folder that describes it.
FORMATTERS = {
    ("colorlog.formatter", "ColoredFormatter"): "colorlog",
    ("django.utils.log", "ServerFormatter"): "django",
    ("ecs_logging._stdlib", "StdlibFormatter"): "ecs_logging",
    ("pythonjsonlogger.json", "JsonFormatter"): "pythonjsonlogger",
    ("pythonjsonlogger.jsonlogger", "JsonFormatter"): "pythonjsonlogger",
    ("uvicorn.logging", "AccessFormatter"): "uvicorn",
    ("uvicorn.logging", "DefaultFormatter"): "uvicorn",
}

#: The same for filters.
FILTERS = {
    ("asgi_correlation_id.log_filters", "CorrelationIdFilter"): "asgi_correlation_id",
}

#: The same for record factories, by the names of their module and of the function.
FACTORIES = {
    (
        "opentelemetry.instrumentation.logging",
        "LoggingInstrumentor._instrument.<locals>.record_factory",
    ): "opentelemetry",
}

#: Methods of formatters that take part in making a line.
CALLED = (
    "format",
    "formatTime",
    "formatException",
    "formatMessage",
    "formatStack",
    "usesTime",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
)


def describe(formatter: Any) -> Format | None:
    """Describe a formatter of a known class; None for a formatter of any other class."""
    cls = type(formatter)
    describer = _describer(FORMATTERS, cls)
    if describer is None:
        return None
    # The parts are watched before they are inspected: a later change makes the answer stale, not wrong.
    parts = ((formatter, _native.watch_part(formatter)),)
    types: list[tuple[type, int]] = [(cls, _native.class_state(cls))]
    watched: list[tuple[Any, int, int, int]] = []
    form = _changed(cls, formatter, describer.CALLED) or describer.describe(formatter, types, watched)
    from logspool._adopt import Format

    return Format(form, tuple(types), parts, tuple(watched))


def describe_filter(candidate: Any) -> tuple[Any, ...] | None:
    """Describe a filter of a known class; None for any other filter, and if it has to run."""
    describer = _describer(FILTERS, type(candidate))
    return None if describer is None else describer.describe_filter(candidate)


def describe_factory(factory: Any) -> tuple[Any, ...] | None:
    """Describe the fields that a known record factory sets; None for any other factory, and if it has to run."""
    name = FACTORIES.get((getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)))  # type: ignore[arg-type]
    if name is None:
        return None
    return importlib.import_module(f"logspool.known.{name}").describe_factory(factory)  # type: ignore[no-any-return]


def _describer(table: dict[tuple[str, str], str], cls: type) -> Any:
    """Return the module that describes the objects of a class, None if the class is not in the table."""
    module = cls.__dict__.get("__module__")
    if type(module) is not str:
        return None
    name = table.get((module, cls.__name__))
    if name is None or getattr(sys.modules.get(module), cls.__name__, None) is not cls:
        return None
    return importlib.import_module(f"logspool.known.{name}")


def _changed(cls: type, formatter: Any, called: tuple[str, ...]) -> str | None:
    """Return which of the methods that run is not the package's own or the standard library's, in words."""
    replaced = first_in(vars(formatter), (*CALLED, *called))
    if replaced is not None:
        return f"{replaced} is replaced on the formatter"
    return changed_method(cls, cls, (*CALLED, *called)) or changed_method(logging.Formatter, logging.Formatter, CALLED)
