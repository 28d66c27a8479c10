"""Counts records at their destination: rows by SQL, lines in files. Every message has its number."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from services.database import query


@dataclass(frozen=True)
class Counted:
    """Records that are there, and how many different ones."""

    found: int
    distinct: int

    def figures(self, sent: int) -> dict[str, float]:
        """Return the figures for a row of a table."""
        return {"records": sent, "lost": sent - self.distinct, "doubled": self.found - self.distinct}


def in_postgres(url: str, table: str = "logspool.records", where: str = "true") -> Counted:
    """Count rows of a table."""
    return Counted(*query(url, f"SELECT count(*), count(DISTINCT message) FROM {table} WHERE {where}"))


def in_sqlite(folder: Path, where: str = "true") -> Counted:
    """Count rows of a store in SQLite: those in all of its days."""
    found = distinct = 0
    for path in sorted(folder.glob("????-??-??*.sqlite")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            sql = f"SELECT count(*), count(DISTINCT message) FROM records WHERE {where}"
            rows, different = connection.execute(sql).fetchone()
        found, distinct = found + rows, distinct + different
    return Counted(found, distinct)


def in_store(store: str, where: str = "true") -> Counted:
    """Count the records of a store of the service."""
    if store.startswith("sqlite:"):
        return in_sqlite(Path(store.removeprefix("sqlite:")), where)
    return in_postgres(store, where=where)


def in_file(path: Path, marks: tuple[bytes, bytes] = (b"sends record ", b" of a request")) -> Counted:
    """Count the lines of a file, and the different pairs of client and number in them; `marks` enclose the number."""
    lines, numbers = 0, set()
    begin, end = marks
    with path.open("rb") as file:
        for line in file:
            lines += 1
            # The client's name is before the mark.
            at = line.find(begin)
            if at >= 0:
                numbers.add(line[line.rfind(b" ", 0, at - 1) : line.find(end, at)])
    return Counted(lines, len(numbers))
