"""Lines of syslog over TCP, into a text file and into PostgreSQL, beside rsyslog."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from parts import Column, Part, Round, turns
from services import counting, rsyslog
from services.database import execute, query
from services.ground import Ground
from services.part import wait
from services.running import serving

FILE, ROWS = "file", "PostgreSQL"
OURS, THEIRS = "logspool serve", "rsyslog"


def row(to: str, connections: int, contender: str) -> str:
    """Return the name of a row."""
    return f"{to}, {connections} connection{'s' if connections > 1 else ''}: {contender}"


def measure(ground: Ground) -> Round:
    """Run all of them once."""
    found: Round = {}
    runs = {(FILE, OURS): _our_file, (FILE, THEIRS): _their_file, (ROWS, OURS): _our_rows, (ROWS, THEIRS): _their_rows}
    for connections in turns(ground.sizes.connections):
        for (to, contender), run in turns(runs.items()):
            name = row(to, connections, contender)
            ground.say(name)
            found[name] = run(ground, connections)
    return found


def _our_file(ground: Ground, connections: int) -> dict[str, float]:
    # A service that stores nothing keeps the file alone, as rsyslog does.
    with ground.folder() as folder:
        lines = folder / "lines.log"
        with serving(ground.binary, "--file", str(lines), config="store = []\n") as service:
            return _lines(ground, lines, service.ports["tcp"], connections)


def _their_file(ground: Ground, connections: int) -> dict[str, float]:
    with ground.folder() as folder:
        lines = folder / "lines.log"
        with rsyslog.running(folder, rsyslog.to_file(lines)) as port:
            return _lines(ground, lines, port, connections)


def _lines(ground: Ground, path: Path, port: int, connections: int) -> dict[str, float]:
    records = ground.sizes.many_records
    with ground.blasting("lines", f"127.0.0.1:{port}", "--records", records, "--connections", connections) as blast:
        began = blast.begin()
        wait("the first line", lambda: path.exists() and path.stat().st_size > 0, pause=0.001)
        # All lines are of one length.
        with path.open("rb") as file:
            wait("a whole line", lambda: _has_line(file))
            length = len(file.readline())
        seconds = _until(began, "all lines", lambda: path.stat().st_size >= records * length)
        blast.result()
    return {"rate": records / seconds, **counting.in_file(path).figures(records)}


def _our_rows(ground: Ground, connections: int) -> dict[str, float]:
    with ground.server.database() as url:
        with serving(ground.binary, "--store", url) as service:
            arguments = _few(ground, service.ports["tcp"], connections)
            with ground.blasting(*arguments) as blast:
                began = blast.begin()
                seconds = _until(began, "all rows", lambda: service.stored() >= ground.sizes.syslog_rows)
                blast.result()
        counts = counting.in_postgres(url).figures(ground.sizes.syslog_rows)
    return {"rate": ground.sizes.syslog_rows / seconds, **counts}


def _their_rows(ground: Ground, connections: int) -> dict[str, float]:
    with ground.folder() as folder, ground.server.database() as url:
        execute(url, rsyslog.schema())
        action = rsyslog.to_postgres(ground.server.port, url.rsplit("/", 1)[1])
        with rsyslog.running(folder, action) as port, ground.blasting(*_few(ground, port, connections)) as blast:
            began = blast.begin()
            # Its rows are numbered, and the number has an index: counting them all would slow it down.
            newest = "SELECT coalesce(max(id), 0) FROM systemevents"
            rows = ground.sizes.syslog_rows
            seconds = _until(began, "all rows", lambda: query(url, newest)[0] >= rows, pause=0.02)
            blast.result()
        counts = counting.in_postgres(url, "systemevents").figures(rows)
    return {"rate": rows / seconds, **counts}


def _until(began: float, what: str, is_so: Callable[[], bool], *, pause: float = 0.005) -> float:
    """Return the seconds from the beginning until something is so."""
    wait(what, is_so, pause=pause)
    return time.perf_counter() - began


def _has_line(file: BinaryIO) -> bool:
    whole = file.readline().endswith(b"\n")
    file.seek(0)
    return whole


def _few(ground: Ground, port: int, connections: int) -> list[object]:
    rows = ground.sizes.syslog_rows
    return ["lines", f"127.0.0.1:{port}", "--records", rows, "--connections", connections]


PART = Part(
    "syslog",
    "Lines of syslog (RFC 5424) over TCP, into a text file and into PostgreSQL",
    (Column("rate", "records/s", 0),),
    compared_with=lambda name: f"{name.split(': ')[0]}: {THEIRS}",
    most_rounds=3,
    question="A sender without Python writes lines of 130 bytes that were made before the clock begins, as fast as "
    "they are taken, until the last one is in the file or committed. rsyslog has a queue of 100,000 messages and "
    "batches of 1,024, and makes the sender wait rather than lose anything.",
    work=(
        (f"file, ...: {OURS}", "parses each line; writes time, level, program, message, host and facility; not synced"),
        (
            f"file, ...: {THEIRS}",
            "parses each line; writes its default format: time, host, tag and message; not synced",
        ),
        (
            f"PostgreSQL, ...: {OURS}",
            "its table, 18 columns, with indexes on time and trace; COPY; commits of 10,000 rows "
            "or 50 ms that wait for the disk",
        ),
        (
            f"PostgreSQL, ...: {THEIRS}",
            "the table that its Debian package brings, 8 of its columns and a number as its "
            "key; an insert for each row; commits of up to 1,024 rows that wait for the disk",
        ),
    ),
    missing=rsyslog.missing,
    measure=measure,
)
