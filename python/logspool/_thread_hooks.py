"""Fork and interpreter exit for the writers of `ThreadHandler`.

Fork: a writer must not be inside its handler when the process is copied, else the child inherits a stream with half a
line in its buffer and a lock that nobody will release. So every writer leaves its thread for the moment of the fork: it
is asked by a flag and awaited for at most `FORK_PATIENCE`; no lock is taken. A program whose queues are empty then
forks single-threaded.

Exit: queues are drained when the main thread is done (`threading._register_atexit`), before anything is torn down. A
process whose other threads go on logging keeps its writers until `atexit`.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._thread_writer import Writer

#: Seconds a fork waits for writers that are inside their handlers. Chosen: a thousand ordinary records; a handler that
#: is stuck for longer has nothing a child could use anyway.
FORK_PATIENCE = 0.25

#: Not empty while a thread of this process forks. A deque, because its operations are atomic.
forking: deque[None] = deque()

#: Every writer that may have something to drain.
writers: set[Writer] = set()

#: Every writer: closed ones handle late records, so a forked child begins them anew as well.
known: weakref.WeakValueDictionary[int, Writer] = weakref.WeakValueDictionary()

_exited = False


def add(writer: Writer) -> bool:
    """Register a new writer. Returns False after the drain at the end of the process: then no queue opens again."""
    known[id(writer)] = writer
    if not _exited:
        writers.add(writer)
    return not _exited


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
    forking.clear()
    for writer in list(known.values()):
        writer.begin_anew()


def _at_main_thread_end() -> None:
    # A child of multiprocessing ends by os._exit after its main thread: no atexit.
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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
# Registered after logging's own, so it runs before `logging.shutdown` closes handlers.
atexit.register(_at_exit)
try:
    threading._register_atexit(_at_main_thread_end)  # type: ignore[attr-defined]
except RuntimeError:
    _exited = True  # imported while the interpreter ends: there is no later moment to drain
