"""fastthreadpool, where it can be measured: its results come in a list, its `submit` returns nothing."""

from __future__ import annotations

import json
import os
import sysconfig
import time
from pathlib import Path
from typing import Any

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _load() -> tuple[Any, str]:
    if FREE_THREADED:
        return None, "left out: its import switches the GIL back on, for everybody"
    try:
        import fastthreadpool
    except ImportError as error:
        reasons = os.environ.get("LOGSPOOL_BENCH_REASONS", "")
        known = json.loads(Path(reasons).read_text()) if reasons and Path(reasons).exists() else {}
        return None, known.get("fastthreadpool", f"not installed: {error}")
    return fastthreadpool, ""


#: The module, or None and why.
fastthreadpool, MISSING = _load()


def taken(peer: Any, count: int) -> int:
    """Wait for `count` results and return their sum."""
    # Its own `wait_idle` returns before all results are there.
    while len(peer.done) < count:
        time.sleep(0)
    total = sum(peer.done)
    peer.done.clear()
    return total
