"""A PostgreSQL of one test: a temporary folder, a port of its own; it is killed, frozen and started again."""

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEADLINE = 60.0

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# Its answer to this tells that it takes connections (a client's question whether it speaks TLS).
QUESTION = bytes([0, 0, 0, 8, 4, 210, 22, 47])


def programs() -> "Path | None":
    """Return the folder of its programs; `None`: there is to be no PostgreSQL."""
    found = subprocess.run(
        [sys.executable, SCRIPTS / "postgres_tools.py"], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(found.stdout.strip()) if found.stdout.strip() else None


def user() -> dict:
    """Return whom it runs as: another than root, as whom it refuses to."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    raise AssertionError("PostgreSQL refuses to run as root, and there is no other user")


@functools.cache
def template(folder_of_programs: Path) -> Path:
    """Make the data of a new server, once for a run: each server begins with a copy."""
    folder = Path(tempfile.mkdtemp(prefix="logspool-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    account = user()
    if account:
        os.chown(folder, account["user"], account["group"])
    options = ["-A", "trust", "-U", "logspool", "-E", "UTF8", "--locale=C", "--no-sync"]
    command = [folder_of_programs / "initdb", "-D", folder / "data", *options]
    subprocess.run(command, check=True, capture_output=True, **_surroundings(folder))
    return folder / "data"


def _surroundings(folder: Path) -> dict:
    """Return where and as whom the programs run."""
    return {"cwd": folder, "env": {**os.environ, "HOME": str(folder)}, **user()}


class Postgres:
    """A server with one database."""

    def __init__(self, folder_of_programs: Path, port: int):
        """Make its data and start it."""
        self.programs, self.port = folder_of_programs, port
        # The path of its socket has a narrow limit, which a long TMPDIR would break.
        self.folder = Path(tempfile.mkdtemp(prefix="logspool-", dir="/tmp"))
        if account := user():
            os.chown(self.folder, account["user"], account["group"])
        subprocess.run(["cp", "-a", template(folder_of_programs), self.folder / "data"], check=True)
        self.process: subprocess.Popen | None = None
        self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"postgres://logspool@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, as often as it takes: while processes of one that was killed live on, it refuses to."""
        until = time.monotonic() + DEADLINE
        settings = ["shared_buffers=32MB", "listen_addresses=127.0.0.1", f"port={self.port}", "max_connections=50"]
        command = [self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder]
        for setting in settings:
            command += ["-c", setting]
        while True:
            with (self.folder / "log").open("a") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, **_surroundings(self.folder))
            while self.process.poll() is None:
                if self.answers():
                    return
                assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.02)
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]

    def answers(self) -> bool:
        """Tell whether it takes connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(QUESTION)
            return connection.recv(1) in (b"N", b"S")
        return False

    def family(self) -> "list[int]":
        """Return the process that was started and those that it has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def messages(self) -> "list[str]":
        """Return the messages of all records, as the server gives them to anybody."""
        parameters = b"user\0logspool\0database\0postgres\0\0"
        question = b"COPY (SELECT message FROM logspool.records) TO STDOUT\0"
        rows = []
        with socket.create_connection(("127.0.0.1", self.port), timeout=10 * DEADLINE) as connection:
            answers = connection.makefile("rb", 1 << 20)

            def read_until_ready() -> None:
                kind = b""
                while kind != b"Z":
                    kind, length = struct.unpack("!cI", answers.read(5))
                    content = answers.read(length - 4)
                    assert kind != b"E", content
                    if kind == b"d":
                        rows.append(content.decode().rstrip("\n"))

            connection.sendall(struct.pack("!II", 8 + len(parameters), 3 << 16) + parameters)
            read_until_ready()
            connection.sendall(b"Q" + struct.pack("!I", 4 + len(question)) + question)
            read_until_ready()
            answers.close()
        return rows

    def kill(self) -> None:
        """Kill all of it at once, as a machine that loses its power would (what is on the disk stays)."""
        for member in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.wait(DEADLINE)

    @contextlib.contextmanager
    def frozen(self):
        """Let all of it stand still: it takes connections, and never answers."""
        members = self.family()
        try:
            for member in members:
                os.kill(member, signal.SIGSTOP)
            yield
        finally:
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
