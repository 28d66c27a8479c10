"""The locks under which plans are made and logspool is installed."""

from __future__ import annotations

from logspool.base import _locks

#: Guards planning. The lock is reentrant, because a signal handler may log while a plan is made. A forked child makes a
#: new lock.
lock = _locks.guard()

#: Held while logspool is installed or uninstalled, and taken before `lock`. It is a separate lock, because
#: `uninstall()` waits for the lock of a handler, whose holder may wait for a plan.
installing = _locks.guard()
