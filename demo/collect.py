"""Collect the records of many programs by a service: 50 with a handler of the standard library, one with logspool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import executables
import terminal

CLIENTS = 50
RECORDS = 2_000
DEADLINE = 120.0
SENDER = Path(__file__).with_name("sender.py")

#: The queries at the end; the first shows only five records.
QUESTIONS = [
    ["query", "level>=error bank", "--limit", "5"],
    ["query", "customer=7 | count by logger"],
    ["query", "order>=100000 | count by level"],
    ["query", "| histogram 1s"],
]


def build() -> Path:
    """Return the path of the command `logspool`, built for release."""
    try:
        return executables.build("logspool-server", "--release", "--bin", "logspool")
    except subprocess.CalledProcessError:
        raise terminal.fail("cannot build the service") from None


class Service:
    """A service that keeps its records in a folder."""

    def __init__(self, binary: Path, folder: Path):
        """Start it and wait until it is ready."""
        listen = ["--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--store", f"sqlite:{folder / 'data'}"]
        self.binary = binary
        self.log = (folder / "service.log").open("w+")
        self.process = subprocess.Popen([binary, "serve", *listen], stderr=self.log)
        until = time.monotonic() + DEADLINE
        while "ready: " not in (said := (folder / "service.log").read_text()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise terminal.fail(f"the service does not start: {said}")
            time.sleep(0.02)
        ports = dict(re.findall(r"tcp://127\.0\.0\.1:(\d+)(\?protocol=http)?", said))
        self.port = next(int(port) for port, http in ports.items() if not http)
        self.url = next(f"http://127.0.0.1:{port}" for port, http in ports.items() if http)

    def stored(self) -> int:
        """Return the number of committed records."""
        with urllib.request.urlopen(f"{self.url}/api/stats", timeout=30) as answer:
            return json.load(answer)["stores"][0]["records_stored"]

    def ask(self, arguments: list[str]) -> str:
        """Run a command of logspool and return what it prints."""
        colour = "always" if terminal.colours_wanted(sys.stdout) else "never"
        command = [self.binary, *arguments, "--service", self.url, "--color", colour]
        variables = {**os.environ, "COLUMNS": "100"}
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=variables).stdout

    def stop(self) -> int:
        """End the service, which first stores all received records; return its exit code."""
        self.process.terminate()
        code = self.process.wait(DEADLINE)
        self.log.close()
        return code


def show(python: str, progress: Callable[[int, int], None]) -> None:
    """Start a service, let programs log to it, and query it."""
    total = (CLIENTS + 1) * RECORDS
    with tempfile.TemporaryDirectory(prefix="logspool-demo-") as folder:
        service = Service(build(), Path(folder))
        try:
            began = time.perf_counter()
            kinds = ["stdlib"] * CLIENTS + ["logspool"]
            clients = [
                subprocess.Popen([python, SENDER, kind, "127.0.0.1", str(service.port), str(RECORDS), str(number)])
                for number, kind in enumerate(kinds)
            ]
            try:
                while (stored := service.stored()) < total:
                    progress(stored, total)
                    if time.perf_counter() - began > DEADLINE:
                        raise terminal.fail(f"{stored:,} of {total:,} records after {DEADLINE:.0f} s")
                    time.sleep(0.1)
                seconds = time.perf_counter() - began
                progress(total, total)
                if any(client.wait(DEADLINE) != 0 for client in clients):
                    raise terminal.fail("a program that logs failed")
            finally:
                for client in clients:
                    client.kill()
                    client.wait()
            terminal.note(f"{total:,} records of {len(kinds)} processes stored in {seconds:.1f} s, starts included")
            for question in QUESTIONS:
                shown = " ".join(f"'{word}'" if " " in word or "=" in word else word for word in question)
                print(f"\n  {terminal.paint('$ logspool ' + shown, 'bold')}")
                print("".join(f"  {line}\n" for line in service.ask(question).splitlines()), end="")
            counts = [
                json.loads(line)["count"]
                for line in service.ask(["query", "| count by level", "--format", "ndjson"]).splitlines()
            ]
        finally:
            code = service.stop()
        if sum(counts) != total:
            raise terminal.fail(f"{sum(counts):,} records are stored, {total:,} were logged")
        if code != 0:
            raise terminal.fail(f"the service ended with exit code {code}")
        print(f"\n  all {total:,} records are stored, each once\n")
