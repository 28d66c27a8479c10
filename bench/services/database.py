"""A PostgreSQL of the comparison's own, and the questions that are asked of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import postgres_server  # its folder was added by report
from ports import free_port
from services import processes

#: The settings of a server for much writing; a commit waits for the disk. Checkpoints come between the contenders, so
#: that no contender pays for another.
SETTINGS = ["shared_buffers=512MB", "max_wal_size=8GB", "checkpoint_timeout=1h", "fsync=on", "synchronous_commit=on"]
USER = "bench"


class Postgres(postgres_server.Server):
    """A server; each contender has a database of its own in it."""

    def __init__(self) -> None:
        """Start it and wait until it answers."""
        programs = postgres_server.programs()
        if programs is None:
            raise RuntimeError("no PostgreSQL: LOGSPOOL_WITHOUT_POSTGRES is set")
        super().__init__(programs, free_port(), USER, SETTINGS)
        self.databases = 0

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Make a database and yield its address; it is gone at the end. Earlier writes are on the disk by then."""
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
