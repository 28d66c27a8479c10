"""The longest call while a pipe is not read and while it is read again, beside the longest empty call of that loop.

Lines of usual length and short ones: a queue is full of records long before it is full of short lines.
A run is significant only if its empty calls were short: a machine that keeps threads from the processor makes both
long. So the best of several runs is taken. Alone: `python bench/thawed_pipe.py`.
"""

import json
import subprocess
import sys

RECORDS_PER_SECOND = 200_000
REPEATS = 5
# A format, and a message with the arguments of a call after it.
LINES = {
    "usual": ("%(asctime)s %(levelname)s %(name)s %(message)s", "line %d of %s"),
    "short": ("%(message)s", "%d%.0s"),
}

_PROGRAM = """
import json, logging, os, subprocess, sys, tempfile, time
import logspool

rate, frozen_seconds, thawed_seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
format, message = sys.argv[4], sys.argv[5]
clock = time.perf_counter_ns

def empty(*arguments):
    pass

def run(log, seconds):
    longest = longest_empty = number = 0
    began = time.monotonic()
    while number < rate * seconds:
        for _ in range(rate // 500):
            begin = clock()
            empty(message, number, "some text")
            middle = clock()
            log.info(message, number, "some text")
            end = clock()
            longest, longest_empty = max(longest, end - middle), max(longest_empty, middle - begin)
            number += 1
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
    return longest / 1e6, longest_empty / 1e6

with tempfile.TemporaryDirectory() as folder:
    os.mkfifo(folder + "/fifo")
    held = os.open(folder + "/fifo", os.O_RDWR)
    handler = logging.FileHandler(folder + "/fifo")
    handler.setFormatter(logging.Formatter(format))
    log = logging.getLogger("app.module")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    logspool.install()
    run(log, 1 / rate)
    frozen, frozen_empty = run(log, frozen_seconds)
    command = ["dd", "bs=64k", "if=" + folder + "/fifo", "of=/dev/null"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as reader:
        longest, longest_empty = run(log, thawed_seconds)
        logspool.flush(60)
        reader.kill()
    refused = sum(logspool.stats().levels["INFO"].refused.values())
longest, longest_empty = max(frozen, longest), max(frozen_empty, longest_empty)
print(json.dumps({"thaw_ms": longest, "thaw_empty_ms": longest_empty, "refused": refused}))
"""


def measure(quick: bool) -> dict[str, float]:
    """Return the longest call of the best run, and the longest empty call of that run, in ms, of the worse lines."""
    bests = [_best(quick, *line) for line in LINES.values()]
    worst = max(bests, key=lambda run: run["thaw_ms"])
    return {name: worst[name] for name in ("thaw_ms", "thaw_empty_ms")}


def _best(quick: bool, *line: str) -> dict[str, float]:
    seconds = ("0.2", "0.4") if quick else ("1", "2")
    runs = [_run(str(RECORDS_PER_SECOND), *seconds, *line) for _ in range(1 if quick else REPEATS)]
    return min(runs, key=lambda run: run["thaw_ms"])


def _run(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    if found["refused"]:
        raise RuntimeError(f"{found['refused']:g} records were refused: the run says nothing about waits")
    return found


if __name__ == "__main__":
    print(json.dumps(measure("--quick" in sys.argv)))
