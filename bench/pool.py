"""Compare the thread pool with the standard library's and fastthreadpool, in one run on one machine.

The contenders of a part run in one process, in turns, each round in another order; a ratio is taken inside a round,
and the median over the rounds counts. Parts that need a process of their own (memory, timers) have one for each
contender. Every sum and every count is checked.

    python bench/pool.py [--quick] [--rounds N] [--jobs N] [--parts NAME,NAME] [--out FOLDER] [--json FILE]
    python bench/pool.py --again FOLDER

The exit code is 1 where a target is missed or a count is wrong; `--quick` judges nothing but the counts.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import sys
import time
from pathlib import Path

import machine
import report
from pools import PARTS, show
from pools.part import QUICK, Part, Sizes, WrongCount
from pools.peer import FREE_THREADED, MISSING
from pools.targets import judge, judge_counts
from results import Results
from tables import NOT_CHOSEN
from terminal import fail  # its folder was added by report

HERE = Path(__file__).resolve().parent


def measure(part: Part, sizes: Sizes, rounds: int, results: Results) -> None:
    """Run the rounds of one part; the first starts threads and is not counted, except where each has its process."""
    wanted = min(rounds, part.most_rounds or rounds)
    first = 1 if part.most_rounds is None else 0
    with contextlib.closing(part.rounds(sizes)) as found:  # type: ignore[type-var]
        for number, each in enumerate(itertools.islice(found, wanted + first)):
            for row, figures in each.items():
                if isinstance(figures, str):
                    results.failed[f"{row} {part.name}"] = figures
                elif number >= first:
                    results.add(row, part.name, number, figures)
            _progress(f"{part.name}: round {max(1, number + 1 - first)} of {wanted}")


def run(parts: list[Part], sizes: Sizes, rounds: int) -> Results:
    """Run all parts, one after the other."""
    results = Results({})
    if MISSING:
        results.skipped["fastthreadpool"] = MISSING
    began = time.monotonic()
    for part in parts:
        reason = part.missing()
        if reason:
            results.skipped[part.name] = reason
            continue
        measure(part, sizes, rounds, results)
    _progress(f"{len(parts)} parts in {time.monotonic() - began:.0f} s\n")
    # Read at the end: whatever switched the GIL on in between shows.
    results.facts = {**machine.describe(), "sizes": dataclasses.asdict(sizes)}
    return results


def _progress(words: str) -> None:
    if sys.stderr.isatty() or words.endswith("\n"):
        print(f"{chr(13) + chr(27) + '[K' if sys.stderr.isatty() else ''}{words}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few jobs, one round, kept in build/bench")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--jobs", type=int, help=f"small jobs in a round; default: {Sizes.jobs}")
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/pool")
    parser.add_argument("--json", type=Path, help="keep the figures of all rounds in this file as well")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="make charts and summary from its raw results")
    options = parser.parse_args()
    if options.again:
        show.again(options.again.resolve())
        return
    names = options.parts.split(",") if options.parts else list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise fail(f"unknown: {', '.join(unknown)} (parts: {', '.join(PARTS)})", 2)
    if options.rounds < 1:
        raise fail("--rounds has to be 1 or more", 2)
    sizes = QUICK if options.quick else Sizes()
    if options.jobs:
        sizes = dataclasses.replace(sizes, jobs=options.jobs)
    try:
        results = run([PARTS[name] for name in names], sizes, 1 if options.quick else options.rounds)
    except WrongCount as error:
        raise fail(str(error)) from None
    whole = not (options.quick or options.parts or options.jobs)
    default = HERE / "runs" if whole else HERE.parent / "build" / "bench"
    folder = (options.out or default / machine.folder_name(results.facts) / "pool").resolve()
    tag = f"{sys.version_info[0]}.{sys.version_info[1]}{'t' if FREE_THREADED else ''}"
    show.keep(folder, tag, results)
    if options.json:
        options.json.write_text(json.dumps(results.to_json(), indent=1))
    show.print_all(results)
    verdicts = judge_counts(results) if options.quick else judge(results)
    if options.quick:
        print("\na quick run shows that everything works; it judges the counts alone")
    report.print_verdicts([verdict for verdict in verdicts if verdict.value != NOT_CHOSEN])
    print(f"\nresults: {folder}/summary.md, {tag}.json, {tag}.svg")
    if whole and options.out is None:
        show.update_readme(folder)
    missed = [verdict for verdict in verdicts if verdict.met is False]
    if missed:
        raise fail(f"{len(missed)} targets missed: {'; '.join(verdict.what for verdict in missed)}")


if __name__ == "__main__":
    main()
