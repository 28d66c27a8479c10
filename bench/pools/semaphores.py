"""The cost of a pair of acquire and release with a permit free."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from logspool import pool as native
from parts import Column, Part, Round
from pools.part import Sizes
from pools.peer import fastthreadpool


def _microseconds(semaphore: Any, pairs: int) -> float:
    acquire, release = semaphore.acquire, semaphore.release
    began = time.perf_counter()
    for _ in range(pairs):
        pass
    empty = time.perf_counter()
    for _ in range(pairs):
        acquire()
        release()
    return (time.perf_counter() - empty - (empty - began)) / pairs * 1e6


def _rounds(sizes: Sizes) -> Iterator[Round]:
    kinds = {"Semaphore": native.Semaphore(1), "threading.Semaphore": threading.Semaphore(1)}
    if fastthreadpool is not None:
        kinds["fastthreadpool.Semaphore"] = fastthreadpool.Semaphore(1)
    while True:
        yield {name: {"us": _microseconds(semaphore, sizes.pairs)} for name, semaphore in kinds.items()}


PART = Part(
    "semaphores",
    "A semaphore: a pair of acquire and release, the loop subtracted (us)",
    (Column("us", "us per pair", 4),),
    reference="threading.Semaphore",
    measure=_rounds,
)
