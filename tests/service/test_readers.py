"""Queries and live tails are bounded, shared fairly, and end with their clients: senders do not notice them."""

import contextlib
import json
import re
import select
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

import postgres
import pytest

from ports import free_port

#: Ten times the time that a busy machine needs.
DEADLINE = 60.0

LISTEN = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'

#: An expression that takes far longer than a test waits: with the word boundary, the matcher cannot use its fast
#: algorithms for text beyond ASCII.
SLOW = " or ".join(f'message~"(\\w\\b.?)+{number}x"' for number in range(16))


@pytest.fixture
def database():
    """A PostgreSQL of the test's own."""
    folder = postgres.programs()
    if folder is None:
        pytest.skip("LOGSPOOL_WITHOUT_POSTGRES is set")
    server = postgres.Postgres(folder, free_port())
    yield server
    server.close()


def fill(service, records: int = 200, size: int = 60_000) -> None:
    """Store numbered records with long messages; together they are more than the buffers of a connection."""
    lines = (json.dumps({"message": f"{number} {'ü ' * (size // 3)}"}, ensure_ascii=False) for number in range(records))
    assert 200 == service.post("/ingest", "\n".join(lines).encode(), "application/x-ndjson")[0]


def asking(service, path: str, source: str = "127.0.0.1", **parameters: object) -> socket.socket:
    """Send a request from an address of this machine, and read nothing."""
    connection = socket.socket()
    # The kernel would take megabytes for a client that does not read.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(DEADLINE)
    connection.bind((source, 0))
    connection.connect(service.address("tcp", "http"))
    target = f"{path}?{urllib.parse.urlencode(parameters)}"
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return connection


def answer(connection: socket.socket) -> "tuple[int, str, list[dict]]":
    """Read an answer to its end: status, head and rows."""
    with connection:
        whole = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    head, _, body = whole.partition(b"\r\n\r\n")
    rows = b""
    if b"transfer-encoding: chunked" in head:
        while body:
            length, _, body = body.partition(b"\r\n")
            rows, body = rows + body[: int(length, 16)], body[int(length, 16) + 2 :]
    return int(head.split()[1]), head.decode(), [json.loads(row) for row in rows.splitlines()]


def queries(service) -> "dict[str, int]":
    """Return how many queries wait, run and are unread."""
    found = re.findall(r'logspool_service_queries\{state="(\w+)"\} (\d+)', service.get("/metrics")[1])
    return {state: int(count) for state, count in found}


def wait_queries(service, **expected: int) -> None:
    """Wait until the expected numbers of queries are in the expected states."""
    until = time.monotonic() + DEADLINE
    while not expected.items() <= (found := queries(service)).items():
        assert time.monotonic() < until, (expected, found)
        time.sleep(0.02)


def threads(service, name: str) -> int:
    """Return how many threads of the service have a name."""
    names = Path(f"/proc/{service.process.pid}/task").glob("*/comm")
    found = 0
    for path in names:
        with contextlib.suppress(OSError):
            found += path.read_text().strip() == name
    return found


def test_a_scan_ends_when_its_client_disconnects_even_while_it_waits(start_service):
    service = start_service(config=LISTEN + "[limits]\nquery_threads = 1\nquery_seconds = 600\n")
    fill(service)
    scan = asking(service, "/api/query", q=SLOW)
    wait_queries(service, running=1)
    waiting = asking(service, "/api/histogram", q=SLOW)
    wait_queries(service, running=1, waiting=1)

    waiting.close()
    wait_queries(service, running=1, waiting=0)
    scan.close()
    wait_queries(service, running=0, waiting=0, unread=0)
    assert 1 == len(service.query("", "--limit", "1"))


def test_a_scan_in_postgresql_ends_when_its_client_disconnects(start_service, database):
    config = f'store = ["{database.url("postgres")}"]\n{LISTEN}[limits]\nquery_seconds = 600\n'
    service = start_service(config=config)
    fill(service, records=1, size=10)
    asks = "FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT%FROM logspool.records%'"
    with postgres.Session(database) as holder:
        # A query that finds nothing as long as this lock is held.
        holder.run("BEGIN; LOCK TABLE logspool.records IN ACCESS EXCLUSIVE MODE")
        scan = asking(service, "/api/query", q="x")
        until = time.monotonic() + DEADLINE
        while database.column(f"SELECT count(*) {asks}") == ["0"]:
            assert time.monotonic() < until
            time.sleep(0.02)
        scan.close()
        wait_queries(service, running=0, waiting=0, unread=0)
        while database.column(f"SELECT count(*) {asks}") != ["0"]:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_one_address_gets_only_its_share_while_others_are_answered(start_service):
    service = start_service(config=LISTEN + "[limits]\nquery_threads = 2\nqueries = 4\nquery_seconds = 600\n")
    fill(service)
    with contextlib.ExitStack() as ends:
        scans = [ends.enter_context(asking(service, "/api/query", q=SLOW)) for _ in range(2)]
        wait_queries(service, running=1, waiting=1)

        status, head, _ = answer(asking(service, "/api/query", limit=1))
        assert (429, True) == (status, "retry-after: 1\r\n" in head.lower())
        for path in ("/api/histogram", "/api/fields"):
            status, said = service.get(path)
            assert 429 == status and "limits.queries" in said
        status, _, rows = answer(asking(service, "/api/query", "127.0.0.2", limit=1))
        # After the only row comes the number of rows that the limit cut off.
        assert (200, 2, ["left_out"]) == (status, len(rows), list(rows[-1]))
        assert 'queries_refused_total{reason="too_many_of_peer"} 3\n' in service.get("/metrics")[1]

        command = [service.binary, "query", "--service", service.url, "--limit", "1", "--format", "ndjson"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as patient:
            until = time.monotonic() + DEADLINE
            while 'reason="too_many_of_peer"} 3\n' in service.get("/metrics")[1]:
                assert time.monotonic() < until
                time.sleep(0.02)
            # Also the running scan: its thread gets little of a busy machine.
            for scan in scans:
                scan.close()
            assert json.loads(patient.stdout.readline())["message"].startswith("199 ")
    wait_queries(service, running=0, waiting=0, unread=0)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_unread_answers_hold_no_thread_and_resume_where_they_stopped(start_service, request, kind):
    store, query_threads = "", 2
    if kind == "postgres":
        store, query_threads = f'store = ["{request.getfixturevalue("database").url("postgres")}"]\n', 4
    limits = f"[limits]\nquery_threads = {query_threads}\nquery_seconds = 600\n"
    service = start_service(config=store + LISTEN + limits)
    fill(service, records=250)
    with contextlib.ExitStack() as ends:
        unread = [ends.enter_context(asking(service, "/api/query", limit=1000)) for _ in range(20)]
        # A share of the queries that may be begun.
        wait_queries(service, running=0, unread=2, waiting=18)
        assert threads(service, "logspool-query") <= 2
        assert 200 == answer(asking(service, "/api/query", "127.0.0.2", limit=1))[0]

        # Records that come meanwhile are no part of it.
        fill(service, records=1)
        begun, _, _ = select.select(unread, [], [], DEADLINE)
        status, _, rows = answer(begun[0])
        assert 200 == status
        assert [f"{number}" for number in reversed(range(250))] == [row["message"].split()[0] for row in rows]
    wait_queries(service, running=0, waiting=0, unread=0)


def test_an_answer_not_read_in_time_is_ended_and_its_place_is_freed(start_service):
    service = start_service(config=LISTEN + "[limits]\nquery_seconds = 1\n")
    fill(service)
    with asking(service, "/api/query", limit=1000) as unread:
        whole = unread.recv(12)
        wait_queries(service, running=0, waiting=0, unread=0)
        whole += b"".join(iter(lambda: unread.recv(1 << 20), b""))
    assert whole.startswith(b"HTTP/1.1 200") and not whole.endswith(b"\r\n0\r\n\r\n"), "it looks complete"


def test_live_tails_are_bounded_and_shared(start_service):
    service = start_service(config=LISTEN + "[limits]\ntails = 4\n")
    with contextlib.ExitStack() as ends:
        followers = [ends.enter_context(asking(service, "/api/tail")) for _ in range(2)]
        for follower in followers:
            assert follower.recv(1 << 16).startswith(b"HTTP/1.1 200")

        status, head, _ = answer(asking(service, "/api/tail"))
        assert (429, True) == (status, "retry-after: 1\r\n" in head.lower())
        other = ends.enter_context(asking(service, "/api/tail", "127.0.0.2"))
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")
        service.post("/ingest", b'{"message": "seen"}', "application/json")
        for follower in [*followers, other]:
            assert b'"message":"seen"' in follower.recv(1 << 16)
        metrics = service.get("/metrics")[1]
        assert "logspool_service_tails 3\n" in metrics
        assert 'logspool_service_tails_refused_total{reason="too_many_of_peer"} 1\n' in metrics
    until = time.monotonic() + DEADLINE
    while json.loads(service.get("/api/stats")[1])["tails"]:
        assert time.monotonic() < until
        time.sleep(0.02)
