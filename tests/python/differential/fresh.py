"""Gives each scenario of a process the state of a freshly imported `logging`."""

import logging
import logging.config
import logging.handlers
import os
import sys
import threading
import time
import warnings

_LEVELS = dict(logging._levelToName), dict(logging._nameToLevel)
_GLOBALS = (
    "raiseExceptions",
    "logThreads",
    "logProcesses",
    "logMultiprocessing",
    "logAsyncioTasks",
    "_srcfile",
    "_startTime",
    "lastResort",
)
_VALUES = {name: getattr(logging, name) for name in _GLOBALS if hasattr(logging, name)}
_MAIN_THREAD_NAME = threading.main_thread().name
_STREAMS = sys.stdin, sys.stdout, sys.stderr


def reset() -> None:
    """Close all handlers and reset the module: levels, names, globals, root, loggers."""
    logging.captureWarnings(False)
    for reference in list(logging._handlerList):
        handler = reference()
        if handler is not None and handler is not logging.lastResort:
            try:
                handler.close()
            except Exception as error:  # a scenario may leave a handler that cannot be closed
                print(f"closing raised {type(error).__name__}", file=sys.stderr)
    logging._handlers.clear()
    del logging._handlerList[:]
    root = logging.root
    root.handlers[:] = []
    root.filters[:] = []
    root.disabled = False
    root.setLevel(logging.WARNING)
    manager = logging.Logger.manager
    manager.loggerDict.clear()
    manager.loggerClass = None
    manager.logRecordFactory = None
    manager.emittedNoHandlerWarning = False
    manager.disable = 0
    logging.setLoggerClass(logging.Logger)
    logging.setLogRecordFactory(logging.LogRecord)
    for name, value in _VALUES.items():
        setattr(logging, name, value)
    logging._levelToName.clear()
    logging._levelToName.update(_LEVELS[0])
    logging._nameToLevel.clear()
    logging._nameToLevel.update(_LEVELS[1])
    root.manager._clear_cache()


class Surroundings:
    """State that a scenario must leave unchanged: class attributes, module globals, streams, time."""

    def __init__(self) -> None:
        self._before = self._look()

    @staticmethod
    def _look() -> dict[str, object]:
        found: dict[str, object] = {}
        for owner in (
            logging.Logger,
            logging.RootLogger,
            logging.Handler,
            logging.StreamHandler,
            logging.FileHandler,
            logging.Formatter,
            logging.PercentStyle,
            logging.Filterer,
            logging.LogRecord,
            logging.Manager,
            logging.LoggerAdapter,
        ):
            found.update({f"{owner.__name__}.{name}": value for name, value in vars(owner).items()})
        found.update({f"logging.{name}": value for name, value in vars(logging).items()})
        for name in ("time", "time_ns", "localtime", "gmtime", "strftime", "sleep"):
            found[f"time.{name}"] = getattr(time, name)
        found["TZ"] = os.environ.get("TZ")
        found["main thread's name"] = threading.main_thread().name
        found["sys.stdout"], found["sys.stderr"] = sys.stdout, sys.stderr
        found["sys.excepthook"], found["threading.excepthook"] = sys.excepthook, threading.excepthook
        found["os.getpid"], found["sys._getframe"] = os.getpid, sys._getframe
        found["warnings.showwarning"] = warnings.showwarning
        return found

    # Caches that CPython itself fills in these places.
    _MAY_CHANGE = ("__slotnames__", "_warnings_showwarning", "_handlers")

    def changed(self) -> list[str]:
        """Return the names whose values have changed since this object was made."""
        after = self._look()
        missing = object()
        return sorted(
            name
            for name in self._before.keys() | after.keys()
            if self._before.get(name, missing) is not after.get(name, missing)
            and self._before.get(name, missing) != after.get(name, missing)
            and not name.endswith(self._MAY_CHANGE)
        )
