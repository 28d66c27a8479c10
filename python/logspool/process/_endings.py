"""The ends of a process, and its forks.

Pipeline stage: the end of the process (see ARCHITECTURE.md). In every case in which stock `FileHandler` leaves a
complete file, logspool does so, too. A drain with a timeout runs before `os._exit` and the exec functions. The last
drain runs in the C library's `exit` and needs no interpreter. Records that are logged while the interpreter shuts down
are still written.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time

from logspool import _forks, _imports, _native
from logspool.base import _locks

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_shutdown_timeout = 5.0
_registered = False
_signals_drained = False
_crashes_watched = False

#: Signals that a crash raises. The core has the same list.
_CRASHES = tuple(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)

#: Maps (module, name) to (our function, the function that it replaces).
_wrapped: dict[tuple[Any, str], tuple[Any, Any]] = {}


def begin(shutdown_timeout: float, *, uncaught: bool) -> None:
    """Install the drains that run before every kind of process end. With `uncaught`, also log uncaught exceptions."""
    global _shutdown_timeout, _signals_drained
    _shutdown_timeout = shutdown_timeout
    begin_alone()
    if uncaught:
        watch_uncaught()
    _wrap(sys, "excepthook", _flush_before)
    _wrap(threading, "excepthook", _flush_before)
    _wrap(time, "tzset", _flush_before_zone_change)
    _wrap(signal, "signal", _rearm_after)
    _signals_drained = True
    _native.install_signal_drain(shutdown_timeout)


def watch_crashes() -> None:
    """Make a crash wait until all queued records are written."""
    global _crashes_watched
    _crashes_watched = True
    _wrap(signal, "signal", _rearm_after)
    _native.install_crash_drain()


def watch_uncaught() -> None:
    """Log uncaught exceptions, and write the records before the hooks that the program has set are called."""
    from logspool.process import _uncaught

    for module, name, make in _uncaught.HOOKS:
        _wrap(module, name, lambda before, make=make: make(_flush_before(before)))  # type: ignore[misc]


def begin_alone() -> None:
    """Handle forks and ends that skip the interpreter's exit, for logspool's own handlers without `install()`."""
    global _registered
    if not _registered:
        _registered = True
        _forks.register(
            before=_native.before_fork,
            after_in_parent=_native.after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )
        atexit.register(_finish_plans, _locks.AfterLastExitFunction(_hold_locks))
        _native.register_exit_drain()
    _wrap(os, "_exit", _drain_before)
    for name in ("execv", "execve"):
        _wrap(os, name, _drain_before_exec)
    for name in ("chroot", "setuid", "seteuid", "setreuid", "setresuid"):
        _wrap(os, name, _import_before)


def _finish_plans(_after_last: object) -> None:
    """Stop making plans in daemon threads: if CPython ended a thread while it makes one, the process would abort."""
    deadline = time.monotonic() + _PLAN_SECONDS
    while _native.begin_end() and time.monotonic() < deadline:
        time.sleep(0.001)


def _hold_locks() -> None:
    _locks.hold_for_the_end(_shutdown_timeout)
    _native.stop_logging_threads()


#: Seconds that threads get to finish making a plan. Chosen: a hundred times longer than this takes on a busy machine.
_PLAN_SECONDS = 0.5


def end() -> None:
    """Restore the original functions, except where the program has replaced our function."""
    global _crashes_watched
    if _crashes_watched:
        _crashes_watched = False
        _native.remove_crash_drain()
    for (module, name), (ours, before) in list(_wrapped.items()):
        if getattr(module, name, None) is ours:
            setattr(module, name, before)
        del _wrapped[module, name]


def _after_fork_in_child() -> None:
    _native.after_fork_in_child()


def _wrap(module: Any, name: str, make: Callable[[Any], Any]) -> None:
    before = getattr(module, name, None)
    if before is None or (module, name) in _wrapped:
        return
    ours = make(before)
    ours.__name__ = getattr(before, "__name__", name)
    ours.__qualname__ = getattr(before, "__qualname__", name)
    ours.__doc__ = getattr(before, "__doc__", None)
    ours.__wrapped__ = before
    _wrapped[module, name] = (ours, before)
    setattr(module, name, ours)


def _drain_before(before: Any) -> Any:
    def end_of_process(*args: Any, **kwargs: Any) -> Any:
        _native.end(_shutdown_timeout)
        try:
            return before(*args, **kwargs)
        finally:
            # `before` returned or raised, so the program could not be executed and this process continues.
            _native.go_on()

    return end_of_process


def _import_before(before: Any) -> Any:
    """Wrap a function after which the files of the package may be out of reach."""

    def change(*args: Any, **kwargs: Any) -> Any:
        _imports.all_later_parts()
        return before(*args, **kwargs)

    return change


def _drain_before_exec(before: Any) -> Any:
    drained = _drain_before(before)

    def become_program(*args: Any, **kwargs: Any) -> Any:
        # `os.execvp` tries each folder of the PATH. If the file does not exist, the process does not end, so no drain
        # is needed.
        path = args[0] if args else kwargs.get("path")
        return (drained if _file_may_exist(path) else before)(*args, **kwargs)

    return become_program


def _file_may_exist(path: Any) -> bool:
    try:
        return os.path.exists(path)
    except (TypeError, ValueError):
        return True


def _rearm_after(before: Any) -> Any:
    def set_handler(signalnum: Any, handler: Any) -> Any:
        replaced = before(signalnum, handler)
        if handler == signal.SIG_DFL:
            # The signal has its default action again, so the drain has to run before this action again.
            if signalnum in _CRASHES:
                if _crashes_watched:
                    _native.install_crash_drain()
            elif _signals_drained:
                _native.install_signal_drain(_shutdown_timeout)
        return replaced

    return set_handler


def _flush_before(before: Any) -> Any:
    def after_flush(*args: Any, **kwargs: Any) -> Any:
        _native.flush_local(_shutdown_timeout)
        return before(*args, **kwargs)

    return after_flush


def _flush_before_zone_change(before: Any) -> Any:
    def other_zone() -> None:
        # Queued records were logged in the old time zone. They are written first, so that they are formatted with it.
        _native.flush_local(_shutdown_timeout)
        before()
        _native.zone_changed()

    return other_zone
