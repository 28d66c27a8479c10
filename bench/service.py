"""Compare the service with the plainest things that do the same work, in one run on one machine.

Each round runs all contenders of a part one after the other, in another order each time; a ratio is taken inside a
round, and the median over the rounds counts. Records are counted at their destination: rows by SQL, lines in files.
PostgreSQL is a throwaway server that all contenders share, each with an empty database; rsyslog is a process of its own
on loopback, and left out where it is not there and cannot be installed.

    python bench/service.py [--quick] [--rounds N] [--parts NAME,NAME] [--out FOLDER]
    python bench/service.py --again FOLDER

The exit code is 1 where a target is missed or a record is lost; `--quick` judges nothing but the counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path

import machine
import report
from results import Results
from services import PARTS, rsyslog, show
from services.ground import Ground, build
from services.part import QUICK, Part, Sizes, Wrong
from services.targets import judge, judge_counts
from tables import NOT_CHOSEN
from terminal import fail, step  # its folder was added by report

HERE = Path(__file__).resolve().parent
ROUNDS = 5


def measure(part: Part, ground: Ground, rounds: int, results: Results) -> None:
    """Run the rounds of one part; a round that fails ends the part, and the others continue."""
    wanted = min(rounds, part.most_rounds or rounds)
    for number in range(wanted):
        ground.place = f"{part.name}, round {number + 1} of {wanted}"
        try:
            found = part.measure(ground)
        except (Wrong, RuntimeError, OSError, subprocess.SubprocessError) as error:
            results.failed[part.name] = f"{type(error).__name__}: {error}"[:300]
            ground.say(results.failed[part.name] + "\n")
            return
        for row, figures in found.items():
            if isinstance(figures, str):
                results.failed[f"{row} {part.name}"] = figures
            else:
                results.add(row, part.name, number, figures)


def run(parts: list[Part], ground: Ground, rounds: int) -> Results:
    """Run all parts, one after the other."""
    results = Results({})
    began = time.monotonic()
    for part in parts:
        reason = part.missing()
        if reason:
            results.skipped[part.name] = reason
            print(f"    skipped: {part.name}: {reason}", file=sys.stderr, flush=True)
            continue
        step(f"{part.name}: {part.title}")
        part_began = time.monotonic()
        measure(part, ground, rounds, results)
        results.process[f"seconds of {part.name}"] = time.monotonic() - part_began
    ground.place = ""
    ground.say(f"{len(parts)} parts in {time.monotonic() - began:.0f} s\n")
    facts = {"postgres": ground.server_version(), "rsyslog": rsyslog.version()}
    results.facts = {**machine.describe(), **facts, "sizes": dataclasses.asdict(ground.sizes)}
    return results


def main() -> None:
    """Measure, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few records, one round, kept in build/bench")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at most; parts that take long have fewer")
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/service")
    parser.add_argument("--again", type=Path, metavar="FOLDER", help="make chart and summary from its raw results")
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
    # A stopped run leaves no server, load or store.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    step("building the service, senders and calibrators for release")
    ground = Ground(build(), QUICK if options.quick else Sizes())
    try:
        results = run([PARTS[name] for name in names], ground, 1 if options.quick else options.rounds)
    finally:
        ground.close()
    whole = not (options.quick or options.parts)
    default = HERE / "runs" if whole else HERE.parent / "build" / "bench"
    folder = (options.out or default / machine.folder_name(results.facts) / "service").resolve()
    show.keep(folder, results)
    show.print_all(results)
    verdicts = judge_counts(results) if options.quick else judge(results)
    if options.quick:
        print("\na quick run shows that everything works; it judges the counts alone")
    report.print_verdicts([verdict for verdict in verdicts if verdict.value != NOT_CHOSEN])
    print(f"\nresults: {folder}/summary.md, raw.json, plot.svg")
    if whole and options.out is None:
        show.update_readme(folder, results)
    missed = [verdict for verdict in verdicts if verdict.met is False]
    if missed:
        raise fail(f"{len(missed)} targets missed: {'; '.join(verdict.what for verdict in missed)}")


if __name__ == "__main__":
    main()
