"""A service of the comparison: the release build, on ports of its own, with stores of its own."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build() -> Path:
    """Return the path of the command, built for release."""
    command = ["cargo", "build", "--release", "--quiet", "--package", "logspool-server", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    (found,) = [message["executable"] for message in messages if message.get("executable")]
    return Path(found)


class Service:
    """A service that runs."""

    def __init__(self, binary: Path, *options: str):
        """Start it and wait until it is ready."""
        listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen([binary, "serve", *listen, *options], stderr=subprocess.PIPE, text=True)
        self.ports: dict[str, int] = {}
        for line in self.process.stderr:
            if found := re.search(r"listening at (\w+)://127.0.0.1:(\d+)(\?protocol=http)?", line):
                self.ports["http" if found[3] else found[1]] = int(found[2])
            if "ready: " in line:
                return
        raise RuntimeError("the service does not start")

    def stats(self) -> dict:
        """Return its counts."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/api/stats", timeout=30) as answer:
            return json.load(answer)

    def wait_stored(self, records: int, timeout: float = 300) -> None:
        """Wait until each store has committed so many."""
        until = time.monotonic() + timeout
        while any(store["records_stored"] < records for store in self.stats()["stores"]):
            if time.monotonic() > until:
                raise RuntimeError(f"not stored in time: {self.stats()}")
            time.sleep(0.005)

    def memory_mb(self) -> float:
        """Return its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stop(self) -> None:
        """End it; everything that came is stored."""
        self.process.terminate()
        if self.process.wait(120) != 0:
            raise RuntimeError(f"the service ended with {self.process.returncode}")
        self.process.stderr.close()
