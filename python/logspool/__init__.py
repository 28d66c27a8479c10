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

    from logspool._bind import bind
    from logspool._native import __version__ as __version__
    from logspool._once import debug_once, error_once, info_once, log_once, warning_once
    from logspool.handlers._addresses import handler
    from logspool.handlers._destinations import (
        ElasticsearchHandler,
        GelfHandler,
        JournaldHandler,
        LineSocketHandler,
        LokiHandler,
        OTLPHandler,
        SQLiteHandler,
        SyslogHandler,
    )
    from logspool.handlers._forward import ForwardHandler
    from logspool.handlers._handlers import FileHandler, ServiceHandler, SinkHandler, StreamHandler
    from logspool.handlers._json import JSONFormatter
    from logspool.handlers._rotating_handlers import RotatingFileHandler, TimedRotatingFileHandler
    from logspool.process._capture import Capture, capture_fd
    from logspool.process._install import flush, install, uninstall
    from logspool.thread._deferring import deferred
    from logspool.thread._handler import ThreadHandler, ThreadHandlerStats
    from logspool.watch._health import Health, health
    from logspool.watch._stats import (
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

_imports.later_parts = ("watch._stats", "watch._health", "_once", "thread._deferring")

_HOMES = {
    "Capture": "process._capture",
    "DeferredStats": "watch._stats",
    "ElasticsearchHandler": "handlers._destinations",
    "FileHandler": "handlers._handlers",
    "GelfHandler": "handlers._destinations",
    "ForwardHandler": "handlers._forward",
    "Health": "watch._health",
    "JSONFormatter": "handlers._json",
    "JournaldHandler": "handlers._destinations",
    "LevelCount": "watch._stats",
    "LineSocketHandler": "handlers._destinations",
    "LoggerPath": "watch._stats",
    "LokiHandler": "handlers._destinations",
    "OTLPHandler": "handlers._destinations",
    "QueueStats": "watch._stats",
    "Report": "watch._stats",
    "RotatingFileHandler": "handlers._rotating_handlers",
    "SQLiteHandler": "handlers._destinations",
    "ServiceHandler": "handlers._handlers",
    "SinkCount": "watch._stats",
    "SinkHandler": "handlers._handlers",
    "SinkStats": "watch._stats",
    "Stats": "watch._stats",
    "StreamHandler": "handlers._handlers",
    "SyslogHandler": "handlers._destinations",
    "ThreadHandler": "thread._handler",
    "ThreadHandlerStats": "thread._handler",
    "TimedRotatingFileHandler": "handlers._rotating_handlers",
    "bind": "_bind",
    "capture_fd": "process._capture",
    "debug_once": "_once",
    "deferred": "thread._deferring",
    "error_once": "_once",
    "flush": "process._install",
    "handler": "handlers._addresses",
    "health": "watch._health",
    "info_once": "_once",
    "install": "process._install",
    "log_once": "_once",
    "metrics_text": "watch._stats",
    "recover": "watch._stats",
    "stats": "watch._stats",
    "uninstall": "process._install",
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
