"""The targets of a run, as data: each line is one promise, judged within the run."""

from collections.abc import Iterator
from dataclasses import dataclass

from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT
from cases import CASES
from results import Results

Cell = tuple[str, str, str]


@dataclass(frozen=True)
class Target:
    """One figure, alone or as a ratio to another of the same run, and its bound."""

    what: str
    figure: Cell
    over: Cell | None = None
    at_most: float | None = None
    at_least: float | None = None
    unit: str = "x"

    @property
    def bound(self) -> str:
        """Return the bound as it is printed."""
        return f"<= {self.at_most:g} {self.unit}" if self.at_most is not None else f">= {self.at_least:g} {self.unit}"


@dataclass(frozen=True)
class Verdict:
    """The result of a target; `value` is None where it could not be measured."""

    what: str
    bound: str
    value: float | str | None
    met: bool | None


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


def judge(results: Results) -> list[Verdict]:
    """Compare a run with all targets."""
    verdicts = [judge_target(target, results) for target in TARGETS]
    for what, name, at_most, unit in PROCESS_TARGETS:
        value = results.process.get(name)
        verdicts.append(Verdict(what, f"<= {at_most:g} {unit}", value, None if value is None else value <= at_most))
    return verdicts + list(_judge_lines(results))


def judge_target(target: Target, results: Results) -> Verdict:
    """Compare a run with one target."""
    value = results.ratio(target.figure, target.over) if target.over else results.median(*target.figure)
    if value is None:
        return Verdict(target.what, target.bound, None, None)
    met = value <= target.at_most if target.at_most is not None else value >= (target.at_least or 0)
    return Verdict(target.what, target.bound, value, met)


def _judge_lines(results: Results) -> Iterator[Verdict]:
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
