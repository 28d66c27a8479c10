"""Handling of forks and of the interpreter's exit for the writers of `ThreadHandler`.

Fork: a writer must not be inside its handler when the process forks. Otherwise the child would inherit a stream with
half a line in its buffer, and a lock that no thread releases. So every writer ends its thread for the fork. A flag
requests this, and the fork waits for it for at most `FORK_PATIENCE` seconds. No lock is taken. A program whose queues
are empty therefore forks with a single thread.

Exit: queues are drained when the main thread has ended (`threading._register_atexit`), before the interpreter destroys
anything. If other threads of the process continue to log, the writers stay until `atexit`.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from logspool import _forks

if TYPE_CHECKING:
    from typing import Protocol

    class _Writer(Protocol):
        """What a fork and the exit call; `_writer.Writer` is one."""

        def leave_for_fork(self, deadline: float) -> None: ...
        def return_from_fork(self) -> None: ...
        def begin_anew(self) -> None: ...
        def begin_finish(self) -> None: ...
        def finish(self) -> None: ...


#: Seconds that a fork waits for writers that are inside their handlers. Chosen: a handler writes about a thousand
#: ordinary records in this time. If a handler is stuck for longer, a child could not use it anyway.
FORK_PATIENCE = 0.25

#: Not empty while a thread of this process forks. It is a deque, because the operations of a deque are atomic.
forking: deque[None] = deque()

#: Every writer that may have records to drain.
writers: set[_Writer] = set()

#: All writers. Closed writers are included, because they handle late records: a forked child resets them, too.
known: weakref.WeakValueDictionary[int, _Writer] = weakref.WeakValueDictionary()

#: When a new thread may be started again, and for how many seconds none is started after the next one that does not
#: come to run: its lock is that of all threads of the process. Chosen: a doubled pause leaves few such threads.
next_start = 0.0
_start_pause = 1.0

_exited = False


def add(writer: _Writer) -> bool:
    """Register a new writer. Returns False after the final drain of the process, when no new queue is opened."""
    known[id(writer)] = writer
    if not _exited:
        writers.add(writer)
    return not _exited


def put_off_starts() -> None:
    """Start no thread for a while, because one did not come to run. Callers empty the queues meanwhile."""
    global next_start, _start_pause
    next_start = monotonic() + _start_pause
    _start_pause *= 2


def _before_fork() -> None:
    forking.append(None)
    deadline = monotonic() + FORK_PATIENCE
    for writer in list(writers):
        writer.leave_for_fork(deadline)


def _after_fork_in_parent() -> None:
    forking.pop()
    for writer in list(writers):
        writer.return_from_fork()


def _after_fork_in_child() -> None:
    global next_start, _start_pause
    forking.clear()
    next_start, _start_pause = 0.0, 1.0  # `threading` makes its locks anew
    for writer in list(known.values()):
        writer.begin_anew()


def _at_main_thread_end() -> None:
    # A child process of multiprocessing ends by os._exit after its main thread, without atexit functions.
    process = sys.modules.get("multiprocessing.process")
    is_child = process is not None and process.parent_process() is not None
    own = (threading.current_thread(), threading.main_thread())
    if is_child or all(thread.daemon or thread in own for thread in threading.enumerate()):
        _at_exit()


def _at_exit() -> None:
    global _exited
    _exited = True
    finishing = list(writers)
    for writer in finishing:
        writer.begin_finish()
    for writer in finishing:
        writer.finish()


_forks.register(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
# Registered after the function of `logging`, so it runs before `logging.shutdown` closes handlers.
atexit.register(_at_exit)
try:
    threading._register_atexit(_at_main_thread_end)  # type: ignore[attr-defined]
except RuntimeError:
    _exited = True  # imported while the interpreter ends, so no drain can run later
