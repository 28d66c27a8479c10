"""What the parts of the pool's comparison share: the sizes of a round, a contender and how it is timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

WORKERS = 2

#: The row that most others are compared with.
STOCK = "ThreadPoolExecutor.submit"


#: Prefixes of the names of logspool's own rows.
OWN = ("Pool", "Results", "Semaphore", "as_completed, native", "as_completed, stdlib's on Pool")


@dataclass(frozen=True)
class Sizes:
    """How much work each part does in a round."""

    jobs: int = 50_000
    pairs: int = 200_000
    # Chosen: a round of each contender lasts a quarter of a second; in a round of 20 ms all differences are noise.
    compressed: int = 6_000
    single: int = 1_500
    generators: int = 1_000
    cpu_jobs: int = 20_000
    timers: int = 10_000
    # A thread for each timer, or a kilobyte for each job, is shown with fewer.
    few_timers: int = 1_000
    many_timers: int = 1_000_000
    delays: tuple[float, float] = (1.5, 3.5)
    pending: int = 1_000_000
    few_pending: int = 100_000
    guarded: int = 1_000_000
    few_guarded: int = 20_000


QUICK = Sizes(
    jobs=1_000,
    pairs=20_000,
    compressed=100,
    single=50,
    generators=20,
    cpu_jobs=500,
    timers=500,
    few_timers=50,
    many_timers=10_000,
    delays=(0.5, 0.8),
    pending=10_000,
    few_pending=2_000,
    guarded=4_000,
    few_guarded=2_000,
)


@dataclass
class Row:
    """One contender: does `count` jobs and returns the sum of their results."""

    name: str
    run: Callable[[int], int]
    #: Part of the jobs; slow ones do fewer, cheap ones more.
    share: float = 1.0


class WrongCount(Exception):
    """A contender did other work than it was given: its time means nothing."""


def seconds(row: Row, count: int, expected: int) -> float:
    """Have a contender do `count` jobs and return how long it took, its sum checked."""
    # Garbage of the contender before is not this contender's.
    gc.collect()
    began = time.perf_counter()
    total = row.run(count)
    took = time.perf_counter() - began
    same(row.name, total, expected)
    return took


def same(row: str, found: int, expected: int) -> None:
    """Insist on a count or a sum."""
    if found != expected:
        raise WrongCount(f"{row}: {found}, expected {expected}")


def own(row: str) -> bool:
    """Say whether a row is logspool's."""
    return row.startswith(OWN)
