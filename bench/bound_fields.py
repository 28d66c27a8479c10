"""What do the fields of `logspool.bind` add to the caller's time of one record?

Runs in turns, in one process: calls without fields and calls in a `bind` block. A batch has to fit into the first ring
of a lane, 32 KiB: in a longer one calls wait for room, and the writer decides how long.
Prints the median and the quartiles over the batches, in nanoseconds a call, and counts the lines at the end.
"""

import argparse
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path

import logspool

#: The fields that middlewares for web applications bind.
REQUEST = {
    "request_id": "0af7651916cd43dd8448eb211c80319c",
    "method": "GET",
    "route": "/shops/{shop}/items/{item}",
    "client": "127.0.0.1:51234",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "span_id": "b7ad6b7169203331",
}


def batch(log: logging.Logger, calls: int) -> float:
    """Return the nanoseconds of one call, over a batch."""
    info = log.info
    began = time.perf_counter_ns()
    for number in range(calls):
        info("order %d paid by %s", number, "ada")
    return (time.perf_counter_ns() - began) / calls


def shown(times: list[float]) -> str:
    """Return median and quartiles."""
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:7.0f} ns a call (quartiles {low:.0f} to {high:.0f})"


def main() -> None:
    """Measure each format, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    formatters = {
        "text that shows no fields": logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"),
        "JSON": logspool.JSONFormatter(),
    }
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    with tempfile.TemporaryDirectory() as folder:
        for name, formatter in formatters.items():
            path = Path(folder) / f"{name.split()[0]}.log"
            handler = logging.FileHandler(path)
            handler.setFormatter(formatter)
            log = logging.getLogger(name)
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            log.propagate = False
            logspool.install()
            blocks = {"without": {}, "one field": {"request_id": REQUEST["request_id"]}, "six fields": REQUEST}
            times: dict[str, list[float]] = {block: [] for block in blocks}
            for turn in range(options.batches + 10):
                for block, fields in blocks.items():
                    if fields:
                        with logspool.bind(**fields):
                            took = batch(log, options.calls)
                    else:
                        took = batch(log, options.calls)
                    logspool.flush()
                    if turn >= 10:
                        times[block].append(took)
            for block, measured in times.items():
                more = statistics.median(measured) - statistics.median(times["without"])
                print(f"{name}, {block}: {shown(measured)}, {more:+.0f} ns")
            lines = path.read_bytes().count(b"\n")
            expected = len(blocks) * (options.batches + 10) * options.calls
            assert lines == expected, f"{lines} lines of {expected}"
            print(f"{name}: {lines} lines written")


if __name__ == "__main__":
    main()
