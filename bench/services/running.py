"""A service of the comparison: the release build, on ports of its own, with stores of its own."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import executables  # its folder was added by report

DEADLINE = 60.0


def build() -> Path:
    """Return the path of the command, built for release."""
    return executables.build("logspool-server", "--release", "--bin", "logspool")


class Service:
    """A service that runs."""

    def __init__(self, binary: Path, *options: str):
        """Start it and wait until it is ready."""
        listen = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.log = tempfile.NamedTemporaryFile("r")
        with open(self.log.name, "w") as output:
            # Not into a pipe: one that nobody reads would stop the service.
            self.process = subprocess.Popen([binary, "serve", *listen, *options], stderr=output)
        until = time.monotonic() + DEADLINE
        while "ready: " not in (said := Path(self.log.name).read_text()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the service does not start: {said}")
            time.sleep(0.02)
        listening = re.findall(r"listening at (\w+)://127\.0\.0\.1:(\d+)(\?protocol=http)?", said)
        self.ports = {"http" if http else scheme: int(port) for scheme, port, http in listening}

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
        self.log.close()
