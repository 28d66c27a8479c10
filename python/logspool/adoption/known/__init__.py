"""Formatters of other packages whose lines the collector renders itself.

Pipeline stage: *capture*, its slow part (see ARCHITECTURE.md). Each package has one module here and one line for each
class in `FORMATTERS`. A module is imported only if the program uses a formatter of its package. It describes the
formatter, or returns the reason why Python has to run it: a subclass, a patched method, an option that the collector
does not render, a release of the package that the module does not know.
"""

from __future__ import annotations

import logging
import sys

from logspool import _imports, _native
from logspool.adoption.known._checks import is_function_of
from logspool.base._stock_classes import changed_method, first_in, replaced

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from logspool.adoption._descriptions import Format

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

#: The same for wrappers of `Logger.makeRecord`, by the module of the function that runs.
RECORD_MAKERS = {
    "ddtrace.contrib.internal.logging.patch": "ddtrace",
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
    from logspool.adoption._descriptions import Format

    return Format(form, tuple(types), parts, tuple(watched))


def describe_filter(candidate: Any) -> tuple[Any, ...] | None:
    """Describe a filter of a known class; None for any other filter, and if it has to run."""
    describer = _describer(FILTERS, type(candidate))
    try:
        return None if describer is None else describer.describe_filter(candidate)
    except Exception:
        # The package has other attributes than its release should have, so the filter runs.
        return None


def describe_factory(factory: Any) -> tuple[Any, ...] | None:
    """Describe the fields that a known record factory sets; None for any other factory, and if it has to run."""
    name = FACTORIES.get((getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)))  # type: ignore[arg-type]
    if name is None:
        return None
    try:
        return _imports.part(f"adoption.known.{name}").describe_factory(factory)  # type: ignore[no-any-return]
    except Exception:
        # The package has other attributes than its release should have, so the factory runs.
        return None


def record_maker(cls: type) -> Any:
    """Return the wrapper of `Logger.makeRecord` if loggers of a class have one that a known package has put around the
    stock method; None otherwise.
    """
    owner = next((base for base in cls.__mro__ if "makeRecord" in base.__dict__), None)
    maker: Any = logging.Logger.__dict__["makeRecord"]
    if owner is not logging.Logger or type(maker).__name__ != "FunctionWrapper":
        return None
    home = getattr(getattr(maker, "_self_wrapper", None), "__module__", None)
    name = RECORD_MAKERS.get(home) if type(home) is str else None
    if name is None or not _imports.part(f"adoption.known.{name}").is_record_maker(maker):
        return None
    wrapped = getattr(maker, "__wrapped__", None)
    # `logspool.bind` replaces the method as well.
    own = replaced.get((logging.Logger, "makeRecord"), (None, None))
    is_stock = wrapped is own[0] or is_function_of(wrapped, logging, "Logger.makeRecord")
    is_plain = getattr(maker, "_self_enabled", None) is None and getattr(maker, "_self_instance", None) is None
    return maker if is_stock and is_plain else None


def describe_record_maker(cls: type) -> tuple[Any, ...] | None:
    """Describe the fields that the wrapper of `Logger.makeRecord` sets; None if it has to run."""
    maker = record_maker(cls)
    if maker is None:
        return None
    module: Any = _imports.part(f"adoption.known.{RECORD_MAKERS[maker._self_wrapper.__module__]}")
    try:
        return module.describe_record_maker(maker)  # type: ignore[no-any-return]
    except Exception:
        # The package has other attributes than its release should have.
        return None


def _describer(table: dict[tuple[str, str], str], cls: type) -> Any:
    """Return the module that describes the objects of a class, None if the class is not in the table."""
    module = cls.__dict__.get("__module__")
    if type(module) is not str:
        return None
    name = table.get((module, cls.__name__))
    if name is None or getattr(sys.modules.get(module), cls.__name__, None) is not cls:
        return None
    return _imports.part(f"adoption.known.{name}")


def _changed(cls: type, formatter: Any, called: tuple[str, ...]) -> str | None:
    """Return which of the methods that run is not the package's own or the standard library's, in words."""
    replaced = first_in(vars(formatter), (*CALLED, *called))
    if replaced is not None:
        return f"{replaced} is replaced on the formatter"
    return changed_method(cls, cls, (*CALLED, *called)) or changed_method(logging.Formatter, logging.Formatter, CALLED)
