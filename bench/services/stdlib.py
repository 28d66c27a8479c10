"""Unchanged `SocketHandler`s of many processes, into a text file and PostgreSQL, without a pause between calls."""

from __future__ import annotations

import subprocess
import sys
import time

from parts import Column, Part, Round, turns
from services import counting, senders
from services.ground import HERE, Ground, Sender
from services.running import serving

PYTHON, OURS, NOBODY = "Python bulk server", "logspool serve", "nobody (thrown away)"


def row(clients: int, contender: str) -> str:
    """Return the name of a row."""
    return f"{clients} processes: {contender}"


def measure(ground: Ground) -> Round:
    """Run all of them once."""
    found: Round = {}
    for clients in turns(ground.sizes.clients):
        records = ground.sizes.records // clients * clients
        for contender, run in turns([(PYTHON, _python), (OURS, _ours), (NOBODY, _nobody)]):
            name = row(clients, contender)
            ground.say(name)
            found[name] = run(ground, clients, records)
    return found


def _python(ground: Ground, clients: int, records: int) -> dict[str, float]:
    with ground.folder() as folder, ground.server.database() as url:
        lines = folder / "plain.log"
        command = [sys.executable, HERE / "bulk_server.py", lines, url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin and server.stdout
            try:
                began = senders.crowd("stream", "127.0.0.1", int(server.stdout.readline()), clients, records)
                server.stdin.close()
                server.wait()
            finally:
                server.kill()
            seconds = time.perf_counter() - began
        return _counted(records, seconds, counting.in_postgres(url, "plain"), counting.in_file(lines))


def _ours(ground: Ground, clients: int, records: int) -> dict[str, float]:
    with ground.folder() as folder, ground.server.database() as url:
        lines = folder / "service.log"
        with serving(ground.binary, "--store", url, "--file", str(lines)) as service:
            used = service.cpu_seconds()
            began = senders.crowd("stream", "127.0.0.1", service.ports["tcp"], clients, records)
            service.wait_stored(records)
            seconds = time.perf_counter() - began
            used = service.cpu_seconds() - used
            memory = service.memory_mb()
        figures = _counted(records, seconds, counting.in_postgres(url), counting.in_file(lines))
    return {**figures, "service_us": used / records * 1e6, "memory_mb": memory}


def _nobody(ground: Ground, clients: int, records: int) -> dict[str, float]:
    receiver = Sender([str(ground.programs["blast"]), "discard"])
    try:
        began = senders.crowd("stream", "127.0.0.1", int(receiver.first), clients, records)
        seconds = time.perf_counter() - began
        receiver.finish()
    finally:
        receiver.end()
    return {"rate": records / seconds}


def _counted(records: int, seconds: float, rows: counting.Counted, lines: counting.Counted) -> dict[str, float]:
    """Count a record as there when it is in both places."""
    both = counting.Counted(max(rows.found, lines.found), min(rows.distinct, lines.distinct))
    return {"rate": records / seconds, **both.figures(records)}


PART = Part(
    "stdlib",
    "Unchanged SocketHandlers of many processes, into a text file and PostgreSQL",
    (
        Column("rate", "records/s", 0),
        Column("service_us", "service's CPU, us", 2),
        Column("memory_mb", "memory, MB", 1),
    ),
    compared_with=lambda name: f"{name.split(': ')[0]}: {PYTHON}",
    most_rounds=3,
    question="Programs that log by logging.handlers.SocketHandler as fast as they can, from their common start until "
    "every record is committed and in the file. The clients have the same cores: thrown away is what they reach when "
    "nobody works on what they send.",
    work=(
        (
            PYTHON,
            "one thread with epoll, pickle.loads and makeLogRecord; a line of time, level, logger and message; nine "
            "columns (no host, no names of process and thread), by execute_values of 1,000 rows, a commit each that "
            "waits for the disk; no index",
        ),
        (
            OURS,
            "a line of time, level, logger, message and host; the 18 columns of its table, with indexes on time and "
            "trace, by COPY; commits of 10,000 rows or 50 ms that wait for the disk; neither file is synced",
        ),
        (NOBODY, "a receiver that reads and forgets"),
    ),
    measure=measure,
)
