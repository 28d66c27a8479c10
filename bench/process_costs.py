"""The cost of logspool in a process that hardly logs: idle CPU and time to import."""

import json
import statistics
import subprocess
import sys

IDLE_SECONDS = 10.0
IMPORT_REPEATS = 20

_IDLE = """
import json, logging, os, sys, tempfile, time
import logspool

def ticks():
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])

with tempfile.TemporaryDirectory() as folder:
    logging.basicConfig(filename=folder + "/idle.log", level=logging.INFO)
    logspool.install()
    logging.info("one record, so that every thread is started")
    time.sleep(1)
    seconds = float(sys.argv[1])
    cpu, stat = time.process_time_ns(), ticks()
    time.sleep(seconds)
    percent = (time.process_time_ns() - cpu) / (seconds * 1e7)
    stat_percent = (ticks() - stat) / os.sysconf("SC_CLK_TCK") / seconds * 100
print(json.dumps({"idle_percent": percent, "idle_stat_percent": stat_percent}))
"""

_IMPORT = """
import time
import logging
begin = time.perf_counter_ns()
import logspool
print((time.perf_counter_ns() - begin) / 1e6)
"""


def measure(quick: bool) -> dict[str, float]:
    """Return idle CPU in percent of a core and the time in ms that importing logspool adds."""
    seconds = 2.0 if quick else IDLE_SECONDS
    result: dict[str, float] = json.loads(_run(_IDLE, str(seconds)))
    _run(_IMPORT)  # the first one reads the files from the disk
    times = [float(_run(_IMPORT)) for _ in range(5 if quick else IMPORT_REPEATS)]
    result["import_ms"] = statistics.median(times)
    return result


def _run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
