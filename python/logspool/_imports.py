"""Imports of parts of the package while a program runs, which a fork waits for.

An import holds a lock of its module. If another thread forks in the middle, nobody releases that lock in the child, and
the child waits forever when it imports the module. So a fork waits for the imports that are made by `part`.
"""

from __future__ import annotations

import sys
from _thread import RLock

from logspool import _forks

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import ModuleType

#: Held during an import. It is no `_locks.guard()`, because `_locks` is itself a part that is imported.
_lock = RLock()

#: Whether the thread that forks has the lock.
_held = False

#: Seconds for which a fork waits. Chosen: a hundred times what an import takes on a busy machine.
_PATIENCE = 5.0

#: Only such builds have `sys.getobjects`. From 3.13 on their objects have the layout of other builds.
_TRACE_REFS = (
    "logspool does not run on a CPython before 3.13 that was built with --with-trace-refs, "
    "because its objects have another layout: use another build, or 3.13 or later"
)


def part(name: str) -> ModuleType:
    """Return the module `logspool.name`, imported if it was not."""
    full_name = f"logspool.{name}"
    with _lock:
        # The interpreter loads a native module of the release build. It would read objects at the wrong offsets.
        if name == "_native" and hasattr(sys, "getobjects") and sys.version_info < (3, 13):
            raise ImportError(_TRACE_REFS, name=full_name)
        __import__(full_name)
    return sys.modules[full_name]


#: What later calls of the package import. The package sets it, because it knows the places of its parts.
later_parts: tuple[str, ...] = ()


def all_later_parts() -> None:
    """Import what later calls of the package import, because the program is about to lose sight of its files."""
    for name in later_parts:
        part(name)


def _before_fork() -> None:
    global _held
    _held = _lock.acquire(timeout=_PATIENCE)


def _after_in_parent() -> None:
    if _held:
        _lock.release()


_forks.register(
    before=_before_fork,
    after_in_parent=_after_in_parent,
    after_in_child=lambda: _lock._at_fork_reinit(),  # type: ignore[attr-defined]
)
