"""Compare the service with the plainest things that do the same work, in one run on one machine.

Parts: `stdlib` (unchanged handlers into a file and PostgreSQL, against a Python server with epoll and bulk inserts of
1,000), `datagram` (the same by UDP, losses counted), `native` (logspool's client into SQLite and PostgreSQL, against
raw inserts and raw COPY of the same rows), `idle` (memory with connections that are silent).
Each round runs all contenders one after the other; a ratio is taken inside a round, and the median over the rounds
counts. Rows are counted in the stores, lines in the files.

    python bench/service.py [--quick] [--records N] [--clients N] [--rounds N] [--parts NAME,NAME]

The exit code is 1 where a target is missed or a record is lost; `--quick` judges nothing but the counts.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg2

import machine
import report  # noqa: F401  (its folder of scripts)
from services import running, senders
from services.database import postgres
from terminal import fail, step

HERE = Path(__file__).resolve().parent
PARTS = ["stdlib", "datagram", "native", "idle"]


class Comparison:
    """What was measured, and what was wrong."""

    def __init__(self, options: argparse.Namespace):
        """Build what runs."""
        self.options, self.figures, self.wrong = options, {}, []
        step("building the service for release")
        self.binary = running.build()

    def note(self, name: str, value: float) -> None:
        """Keep a figure of a round."""
        self.figures.setdefault(name, []).append(value)

    def count(self, what: str, wanted: int, found: int) -> None:
        """Compare counts."""
        if wanted != found:
            self.wrong.append(f"{what}: {found} of {wanted}")

    def median(self, name: str) -> float:
        """Return the median of a figure."""
        return statistics.median(self.figures[name])


def rows_in(url: str, table: str) -> int:
    """Count rows in PostgreSQL."""
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), count(DISTINCT message) FROM {table}")
        rows, distinct = cursor.fetchone()
    connection.close()
    return rows if rows == distinct else -rows


def lines_in(path: Path) -> int:
    """Count lines."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))


def stdlib(comparison: Comparison) -> None:
    """Unchanged `SocketHandler`s into a file and PostgreSQL."""
    clients = comparison.options.clients
    records = comparison.options.records // clients * clients
    with tempfile.TemporaryDirectory() as folder, postgres() as url:
        plain = Path(folder) / "plain.log"
        with subprocess.Popen(
            [sys.executable, HERE / "services/bulk_server.py", plain, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            port = int(server.stdout.readline())
            began = time.perf_counter()
            senders.crowd("stream", "127.0.0.1", port, clients, records)
            server.stdin.close()
            server.wait()
            python = records / (time.perf_counter() - began)
        comparison.count("Python server, rows", records, rows_in(url, "plain"))
        comparison.count("Python server, lines", records, lines_in(plain))

        file = Path(folder) / "service.log"
        service = running.Service(comparison.binary, "--store", url, "--file", str(file))
        began = time.perf_counter()
        sending = senders.crowd("stream", "127.0.0.1", service.ports["tcp"], clients, records)
        service.wait_stored(records)
        ours = records / (time.perf_counter() - began)
        comparison.note("service memory, MB", service.memory_mb())
        service.stop()
        comparison.count("service, rows", records, rows_in(url, "logspool.records"))
        comparison.count("service, lines", records, lines_in(file))
    comparison.note("Python server, records a second", python)
    comparison.note("service, records a second", ours)
    comparison.note("clients done, records a second", records / sending)
    comparison.note("service against the Python server", ours / python)


def datagram(comparison: Comparison) -> None:
    """Unchanged `DatagramHandler`s: what is lost is counted."""
    for clients in (20, comparison.options.clients):
        records = comparison.options.records // 5 // clients * clients
        with tempfile.TemporaryDirectory() as folder:
            service = running.Service(comparison.binary, "--store", f"sqlite:{folder}/data")
            senders.crowd("datagram", "127.0.0.1", service.ports["udp"], clients, records)
            time.sleep(1)
            stats = service.stats()
            service.stop()
        stored = stats["stores"][0]["records_stored"]
        comparison.note(f"datagrams of {clients} clients lost, part", 1 - stored / records)
        lost = stats["records_dropped"] + stats["datagrams_lost"]
        comparison.count(f"datagrams of {clients} clients, stored or counted as lost", records, stored + lost)


def native(comparison: Comparison) -> None:
    """logspool's own client, exactly once."""
    records = comparison.options.records
    with tempfile.TemporaryDirectory() as folder, postgres() as url:
        for name, store in (("SQLite", f"sqlite:{folder}/data"), ("PostgreSQL", url)):
            service = running.Service(comparison.binary, "--store", store)
            address = f"tcp://127.0.0.1:{service.ports['tcp']}"
            client = [sys.executable, HERE / "services/senders.py", address, str(records)]
            done = subprocess.run(client, stdout=subprocess.PIPE, text=True, check=True)
            logged, acknowledged = map(float, done.stdout.split())
            service.stop()
            query = [comparison.binary, "query", "--store", store, "| count by logger", "--format", "ndjson"]
            rows = json.loads(subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout)
            comparison.count(f"native client into {name}", records + 1, rows["count"])
            comparison.note(f"native client into {name}, records a second", records / acknowledged)
            comparison.note(f"native client into {name}, caller's ns a record", logged / records * 1e9)


def idle(comparison: Comparison) -> None:
    """A service with 200 silent connections."""
    with tempfile.TemporaryDirectory() as folder:
        service = running.Service(comparison.binary, "--store", f"sqlite:{folder}/data")
        connections = [socket.create_connection(("127.0.0.1", service.ports["tcp"])) for _ in range(200)]
        for connection in connections:
            connection.sendall(b'{"message": "one record"}\n')
        service.wait_stored(200)
        time.sleep(1)
        comparison.note("idle with 200 connections, MB", service.memory_mb())
        for connection in connections:
            connection.close()
        service.stop()


TARGETS = [
    ("service against the Python server", ">=", 3.0),
    ("idle with 200 connections, MB", "<=", 40.0),
]


def judge(comparison: Comparison) -> bool:
    """Print the targets; return whether all are met."""
    met = True
    for name, sense, bound in TARGETS:
        if name not in comparison.figures:
            continue
        value = comparison.median(name)
        good = value >= bound if sense == ">=" else value <= bound
        met &= good
        print(f"  {'met   ' if good else 'MISSED'}  {name}: {value:.2f} ({sense} {bound:g})")
    return met


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few records, to see that it runs")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", type=Path, help="folder for the raw data; default: bench/runs/DATE-MACHINE/service")
    options = parser.parse_args()
    if options.quick:
        options.records, options.clients, options.rounds = 20_000, 20, 1
    wanted = options.parts.split(",")
    if unknown := set(wanted) - set(PARTS):
        raise fail(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    comparison = Comparison(options)
    for number in range(options.rounds):
        for name in wanted:
            step(f"round {number + 1} of {options.rounds}: {name}")
            globals()[name](comparison)
    facts = machine.describe()
    print(
        f"\n{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, {facts['commit']}"
    )
    for name, values in comparison.figures.items():
        print(f"  {name:60} {statistics.median(values):14,.2f}   ({min(values):,.2f} to {max(values):,.2f})")
    met = judge(comparison) or options.quick
    for wrong in comparison.wrong:
        print(f"  WRONG   {wrong}")
    if not options.quick:
        out = options.out or HERE / "runs" / machine.folder_name(facts) / "service"
        out.mkdir(parents=True, exist_ok=True)
        raw = {"machine": facts, "options": vars(options) | {"out": str(out)}, "figures": comparison.figures}
        (out / "raw.json").write_text(json.dumps(raw | {"wrong": comparison.wrong}, indent=1, default=str) + "\n")
        print(f"results: {out}/raw.json")
    if comparison.wrong or not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
