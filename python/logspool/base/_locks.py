"""Locks of the package, and the locks of `logging` at the end of the interpreter.

Every lock of the package comes from this module, and `scripts/check_locks.py` refuses others. A plain lock has three
faults. A forked child waits for a thread of its parent that had the lock. A signal handler waits for the code that it
interrupted. The end of the interpreter waits for a daemon thread that it has stopped.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from _thread import LockType, allocate_lock

from logspool import _forks, _native

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The class of the locks that `logging` makes.
RLOCK = type(threading.RLock())

_PY_RLOCK: type = threading._PyRLock  # type: ignore[attr-defined]


def is_usual(lock: object) -> bool:
    """Return whether `logging` makes locks of this class now, or did so before a library such as gevent patched it."""
    return type(lock) in (RLOCK, _PY_RLOCK) or type(lock) is type(threading.RLock())


#: All locks that `guard` has made.
_made: weakref.WeakSet[Any] = weakref.WeakSet()


def guard() -> _native.Guard:
    """Make a lock for data.

    A forked child finds the lock free. A signal handler may take it while the interrupted code has it, so the data must
    be usable between any two steps of that code.
    """
    made = _native.Guard(threading.RLock())
    _made.add(made)
    return made


def flag() -> LockType:
    """Make a lock that is no guard: threads take it to tell or learn something, and run no code while they have it."""
    return allocate_lock()


def _free_in_child() -> None:
    for lock in _made:
        lock._at_fork_reinit()


# Registered before all other functions of the package, so that they find the locks free.
_forks.register(after_in_child=_free_in_child)


class AfterLastExitFunction:
    """Call a function after the last function of `atexit` has returned, before the interpreter stops daemon threads.

    `atexit` has no such place. But it frees the arguments of its functions at that moment, all together. An object of
    this class is such an argument.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __del__(self) -> None:
        # `atexit` also frees its arguments when a program empties its list. Then the main thread is still alive.
        if not threading.main_thread().is_alive():
            self._function()


def hold_for_the_end(seconds: float) -> None:
    """Take the locks of `logging`, of its handlers and of this package, and keep them until the process ends.

    The interpreter stops daemon threads wherever they are. A stopped thread keeps its locks, and a finalizer that logs
    would wait for them forever. The calling thread runs the finalizers, and the locks are reentrant.

    While this function waits for one lock, it has no other one: their holders may wait for each other. After `seconds`
    it keeps the locks that are free.
    """
    deadline = time.monotonic() + seconds
    awaited = None
    while True:
        held: list[Any] = [] if awaited is None else [awaited]
        busy = _take_free(held)
        if busy is None:
            return
        left = deadline - time.monotonic()
        if left <= 0:
            return
        for lock in held:
            lock.release()
        awaited = busy if busy.acquire(timeout=left) else None


def _take_free(held: list[Any]) -> Any:
    """Take all locks that are free, and add them to `held`. Return one that is not, or None."""
    busy = None
    # Nobody makes a handler while this thread has the lock of the module, which is the first one.
    for lock in _all_locks():
        if lock.acquire(blocking=False):
            held.append(lock)
        elif busy is None:
            busy = lock
    return busy


def _all_locks() -> list[Any]:
    locks = [logging._lock, *_made]  # type: ignore[attr-defined]
    for _ in range(_TRIES):
        try:
            handlers = list(logging._at_fork_reinit_lock_weakset)  # type: ignore[attr-defined]
            break
        except RuntimeError:  # another thread has just made a handler
            handlers = []
    locks += [getattr(handler, "lock", None) for handler in handlers]
    return [lock for lock in locks if type(lock) in (RLOCK, _native.Guard)]


#: Chosen: a thread that makes handlers in a loop needs a few microseconds for each, and a try takes less.
_TRIES = 100
