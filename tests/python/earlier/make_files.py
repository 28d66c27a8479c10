"""Write the files that the tests of a later version read: `python make_files.py FOLDER [PROGRAM]`.

It runs with the package whose files are kept: `0.1.0/` was made in this way by 0.1.0, before its release. FOLDER gets

- `queue.tar.xz`: the queue folder of a killed program. Nothing read the pipe that it logged to, so all is in the queue.
- `spool.tar.xz`: the spool folder of a program whose machine was then restarted, so its queue is gone.
- `store.tar.xz`: the SQLite folder of a killed `logspool serve`, if its PROGRAM is given.

The log file is named through `/proc/self/cwd`, so a recovery finds it in its own current folder.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

RECORDS = 300
LOG = "/proc/self/cwd/app.log"

#: A pipe that is full and that nobody reads takes the place of the log file.
PROGRAM = f"""
import logging, os, sys, time, logspool
os.mkfifo("app.log")
pipe = os.open("app.log", os.O_RDWR | os.O_NONBLOCK)
try:
    while True:
        os.write(pipe, b"-" * 65536)
except BlockingIOError:
    pass
logging.basicConfig(filename={LOG!r}, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
logspool.install(**eval(sys.argv[1]))
for number in range({RECORDS}):
    logging.getLogger("shop").info("order %d: %s", number, {{"paid": True}})
try:
    raise KeyError("näher")
except KeyError:
    logging.getLogger("shop").exception("the last one")
deadline = time.monotonic() + 60
while sys.argv[1] != "{{}}" and sum(each.total("spooled") for each in logspool.stats().sinks.values()) < {RECORDS + 1}:
    assert time.monotonic() < deadline, logspool.stats()
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""

#: What `/ingest` of the service gets.
SENT = [
    {"time": f"2026-11-{day}T10:00:0{second}Z", "level": level, "logger": "shop", "host": "web1", "message": message}
    for day, second, level, message in [
        (21, 1, "info", "order 1 paid"),
        (21, 2, "error", "payment of order 2 failed"),
        (22, 1, "info", "商品を追加しました"),
        (22, 2, "warning", "order 4 is late"),
    ]
]


def killed_program(folder: Path, options: str) -> None:
    """Run the program until it has killed itself."""
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(folder / "queue"), "LOGSPOOL_KEEPER": "off"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, options], cwd=folder, env=variables, timeout=120)
    assert done.returncode == -signal.SIGKILL, done


def killed_service(program: str, store: Path) -> None:
    """Run a service, send records to it, and kill it after it has stored them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        program,
        "serve",
        "--http",
        f"127.0.0.1:{port}",
        "--listen",
        "tcp://127.0.0.1:0",
        "--store",
        f"sqlite:{store}",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        while "ready: " not in service.stderr.readline():
            pass
        body = "\n".join(map(json.dumps, SENT)).encode()
        address = f"http://127.0.0.1:{port}/ingest"
        request = urllib.request.Request(address, body, {"Content-Type": "application/x-ndjson"})
        urllib.request.urlopen(request, timeout=30).read()
        # The thread that builds the index.
        time.sleep(2)
        service.kill()


def pack(folder: Path, name: Path) -> None:
    """Pack the files of a folder without the names, times and users of the machine."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(name, "w:xz") as archive:
        archive.add(folder, ".", filter=plain)


def main() -> None:
    """Make the files."""
    to = Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        killed_program(Path(name), "{}")
        pack(Path(name) / "queue", to / "queue.tar.xz")
    with tempfile.TemporaryDirectory() as name:
        killed_program(Path(name), f"dict(spool_dir={str(Path(name) / 'spool')!r})")
        pack(Path(name) / "spool", to / "spool.tar.xz")
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory() as name:
            killed_service(sys.argv[2], Path(name) / "store")
            pack(Path(name) / "store", to / "store.tar.xz")


if __name__ == "__main__":
    main()
