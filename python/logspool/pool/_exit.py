"""The order in which executors end with the interpreter.

`concurrent.futures.thread` ends its executors with the interpreter, too. The functions of `threading._register_atexit`
run in reverse order. So this module registers the end of the pools before it imports that module: jobs of an executor
may still use a pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: The function that ends all pools.
end_all: list[Callable[[], None]] = []


def _end() -> None:
    for function in end_all:
        function()


# The function runs before the interpreter waits for threads. `atexit` functions would run after that wait.
threading._register_atexit(_end)  # type: ignore[attr-defined]

from concurrent.futures.thread import ThreadPoolExecutor  # noqa: E402

__all__ = ["ThreadPoolExecutor", "end_all"]
