"""Measures one configuration in this process, and starts a process for each measurement."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apart
import lines
import loops
import worker
from configured import CONFIGURATIONS
from configured.configuration import Configuration

STOCK, OWN = "stock", "logspool"
VARIANTS = (STOCK, OWN)

# Chosen: ten times the time that the slowest configuration needs.
SECONDS = 120.0

# Chosen: more than a QueueListener of stock logging needs for the records of the warm-up, some 50 ms.
PAUSE_SECONDS = 0.1


def measure(name: str, variant: str, records: int, place: str) -> dict[str, Any]:
    """Set up logging as the program does, with or without logspool, and log to a file of the folder `place`.

    Returns nanoseconds per record, and the records found in the file when the measurement ended.
    """
    configuration, folder = CONFIGURATIONS[name], Path(place)
    path = file_of(folder, variant)
    program, _ = loops.load(configuration.call, folder)
    own = configuration.open_own if variant == OWN else None
    session = (own or configuration.open)(path)
    settle: Callable[[], object] = _nothing
    if variant == OWN:
        import logspool

        if own is None:
            # The program logs faster than a Python thread formats: its calls wait instead of refusing records.
            waiting = {"blocking_levels": ("INFO",), "blocking_timeout": SECONDS} if configuration.deferred else {}
            logspool.install(defer_formatting=configuration.deferred, **waiting)
        settle = logspool.flush
    warm_up = min(worker.WARM_UP_RECORDS, records)
    program.back_to_back(session.log, lines.WARM_UP, warm_up)
    settle()
    time.sleep(PAUSE_SECONDS)
    cpu, begin = worker.cpu_ns(), time.perf_counter_ns()
    _, caller = program.back_to_back(session.log, "t0", records)
    session.finish()
    settle()
    end, cpu = time.perf_counter_ns() - begin, worker.cpu_ns() - cpu
    found: dict[str, Any] = {
        "caller_ns": caller / records,
        "end_to_end_ns": end / records,
        "total_cpu_ns": cpu / records,
        "records": records,
        "lines": path.read_bytes().count(configuration.once) - warm_up,
    }
    if variant == OWN:
        stats = logspool.stats()
        found["paths"] = dict(stats.paths)
        found["reasons"] = {name: logger.reason for name, logger in stats.loggers.items() if logger.reason}
    return found


def measure_apart(configuration: Configuration, variant: str, records: int, folder: Path) -> dict[str, Any]:
    """Measure in a process of its own; a report of logging on standard error fails the row, a library's warning not."""
    variables = {**apart.variables(), "PYTHONWARNINGS": "ignore"}
    arguments = configuration.name, variant, records, str(folder)
    found = apart.ask("configured.measure", *arguments, seconds=SECONDS, variables=variables, silent=True)
    if found["lines"] != records:
        raise apart.Failed(f"{found['lines']:,} lines of {records:,}")
    return dict(found)


def file_of(folder: Path, variant: str) -> Path:
    """Return the log file of a variant."""
    return folder / f"{variant}.log"


def _nothing() -> None:
    """Stock logging has written a record when the call returns."""
