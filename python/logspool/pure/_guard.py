"""The lock of `base/_locks.py` without native code."""

from __future__ import annotations

from typing import Any


class Guard:
    """A reentrant lock: `with` takes it. `_locks.guard()` makes it, and gives it the lock."""

    __slots__ = ("__weakref__", "_lock", "acquire", "release")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.acquire = lock.acquire
        self.release = lock.release

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def is_held(self) -> bool:
        """Return whether the calling thread has the lock, so that it interrupts itself."""
        return bool(self._lock._is_owned())

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
