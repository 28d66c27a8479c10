"""Compare logspool with stock logging and other loggers, in one run on one machine.

Every cell (a case in a mode) runs in a process of its own, and the rounds are interleaved: all cells once, then all
again, so that a slow minute of the machine meets everybody.
The exit code is 1 where a target is missed or could not be measured; `--quick` judges nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import machine
import process_costs
import report
import thawed_pipe
from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT, Case
from cases import CASES
from results import Results
from targets import judge
from terminal import fail, paint  # its folder was added by report

HERE = Path(__file__).resolve().parent
MODES = (THROUGHPUT, LATENCY, PACED, THREADS, BURST, DISABLED)

# Chosen: half as many make the spread of the fast rows twice as wide, twice as many double a run of a quarter hour.
RECORDS = {THROUGHPUT: 100_000, LATENCY: 50_000, PACED: 5_000, THREADS: 100_000, BURST: 100_000, DISABLED: 200_000}
SLOW_RECORDS = {**RECORDS, THROUGHPUT: 20_000, LATENCY: 10_000, THREADS: 20_000}
QUICK_RECORDS = {THROUGHPUT: 2_000, LATENCY: 2_000, PACED: 250, THREADS: 2_000, BURST: 5_000, DISABLED: 5_000}

# Compared with each other, and over in 25 to 60 ms each: a round measures these cells REPEATS times, in turns. Chosen:
# with five rounds 25 pairs, whose median moves by some hundredths; five pairs were off by a tenth and more.
REPEATED = {("logspool", THROUGHPUT), ("logspool-json", THROUGHPUT), ("logspool", THREADS)}
REPEATS = 5

# Chosen: ten times the time that the slowest cell needs.
CELL_SECONDS = 60.0


def why_not(case: Case) -> str | None:
    """Return why a case cannot run here, None where it can."""
    reasons = _install_reasons()
    for module in case.needs:
        package = module.split(".")[0]
        try:
            found = find_spec(module) is not None
        except ImportError:
            found = False
        if not found:
            matching = [reason for name, reason in reasons.items() if name.replace("-", "_").startswith(package)]
            return (matching or [f"{package} is not installed"])[0]
    return None


def variables() -> dict[str, str]:
    """Return the environment of a measured process: no settings from outside, except the folder of the files."""
    foreign, kept = ("LOGSPOOL", "OTEL_", "SENTRY_"), "LOGSPOOL_BENCH_DIR"
    return {name: value for name, value in os.environ.items() if name == kept or not name.startswith(foreign)}


def run_cell(case: Case, mode: str, records: int) -> dict[str, object] | str:
    """Measure one cell in a fresh process; return its figures or what went wrong."""
    seconds = dict(case.limits).get(mode, CELL_SECONDS)
    command = [sys.executable, str(HERE / "worker.py"), case.name, mode, str(records)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=variables(), cwd=HERE)
    except subprocess.TimeoutExpired:
        return f"hangs: ended after {seconds:.0f} s"
    if done.returncode != 0 or not done.stdout.strip():
        words = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return f"failed (exit code {done.returncode}): {words[:160]}"
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    if "p50_ns" in result:
        result["p50_net_ns"] = result["p50_ns"] - result["empty_p50_ns"]  # type: ignore[operator]
    return result


def run(cases: Iterable[Case], modes: Iterable[str], rounds: int, quick: bool) -> Results:
    """Run all rounds."""
    results = Results(machine.describe())
    chosen = []
    for case in cases:
        reason = why_not(case)
        if reason:
            results.skipped[case.name] = reason
            print(paint(f"skipped: {case.title.strip('*')}: {reason}", "yellow"), file=sys.stderr)
        else:
            chosen.append(case)
    cells = [(case, mode) for mode in modes for case in chosen if mode in case.modes]
    if not quick:
        cells += (REPEATS - 1) * [(case, mode) for case, mode in cells if (case.name, mode) in REPEATED]
    began, total = time.monotonic(), rounds * len(cells)
    for round_number in range(rounds):
        for cell_number, (case, mode) in enumerate(cells):
            name = f"{case.name} {mode}"
            if name in results.failed:
                continue
            _progress(round_number * len(cells) + cell_number, total, began, f"round {round_number + 1}: {name}")
            records = (QUICK_RECORDS if quick else SLOW_RECORDS if case.slow else RECORDS)[mode]
            result = run_cell(case, mode, records)
            if isinstance(result, str):
                results.failed[name] = result
                _progress_end(paint(f"{name}: {result}", "yellow"))
            else:
                results.add(case.name, mode, round_number, result)
    if find_spec("logspool") and not {"logspool"}.isdisjoint(case.name for case in chosen):
        _progress(total, total, began, "idle and import")
        try:
            results.process = {**process_costs.measure(quick), **thawed_pipe.measure(quick)}
        except subprocess.CalledProcessError as error:
            _progress_end(paint(f"idle and import: {error.stderr.strip().splitlines()[-1:]}", "yellow"))
    _progress_end(f"{total} measurements in {time.monotonic() - began:.0f} s")
    return results


def _install_reasons() -> dict[str, str]:
    path = os.environ.get("LOGSPOOL_BENCH_REASONS")
    if not path or not Path(path).exists():
        return {}
    return dict(json.loads(Path(path).read_text()))


def _progress(done: int, total: int, began: float, words: str) -> None:
    if sys.stderr.isatty():
        left = (time.monotonic() - began) / done * (total - done) if done else 0
        line = f"{done * 100 // total:3d} %  {left / 60:4.1f} min left  {words}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _progress_end(words: str) -> None:
    print(f"{chr(13) + chr(27) + '[K' if sys.stderr.isatty() else ''}{words}", file=sys.stderr, flush=True)


def main() -> None:
    """Run, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of few records, kept in build/bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", help="names separated by commas; default: all")
    parser.add_argument("--modes", help=f"of {', '.join(MODES)}; default: all")
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE")
    options = parser.parse_args()
    names = options.cases.split(",") if options.cases else list(CASES)
    modes = options.modes.split(",") if options.modes else list(MODES)
    unknown = [name for name in names if name not in CASES] + [mode for mode in modes if mode not in MODES]
    if unknown:
        raise fail(f"unknown: {', '.join(unknown)} (cases: {', '.join(CASES)}; modes: {', '.join(MODES)})", 2)
    if options.rounds < 1:
        raise fail("--rounds has to be 1 or more", 2)
    results = run([CASES[name] for name in names], modes, 1 if options.quick else options.rounds, options.quick)
    whole = not (options.quick or options.cases or options.modes)
    default = HERE / "runs" if whole else HERE.parent / "build" / "bench"
    folder = (options.out or default / machine.folder_name(results.facts)).resolve()
    report.write(folder, results)
    report.print_tables(results)
    verdicts = judge(results)
    if options.quick:
        print("\na quick run shows that everything works; it judges nothing")
    else:
        report.print_verdicts(verdicts)
    print(f"\nresults: {folder}/summary.md, raw.json, plot.svg")
    if whole and options.out is None:
        report.update_readme(folder, results)
    missed = [verdict for verdict in verdicts if not verdict.met]
    if missed and not options.quick and not options.cases and not options.modes:
        raise fail(f"{len(missed)} targets missed or not measured: {'; '.join(verdict.what for verdict in missed)}")


if __name__ == "__main__":
    main()
