"""The targets of a run, as data: ratios that the caller has to reach, and equal lines in all rows."""

import statistics

from configured import CONFIGURATIONS
from configured.measure import OWN, STOCK
from results import Results
from targets import Target, Verdict

#: The caller's CPU: stock logging's over logspool's, at least.
AT_LEAST = {
    "plain": 20.0,
    "name-filter": 40.0,
    "context-filter": 8.0,
    "message-filter": 5.0,
    "own-handler": 1.0,
    "exception": 10.0,
    "exception-filter": 5.0,
    "adapter": 25.0,
    "structlog-json": 4.0,
    "structlog-key-values": 4.0,
    "structlog-console": 4.0,
    "loguru-file": 5.0,
    "sentry": 1.5,
    "python-json-logger": 20.0,
    "uvicorn": 20.0,
    "uvicorn-access": 20.0,
    "colorlog": 20.0,
    "ecs": 20.0,
    "django": 20.0,
    "correlation-id": 10.0,
    "opentelemetry": 10.0,
    "ddtrace": 10.0,
    "gunicorn": 20.0,
    "factory": 3.0,
    "iso-time": 2.0,
    "local-time": 2.0,
    "own-exception": 5.0,
    "own-message": 5.0,
    "colours": 2.0,
    "json": 2.0,
    "json-deferred": 10.0,
}

#: The median of the caller's ratios over all rows, at least.
MEDIAN_AT_LEAST = 15.0

#: Figures of which no row may be worse than stock logging.
NEVER_WORSE = {"caller_ns": "caller's CPU", "end_to_end_ns": "end to end", "total_cpu_ns": "total CPU"}

#: CPU of all threads: stock logging's over logspool's, at least.
TOTAL_AT_LEAST = {"exception": 2.0}


def target(what: str, name: str, figure: str, at_least: float) -> Target:
    """Return the promise that logspool needs so many times less."""
    return Target(what, (name, STOCK, figure), over=(name, OWN, figure), at_least=at_least, take=min)


def best(results: Results, row: str, variant: str, figure: str) -> float | None:
    """Return the lowest value of a figure over the turns, None if it was not measured."""
    return min(results.values(row, variant, figure), default=None)


def ratio(results: Results, row: str, figure: str) -> float | None:
    """Return how many times less logspool needs, None if a side was not measured."""
    stock, own = (best(results, row, variant, figure) for variant in (STOCK, OWN))
    return stock / own if stock and own else None


def judge(results: Results, names: list[str]) -> list[Verdict]:
    """Compare the rows of a run with the stated ratios."""
    stated = [("caller's CPU", "caller_ns", AT_LEAST), ("total CPU", "total_cpu_ns", TOTAL_AT_LEAST)]
    verdicts = [
        target(f"{what}, {name}", name, figure, bound).judge(results)
        for what, figure, bounds in stated
        for name, bound in bounds.items()
        if name in names
    ]
    for figure, title in NEVER_WORSE.items():
        found = {name: value for name in names if (value := ratio(results, name, figure)) is not None}
        worse = ", ".join(f"{name} {value:.2f}" for name, value in found.items() if value < 1)
        verdicts.append(Verdict(f"{title}: rows worse than stock logging", "none", worse or "none", not worse))
    return [*verdicts, *_judge_median(results, names)]


def _judge_median(results: Results, names: list[str]) -> list[Verdict]:
    """Judge the median of all rows; of a part of them it says nothing."""
    found = [value for name in names if (value := ratio(results, name, "caller_ns")) is not None]
    if len(names) < len(CONFIGURATIONS) or not found:
        return []
    median = statistics.median(found)
    what, bound = f"caller's CPU, median of {len(found)} rows", f">= {MEDIAN_AT_LEAST:g} x"
    return [Verdict(what, bound, median, median >= MEDIAN_AT_LEAST)]
