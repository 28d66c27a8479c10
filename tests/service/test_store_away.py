"""PostgreSQL that is killed, away or stuck: no record is lost or doubled, and `/readyz` reports the state."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

import postgres
import pytest

from ports import free_port

FULL = os.environ.get("LOGSPOOL_FAULTS") == "full"

DEADLINE = 60.0


def wait_ready(service, status: int, seconds: float = DEADLINE) -> str:
    """Wait until `/readyz` answers with `status`; return its text."""
    until = time.monotonic() + seconds
    while True:
        found, said = service.get("/readyz")
        if found == status:
            return said
        assert time.monotonic() < until, f"{found}, not {status}, for {seconds} s: {said}"
        time.sleep(0.05)


# Records at a pace, until the input ends; then how many there were, and whether all was delivered.
CLIENT = """
import logging, sys, threading, time, logspool
address, name, rate, spool, spool_bytes = sys.argv[1:]
options = {"spool_dir": spool, "spool_bytes": int(spool_bytes)} if spool else {}
handler = logspool.ServiceHandler(address)
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install(shutdown_timeout=120, **options)
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
number, begin = 0, time.monotonic()
while not done.is_set():
    until = int((time.monotonic() - begin) * float(rate))
    for number in range(number, until):
        logging.info("%s %d", name, number)
    number = max(number, until)
    done.wait(0.02)
flushed = logspool.flush(300)
levels = logspool.stats().levels["INFO"]
print(number, levels.accepted, flushed, flush=True)
"""


class Client:
    """A program that logs."""

    def __init__(self, listen: str, name: str, rate: int, queue_dir, spool: str = ""):
        """Start it."""
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, listen, name, str(rate), spool, str(SPOOL_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)},
        )

    def end(self) -> int:
        """Let it end; return how many records it logged. All of them have to be accepted and delivered."""
        self.process.stdin.close()
        logged, accepted, flushed = self.process.stdout.read().split()
        assert 0 == self.process.wait(DEADLINE)
        assert "True" == flushed, f"{self.name}: not delivered in time"
        assert logged == accepted, f"{self.name}: {logged} logged, {accepted} accepted"
        return int(accepted)


def assert_each_once(expected: "dict[str, int]", messages: "list[str]", seed: object) -> None:
    """Compare the stored records with the records that each client logged."""
    found = Counter(messages)
    wanted = Counter({f"{name} {number}": 1 for name, count in expected.items() for number in range(count)})
    lost, doubled = wanted - found, found - wanted
    assert not lost and not doubled, (
        f"seed {seed}: of {len(wanted)} records {len(lost)} are lost ({list(lost)[:3]} ...) and {doubled.total()} "
        f"doubled ({list(doubled)[:3]} ...)"
    )


# Service and database in turn.
KILLS = int(os.environ.get("LOGSPOOL_KILLS", 300 if FULL else 4))
CLIENTS, RATE = (50, 2_000) if FULL else (3, 1_500)


@pytest.mark.timeout(3600)
def test_kills_of_service_and_database_in_turn_lose_and_duplicate_nothing(
    start_service, database, queue_dir, tmp_path, record_property
):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    listen = f"tcp://127.0.0.1:{free_port()}"

    def start():
        return start_service("--listen", listen, "--store", database.url(), folder=tmp_path / "service")

    service = start()
    clients = [Client(listen, f"c{number}", RATE // CLIENTS, queue_dir) for number in range(CLIENTS)]
    for turn in range(KILLS):
        threading.Event().wait(moments.uniform(0.1, 1.2))
        if turn % 2 == 0:
            service.stop(signal.SIGKILL)
            service = start()
        else:
            database.kill()
            threading.Event().wait(moments.uniform(0, 0.3))
            database.start()
    expected = {client.name: client.end() for client in clients}

    assert 0 == service.stop(), service.said
    assert min(expected.values()) > 0
    assert_each_once(expected, database.messages(), seed)
    record_property("summary", f"{KILLS} kills, {CLIENTS} clients, seed {seed}: {sum(expected.values())} records once")


# The pace of the short form is lower: its service is not optimised, and other tests run beside it.
AWAY_SECONDS, AWAY_RATE = (120, 20_000) if FULL else (10, 3_000)
#: Twice the bytes that are logged meanwhile, at 200 bytes a record.
SPOOL_BYTES = (1 << 30) if FULL else (64 << 20)


@pytest.mark.timeout(1800)
def test_an_unreachable_database_gets_everything_once_while_more_records_arrive(
    start_service, database, queue_dir, tmp_path, record_property
):
    listen = f"tcp://127.0.0.1:{free_port()}"
    service = start_service("--listen", listen, "--store", database.url())
    spool = tmp_path / "spool"
    client = Client(listen, "c", AWAY_RATE, queue_dir, str(spool))

    def in_store() -> int:
        return json.loads(service.get("/api/stats")[1])["stores"][0]["records_stored"]

    def bytes_spooled() -> int:
        return sum(path.stat().st_size for path in spool.rglob("*") if path.is_file())

    until = time.monotonic() + DEADLINE
    while in_store() < AWAY_RATE // 2:
        assert time.monotonic() < until, "nothing comes"
        time.sleep(0.02)
    database.kill()
    gone = time.monotonic()
    before, most = in_store(), 0
    while time.monotonic() - gone < AWAY_SECONDS:
        most = max(most, bytes_spooled())
        time.sleep(0.1)
    database.start()
    back = time.monotonic()
    while in_store() == before:
        assert time.monotonic() - back < DEADLINE, "the database is back, and nothing is stored"
        time.sleep(0.02)
    # It has caught up when it has all records logged until now, at the client's pace.
    began, first = time.monotonic(), in_store()
    while (missing := AWAY_RATE * (time.monotonic() - gone) + before - in_store()) > AWAY_RATE:
        assert time.monotonic() - began < 10 * AWAY_SECONDS + DEADLINE, f"{missing:.0f} records behind"
        time.sleep(0.05)
    drained = (in_store() - first) / (time.monotonic() - began)
    summary = f"database away for {AWAY_SECONDS} s at {AWAY_RATE} records/s: drained at {drained / AWAY_RATE:.1f} "
    record_property("summary", summary + f"times the live rate, {most} bytes spooled at most")
    assert most <= SPOOL_BYTES, most
    expected = {"c": client.end()}
    stats = json.loads(service.get("/api/stats")[1])
    settled = ("stored", "repeated", "quarantined", "refused")

    assert stats["records_accepted"] == sum(stats["stores"][0][f"records_{what}"] for what in settled), stats
    assert 0 == service.stop(), service.said
    assert expected["c"] > AWAY_RATE * AWAY_SECONDS
    assert_each_once(expected, database.messages(), "none")


@pytest.mark.parametrize("fault", ["away", "stuck"])
@pytest.mark.parametrize("weather", ["idle", "busy"])
def test_readyz_reports_within_seconds_whether_the_store_works(start_service, database, fault, weather):
    service = start_service("--store", database.url())
    wait_ready(service, 200)
    # Ten seconds: a stuck transaction shows after five.
    with socket.create_connection(service.tcp) as sender:
        number = 0

        def send():
            nonlocal number
            number += 1
            sender.sendall(b'{"message": "n %d"}\n' % (number - 1))

        send()
        until = time.monotonic() + DEADLINE
        while json.loads(service.get("/api/stats")[1])["stores"][0]["records_stored"] < 1:
            assert time.monotonic() < until
        if fault == "away":
            database.kill()
            if weather == "busy":
                send()
            said = wait_ready(service, 503, 10)
            database.start()
        else:
            with database.frozen():
                if weather == "busy":
                    send()
                said = wait_ready(service, 503, 15)
        assert "store postgres: " in said
        assert (200, "ok\n") == service.get("/livez")
        wait_ready(service, 200, 30)
        send()
    assert 0 == service.stop(), service.said
    assert_each_once({"n": number}, database.messages(), "none")


def change(database, statement: str) -> None:
    """Run a statement beside the service."""
    with postgres.Session(database) as session:
        session.run(statement)


def test_a_database_of_a_newer_version_is_reported_at_the_start_and_used_once_it_is_fixed(start_service, database):
    url = database.url()
    service = start_service("--store", url)
    assert 200 == service.post("/ingest", b'{"message": "n 0"}', "application/json")[0]
    assert 0 == service.stop()
    change(database, "UPDATE logspool.version SET version = version + 100")

    service = start_service("--store", url, folder=service.folder)
    (said,) = [line for line in service.said if "not ready: store postgres: " in line]
    assert re.search(r"version 10\d\b", said) and "use a newer logspool" in said
    assert "use a newer logspool" in wait_ready(service, 503)
    with socket.create_connection(service.tcp) as sender:
        sender.sendall(b'{"message": "n 1"}\n')
        change(database, "UPDATE logspool.version SET version = version - 100")
        wait_ready(service, 200)
        until = time.monotonic() + DEADLINE
        while json.loads(service.get("/api/stats")[1])["stores"][0]["records_stored"] < 1:
            assert time.monotonic() < until
            time.sleep(0.02)
    # A table that goes while the service has nothing to do is missed as well.
    change(database, "ALTER TABLE logspool.streams RENAME TO away")
    assert "the table logspool.streams does not exist; restore" in wait_ready(service, 503)
    change(database, "ALTER TABLE logspool.away RENAME TO streams")
    wait_ready(service, 200)
    assert 0 == service.stop(), service.said
    assert_each_once({"n": 2}, database.messages(), "none")
