"""A PostgreSQL of one test, and its contents."""

import socket
import struct
from pathlib import Path

from postgres_server import DEADLINE, Server, programs

__all__ = ["Postgres", "programs"]


class Postgres(Server):
    """A server that a service stores into."""

    def __init__(self, folder_of_programs: Path, port: int):
        """Make its data and start it."""
        super().__init__(folder_of_programs, port, "logspool", ["shared_buffers=32MB", "max_connections=50"])

    def messages(self) -> "list[str]":
        """Return the messages of all records, as the server gives them to anybody."""
        return self.column("SELECT message FROM logspool.records")

    def column(self, select: str) -> "list[str]":
        """Return the rows of a question with one column."""
        with Session(self) as session:
            return session.run(f"COPY ({select}) TO STDOUT")


class Session:
    """A connection of its own to a server; an open transaction ends with it."""

    def __init__(self, server: Postgres):
        """Connect."""
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=10 * DEADLINE)
        self.answers = self.connection.makefile("rb", 1 << 20)
        self.connection.sendall(server.startup())
        self._read_until_ready()

    def run(self, statements: str) -> "list[str]":
        """Run statements, and return the lines of a COPY among them."""
        question = statements.encode() + b"\0"
        self.connection.sendall(b"Q" + struct.pack("!I", 4 + len(question)) + question)
        return self._read_until_ready()

    def _read_until_ready(self) -> "list[str]":
        rows = []
        kind = b""
        while kind != b"Z":
            kind, length = struct.unpack("!cI", self.answers.read(5))
            content = self.answers.read(length - 4)
            assert kind != b"E", content
            if kind == b"d":
                rows.append(content.decode().rstrip("\n"))
        return rows

    def __enter__(self) -> "Session":
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.answers.close()
        self.connection.close()
