"""The targets of the comparison of loggers, as data: each line is one promise, judged within the run."""

from collections.abc import Iterator

from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT
from cases import CASES
from results import Results
from targets import Target, Verdict, beside

OWN, STOCK = "logspool", "stdlib-file"

TARGETS = [
    Target("caller's CPU per record, installed", (OWN, THROUGHPUT, "caller_cpu_ns"), at_most=250, unit="ns"),
    Target("paced call, p50 less that of an empty one", (OWN, PACED, "p50_net_ns"), at_most=250, unit="ns"),
    beside("caller cheaper than stdlib FileHandler", STOCK, OWN, THROUGHPUT, "caller_cpu_ns", at_least=30),
    Target("p99.9 of a call, back to back", (OWN, LATENCY, "p999_ns"), at_most=10_000, unit="ns"),
    beside("disabled level against stdlib, loop subtracted", OWN, STOCK, DISABLED, "disabled_ns", at_most=0.45),
    beside("end to end faster than stdlib FileHandler", STOCK, OWN, THROUGHPUT, "end_to_end_ns", at_least=15),
    beside("total CPU per record against stdlib FileHandler", OWN, STOCK, THROUGHPUT, "total_cpu_ns", at_most=0.15),
    # Chosen: most services log at such a pace; a collector that runs for each handful needed more than stdlib.
    beside(
        "total CPU per record at 10,000 a second against stdlib", OWN, STOCK, PACED, "total_cpu_net_ns", at_most=0.35
    ),
    Target(
        "4 threads, end to end, against own single thread",
        (OWN, THREADS, "end_to_end_ns"),
        over=(OWN, THROUGHPUT, "end_to_end_ns"),
        at_most=1.5,
    ),
    beside("4 threads, end to end, against stdlib with 4", STOCK, OWN, THREADS, "end_to_end_ns", at_least=15),
    Target("memory that a burst of 100,000 adds", (OWN, BURST, "memory_mb"), at_most=16, unit="MB"),
    Target("records that a burst of 100,000 refuses", (OWN, BURST, "refused"), at_most=0, unit="records"),
    beside(
        "caller with logspool.FileHandler, not installed",
        "logspool-handler",
        STOCK,
        THROUGHPUT,
        "caller_cpu_ns",
        at_most=0.6,
    ),
    # Equal within the spread of a run: a twentieth is the smallest difference that 25 pairs tell apart.
    beside("JSON against text, caller's CPU", "logspool-json", OWN, THROUGHPUT, "caller_cpu_ns", at_most=1.05),
    beside("JSON against text, total CPU", "logspool-json", OWN, THROUGHPUT, "total_cpu_ns", at_most=1.05),
]

PROCESS_TARGETS = [
    ("idle CPU, installed", "idle_percent", 0.5, "% of a core"),
    ("import logspool after import logging", "import_ms", 6.0, "ms"),
    ("longest call while a stalled pipe is read again", "thaw_ms", 1.0, "ms"),
]


def judge_process(results: Results) -> Iterator[Verdict]:
    """Judge the figures that belong to no case."""
    for what, name, at_most, unit in PROCESS_TARGETS:
        value = results.process.get(name)
        yield Verdict(what, f"<= {at_most:g} {unit}", value, None if value is None else value <= at_most)


def judge_lines(results: Results) -> Iterator[Verdict]:
    """Every row of logspool's own has to find all its lines, whole, in order and with the true caller."""
    bound = "0 lost, doubled, damaged; order and caller's line right"
    for case in CASES.values():
        if not case.name.startswith("logspool"):
            continue
        wrong, measured = [], False
        for mode in (mode for mode in case.modes if mode != DISABLED):
            measured = measured or bool(results.rounds(case.name, mode))
            for name, good in (("lost", 0), ("doubled", 0), ("damaged", 0), ("order", "yes"), ("caller_line", "yes")):
                value = results.worst(case.name, mode, name)
                if value is not None and value != good:
                    wrong.append(f"{mode}: {name} {value}")
        wrong += [f"{cell}: {reason}" for cell, reason in results.failed.items() if cell.split(" ")[0] == case.name]
        value = "; ".join(wrong) or "all right"
        known = measured or bool(wrong)
        yield Verdict(f"lines of {case.name}", bound, value if known else None, not wrong if known else None)
