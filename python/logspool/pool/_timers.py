"""The one thread that waits for all that pools do later."""

import threading

from logspool._native import run_timers
from logspool.pool._pool import start_worker


def start() -> None:
    """Start it. Called by native code when there is something to wait for; it ends when there is nothing."""
    threading.Thread(target=run_timers, args=(start_worker,), name="logspool-timers", daemon=True).start()
