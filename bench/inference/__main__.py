"""The cost of logging for an inference server: FastAPI and uvicorn with two small models on the CPU.

Each logger is measured in a server of its own, between slices without logging, in a closed and in an open loop; see
docs/explain/inference-benchmark.md.

    python bench/inference [--quick] [--modes NAME,NAME] [--workloads NAME,NAME] [--sinks NAME,NAME] [--out FOLDER]
    python bench/inference --gpu [--tiny]

Exit code 1 where a target is missed or an account is not exact; `--quick` and a choice judge the accounts alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import statistics
import sys
import time
from functools import partial
from pathlib import Path

# Started as a folder, Python searches only this folder. The other modules and the package itself are in those above.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import apart
import chart
from inference import cell, gpu, plan, sinks
from inference.modes import MODES
from report import Table
from results import Results
from runner import Bench, say
from targets import Verdict
from terminal import fail, step

NEEDED = ("fastapi", "uvicorn", "onnxruntime", "onnx", "numpy")
HEAD = ["logger", "req/s, of none", "lowest to highest", "CPU added, us", "p99 ms", "p99, of none"]
HEAD += ["loop lag p99 ms", "max ms", "kept", "exact", "grown MB"]
#: Difference between slices without logging above which targets of a few per cent mean nothing.
TOO_NOISY = 0.2
NOTES = (
    "The first column is the closed loop: requests a second with the logger, divided by the mean of the slices before"
    " and after, without logging, in the same server process.",
    "CPU is that of the server process for a request, all threads together.",
    "p99 is the open loop: a fixed rate, and latency counts from the time at which a request was due.",
    "Kept: numbered records that arrived, of those logged. Exact: the logger's own counts agree with what arrived.",
    "The row `none` compares no logging with no logging: what it differs from 1 is noise.",
)


class Inference(Bench):
    """The comparison of loggers in a server."""

    title = "Logging in an inference server"
    picture = "What logging leaves of an inference server"
    folder = "inference"
    notes = NOTES
    choices = (("modes", MODES), ("workloads", plan.WORKLOADS), ("sinks", sinks.KINDS))
    targets = plan.targets()
    quick = strict = True
    rounds = 3

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--gpu", action="store_true", help="measure a decode loop in torch instead of the server")
        parser.add_argument(
            "--tiny", action="store_true", help="with --gpu: a small model, on the CPU where there is no GPU"
        )

    def instead(self, options: argparse.Namespace) -> bool:
        """Measure on a GPU where that is asked for."""
        if options.gpu:
            gpu.main(tiny=options.tiny, out=options.out)
        return bool(options.gpu)

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure all chosen cells. A cell that fails is noted, and the run continues."""
        chosen = plan.narrowed(plan.quick() if options.quick else plan.full(options.rounds), options)
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise fail(f"missing: {', '.join(missing)}. `make bench-inference` installs what is needed")
        reasons = apart.install_reasons()
        for mode in dict.fromkeys(mode for mode, _, _ in chosen.cells):
            if reason := MODES[mode].missing():
                results.skipped[mode] = reasons.get(MODES[mode].needs, reason)
        results.facts["sizes"] = dataclasses.asdict(chosen.sizes)
        cells = list(chosen.all())
        step(f"{len(cells)} servers, each with {2 * (2 * chosen.sizes.repeats + 1)} slices")
        began = time.monotonic()
        for position, (number, mode, workload, kind) in enumerate(cells, 1):
            if mode in results.skipped:
                continue
            case = plan.case(workload, kind)
            say(f"{position}/{len(cells)} {time.monotonic() - began:4.0f} s: {MODES[mode].title}, {case}")
            results.take(mode, case, number, partial(cell.measure, mode, workload, kind, chosen.sizes))

    def judge_counts(self, results: Results) -> list[Verdict]:
        """Judge the accounts too."""
        return [*plan.judge_accounts(results), *super().judge_counts(results)]

    def tables(self, results: Results) -> list[tuple[Table, list[str]]]:
        """Return a table for each workload and sink."""
        return [(table, []) for table in tables(results)]

    def panels(self, results: Results) -> list[chart.Panel]:
        """Show the share of requests that each logger leaves, with a good file and with the worst sink."""
        panels = []
        for workload, kind in (("classify", sinks.FILE), ("tokens", sinks.FILE), ("classify", sinks.FROZEN)):
            case = plan.case(workload, kind)
            bars = []
            for name in plan.LOGGERS:
                value = results.median(name, case, "ratio")
                if value is not None:
                    bars.append(chart.Bar(MODES[name].title, value, f"{value:.2f}", name == plan.OWN))
            if bars:
                bars.sort(key=lambda bar: -(bar.value or 0))
                panels.append(chart.Panel(f"{plan.WORKLOADS[workload]}; {sinks.KINDS[kind]}", bars))
        return panels

    def facts_in_words(self, results: Results) -> str:
        """Return the load, and how much slices without logging differ."""
        return f"load {results.facts['load']:.1f} at the end{_noise(results)}"


def tables(results: Results) -> list[Table]:
    """Return a table for each workload and sink."""
    found = []
    for workload, words in plan.WORKLOADS.items():
        for kind, sink in sinks.KINDS.items():
            case = plan.case(workload, kind)
            names = [name for name in MODES if results.rounds(name, case)]
            failed = [name for name in MODES if f"{name} {case}" in results.failed]
            if not names and not failed:
                continue
            rows = [_row(results, name, case) for name in names]
            rows += [_empty(name, results.failed[f"{name} {case}"]) for name in failed if name not in names]
            if kind == sinks.FILE:
                rows += [_empty(name, f"skipped: {reason}") for name, reason in results.skipped.items()]
            marks = frozenset(number for number, name in enumerate(names) if name.startswith(plan.OWN))
            found.append(Table(f"{words}; {sink}", HEAD, rows, marks))
    return found


def _noise(results: Results) -> str:
    spreads = [cell["none_spread"] for cases in results.cells.values() for cells in cases.values() for cell in cells]
    if not spreads:
        return ""
    middle = statistics.median(spreads)
    words = f"; slices without logging differ by {middle:.0%} (median of the servers)"
    return words + (": too noisy to judge" if middle > TOO_NOISY else "")


def _row(results: Results, name: str, case: str) -> list[str]:
    def figure(what: str, form: str) -> str:
        value = results.median(name, case, what)
        return "-" if value is None else format(value, form)

    ratios = [ratio for ratios in results.values(name, case, "ratios") for ratio in ratios]  # type: ignore[attr-defined]
    exact = results.worst(name, case, "exact")
    return [
        MODES[name].title,
        figure("ratio", ".2f"),
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        figure("added_us", "+,.0f"),
        figure("p99_ms", ",.1f"),
        figure("p99_ratio", ".2f"),
        figure("lag_p99_ms", ",.1f"),
        figure("lag_max_ms", ",.0f"),
        figure("kept", ".1%") if MODES[name].writes else "-",
        "not counted" if exact is None else "yes" if exact == "yes" else "NO",
        figure("grown_mb", ".1f"),
    ]


def _empty(name: str, reason: str) -> list[str]:
    return [MODES[name].title, reason] + [""] * (len(HEAD) - 2)


if __name__ == "__main__":
    Inference().main()
