"""Does an event loop stay quick while another thread logs 10,000 exceptions a second?

    stock       logging.FileHandler, synchronous: the yardstick
    logspool    the same, after logspool.install()
    idle        the same thread raises the exceptions, and logs nothing

A thread raises and logs ten exceptions of seven frames each millisecond. The event loop of the main thread wakes each
millisecond and notes how late it is. Each measurement is a process of its own; the rounds are interleaved.

    python bench/exceptions_beside_loop.py [--seconds S] [--rounds R] [--json FILE]

The exit code is 1 where logspool's p99 (the lowest of all rounds) is a millisecond or more, where it reached less than
nine tenths of the stated rate, or where a line is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROWS = ("stock", "logspool", "idle")
RATE, EACH = 10_000, 10
PERIOD = EACH / RATE
P99_SECONDS = 0.001


def fail(frames: int) -> None:
    """Raise in the innermost of `frames` frames."""
    if frames > 1:
        return fail(frames - 1)
    raise LookupError("no such user")


class Storm(threading.Thread):
    """Logs exceptions at the stated rate, or as fast as it can."""

    def __init__(self, logger: logging.Logger, logs: bool) -> None:
        super().__init__()
        self._logger, self._logs = logger, logs
        self.ending = False
        self.count = 0

    def run(self) -> None:
        """Raise ten at a time until `ending` is set."""
        due = time.perf_counter()
        while not self.ending:
            for _ in range(EACH):
                try:
                    fail(6)
                except LookupError:
                    if self._logs:
                        self._logger.exception("request %d failed", self.count)
                self.count += 1
            due = max(due + PERIOD, time.perf_counter() - PERIOD)
            time.sleep(max(0.0, due - time.perf_counter()))


async def delays(seconds: float) -> list[float]:
    """Sleep a millisecond again and again; return how much longer each sleep took."""
    found = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        await asyncio.sleep(PERIOD)
        found.append(time.perf_counter() - begin - PERIOD)
    return found


def measure(row: str, seconds: float) -> dict[str, float]:
    """Run one row in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.log"
        handler = logging.FileHandler(path, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s"))
        logger = logging.getLogger("bench")
        logger.propagate = False
        logger.addHandler(handler)
        if row == "logspool":
            import logspool

            logspool.install()
        storm = Storm(logger, row != "idle")
        storm.start()
        asyncio.run(delays(0.2))
        before = storm.count
        found = sorted(asyncio.run(delays(seconds)))
        rate = (storm.count - before) / seconds
        storm.ending = True
        storm.join()
        if row == "logspool":
            logspool.flush()
        lines = path.read_bytes().count(b"LookupError: no such user\n")
    return {
        "p50_us": found[len(found) // 2] * 1e6,
        "p99_us": found[len(found) * 99 // 100] * 1e6,
        "max_us": found[-1] * 1e6,
        "rate": rate,
        "missing": storm.count - lines if row != "idle" else 0,
    }


def _measure_apart(row: str, seconds: float) -> dict[str, float]:
    command = [sys.executable, __file__, "--row", row, "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, timeout=60 + 10 * seconds, check=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per measurement")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--json", type=Path, help="write the raw data to this file")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.row, options.seconds)))
        return 0
    table: dict[str, list[dict[str, float]]] = {row: [] for row in ROWS}
    for _ in range(options.rounds):
        for row, runs in table.items():
            runs.append(_measure_apart(row, options.seconds))
    print(f"{'':10} {'p50 us':>9} {'p99 us':>9} {'max us':>9} {'exceptions/s':>13}   the round with the lowest p99")
    best = {row: min(runs, key=lambda run: run["p99_us"]) for row, runs in table.items()}
    for row, run in best.items():
        print(f"{row:10} {run['p50_us']:>9.0f} {run['p99_us']:>9.0f} {run['max_us']:>9.0f} {run['rate']:>13,.0f}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))
    own = best["logspool"]
    complete = all(run["missing"] == 0 for runs in table.values() for run in runs)
    holds = own["p99_us"] < P99_SECONDS * 1e6 and own["rate"] >= 0.9 * RATE and complete
    print(
        f"{'met' if holds else 'missed'}: logspool's p99 below {P99_SECONDS * 1e3:g} ms at {RATE:,} exceptions a second"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
