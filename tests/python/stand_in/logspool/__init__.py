"""Stand-in for logspool while the suite checks itself: `install()` does nothing, or plants one difference."""

import os
from typing import ClassVar

_PLANT = os.environ.get("SUITE_PLANT")


class _Stats:
    paths = None
    levels: ClassVar[dict] = {}
    sinks: ClassVar[dict] = {}


def install(**options):
    """Do nothing, or plant the difference that `SUITE_PLANT` names."""
    if _PLANT == "threaded":
        from logspool import threaded

        threaded.install()
    elif _PLANT:
        from logspool import plants

        plants.PLANTS[_PLANT]()


def uninstall():
    """Remove the planted difference."""
    if _PLANT:
        from logspool import plants

        plants.remove()


def flush(timeout=None):
    """Wait for the queue, if there is one."""
    if _PLANT == "threaded":
        from logspool import threaded

        return threaded.flush(timeout)
    return True


def stats():
    """Return counters if there is a queue, and never paths."""
    if _PLANT == "threaded":
        from logspool import threaded

        return threaded.stats()
    return _Stats
