"""A PostgreSQL of the comparison's own: a temporary folder, a port of its own, ended by the process it started."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services import processes

ROOT = Path(__file__).resolve().parents[2]
#: As a server that somebody has set up for much writing; a commit waits for the disk. Checkpoints come between the
#: contenders, so that none of them pays for another.
OPTIONS = ["-c", "shared_buffers=512MB", "-c", "max_wal_size=8GB", "-c", "checkpoint_timeout=1h"]
OPTIONS += ["-c", "fsync=on", "-c", "synchronous_commit=on"]
USER = "bench"
DEADLINE = 60.0


class Postgres:
    """A server; each contender has a database of its own in it."""

    def __init__(self) -> None:
        """Start it and wait until it answers."""
        finder = [sys.executable, ROOT / "scripts/postgres_tools.py"]
        found = subprocess.run(finder, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        if not found:
            raise RuntimeError("no PostgreSQL: LOGSPOOL_WITHOUT_POSTGRES is set")
        programs = Path(found)
        self.folder = Path(tempfile.mkdtemp(prefix="logspool-bench-"))
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        data, log = self.folder / "data", self.folder / "log"
        initialise = [programs / "initdb", "-D", data, "-A", "trust", "-U", USER, "-E", "UTF8", "--no-sync"]
        subprocess.run(initialise, stdout=subprocess.DEVNULL, check=True, cwd=self.folder, **user)
        self.port = free_port()
        address = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-k", self.folder]
        command = [programs / "postgres", "-D", data, *address, *OPTIONS]
        with log.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder, **user)
        self.databases = 0
        try:
            self._wait(log)
        except BaseException:
            self.stop()
            raise

    def _wait(self, log: Path) -> None:
        """Wait until it answers."""
        import psycopg2

        until = time.monotonic() + DEADLINE
        while True:
            try:
                execute(self.url("postgres"), "SELECT 1")
                return
            except psycopg2.OperationalError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"PostgreSQL does not start: {log.read_text()[-500:]}") from None
            time.sleep(0.05)

    def url(self, name: str) -> str:
        """Return the address of a database."""
        return f"postgres://{USER}@127.0.0.1:{self.port}/{name}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Make a database and yield its address; it is gone at the end. What came before is on the disk by then."""
        self.databases += 1
        name = f"bench_{self.databases}"
        self.execute(f"CREATE DATABASE {name}", "CHECKPOINT")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, *statements: str) -> None:
        """Run statements, each alone."""
        execute(self.url("postgres"), *statements)

    def cpu_seconds(self) -> float:
        """Return the processor time of the server and its processes."""
        return processes.family_cpu_seconds(self.process.pid)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the server and all its processes stand still, as on a machine that hangs."""
        members = [self.process.pid, *processes.children(self.process.pid)]
        try:
            for member in members:
                os.kill(member, signal.SIGSTOP)
            yield
        finally:
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its folder."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def execute(url: str, *statements: str) -> None:
    """Run statements, each alone."""
    with _connected(url) as cursor:
        for statement in statements:
            cursor.execute(statement)


def query(url: str, sql: str) -> tuple[Any, ...]:
    """Return the first row of an answer."""
    with _connected(url) as cursor:
        cursor.execute(sql)
        return cursor.fetchone() or ()


@contextlib.contextmanager
def _connected(url: str) -> Iterator[Any]:
    # Imported where it is used: what needs no server does without it.
    import psycopg2

    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        yield connection.cursor()
    finally:
        connection.close()


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]
