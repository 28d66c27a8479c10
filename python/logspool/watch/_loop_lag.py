"""How late an event loop runs its timers: the time that code without `await` takes from all requests."""

from __future__ import annotations

import asyncio
import threading
import weakref

from logspool import _forks

#: Upper bounds of the histogram in seconds. The lowest is above what a loop's own clock rounds a timer up by.
BOUNDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

# Chosen: a stall of that length is seen with certainty, and the timers take less than 0.1 % of a processor.
_INTERVAL_SECONDS = 0.05

_METRIC = "logspool_loop_lag_seconds"


class _Watch:
    """The lags of the loops that one thread has run. Only this thread changes it.

    Attributes:
        counts: timers by bucket; the last is for those above all bounds.
        total: sum of the lags in seconds.
        loop: the loop that is watched now.
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0
        self.loop: weakref.ref[asyncio.AbstractEventLoop] | None = None

    def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the next timer."""
        due = loop.time() + _INTERVAL_SECONDS
        loop.call_at(due, self._note, loop, due)

    def _note(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        lag = max(loop.time() - due, 0.0)
        self.counts[sum(lag > bound for bound in BOUNDS)] += 1
        self.total += lag
        self.wait(loop)


#: By the identifier of the thread.
_watches: dict[int, _Watch] = {}

_forks.register(after_in_child=_watches.clear)


def watch() -> None:
    """Watch the running event loop. See `logspool.asgi.watch_loop`."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "watch_loop() is called where no event loop of asyncio runs (fix: call it in a coroutine, such as the "
            "lifespan of the application)"
        ) from None
    own = _watches.setdefault(threading.get_ident(), _Watch())
    if own.loop is None or own.loop() is not loop:
        own.loop = weakref.ref(loop)
        own.wait(loop)


def metrics() -> str:
    """Return the histogram of all loops as lines of OpenMetrics; empty if no loop is watched."""
    watches = list(_watches.values())
    if not watches:
        return ""
    lines = [f"# TYPE {_METRIC} histogram", f"# HELP {_METRIC} How late the event loop ran a timer."]
    count = 0
    for bound, counts in zip([*map(str, BOUNDS), "+Inf"], zip(*[watch.counts for watch in watches]), strict=True):
        count += sum(counts)
        lines.append(f'{_METRIC}_bucket{{le="{bound}"}} {count}')
    lines += [f"{_METRIC}_count {count}", f"{_METRIC}_sum {sum(watch.total for watch in watches):.9f}"]
    return "".join(f"{line}\n" for line in lines)
