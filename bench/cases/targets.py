"""The targets of the comparison of loggers, as data: each line is one promise, judged within the run."""

from collections.abc import Iterator

from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT
from cases import CASES
from results import Results
from targets import Target, Verdict


def _speed_up(what: str, case: str, mode: str, name: str, at_least: float) -> Target:
    return Target(what, ("stdlib-file", mode, name), over=(case, mode, name), at_least=at_least)


TARGETS = [
    Target("caller's CPU per record, installed", ("logspool", THROUGHPUT, "caller_cpu_ns"), at_most=250, unit="ns"),
    Target("paced call, p50 less that of an empty one", ("logspool", PACED, "p50_net_ns"), at_most=250, unit="ns"),
    _speed_up("caller cheaper than stdlib FileHandler", "logspool", THROUGHPUT, "caller_cpu_ns", 30),
    Target("p99.9 of a call, back to back", ("logspool", LATENCY, "p999_ns"), at_most=10_000, unit="ns"),
    Target(
        "disabled level against stdlib, loop subtracted",
        ("logspool", DISABLED, "disabled_ns"),
        over=("stdlib-file", DISABLED, "disabled_ns"),
        at_most=0.45,
    ),
    _speed_up("end to end faster than stdlib FileHandler", "logspool", THROUGHPUT, "end_to_end_ns", 15),
    Target(
        "total CPU per record against stdlib FileHandler",
        ("logspool", THROUGHPUT, "total_cpu_ns"),
        over=("stdlib-file", THROUGHPUT, "total_cpu_ns"),
        at_most=0.15,
    ),
    # Chosen: most services log at such a pace; a collector that runs for each handful needed more than stdlib.
    Target(
        "total CPU per record at 10,000 a second against stdlib",
        ("logspool", PACED, "total_cpu_net_ns"),
        over=("stdlib-file", PACED, "total_cpu_net_ns"),
        at_most=0.35,
    ),
    Target(
        "4 threads, end to end, against own single thread",
        ("logspool", THREADS, "end_to_end_ns"),
        over=("logspool", THROUGHPUT, "end_to_end_ns"),
        at_most=1.5,
    ),
    _speed_up("4 threads, end to end, against stdlib with 4", "logspool", THREADS, "end_to_end_ns", 15),
    Target("memory that a burst of 100,000 adds", ("logspool", BURST, "memory_mb"), at_most=16, unit="MB"),
    Target("records that a burst of 100,000 refuses", ("logspool", BURST, "refused"), at_most=0, unit="records"),
    Target(
        "caller with logspool.FileHandler, not installed",
        ("logspool-handler", THROUGHPUT, "caller_cpu_ns"),
        over=("stdlib-file", THROUGHPUT, "caller_cpu_ns"),
        at_most=0.6,
    ),
    # Equal within the spread of a run: a twentieth is the smallest difference that 25 pairs tell apart.
    Target(
        "JSON against text, caller's CPU",
        ("logspool-json", THROUGHPUT, "caller_cpu_ns"),
        over=("logspool", THROUGHPUT, "caller_cpu_ns"),
        at_most=1.05,
    ),
    Target(
        "JSON against text, total CPU",
        ("logspool-json", THROUGHPUT, "total_cpu_ns"),
        over=("logspool", THROUGHPUT, "total_cpu_ns"),
        at_most=1.05,
    ),
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
