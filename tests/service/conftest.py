"""A running service for each test that wants one: built from the checkout, with ports and a folder of its own."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import postgres

import executables
from ports import free_port
from suite import dispositions
from suite.fixtures import private_queue, queue_dir  # noqa: F401

# Ten times the time that a slow machine needed.
DEADLINE = 30.0

# Puts inherited sockets where a service manager puts them, from descriptor 3 on, and becomes the command.
PASS_SOCKETS = """\
import fcntl, os, sys
numbers = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1].split(",")]
for place, number in enumerate(numbers, 3):
    os.dup2(number, place)
    os.close(number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(numbers)))
os.execv(sys.argv[2], sys.argv[2:])
"""


def pytest_configure():
    """Let programs be ended by any signal, however this run was started."""
    dispositions.reset()


@pytest.fixture(scope="session")
def logspool_binary() -> Path:
    """Return the path of the command, built from the checkout; full sizes are for what users run."""
    optimised = ["--release"] if os.environ.get("LOGSPOOL_FAULTS") == "full" else []
    return executables.build("logspool-server", "--bin", "logspool", *optimised)


class Service:
    """A service, and what can be asked of it."""

    def __init__(
        self,
        binary: Path,
        folder: Path,
        arguments: "list[str]",
        config: "str | None",
        open_files: "int | None" = None,
        address_space: "int | None" = None,
        sockets: "Sequence[socket.socket]" = (),
        variables: "Mapping[str, str] | None" = None,
    ):
        """Start it and wait until it is ready.

        It may not have more than `open_files` files open, nor take more than `address_space` bytes of addresses. It
        gets `sockets` as from a service manager, and `variables` in its environment.
        """
        self.binary, self.folder, self.said = binary, folder, []
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["--listen", "tcp://127.0.0.1:0", "--listen", "udp://127.0.0.1:0", "--http", "127.0.0.1:0"]
        if config is not None:
            (folder / "logspool.toml").write_text(config)
            options = ["--config", str(folder / "logspool.toml")]
        if "--store" not in arguments and (config is None or "store" not in config):
            options += ["--store", f"sqlite:{folder / 'data'}"]
        command = [binary, "serve", *options, *arguments]
        if open_files is not None:
            command = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(open_files), *command]
        if address_space is not None:
            command = ["sh", "-c", 'ulimit -v "$0" && exec "$@"', str(address_space // 1024), *command]
        numbers = [each.fileno() for each in sockets]
        if numbers:
            command = [sys.executable, "-c", PASS_SOCKETS, ",".join(map(str, numbers)), *command]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(variables or {})},
            pass_fds=numbers,
        )
        self.listening = threading.Event()
        #: While it is cleared, the output of the service is not read: its pipe fills.
        self.heard = threading.Event()
        self.heard.set()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        is_ready = self.listening.wait(DEADLINE) and self.process.poll() is None
        if not is_ready:
            # No fixture knows it yet.
            self.stop(signal.SIGKILL)
        assert is_ready, "not ready, or not in time:\n" + "\n".join(self.said)

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if "ready: " in line:
                self.listening.set()
            self.heard.wait()
        self.listening.set()

    def address(self, scheme: str, protocol: str = "") -> "tuple[str, int]":
        """Return host and port of a listener."""
        for line in self.said:
            found = re.search(
                rf"listening at {scheme}://(\[[^]]+\]|[^:]+):(\d+)(\?(?:protocol=([^&\s]+))?(?:&?levels=\S+)?)?$", line
            )
            if found and (found[4] or "") == protocol:
                return found[1], int(found[2])
        raise AssertionError(f"no {scheme} listener: {self.said}")

    @property
    def tcp(self) -> "tuple[str, int]":
        """Host and port for streams."""
        return self.address("tcp")

    @property
    def udp(self) -> "tuple[str, int]":
        """Host and port for datagrams."""
        return self.address("udp")

    @property
    def url(self) -> str:
        """Where HTTP is served."""
        host, port = self.address("tcp", "http")
        return f"http://{host}:{port}"

    def command(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Run a command of logspool."""
        options = {"capture_output": True, "text": True, "timeout": DEADLINE, **options}
        return subprocess.run([self.binary, *arguments], **options)

    def query(self, expression: str = "", *arguments: str) -> "list[dict]":
        """Return the rows of a query, as JSON has them."""
        command = ["query", "--service", self.url, "--format", "ndjson", expression, *arguments]
        done = self.command(*command)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def wait_for(self, count: int, expression: str = "") -> "list[dict]":
        """Return the rows of a query once there are `count`, newest first; at the deadline fail with the rows found."""
        until = time.monotonic() + DEADLINE
        while True:
            rows = self.query(expression, "--limit", str(count + 1))
            if len(rows) >= count or time.monotonic() > until:
                assert len(rows) == count, f"{len(rows)} rows, not {count}: {rows[:5]}"
                return rows
            time.sleep(0.02)

    def stored_messages(self) -> "list[str]":
        """Return the messages of all records in the files of the store, for more than a query prints in a test."""
        messages = []
        for path in sorted((self.folder / "data").glob("????-??-??*.sqlite")):
            with contextlib.closing(sqlite3.connect(path)) as database:
                messages += [message for (message,) in database.execute("SELECT message FROM records ORDER BY id")]
        return messages

    def wait_said(self, part: str, times: int) -> None:
        """Wait until `times` messages of the service contain `part`; messages arrive on a pipe of their own."""
        until = time.monotonic() + DEADLINE
        while times != sum(part in line for line in self.said):
            assert time.monotonic() < until, self.said
            time.sleep(0.01)

    def wait_metric(self, line: str) -> str:
        """Wait until the metrics have a line; return all of them. Counters change after the events that they count."""
        until = time.monotonic() + DEADLINE
        while line not in (found := self.get("/metrics")[1]).splitlines():
            assert time.monotonic() < until, f"no {line} in {found}"
            time.sleep(0.01)
        return found

    def count(self, expression: str = "") -> int:
        """Return how many records there are."""
        return sum(row["count"] for row in self.query(f"{expression} | count by level"))

    def get(self, path: str, **headers: str) -> "tuple[int, str]":
        """Return status and body of a request."""
        return self.request("GET", path, None, headers)

    def post(self, path: str, body: bytes, content_type: str, **headers: str) -> "tuple[int, str]":
        """Return status and body of a request."""
        return self.request("POST", path, body, {"Content-Type": content_type, **headers})

    def request(self, method: str, path: str, body: "bytes | None", headers: "dict[str, str]") -> "tuple[int, str]":
        """Return status and body of a request."""
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(DEADLINE)
        self.heard.set()
        self.reader.join(DEADLINE)
        self.process.stderr.close()
        return code


@pytest.fixture
def start_service(logspool_binary, tmp_path):
    """Start services; they are stopped at the end of the test."""
    started = []

    def start(
        *arguments: str,
        config: "str | None" = None,
        folder: "Path | None" = None,
        **options: Any,
    ) -> Service:
        service = Service(logspool_binary, folder or tmp_path / "service", list(arguments), config, **options)
        started.append(service)
        return service

    yield start
    for service in started:
        # A test may have killed the service: its pipe is still open.
        service.stop()
        assert not any("panicked" in line for line in service.said), "\n".join(service.said)


@pytest.fixture
def service(start_service) -> Service:
    """A service with the usual set-up."""
    return start_service()


@pytest.fixture
def database():
    """A PostgreSQL that can be killed."""
    folder = postgres.programs()
    if folder is None:
        pytest.skip("LOGSPOOL_WITHOUT_POSTGRES is set")
    server = postgres.Postgres(folder, free_port())
    yield server
    server.close()


@pytest.fixture
def run_python(tmp_path):
    """Run a program in another process of this interpreter, without logspool."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess:
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path, env=variables)

    return run
