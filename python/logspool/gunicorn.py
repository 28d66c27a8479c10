"""gunicorn's access lines without the table that gunicorn makes of every request.

    gunicorn --logger-class logspool.gunicorn.Logger --access-logfile access.log shop:app

The class is gunicorn's own `Logger` with another `access`: native code reads only the values that `access_log_format`
shows, and queues the line. The bytes are those of gunicorn. It calls `logspool.install()` unless the program has, and
on SIGUSR1 it also opens the files of the root logger again.

gunicorn's own method makes the line if a subclass changes how, if a handler or a filter sees the record, for a release
that is not known, for a format with widths or flags, and for a request with values of other types.
"""

from __future__ import annotations

import base64
import datetime
import logging
import os
import time
import traceback
from typing import Any

from gunicorn import config, glogging

from logspool import _native
from logspool.adoption import _logging_globals
from logspool.adoption.known import _checks
from logspool.base import _stock_classes
from logspool.process import _install
from logspool.watch import _stats

__all__ = ["Logger"]

#: The first and the last release whose access lines are known.
FIRST, LAST = (21, 2), (27, 0)

#: Methods of gunicorn's `Logger` that make a line.
_CALLED = ("access", "atoms", "now", "_get_user")

#: What an instance may have of its own instead.
_OVERRIDING = (*_CALLED[1:], "atoms_wrapper_class")

#: Settings of which one turns the access log on, apart from syslog.
_ENABLING = ("accesslog", "logconfig", "logconfig_dict", "logconfig_json")

Watched = list[tuple[Any, int, int, int]]


class Logger(glogging.Logger):
    """gunicorn's `Logger` whose access lines native code makes; for `logger_class` of gunicorn."""

    def __init__(self, cfg: Any) -> None:
        if _stats.options_in_force() is None:
            _install.install()
        super().__init__(cfg)

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Log a request. Called by the workers of gunicorn."""
        try:
            if _write(self, resp, req, environ, request_time):
                return
        except Exception:
            # As gunicorn does for an exception of its logger.
            self.error(traceback.format_exc())
            return
        super().access(resp, req, environ, request_time)

    def reopen_files(self) -> None:
        """Open all files of `logging.FileHandler` again, as on SIGUSR1; gunicorn leaves out the root logger's."""
        super().reopen_files()
        for handler in logging.root.handlers:
            if isinstance(handler, logging.FileHandler) and handler.stream:
                handler.acquire()
                try:
                    handler.close()
                    handler.stream = handler._open()
                finally:
                    handler.release()


def _describe(log: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any] | None]:
    """Return classes with their states, watched words, and what native code needs for the lines of a logger; None
    instead if gunicorn's own method has to make them.
    """
    types = {cls: _native.class_state(cls) for cls in _classes(log)}
    watched: Watched = []
    for namespace in (vars(glogging), vars(os), vars(base64)):
        _checks.watch(namespace, watched)
    # Why gunicorn's own method makes the lines, in words; empty if native code does.
    _stats.reasons_of_texts["gunicorn.access"] = reason = _changed(log)
    parts = None
    if not reason:
        settings = log.cfg.settings
        has_kept_answer = hasattr(glogging.Logger, "_compute_access_log_enabled")
        parts = {
            "overriding": _OVERRIDING,
            "logger_class": type(log.access_log),
            "config_class": type(log.cfg),
            "timedelta": datetime.timedelta,
            "format": ("access_log_format", type(settings["access_log_format"])),
            "enabling": [] if has_kept_answer else [(name, type(settings[name])) for name in _ENABLING],
            "time": vars(time),
            "user_of": _user_of,
        }
    return tuple(types.items()), tuple(watched), parts


def _classes(log: Any) -> set[type]:
    """Return the classes on which the answer of `_describe` depends."""
    classes = {type(log), glogging.SafeAtoms, logging.Logger, config.Config, config.Setting}
    if type(log.cfg) is config.Config:
        classes |= {type(setting) for name, setting in log.cfg.settings.items() if name in _SETTINGS}
    return classes | {type(log.cfg), type(log.access_log)}


_SETTINGS = ("access_log_format", *_ENABLING)


def _changed(log: Any) -> str:
    """Return why only gunicorn's own method can make the lines of a logger, or an empty string."""
    unknown = _checks.unknown_release("gunicorn", "gunicorn", FIRST, LAST)
    if unknown is not None:
        return f"{unknown.partition(':')[0]}: its own code makes the access lines"
    cls = type(log)
    for name in _CALLED[1:]:
        if not _checks.is_function_of(getattr(cls, name, None), glogging, f"Logger.{name}"):
            return f"{name} of gunicorn's Logger is not its own"
    if not _checks.is_function_of(glogging.Logger.access, glogging, "Logger.access"):
        return "access of gunicorn's Logger is patched"
    if any(name in base.__dict__ for base in cls.__mro__[:-1] for name in ("__getattribute__", "__getattr__")):
        return f"{cls.__qualname__} looks up its attributes in its own way"
    if not _asks_as_gunicorn(cls):
        return "access_log_enabled of gunicorn's Logger is not its own"
    if cls.atoms_wrapper_class is not glogging.SafeAtoms or not _has_own_atoms():
        return "SafeAtoms is not gunicorn's own"
    if not _has_own_modules():
        return "a function that gunicorn's Logger calls is patched"
    return _changed_settings(log) or _changed_target(log)


def _asks_as_gunicorn(cls: type) -> bool:
    asked = getattr(cls, "access_log_enabled", None)
    if asked is None:
        return True
    is_own = _checks.is_function_of(getattr(asked, "fget", None), glogging, "Logger.access_log_enabled")
    if not hasattr(glogging.Logger, "_compute_access_log_enabled"):
        return is_own
    answer: Any = getattr(cls, "_compute_access_log_enabled", None)
    return is_own and _checks.is_function_of(answer, glogging, "Logger._compute_access_log_enabled")


def _has_own_atoms() -> bool:
    atoms: Any = glogging.SafeAtoms
    methods = {name for name in vars(atoms) if callable(vars(atoms)[name])}
    own = all(
        _checks.is_function_of(vars(atoms)[name], glogging, f"SafeAtoms.{name}") for name in ("__init__", "__getitem__")
    )
    return own and methods == {"__init__", "__getitem__"} and atoms.__bases__ == (dict,)


def _has_own_modules() -> bool:
    modules = {"time": time, "os": os, "base64": base64, "traceback": traceback}
    return (
        all(getattr(glogging, name, None) is module for name, module in modules.items())
        and _logging_globals.is_real_time("strftime")
        and os.getpid is _logging_globals.stock_getpid
        and _checks.is_function_of(base64.b64decode, base64, "b64decode")
    )


def _changed_settings(log: Any) -> str:
    if type(log.cfg) is not config.Config or type(log.cfg.settings) is not dict:
        return "its cfg is no Config of gunicorn"
    own = _checks.is_function_of(vars(config.Config).get("__getattr__"), config, "Config.__getattr__")
    if not own or "__getattribute__" in vars(config.Config):
        return "Config of gunicorn is patched"
    for name in _SETTINGS:
        setting = log.cfg.settings.get(name)
        if not _checks.is_function_of(getattr(type(setting), "get", None), config, "Setting.get"):
            return f"the setting {name} is not gunicorn's own"
    return ""


def _changed_target(log: Any) -> str:
    cls = type(log.access_log)
    native = _stock_classes.replaced.get((logging.Logger, "info"))
    if native is None:
        return "logspool is not installed"
    if not issubclass(cls, logging.Logger) or cls.info is not native[0] or "__getattribute__" in _names(cls):
        return "the logger gunicorn.access has methods of its own"
    return ""


def _names(cls: type) -> set[str]:
    return {name for base in cls.__mro__[:-1] for name in vars(base)}


def _user_of(header: str) -> str | None:
    """Return the user of a header for basic authentication, None if it names none.

    Raises:
        Exception: the header cannot be read. gunicorn's own method then reports it.
    """
    scheme_and_user = header.split(" ", 1)
    if len(scheme_and_user) != 2:
        return None
    return base64.b64decode(scheme_and_user[1].strip().encode("utf-8")).split(b":", 1)[0].decode("UTF-8")


_write = _native.AccessLog(_describe).write
