"""Compare the thread pool with the standard library's and fastthreadpool, in one run on one machine.

The contenders of a part run in one process, in turns, each round in another order; a ratio is taken inside a round,
and the median over the rounds counts. Parts that need a process of their own (memory, timers) have one for each
contender. Every sum and every count is checked.

    python bench/pool.py [--quick] [--rounds N] [--jobs N] [--parts NAME,NAME] [--out FOLDER]
    python bench/pool.py --again FOLDER

The exit code is 1 where a target is missed or a count is wrong; `--quick` judges nothing but the counts.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import sys

import chart
from parts import Part
from pools import PARTS
from pools.part import QUICK, STOCK, WORKERS, Sizes, WrongCount, own
from pools.peer import FREE_THREADED, MISSING
from pools.targets import COUNTS, TARGETS
from results import Results
from runner import Bench, say
from terminal import fail  # its folder was added by report

#: The rows of the chart: jobs, queued or with their result taken.
CHART = (
    *("Pool.push", "Pool.submit", "as_completed, native", "Pool.run, gather"),
    *("fastthreadpool.submit", STOCK, "as_completed, stdlib", "run_in_executor, gather"),
)


def measure(part: Part, sizes: Sizes, rounds: int, results: Results) -> None:
    """Run the rounds of one part; the first starts threads and is not counted, except where each has its process."""
    wanted = min(rounds, part.most_rounds or rounds)
    first = 1 if part.most_rounds is None else 0
    with contextlib.closing(part.measure(sizes)) as found:  # type: ignore[type-var]
        for number, each in enumerate(itertools.islice(found, wanted + first)):
            say(f"{part.name}: round {max(1, number + 1 - first)} of {wanted}")
            if number >= first:
                results.add_round(part.name, number, each)


class PoolBench(Bench):
    """The comparison of thread pools."""

    title = "Comparison of thread pools"
    picture = "What a thread pool costs"
    folder = "pool"
    readme = "bench-pool"
    notes = ("Medians over the rounds; a quotient is taken inside each round, then its median.",)
    choices = (("parts", PARTS),)
    sizes = (("jobs", Sizes.jobs, "small jobs in a round"),)
    parts = tuple(PARTS.values())
    targets, counts = TARGETS, COUNTS
    rounds = 11
    quick = True
    tag = f"{sys.version_info[0]}.{sys.version_info[1]}{'t' if FREE_THREADED else ''}"

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Run all parts, one after the other."""
        sizes = QUICK if options.quick else Sizes()
        if options.jobs != Sizes.jobs:
            sizes = dataclasses.replace(sizes, jobs=options.jobs)
        if MISSING:
            results.skipped["fastthreadpool"] = MISSING
        results.facts["sizes"] = dataclasses.asdict(sizes)
        for part in (PARTS[name] for name in options.parts):
            if reason := part.missing():
                results.skipped[part.name] = reason
                continue
            try:
                measure(part, sizes, options.rounds, results)
            except WrongCount as error:
                raise fail(str(error)) from None

    def own(self, row: str) -> bool:
        """Say whether a row is logspool's."""
        return own(row)

    def panels(self, results: Results) -> list[chart.Panel]:
        """Show the cost of a job in eight rows; the summary has the other figures."""
        bars = [self.bar(results, row, row, "jobs", "us") for row in CHART]
        bars.sort(key=lambda bar: (bar.value is None, bar.value or 0))
        return [chart.Panel("A job, queued or with its result taken (us, logarithmic)", bars, logarithmic=True)]

    def facts_in_words(self, results: Results) -> str:
        """Return the number of workers too."""
        return f"{WORKERS} workers, {super().facts_in_words(results)}"


if __name__ == "__main__":
    PoolBench().main()
