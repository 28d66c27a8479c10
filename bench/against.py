"""Compare the benchmarks of this checkout with the benchmarks of another commit, in turns on one machine.

`python bench/against.py COMMIT` measures the rows of `bench`, `bench-pool` and `bench-service` that run logspool:
one round of the commit, one round of this checkout, and so on, the first one alternating.
A ratio above 1 means that this checkout needs more. The exit code is 1 where a row is above the limit by both
measures: the median of the ratios, and the ratio of the best figures of all turns. On a virtual machine the time of one
program varies by a factor of 1.7 from minute to minute; the best of ten turns varies by some hundredths.
The other commit is checked out and built in `build/bench/before`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from terminal import fail, note, paint, step

ROOT = Path(__file__).resolve().parent.parent

#: The scripts of a turn, by name: the file, the option that chooses rows, and its value.
#: Rows of other products are the same in both checkouts.
SCRIPTS = {
    "bench": ("bench/compare.py", "--cases", None),
    "pool": ("bench/pool.py", "--parts", "jobs,streams,idle,memory,semaphores,timers"),
    "service": ("bench/service.py", "--parts", "native,once,stdlib,pickles,syslog,questions,memory"),
}

#: Figures that are judged: medians of single calls and sums over a run. Maxima differ between runs of one build.
COSTS = ("caller_cpu_ns", "end_to_end_ns", "total_cpu_ns", "total_cpu_net_ns", "p50_ns", "disabled_ns")
COSTS += ("us", "call_p50_us", "start_p50_us", "add_us", "cancel_us", "service_us", "sender_us", "database_us")
COSTS += ("call_ns", "ms", "bytes", "memory_mb", "mb")
RATES = ("rate",)

#: Begin the rows of the same programs in both checkouts. Their ratios show how much the machine itself varies.
REFERENCES = ("fastthreadpool", "ThreadPool", "threading.", "heap and", "for loop", "gather,", "run_in_executor")
REFERENCES += ("as_completed, stdlib |", "no semaphore", "threads over", "CPython,")
REFERENCE_PARTS = (": raw ", "rsyslog |", "nobody", "Python bulk")

#: A row may need this much more: the bound for any change.
LIMIT = 1.05

#: Rows of less memory than this, MB, are decided by which page is touched first.
LEAST_MEMORY = 4.0

Figures = dict[tuple[str, str, str], float]


class Row(NamedTuple):
    """The ratios of one figure, one for each turn, sorted; and the ratio of the best figures of all turns."""

    name: str
    ratios: list[float]
    best: float

    def is_reference(self) -> bool:
        """Say whether both checkouts ran the same program."""
        return self.name.startswith(REFERENCES) or any(part in self.name for part in REFERENCE_PARTS)

    def is_slower(self) -> bool:
        """Say whether this checkout needs more than the limit."""
        return not self.is_reference() and min(self.median(), self.best) > LIMIT

    def median(self) -> float:
        """Return the median of the ratios."""
        return statistics.median(self.ratios)


def check_out(commit: str) -> Path:
    """Return a checkout of the commit, in a folder that is kept between runs."""
    folder = ROOT / "build" / "bench" / "before"
    name = subprocess.run(["git", "rev-parse", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, text=True)
    if name.returncode != 0:
        raise fail(f"{commit} is no commit of this repository", 2)
    sha = name.stdout.strip()
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "fetch", "--quiet", "origin", sha], cwd=folder, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", sha], cwd=folder, check=True)
    return folder


def measure(checkout: Path, script: str, chosen: list[str], out: Path, python: str) -> Figures:
    """Run one round of a script in a checkout and return the median of each figure of each cell."""
    # Without the results of an earlier run, which would be read if this one fails.
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [sys.executable, "bench/prepare.py", "--python", python, "--"]
    command += [script, "--rounds", "1", "--out", str(out), *chosen]
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with (out / "output.txt").open("w") as output:
        # A missed target is no matter here: one round is too few for it.
        subprocess.run(command, cwd=checkout, env=variables, stdout=output, stderr=subprocess.STDOUT, check=False)
    raw = next(out.glob("*.json"), None)
    if raw is None:
        raise fail(f"{script} measured nothing in {checkout}: see {out / 'output.txt'}")
    cells = json.loads(raw.read_text())["cells"]
    return {
        (case, mode, figure): statistics.median(values)
        for case, modes in cells.items()
        for mode, rounds in modes.items()
        for figure in (*COSTS, *RATES)
        if (values := [one[figure] for one in rounds if figure in one])
    }


def ratio(key: tuple[str, str, str], before: float, after: float) -> float | None:
    """Return how much more the second figure costs; None where the figures say nothing."""
    if not before or not after:
        return None
    if key[2] in ("memory_mb", "mb") and before < LEAST_MEMORY:
        return None
    return before / after if key[2] in RATES else after / before


def rows(turns: list[tuple[Figures, Figures]]) -> list[Row]:
    """Return the ratios of all figures that both checkouts have."""
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for before, after in turns:
        for key in before.keys() & after.keys():
            found.setdefault(key, []).append((before[key], after[key]))
    made = []
    for key, pairs in found.items():
        ratios = [one for old, new in pairs if (one := ratio(key, old, new)) is not None]
        better = max if key[2] in RATES else min
        best = ratio(key, *(better(side) for side in zip(*pairs, strict=True)))
        if ratios and best is not None:
            made.append(Row(" | ".join(key), sorted(ratios), best))
    return sorted(made, key=lambda row: -min(row.median(), row.best))


def missing(turns: list[tuple[Figures, Figures]]) -> list[str]:
    """Return the figures that this checkout failed to measure in a turn in which the other one has them."""
    return sorted({" | ".join(key) for before, after in turns for key in before.keys() - after.keys()})


def logspool_cases() -> str:
    """Return the cases of the comparison that run logspool, separated by commas."""
    from cases import CASES

    return ",".join(name for name in CASES if name.startswith("logspool"))


def main() -> None:
    """Measure in turns, print the ratios, keep them, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--scripts", default=",".join(SCRIPTS), help=f"of {', '.join(SCRIPTS)}; default: all")
    parser.add_argument("--turns", type=int, default=5, help="rounds of each checkout; default: 5")
    parser.add_argument("--rows", help="cases or parts of the chosen script, instead of all that run logspool")
    parser.add_argument("--python", default=sys.executable, help="interpreter: path, command or version")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "against", help="folder of the results")
    options = parser.parse_args()
    names = options.scripts.split(",")
    if unknown := [name for name in names if name not in SCRIPTS]:
        raise fail(f"unknown: {', '.join(unknown)} (scripts: {', '.join(SCRIPTS)})", 2)
    if options.turns < 1:
        raise fail("--turns has to be 1 or more", 2)
    before = check_out(options.commit)
    slower: list[Row] = []
    unmeasured: list[str] = []
    options.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        script, option, value = SCRIPTS[name]
        chosen = [option, options.rows or value or logspool_cases()]
        turns = []
        for turn in range(options.turns):
            step(f"{name}: turn {turn + 1} of {options.turns}")
            measured = {}
            for checkout in (before, ROOT) if turn % 2 == 0 else (ROOT, before):
                side = "before" if checkout is before else "after"
                out = options.out / name / f"{turn}-{side}"
                measured[side] = measure(checkout, script, chosen, out.resolve(), options.python)
            turns.append((measured["before"], measured["after"]))
        found = rows(turns)
        (options.out / f"{name}.json").write_text(
            json.dumps({row.name: [*row.ratios, row.best] for row in found}, indent=1)
        )
        slower += [row for row in found if row.is_slower()]
        unmeasured += missing(turns)
        print(f"\n{paint(name, 'bold')}: median, least and most of the ratios, ratio of the best figures")
        for row in found:
            line = f"  {row.median():.3f}  {row.ratios[0]:.3f}  {row.ratios[-1]:.3f}  {row.best:.3f}  {row.name}"
            print(paint(line, "red") if row.is_slower() else paint(line, "dim") if row.is_reference() else line)
        note(f"{len(found)} figures, results: {options.out / name}.json")
    if unmeasured:
        raise fail(f"this checkout has no figure of: {'; '.join(unmeasured)}")
    if slower:
        raise fail(f"{len(slower)} figures are above {LIMIT}: {'; '.join(row.name for row in slower)}")


if __name__ == "__main__":
    main()
