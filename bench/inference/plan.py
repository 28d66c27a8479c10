"""The cells that a run measures, and the targets that they have to reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from inference import sinks
from inference.cell import Sizes
from results import Results
from targets import Verdict

OWN = "logspool"
LOGGERS = (
    "none", "stdlib", "queue", "backgroundlog", "loguru", "loguru-enqueue", "structlog", "picologging",
    "thread-handler", OWN,
)  # fmt: skip
VARIANTS = ("logspool-access", "logspool-json", "logspool-bind", "logspool-redact")
SLEEPING = ("null", "thread-sleeping", "queue-sleeping")
WITH_BAD_SINKS = ("stdlib", "queue", "loguru-enqueue", "thread-handler", OWN)
WORKLOADS = {
    "classify": "classify: 2 records a request",
    "generate": "generate: 2 records a request of 32 tokens",
    "tokens": "per-token: 34 records a request, 32 of them from the engine's thread",
}


@dataclass(frozen=True)
class Plan:
    """The cells of one round, in order, and how often those with targets are repeated."""

    cells: list[tuple[str, str, str]]
    sizes: Sizes
    rounds: int

    def all(self) -> Iterator[tuple[int, str, str, str]]:
        """Yield round, mode, workload and sink. After the first round only the cells that are judged come again."""
        for number in range(self.rounds):
            for mode, workload, kind in self.cells:
                if number == 0 or (mode == OWN and workload != "generate"):
                    yield number, mode, workload, kind


def full() -> Plan:
    """Everything, within 15 minutes."""
    cells = [(mode, "classify", sinks.FILE) for mode in (*LOGGERS, *VARIANTS, *SLEEPING)]
    cells += [(mode, workload, sinks.FILE) for workload in ("generate", "tokens") for mode in LOGGERS]
    cells += [(mode, "classify", kind) for kind in sinks.BAD for mode in WITH_BAD_SINKS]
    return Plan(cells, Sizes(seconds=0.8, repeats=2), rounds=3)


def quick() -> Plan:
    """A minute that shows that everything works."""
    cells = [(mode, "classify", sinks.FILE) for mode in ("stdlib", "queue", "thread-sleeping", OWN, "logspool-access")]
    cells += [(OWN, "generate", sinks.FILE), ("stdlib", "tokens", sinks.FILE), (OWN, "tokens", sinks.FILE)]
    cells += [(OWN, "classify", kind) for kind in sinks.BAD] + [("stdlib", "classify", sinks.FROZEN)]
    return Plan(cells, Sizes(seconds=0.3, repeats=1), rounds=1)


def case(workload: str, kind: str) -> str:
    """Return the name of the results of a workload with a sink."""
    return f"{workload} {kind}"


@dataclass(frozen=True)
class Target:
    """One bound for a figure of logspool."""

    what: str
    case: str
    figure: str
    at_most: float | None = None
    at_least: float | None = None
    unit: str = "x"

    def judge(self, results: Results) -> Verdict:
        """Compare the median of the rounds with the bound."""
        bound = f"<= {self.at_most:g} {self.unit}" if self.at_most is not None else f">= {self.at_least:g} {self.unit}"
        value = results.median(OWN, self.case, self.figure)
        if value is None:
            return Verdict(self.what, bound, None, None)
        met = value <= self.at_most if self.at_most is not None else value >= (self.at_least or 0)
        return Verdict(self.what, bound, value, met)


def targets() -> list[Target]:
    """Return all bounds on times and rates."""
    classify, tokens = case("classify", sinks.FILE), case("tokens", sinks.FILE)
    found = [
        Target("classify: requests a second, of none", classify, "ratio", at_least=0.97),
        Target("classify: CPU added to a request", classify, "added_us", at_most=10, unit="us"),
        Target("per-token: requests a second, of none", tokens, "ratio", at_least=0.95),
    ]
    for kind in sinks.BAD:
        bad, words = case("classify", kind), f"classify, {sinks.KINDS[kind]}"
        found.append(Target(f"{words}: requests a second, of none", bad, "ratio", at_least=0.95))
        found.append(Target(f"{words}: p99 at a fixed rate, of none", bad, "p99_ratio", at_most=1.2))
    return found


def judge(results: Results) -> list[Verdict]:
    """Judge everything."""
    return [target.judge(results) for target in targets()] + judge_counts(results)


def judge_counts(results: Results) -> list[Verdict]:
    """Judge the accounting of every cell of logspool. It has to be exact on any machine."""
    verdicts = []
    for mode, cases in results.cells.items():
        if mode.startswith((OWN, "thread")):
            for name in cases:
                worst = results.worst(mode, name, "exact")
                what = f"{mode}, {name}: accepted = written + dropped, and what was written has arrived"
                verdicts.append(Verdict(what, "= yes", worst, None if worst is None else worst == "yes"))
    return verdicts


def sizes_in_words(plan: Plan) -> dict[str, object]:
    """Return the facts about the sizes of a run."""
    return {**dataclasses.asdict(plan.sizes), "rounds": plan.rounds}
