"""How long recovery takes, as a ratio to `cp` and a sync of the same bytes; part of `durability.py`.

A program logs while the folder of its file is away, so that its writer takes nothing, and is killed: all of its records
are in shared memory. Then the folder is back, and `logspool.recover()` brings them. Each round counts the lines of the
file, and copies it with `cp` and a sync for the yardstick. The folder decides about the disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """\
import logging, logging.handlers, os, shutil, sys, time
import logspool

folder, records = sys.argv[1], int(sys.argv[2])
os.mkdir(folder)
handler = logging.handlers.WatchedFileHandler(folder + "/app.log")
logging.basicConfig(level=logging.INFO, handlers=[handler], format="%(asctime)s %(levelname)s %(name)s %(message)s")
logspool.install(blocking_levels=["INFO"], blocking_timeout=60.0)
log = logging.getLogger("bench")
log.info("the first one")
logspool.flush()
shutil.rmtree(folder)
for number in range(records):
    log.info("request %d of %s took %.1f ms", number, "somebody", 1.5)
print(sum(sum(level.refused.values()) for level in logspool.stats().levels.values()), flush=True)
time.sleep(600)
"""


def leave(queue: str, folder: Path, records: int) -> None:
    """Have a program killed that leaves `records` records in a queue folder for a file in `folder`."""
    environment = {**os.environ, "LOGSPOOL_QUEUE_DIR": queue}
    command = [sys.executable, "-c", PROGRAM, str(folder), str(records)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        refused = program.stdout.readline()
        program.send_signal(signal.SIGKILL)
    if refused != b"0\n":
        raise SystemExit(f"the program ended early, or refused records: {refused!r}")


def measure(folder: Path, records: int) -> tuple[float, float, int]:
    """Return the seconds of the recovery and of the copy, and the bytes of the file."""
    import logspool

    target = folder / "logs"
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="logspool-bench-") as queue:
        leave(queue, target, records)
        target.mkdir()
        os.sync()
        begin = time.perf_counter()
        logspool.recover(queue)
        file = target / "app.log"
        _sync(file)
        recovered = time.perf_counter() - begin
        if left := [path.name for path in Path(queue).rglob("*") if path.is_file()]:
            raise SystemExit(f"left in the queue folder: {left}")
    with file.open("rb") as lines:
        found = sum(1 for _ in lines)
    if found != records:
        raise SystemExit(f"{found} lines of {records} after recovery")
    os.sync()
    begin = time.perf_counter()
    subprocess.run(["cp", file, folder / "copy"], check=True)
    _sync(folder / "copy")
    return recovered, time.perf_counter() - begin, file.stat().st_size


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def measure_in(folder: Path, records: int) -> tuple[float, float, int]:
    """As `measure`, in a folder of its own inside `folder` that is removed."""
    own = Path(tempfile.mkdtemp(dir=folder, prefix="recovery-"))
    try:
        return measure(own, records)
    finally:
        shutil.rmtree(own)
