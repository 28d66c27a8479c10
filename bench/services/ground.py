"""The ground of the parts: built programs, a server of PostgreSQL, folders, and a line that names the running part."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import executables  # its folder was added by report
from services.database import Postgres, query
from services.part import DEADLINE, Sizes, Wrong

HERE = Path(__file__).resolve().parent

SQLITE, POSTGRES = "SQLite", "PostgreSQL"


def build() -> dict[str, Path]:
    """Build the service, the senders and the calibrators for release; return their paths."""
    wanted = [
        "--bin",
        "logspool",
        "--example",
        "blast",
        "--example",
        "raw_rows",
        "--bench",
        "pickle",
        "--bench",
        "sqlite",
    ]
    return executables.build_all("logspool-server", "--release", *wanted)


class Ground:
    """See the head of this file."""

    def __init__(self, programs: dict[str, Path], sizes: Sizes):
        """Start nothing yet."""
        self.programs, self.sizes = programs, sizes
        self.place = ""
        self._server: Postgres | None = None

    @property
    def binary(self) -> Path:
        """Return the service."""
        return self.programs["logspool"]

    @property
    def server(self) -> Postgres:
        """Return the server, started when it is first asked for; all contenders share it."""
        if self._server is None:
            self.say("starting PostgreSQL")
            self._server = Postgres()
        return self._server

    def server_version(self) -> str:
        """Return the version of the server, where one was asked for."""
        if self._server is None:
            return "not used"
        return str(query(self._server.url("postgres"), "SHOW server_version")[0]).split(" ")[0]

    def close(self) -> None:
        """End the server, if it was started."""
        if self._server is not None:
            self._server.close()

    def say(self, what: str) -> None:
        """Print the running part and its present work."""
        words = f"{self.place}: {what}" if self.place else what
        if sys.stderr.isatty():
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
        else:
            print(f"    {words}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def store(self, kind: str) -> Iterator[str]:
        """Yield the address of a store that is empty; it is gone at the end."""
        if kind == POSTGRES:
            with self.server.database() as url:
                yield url
        else:
            with self.folder() as folder:
                yield f"sqlite:{folder}/data"

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield a folder on disk; earlier writes are on the disk by then, so that no contender waits for them."""
        os.sync()
        # The files of the run are in LOGSPOOL_BENCH_DIR, as in the comparison of loggers.
        with tempfile.TemporaryDirectory(prefix="logspool-bench-", dir=os.environ.get("LOGSPOOL_BENCH_DIR")) as folder:
            yield Path(folder)

    def database_cpu_seconds(self, kind: str) -> float:
        """Return the processor time of the server where it is the store."""
        return self.server.cpu_seconds() if kind == POSTGRES else 0.0

    def blast(self, *arguments: object) -> dict[str, float]:
        """Have the sender without Python make its records and send them; return its result."""
        with self.blasting(*arguments) as sender:
            sender.begin()
            return sender.result()

    @contextlib.contextmanager
    def blasting(self, *arguments: object) -> Iterator[Sender]:
        """Yield the sender, ready to begin; it is gone at the end of the block."""
        sender = Sender([str(self.programs["blast"]), *map(str, arguments)])
        try:
            yield sender
        finally:
            sender.end()

    def bench(self, name: str, *arguments: str, **variables: str) -> dict[str, dict[str, float]]:
        """Run a bench of the service's crate and return its figures."""
        command = [str(self.programs[name]), "--bench", "--json", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
        if done.returncode != 0:
            raise Wrong(f"the bench {name} ended with {done.returncode}")
        return dict(json.loads(done.stdout))


class Sender:
    """A process that makes something, prints `ready`, waits for a line and prints its result as JSON."""

    def __init__(self, command: list[str]):
        """Start it, without settings from outside, and wait until it is ready."""
        self.name = Path(command[0]).name
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("LOGSPOOL", "OTEL_"))}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
        )
        self.first = self._line()

    def begin(self) -> float:
        """Let it go; return when, on the clock of `time.perf_counter`."""
        assert self.process.stdin
        began = time.perf_counter()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return began

    def finish(self) -> dict[str, Any]:
        """Close its input, which ends a sender that has no end of its own, and wait for its result."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.result()

    def result(self) -> dict[str, Any]:
        """Wait for its result."""
        found = self._line()
        if self.process.wait(DEADLINE) != 0:
            raise Wrong(f"{self.name} ended with {self.process.returncode}")
        return dict(json.loads(found))

    def end(self) -> None:
        """End it, whatever its state."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Wrong(f"{self.name} ended with {self.process.wait(DEADLINE)}")
        return line.strip()
