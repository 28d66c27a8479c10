"""The thread that waits for the delayed jobs of all pools."""

import threading

from logspool._native import run_timers
from logspool.pool._pool import start_worker


def start() -> None:
    """Start the thread. Native code calls this for the first delayed job; the thread ends when no job waits."""
    threading.Thread(target=run_timers, args=(start_worker,), name="logspool-timers", daemon=True).start()
