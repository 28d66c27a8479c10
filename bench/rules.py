"""The time that redaction adds to the caller's time of one record.

Processes take turns: one without rules, one with 10 keys and 5 patterns. A batch has to fit into the first ring of a
lane, 32 KiB: in a longer batch calls wait for room, and the writer decides how long. Prints the median over the
batches, in nanoseconds a call. The lines are counted at the end.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import logspool

#: Nanoseconds that redaction may add to a call.
MOST_NS = 1000

RULES = {"redact_keys": ["default"], "redact_patterns": ["default"]}

FIELDS = {"customer": "ada", "amount": 12.5, "route": "/shops/{shop}/items/{item}"}


def measure(folder: Path, kind: str, rules: bool, batches: int, calls: int) -> float:
    """Return the median nanoseconds of a call; run in a process of its own."""
    formatter = logspool.JSONFormatter() if kind == "JSON" else logging.Formatter("%(asctime)s %(message)s")
    path = folder / f"{kind}-{rules}-{os.getpid()}.log"
    handler = logging.FileHandler(path)
    handler.setFormatter(formatter)
    log = logging.getLogger("bench")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    logspool.install(**(RULES if rules else {}))
    times = []
    for _ in range(batches):
        began = time.perf_counter_ns()
        if kind == "JSON":
            for number in range(calls):
                log.info("order %d paid by %s from %s", number, "ada", "Paris", extra=FIELDS)
        else:
            for number in range(calls):
                log.info("order %d paid by %s from %s", number, "ada", "Paris")
        times.append((time.perf_counter_ns() - began) / calls)
        logspool.flush()
    written = sum(1 for _ in path.open())
    if written != batches * calls:
        raise SystemExit(f"{written} of {batches * calls} lines were written")
    if rules and logspool.stats().rules["rewritten"]:
        raise SystemExit("a record without secrets was changed")
    return statistics.median(times)


def main() -> None:
    """Measure both formats, and fail if redaction costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, rules, folder = json.loads(options.one)
        print(measure(Path(folder), kind, rules, options.batches, options.calls))
        return
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("text", "JSON"):
            found: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(options.turns):
                for rules in found:
                    job = json.dumps([kind, rules, folder])
                    command = [sys.executable, __file__, "--one", job, "--batches", str(options.batches)]
                    command += ["--calls", str(options.calls)]
                    shown = subprocess.run(command, check=True, capture_output=True, text=True)
                    found[rules].append(float(shown.stdout))
            without, with_rules = (statistics.median(found[rules]) for rules in (False, True))
            added = with_rules - without
            verdict = "met" if added <= MOST_NS else "MISSED"
            failed |= added > MOST_NS
            print(f"{kind}: {without:.0f} ns a call, with rules {with_rules:.0f} ns: {added:+.0f} ns, {verdict}")
    if failed:
        raise SystemExit(f"redaction adds more than {MOST_NS} ns to a call")


if __name__ == "__main__":
    main()
