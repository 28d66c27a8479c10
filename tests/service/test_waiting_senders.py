"""Senders that the service makes wait: it closes no connection as too slow, and loses no record."""

import contextlib
import json
import pickle
import socket
import sqlite3
import struct
import threading
import time

import clients
import pytest
from test_protocols import packed, send

DEADLINE = 30

#: A frame has much less time than the service makes its senders wait here.
LIMITS = (
    'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nframe_seconds = 1\nwaiting_bytes = 1_048_576\n'
)

#: Twice as long as a frame may take, and half as long again.
HELD_SECONDS = 2.5

RECORDS = 8_000


def pickles(count: int) -> bytes:
    """Return `count` records of 1 KiB, as `SocketHandler` sends them."""
    record = pickle.dumps({"name": "busy", "msg": "x" * 1000, "levelno": 20, "levelname": "INFO"}, 1)
    return (struct.pack(">I", len(record)) + record) * count


@contextlib.contextmanager
def held(service):
    """Keep the store from writing: its transactions fail, and are tried again."""
    (path,) = (service.folder / "data").glob("????-??-??.sqlite")
    with contextlib.closing(sqlite3.connect(path, timeout=DEADLINE, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


@pytest.mark.parametrize("senders", [1, 40])
def test_senders_that_never_pause_lose_nothing_while_the_store_is_stalled(start_service, senders):
    service = start_service(config=LIMITS)
    sent = pickles(RECORDS // senders)

    with contextlib.ExitStack() as ends:
        connections = [ends.enter_context(socket.create_connection(service.tcp)) for _ in range(senders)]
        connections[0].sendall(pickles(1))
        service.wait_for(1)
        threads = [threading.Thread(target=connection.sendall, args=(sent,)) for connection in connections]
        with held(service):
            for thread in threads:
                thread.start()
            threading.Event().wait(HELD_SECONDS)
        with held(service):
            threading.Event().wait(HELD_SECONDS)
        for thread in threads:
            thread.join()

    clients.wait_until("all stored", lambda: RECORDS + 1 == service.count())
    assert 'reason="slow"' not in service.get("/metrics")[1]


def stalled_body(service, left: int = (16 << 20) - 100_000) -> socket.socket:
    """Begin a request and stop `left` bytes before its end. By default it has the longest body; two fill the budget."""
    connection = socket.create_connection(service.tcp, timeout=DEADLINE)
    head = "POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % (100_000 + left) + b" " * 100_000)
    # Until it is read.
    time.sleep(0.2)
    return connection


def test_bodies_that_stop_in_the_middle_delay_no_other_sender(service):
    with stalled_body(service), stalled_body(service):
        record = pickle.dumps({"name": "app", "msg": "x" * 300_000, "levelno": 20, "levelname": "INFO"}, 1)
        began = time.monotonic()
        send(service.tcp, struct.pack(">I", len(record)) + record)
        service.wait_for(1)

        # They have 30 seconds.
        assert time.monotonic() - began < 10


def test_waiting_for_room_does_not_count_towards_the_time_limit_of_a_body(start_service):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nframe_seconds = 3\n'
    service = start_service(config=config)
    body = b'{"message": "late"}'
    with stalled_body(service) as first, stalled_body(service) as second, stalled_body(service, len(body)) as late:
        # The others have taken all the room until their time is over.
        assert [b"HTTP/1.1 408"] * 2 == [first.recv(12), second.recv(12)]
        time.sleep(1)
        late.sendall(body)
        assert b"HTTP/1.1 200" == late.recv(12)


def test_a_body_waits_for_room_for_a_few_seconds_only(start_service):
    service = start_service(config=LIMITS.replace("frame_seconds = 1", "frame_seconds = 30"))
    with stalled_body(service):
        status, said = service.post("/ingest", b'{"message": "%s"}' % (b"x" * 100_000), "application/json")

    assert 429 == status and "no memory" in said


def test_a_peer_that_disconnects_inside_a_long_message_frees_its_room(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # A database that takes connections and never answers: nothing is acked.
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        limits = LIMITS.replace("frame_seconds = 1", "shutdown_seconds = 0")
        service = start_service(config=f'store = ["{store}"]\n{limits}')

        def accepted(count: int) -> bool:
            return count == json.loads(service.get("/api/stats")[1])["records_accepted"]

        with socket.create_connection(service.tcp) as connection:
            connection.sendall(packed(["app", [[1763800000, {"message": "x"}]], {"chunk": "a"}]))
            connection.sendall(packed(["app", b"x" * 200_000, {"chunk": "b"}])[:150_000])
            clients.wait_until("the first chunk is taken", lambda: accepted(1))
        record = pickle.dumps({"name": "app", "msg": "x" * 100_000, "levelno": 20, "levelname": "INFO"}, 1)
        send(service.tcp, struct.pack(">I", len(record)) + record)

        clients.wait_until("the large frame is read", lambda: accepted(2))


def test_long_messages_of_several_senders_arrive_whole_although_only_one_fits_at_a_time(start_service):
    limits = LIMITS.replace("frame_seconds = 1", "frame_seconds = 5").replace("1_048_576", "8_388_608")
    service = start_service(config=limits)
    # 2 MiB: twice what one frame may have, so that each sender needs more than the first right.
    entries = packed([1763800000, {"message": "long", "body": b"x" * 20_000}]) * 105

    acks = []

    def send(name: str):
        with socket.create_connection(service.tcp, timeout=2 * DEADLINE) as connection:
            connection.sendall(packed(["app", entries, {"chunk": name}]))
            acks.append(connection.recv(100))

    names = [f"c{number}" for number in range(8)]
    threads = [threading.Thread(target=send, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(packed({"ack": name}) for name in names) == sorted(acks)
    assert 8 * 105 == service.count()
