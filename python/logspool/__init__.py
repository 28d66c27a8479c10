"""Logging that costs a program nothing and loses nothing.

    import logspool
    logspool.install()      # from here on every logger of the process is off the hot path

Importing this package starts no thread, opens nothing and patches nothing.
"""

from __future__ import annotations

from logspool import _imports

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from logspool._addresses import handler
    from logspool._bind import bind
    from logspool._capture import Capture, capture_fd
    from logspool._deferring import deferred
    from logspool._destinations import (
        ElasticsearchHandler,
        GelfHandler,
        JournaldHandler,
        LineSocketHandler,
        LokiHandler,
        OTLPHandler,
        SQLiteHandler,
        SyslogHandler,
    )
    from logspool._forward import ForwardHandler
    from logspool._handlers import FileHandler, ServiceHandler, SinkHandler, StreamHandler
    from logspool._health import Health, health
    from logspool._install import flush, install, uninstall
    from logspool._json import JSONFormatter
    from logspool._native import __version__ as __version__
    from logspool._once import debug_once, error_once, info_once, log_once, warning_once
    from logspool._rotating_handlers import RotatingFileHandler, TimedRotatingFileHandler
    from logspool._stats import (
        DeferredStats,
        LevelCount,
        LoggerPath,
        QueueStats,
        Report,
        SinkCount,
        SinkStats,
        Stats,
        metrics_text,
        recover,
        stats,
    )
    from logspool._thread_handler import ThreadHandler, ThreadHandlerStats

__all__ = [
    "Capture",
    "DeferredStats",
    "ElasticsearchHandler",
    "FileHandler",
    "ForwardHandler",
    "GelfHandler",
    "Health",
    "JSONFormatter",
    "JournaldHandler",
    "LevelCount",
    "LineSocketHandler",
    "LoggerPath",
    "LokiHandler",
    "OTLPHandler",
    "QueueStats",
    "Report",
    "RotatingFileHandler",
    "SQLiteHandler",
    "ServiceHandler",
    "SinkCount",
    "SinkHandler",
    "SinkStats",
    "Stats",
    "StreamHandler",
    "SyslogHandler",
    "ThreadHandler",
    "ThreadHandlerStats",
    "TimedRotatingFileHandler",
    "bind",
    "capture_fd",
    "debug_once",
    "deferred",
    "error_once",
    "flush",
    "handler",
    "health",
    "info_once",
    "install",
    "log_once",
    "metrics_text",
    "recover",
    "stats",
    "uninstall",
    "warning_once",
]

_HOMES = {
    "Capture": "_capture",
    "DeferredStats": "_stats",
    "ElasticsearchHandler": "_destinations",
    "FileHandler": "_handlers",
    "GelfHandler": "_destinations",
    "ForwardHandler": "_forward",
    "Health": "_health",
    "JSONFormatter": "_json",
    "JournaldHandler": "_destinations",
    "LevelCount": "_stats",
    "LineSocketHandler": "_destinations",
    "LoggerPath": "_stats",
    "LokiHandler": "_destinations",
    "OTLPHandler": "_destinations",
    "QueueStats": "_stats",
    "Report": "_stats",
    "RotatingFileHandler": "_rotating_handlers",
    "SQLiteHandler": "_destinations",
    "ServiceHandler": "_handlers",
    "SinkCount": "_stats",
    "SinkHandler": "_handlers",
    "SinkStats": "_stats",
    "Stats": "_stats",
    "StreamHandler": "_handlers",
    "SyslogHandler": "_destinations",
    "ThreadHandler": "_thread_handler",
    "ThreadHandlerStats": "_thread_handler",
    "TimedRotatingFileHandler": "_rotating_handlers",
    "bind": "_bind",
    "capture_fd": "_capture",
    "debug_once": "_once",
    "deferred": "_deferring",
    "error_once": "_once",
    "flush": "_install",
    "handler": "_addresses",
    "health": "_health",
    "info_once": "_once",
    "install": "_install",
    "log_once": "_once",
    "metrics_text": "_stats",
    "recover": "_stats",
    "stats": "_stats",
    "uninstall": "_install",
    "warning_once": "_once",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(_imports.part(home), name)
    elif name == "__version__":
        value = _imports.part("_native").__version__
    elif name == "_native":
        # PyCapsule_Import("logspool._native._C_API") of an extension module asks for the attribute.
        value = _imports.part("_native")
    else:
        raise AttributeError(f"module 'logspool' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
