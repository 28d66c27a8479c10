"""Fork and interpreter exit for the writers of `ThreadHandler`.

Fork: a writer must not be inside its handler when the process is copied, else the child inherits a
stream with half a line in its buffer and a lock that nobody will release. So every writer leaves
its thread for the moment of the fork: it is asked by a flag and awaited for at most
`FORK_PATIENCE`; no lock is taken. A program whose queues are empty then forks single-threaded.

Exit: queues are drained when the main thread is done (`threading._register_atexit`), before
anything is torn down. A process whose other threads go on logging keeps its writers until `atexit`.
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

#: Seconds a fork waits for writers that are inside their handlers. Chosen: a thousand ordinary
#: records; a handler that is stuck for longer has nothing a child could use anyway.
FORK_PATIENCE = 0.25

#: Not empty while a thread of this process forks. A deque, because its operations are atomic.
forking: deque[None] = deque()

#: Every writer that is not closed.
writers: set[Writer] = set()

#: The closed ones that still exist, by identity: they handle late records, so a forked child has to
#: make their locks anew as well.
retired: dict[int, weakref.ref[Writer]] = {}

_exited = False


def retire(writer: Writer) -> None:
    """Forget a writer that has nothing left to drain."""
    key = id(writer)
    retired[key] = weakref.ref(writer, lambda _: retired.pop(key, None))
    writers.discard(writer)


def has_exited() -> bool:
    """Tell whether the queues were drained for the end of the process; then none opens again."""
    return _exited


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
    for writer in list(writers):
        writer.forget_parent()
    for reference in list(retired.values()):
        closed = reference()
        if closed is not None:
            closed.forget_parent()


def _finish_all() -> None:
    finishing = list(writers)
    for writer in finishing:
        writer.begin_finish()
    for writer in finishing:
        writer.finish()


def _at_main_thread_end() -> None:
    if _is_multiprocessing_child() or not _other_threads_live():
        _at_exit()


def _at_exit() -> None:
    global _exited
    _exited = True
    _finish_all()


def _is_multiprocessing_child() -> bool:
    # Such a process ends by os._exit after the main thread's end: no atexit.
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _other_threads_live() -> bool:
    me = threading.current_thread()
    return any(
        thread is not me and thread is not threading.main_thread() and not thread.daemon
        for thread in threading.enumerate()
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
# Registered after logging's own, so it runs before `logging.shutdown` closes handlers.
atexit.register(_at_exit)
if hasattr(threading, "_register_atexit"):
    try:
        threading._register_atexit(_at_main_thread_end)
    except RuntimeError:
        _exited = True  # imported while the interpreter ends: there is no later moment to drain
