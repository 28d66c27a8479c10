"""The cells that a run measures, and the targets that they have to reach."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import report  # noqa: F401  (it adds the folder of scripts)
import terminal
from inference import sinks
from inference.cell import Sizes
from results import Results
from targets import Target, Verdict

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


def full(rounds: int) -> Plan:
    """Everything, within 15 minutes."""
    cells = [(mode, "classify", sinks.FILE) for mode in (*LOGGERS, *VARIANTS, *SLEEPING)]
    cells += [(mode, workload, sinks.FILE) for workload in ("generate", "tokens") for mode in LOGGERS]
    cells += [(mode, "classify", kind) for kind in sinks.BAD for mode in WITH_BAD_SINKS]
    return Plan(cells, Sizes(seconds=0.8, repeats=2), rounds)


def quick() -> Plan:
    """A minute that shows that everything works."""
    cells = [(mode, "classify", sinks.FILE) for mode in ("stdlib", "queue", "thread-sleeping", OWN, "logspool-access")]
    cells += [(OWN, "generate", sinks.FILE), ("stdlib", "tokens", sinks.FILE), (OWN, "tokens", sinks.FILE)]
    cells += [(OWN, "classify", kind) for kind in sinks.BAD] + [("stdlib", "classify", sinks.FROZEN)]
    return Plan(cells, Sizes(seconds=0.3, repeats=1), rounds=1)


def narrowed(chosen: Plan, options: argparse.Namespace) -> Plan:
    """Return the plan with the chosen modes, workloads and sinks."""
    cells = [
        item for item in chosen.cells
        if item[0] in options.modes and item[1] in options.workloads and item[2] in options.sinks
    ]  # fmt: skip
    if not cells:
        raise terminal.fail("no cell of the plan is left by --modes, --workloads and --sinks", 2)
    return Plan(cells, chosen.sizes, chosen.rounds)


def case(workload: str, kind: str) -> str:
    """Return the name of the results of a workload with a sink."""
    return f"{workload} {kind}"


def _target(what: str, case: str, figure: str, **bound: Any) -> Target:
    return Target(what, (OWN, case, figure), **bound)


def targets() -> list[Target]:
    """Return all bounds on times and rates."""
    classify, tokens = case("classify", sinks.FILE), case("tokens", sinks.FILE)
    found = [
        _target("classify: requests a second, of none", classify, "ratio", at_least=0.97),
        _target("classify: CPU added to a request", classify, "added_us", at_most=10, unit="us"),
        _target("per-token: requests a second, of none", tokens, "ratio", at_least=0.95),
    ]
    for kind in sinks.BAD:
        bad, words = case("classify", kind), f"classify, {sinks.KINDS[kind]}"
        found.append(_target(f"{words}: requests a second, of none", bad, "ratio", at_least=0.95))
        found.append(_target(f"{words}: p99 at a fixed rate, of none", bad, "p99_ratio", at_most=1.2))
    return found


def judge_accounts(results: Results) -> list[Verdict]:
    """Judge the accounting of every cell of logspool. It has to be exact on any machine."""
    verdicts = []
    for mode, cases in results.cells.items():
        if mode.startswith((OWN, "thread")):
            for name in cases:
                worst = results.worst(mode, name, "exact")
                what = f"{mode}, {name}: accepted = written + dropped, and what was written has arrived"
                verdicts.append(Verdict(what, "= yes", worst, None if worst is None else worst == "yes"))
    return verdicts
