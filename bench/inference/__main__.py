"""The cost of logging for an inference server: FastAPI and uvicorn with two small models on the CPU.

Each logger is measured in a server of its own, between slices without logging, in a closed and in an open loop; see
docs/explain/inference-benchmark.md.

    python bench/inference [--quick] [--modes NAME,NAME] [--workloads NAME,NAME] [--sinks NAME,NAME] [--out FOLDER]
    python bench/inference --gpu [--tiny]

Exit code 1 where a target is missed or an account is not exact; `--quick` and a choice judge the accounts alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

# Started as a folder, Python searches only this folder. The other modules and the package itself are in those above.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import machine
import report
from inference import cell, gpu, plan, show, sinks
from inference.modes import MODES
from results import Results
from terminal import fail, step

BENCH = Path(__file__).resolve().parents[1]
NEEDED = ("fastapi", "uvicorn", "onnxruntime", "onnx", "numpy")


def measure(chosen: plan.Plan, results: Results) -> None:
    """Measure all cells. A cell that fails is noted, and the run continues."""
    cells = list(chosen.all())
    began = time.monotonic()
    for position, (number, mode, workload, kind) in enumerate(cells, 1):
        if mode in results.skipped:
            continue
        case = plan.case(workload, kind)
        passed = time.monotonic() - began
        print(f"    {position}/{len(cells)} {passed:4.0f} s: {MODES[mode].title}, {case}", file=sys.stderr, flush=True)
        try:
            results.add(mode, case, number, cell.measure(mode, workload, kind, chosen.sizes))
        except cell.CellError as error:
            results.failed[f"{mode} {case}"] = str(error)
            print(f"    failed: {error}", file=sys.stderr, flush=True)
    results.process["seconds"] = time.monotonic() - began


def skipped(plan_: plan.Plan) -> dict[str, str]:
    """Return why some loggers cannot run."""
    path = os.environ.get("LOGSPOOL_BENCH_REASONS")
    reasons = json.loads(Path(path).read_text()) if path else {}
    found = {}
    for mode in dict.fromkeys(mode for mode, _, _ in plan_.cells):
        reason = MODES[mode].missing()
        if reason:
            found[mode] = reasons.get(MODES[mode].needs, reason)
    return found


def narrowed(chosen: plan.Plan, options: argparse.Namespace) -> plan.Plan:
    """Return the plan with the chosen modes, workloads and sinks."""
    known = {"modes": MODES, "workloads": plan.WORKLOADS, "sinks": sinks.KINDS}
    wanted = {}
    for name, names in known.items():
        wanted[name] = getattr(options, name).split(",") if getattr(options, name) else list(names)
        unknown = [word for word in wanted[name] if word not in names]
        if unknown:
            raise fail(f"--{name}: unknown: {', '.join(unknown)} (known: {', '.join(names)})", 2)
    cells = [
        item for item in chosen.cells
        if item[0] in wanted["modes"] and item[1] in wanted["workloads"] and item[2] in wanted["sinks"]
    ]  # fmt: skip
    if not cells:
        raise fail("no cell of the plan is left by --modes, --workloads and --sinks", 2)
    return plan.Plan(cells, chosen.sizes, chosen.rounds)


def main() -> None:
    """Measure, show, keep, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute, kept in build/bench; judges the accounts alone")
    parser.add_argument("--modes", help=f"of {', '.join(MODES)}; default: all")
    parser.add_argument("--workloads", help=f"of {', '.join(plan.WORKLOADS)}; default: all")
    parser.add_argument("--sinks", help=f"of {', '.join(sinks.KINDS)}; default: all")
    parser.add_argument("--out", type=Path, help="folder of the results; default: bench/runs/DATE-MACHINE/inference")
    parser.add_argument("--gpu", action="store_true", help="measure a decode loop in torch instead of the server")
    parser.add_argument(
        "--tiny", action="store_true", help="with --gpu: a small model, on the CPU where there is no GPU"
    )
    options = parser.parse_args()
    if options.gpu:
        gpu.main(tiny=options.tiny, out=options.out)
        return
    # Wrong words are reported before missing packages.
    chosen = narrowed(plan.quick() if options.quick else plan.full(), options)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise fail(f"missing: {', '.join(missing)}. `make bench-inference` installs what is needed")
    whole = not (options.quick or options.modes or options.workloads or options.sinks)
    step(f"{len(list(chosen.all()))} servers, each with {2 * (2 * chosen.sizes.repeats + 1)} slices")
    facts = {**machine.describe(), "sizes": plan.sizes_in_words(chosen), "load": os.getloadavg()[0]}
    results = Results(facts, skipped=skipped(chosen))
    measure(chosen, results)
    verdicts = plan.judge(results) if whole else plan.judge_counts(results)
    default = BENCH / "runs" if whole else BENCH.parent / "build" / "bench"
    folder = (options.out or default / machine.folder_name(facts) / "inference").resolve()
    show.keep(folder, results, verdicts)
    show.print_all(results)
    report.print_verdicts(verdicts)
    print(f"\nresults: {folder}/summary.md, raw.json, plot.svg")
    missed = [verdict.what for verdict in verdicts if verdict.met is False]
    failed = [f"{name} failed" for name in results.failed if name.startswith(plan.OWN)]
    if whole:
        missed += [f"{verdict.what} (not measured)" for verdict in verdicts if verdict.met is None]
    if missed or failed:
        raise fail(f"{len(missed + failed)} missed: {'; '.join(missed + failed)}")


if __name__ == "__main__":
    main()
