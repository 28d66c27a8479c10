"""Stand-in for logspool while the suite checks itself: `install()` does nothing, or plants one difference."""

import os
from typing import ClassVar

_PLANT = os.environ.get("SUITE_PLANT")


class _Stats:
    paths = None
    levels: ClassVar[dict] = {}
    sinks: ClassVar[dict] = {}


def install(**options):
    """Do nothing, or what `SUITE_PLANT` says."""
    if _PLANT == "threaded":
        from logspool import threaded

        threaded.install()
    elif _PLANT:
        from logspool import plants

        plants.PLANTS[_PLANT]()


def uninstall():
    """Take the planted difference out again."""
    if _PLANT:
        from logspool import plants

        plants.remove()


def flush(timeout=None):
    """Wait where there is something to wait for."""
    if _PLANT == "threaded":
        from logspool import threaded

        return threaded.flush(timeout)
    return True


def stats():
    """Give no paths, and counters only where there is a queue."""
    if _PLANT == "threaded":
        from logspool import threaded

        return threaded.stats()
    return _Stats
