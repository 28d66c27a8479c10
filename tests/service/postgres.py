"""A PostgreSQL of one test, and what it holds."""

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
        return self._ask("COPY (SELECT message FROM logspool.records) TO STDOUT")

    def execute(self, sql: str) -> None:
        """Run a statement."""
        self._ask(sql)

    def _ask(self, sql: str) -> "list[str]":
        """Return the rows that a statement copies."""
        parameters = f"user\0{self.user}\0database\0postgres\0\0".encode()
        question = sql.encode() + b"\0"
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
