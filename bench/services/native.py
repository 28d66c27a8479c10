"""How fast is logspool's own client, exactly once, beside the plainest way to write the same rows?

The rows that one client process has stored are read back, and written once more: raw, and by the store's writer called
directly. So all of them write the same rows, in transactions of 10,000, and wait for the disk at each commit.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

from parts import Column, Part, Round, turns
from services import counting
from services.ground import HERE, POSTGRES, SQLITE, Ground, Sender
from services.part import Wrong
from services.running import Service, serving

RAW = {SQLITE: "SQLite: raw inserts, 50 rows each", POSTGRES: "PostgreSQL: raw COPY BINARY"}

#: Chunks that logspool's client has on their way at a time, and fewer than a commit takes: they show what that costs.
WINDOW, NARROW_WINDOW = 24, 8

#: Rows of the calibrator: (figure that it prints, name).
CALIBRATED = {
    SQLITE: [
        ("raw", RAW[SQLITE]),
        ("store", "SQLite: writer alone, no indexer"),
        ("store_indexing", "SQLite: writer alone, indexer beside it"),
        ("indexed", "SQLite: writer alone, until all is indexed"),
    ],
    POSTGRES: [
        ("raw", RAW[POSTGRES]),
        ("raw_store_table", "PostgreSQL: raw COPY BINARY into the store's table"),
        ("store", "PostgreSQL: writer alone"),
    ],
}


def client(kind: str, processes: int) -> str:
    """Return the name of a row of the native client."""
    return f"{kind}: native client, {processes} process{'es' if processes > 1 else ''}"


def sender(kind: str, connections: int, window: int = WINDOW) -> str:
    """Return the name of a row of the sender without Python."""
    words = "" if window == WINDOW else f", {window} chunks on their way"
    return f"{kind}: Rust sender, {connections} connection{'s' if connections > 1 else ''}{words}"


def measure(ground: Ground) -> Round:
    """Run all of them once."""
    found: Round = {}
    for kind in turns((SQLITE, POSTGRES)):
        for count in turns(ground.sizes.processes):
            ground.say(client(kind, count))
            found |= _clients(ground, kind, count)
        for count, window in turns([(1, NARROW_WINDOW), *((count, WINDOW) for count in ground.sizes.connections)]):
            name = sender(kind, count, window)
            ground.say(name)
            found[name] = _sender(ground, kind, count, window)
    return found


def _clients(ground: Ground, kind: str, processes: int) -> Round:
    share = ground.sizes.records // processes
    records = share * processes
    with ground.store(kind) as store, contextlib.ExitStack() as cleaning:
        with serving(ground.binary, "--store", store) as service:
            script, address = str(HERE / "native_client.py"), f"tcp://{service.tcp}"
            clients = [Sender([sys.executable, script, address, str(n), str(share)]) for n in range(processes)]
            for each in clients:
                cleaning.callback(each.end)
            used = _Used(ground, kind, service)
            for each in clients:
                each.begin()
            results = [each.result() for each in clients]
            cpu = used.figures(records)
        seconds = max(result["done"] for result in results) - min(result["began"] for result in results)
        logged = sum(result["logged"] - result["began"] for result in results) / records
        figures = {"rate": records / seconds, "call_ns": logged * 1e9, **cpu}
        figures["sender_us"] = sum(result["cpu"] for result in results) / records * 1e6
        figures |= counting.in_store(store, "logger = 'native'").figures(records)
        found: Round = {client(kind, processes): figures}
        if processes == 1:
            ground.say(f"{kind}: the same rows raw, and by the writer alone")
            found |= _calibrated(ground, kind, store)
    return found


def _sender(ground: Ground, kind: str, connections: int, window: int) -> dict[str, float]:
    records = ground.sizes.records
    with ground.store(kind) as store:
        with serving(ground.binary, "--store", store) as service:
            sizes = ["--records", records, "--connections", connections, "--window", window]
            with ground.blasting("forward", service.tcp, *sizes) as blast:
                used = _Used(ground, kind, service)
                blast.begin()
                result = blast.result()
                cpu = used.figures(records)
        return {"rate": records / result["done"], **cpu, **counting.in_store(store).figures(records)}


def _calibrated(ground: Ground, kind: str, store: str) -> Round:
    done = subprocess.run([ground.programs["raw_rows"], store], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Wrong(f"the calibrator of {kind} ended with {done.returncode}")
    found = json.loads(done.stdout)
    # It counts the rows itself, and stops where one is missing.
    counts = counting.Counted(found["rows"], found["rows"]).figures(ground.sizes.records)
    return {name: {"rate": found[figure], **counts} for figure, name in CALIBRATED[kind]}


class _Used:
    """Processor time that service and database use from here on."""

    def __init__(self, ground: Ground, kind: str, service: Service):
        self.read = lambda: (service.cpu_seconds(), ground.database_cpu_seconds(kind))
        self.before = self.read()

    def figures(self, records: int) -> dict[str, float]:
        """Return it for each record."""
        service, database = (now - then for now, then in zip(self.read(), self.before))
        return {"service_us": service / records * 1e6, "database_us": database / records * 1e6}


PART = Part(
    "native",
    "logspool's own client, exactly once: from the first call until everything is acknowledged",
    (
        Column("rate", "records/s", 0),
        Column("call_ns", "ns per call", 0),
        Column("sender_us", "sender's CPU, us", 2),
        Column("service_us", "service's CPU, us", 2),
        Column("database_us", "database's CPU, us", 2),
    ),
    compared_with=lambda row: RAW[row.split(":")[0]],
    question="How near does the way from a Python program through the service into the store come to writing the very "
    "same rows into the store as plainly as can be? CPU is for each record, of all threads; where the three together "
    "fill the cores, more of any of them would not help.",
    work=(
        (
            "raw",
            "the 18 columns of the store's rows, encoded before the clock begins (COPY) or bound from memory "
            "(inserts); commits of 10,000 rows that wait for the disk; an index on the time: BRIN in PostgreSQL, a "
            "B-tree in SQLite",
        ),
        ("into the store's table", "the same into a table with a partition for each day and an index on traces"),
        (
            "writer alone",
            "the same rows with the position of their stream and, in SQLite, counts by minute, in each "
            "commit; no network, no decoding",
        ),
        ("no indexer", "switched off in the program; `logspool serve` always has it"),
        (
            "indexer beside it",
            "a thread of low priority makes an index of words, traces and loggers in a file of its own; "
            "on busy cores it lags, and `until all is indexed` counts until it is done",
        ),
        (
            "Rust sender",
            "chunks with 11 fields, made before the clock begins; ids, acks, 24 chunks on their way for each "
            "connection, like the client; the indexer is on",
        ),
        (
            "native client",
            "logging calls with three arguments, captured, formatted, sent and acknowledged after the "
            "commit; the indexer is on, and what it does until the last ack is included",
        ),
    ),
    measure=measure,
)
