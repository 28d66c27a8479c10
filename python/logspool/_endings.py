"""The ends of a process, and its forks.

Stop on the line: the end. Where stock `FileHandler` leaves a complete file, logspool does too. A bounded drain runs
before `os._exit` and the exec family. The last drain, in the C library's exit, needs no interpreter.
Records that are logged while the interpreter shuts down still arrive.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time

from logspool import _adopt, _native

# `typing` is slow to import; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_shutdown_timeout = 5.0
_registered = False
_signals_drained = False
_crashes_watched = False

#: Signals of a crash, as the core has them.
_CRASHES = (
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
)

#: (module, name) -> (our function, the original)
_wrapped: dict[tuple[Any, str], tuple[Any, Any]] = {}


def begin(shutdown_timeout: float) -> None:
    """Stand before every end of the process."""
    global _shutdown_timeout, _signals_drained
    _shutdown_timeout = shutdown_timeout
    begin_alone()
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


def begin_alone() -> None:
    """Do what logspool's own handlers need without `install()`: forks, and ends that skip the interpreter's own."""
    global _registered
    if not _registered:
        _registered = True
        os.register_at_fork(
            before=_native.before_fork,
            after_in_parent=_native.after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )
        atexit.register(_finish_plans)
        _native.register_exit_drain()
    _wrap(os, "_exit", _drain_before)
    for name in ("execv", "execve"):
        _wrap(os, name, _drain_before_exec)


def _finish_plans() -> None:
    """Stop planning in daemon threads: if CPython ended a thread in the middle of a plan, the process would abort."""
    deadline = time.monotonic() + _PLAN_SECONDS
    while _native.begin_end() and time.monotonic() < deadline:
        time.sleep(0.001)


#: How long threads that make a plan get to finish it. Chosen: a hundred times what that takes on a busy machine.
_PLAN_SECONDS = 0.5


def end() -> None:
    """Restore the originals of functions that are still ours."""
    global _crashes_watched
    if _crashes_watched:
        _crashes_watched = False
        _native.remove_crash_drain()
    for (module, name), (ours, before) in list(_wrapped.items()):
        if getattr(module, name, None) is ours:
            setattr(module, name, before)
        del _wrapped[module, name]


def _after_fork_in_child() -> None:
    for lock in (_adopt.installing, _adopt.lock):
        lock._at_fork_reinit()  # type: ignore[attr-defined]
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
            # The program could not be executed, so this process continues.
            _native.go_on()

    return end_of_process


def _drain_before_exec(before: Any) -> Any:
    drained = _drain_before(before)

    def become_program(*args: Any, **kwargs: Any) -> Any:
        # `os.execvp` tries each folder of the path: where nothing is, the process does not end.
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
            # At its default disposition again: the drain comes before its action again.
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
        # Records logged in the old time zone are formatted with it.
        _native.flush_local(_shutdown_timeout)
        before()
        _native.zone_changed()

    return other_zone
