"""Small input that is large when decoded: memory stays bounded, and no other sender waits."""

import base64
import collections
import contextlib
import gzip
import json
import socket
import struct
import threading
import time

import pytest
from test_limits import DEADLINE, LISTEN, closed, peak_mb
from test_protocols import packed, send

#: Connections that send a bomb at the same time. Before room was reserved first, each took 20 MB and more.
BOMBERS = 40

EMPTY = b"\x92\xc0\x80"
NILS = b"\xdc\xff\xff" + b"\xc0" * 65_535


def forward(entries: bytes, **options: str) -> bytes:
    return packed(["bomb", entries, {"chunk": "bomb", **options}])


BOMBS = {
    "empty-gzip": forward(gzip.compress(EMPTY * 340_000), compressed="gzip"),
    "empty-packed": forward(EMPTY * 300_000),
    "two-nils": forward(b"\x92\xc0\xc0" * 300_000),
    "nils": forward(NILS * 15),
    "nils-in-a-map": forward(b"\x92\xc0\x81\xa1a" + NILS),
    "zero-bytes": bytes(64 * 1024),
    "octets": b"5 <1>ab" + b"0 " * 32_000,
    "nulls": b'{"a":[' + b"null," * 180_000 + b"null]}\n",
    "deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_each_bomb_becomes_one_record_and_takes_little_memory(start_service, bomb):
    service = start_service(address_space=1 << 30)
    before = peak_mb(service)
    with contextlib.ExitStack() as ends:
        senders = [ends.enter_context(socket.create_connection(service.tcp, DEADLINE)) for _ in range(BOMBERS)]
        threads = [threading.Thread(target=throw, args=(sender, bomb)) for sender in senders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = service.wait_for(BOMBERS, "logger=logspool.undecoded")

    assert all(row["message"].startswith("cannot read a ") for row in rows)
    assert BOMBERS == json.loads(service.get("/api/stats")[1])["frames_rejected"]
    # Input that is read and not decoded yet takes a quarter of the budget at most.
    assert peak_mb(service) - before < 96


def throw(sender: socket.socket, bomb: bytes) -> None:
    """Send a bomb, and wait for its ack or for the end of the connection, where one comes."""
    with contextlib.suppress(OSError):
        sender.sendall(bomb)
        sender.shutdown(socket.SHUT_WR)
        sender.recv(100)


def test_unreadable_tiny_frames_are_counted_in_few_records(service):
    """Each read of the connection makes one record for each run of equal frames in it."""
    send(service.tcp, b"{}\n" * 1_000 + b'{"message": "good"}\n' + b"x\n" * 500)

    until = time.monotonic() + DEADLINE
    while True:
        frames = collections.Counter()
        rows = service.query("logger=logspool.undecoded", "--limit", "100")
        for row in rows:
            frames[row["fields"]["frame"]] += row["fields"]["frames"]
        if frames.total() == 1_500:
            break
        assert time.monotonic() < until, rows
        time.sleep(0.02)

    assert {"{}": 1_000, "x": 500} == frames
    assert len(rows) < 50
    assert ["good"] == [row["message"] for row in service.query("good")]
    assert 1_500 == json.loads(service.get("/api/stats")[1])["frames_rejected"]


def test_an_empty_frame_ends_its_connection(service):
    for stream in (bytes(8), b"5 <1>ab0 0 "):
        with socket.create_connection(service.tcp) as connection:
            connection.sendall(stream)
            assert closed(connection)


def test_a_bomb_does_not_delay_the_record_of_another_sender(start_service):
    """The honest sender has another address."""
    service = start_service(config=f"{LISTEN}[limits]\nwaiting_bytes = 8_388_608\n")
    entry = packed([1763800000, {"message": "x" * 100}])
    ended = threading.Event()

    def flood(number):
        with socket.create_connection(service.tcp, DEADLINE) as sender:
            while not ended.is_set():
                sender.sendall(packed(["flood", entry * 5_000, {"chunk": f"flood {number}"}]))
                sender.recv(100)

    floods = [threading.Thread(target=flood, args=(number,)) for number in range(20)]
    for thread in floods:
        thread.start()
    try:
        with socket.create_connection(service.tcp, DEADLINE, source_address=("127.0.0.2", 0)) as honest:
            until = time.monotonic() + DEADLINE
            while json.loads(service.get("/api/stats")[1])["waiting"] < 0.9:
                assert time.monotonic() < until
            for number in range(10):
                honest.sendall(packed(["honest", entry, {"chunk": f"honest {number}"}]))
                # At most the transaction that is being written: 4 MiB.
                assert packed({"ack": f"honest {number}"}) == honest.recv(100)
    finally:
        ended.set()
        for thread in floods:
            thread.join()
    assert 10 == service.count("logger=honest")


@pytest.mark.parametrize("compressed", ["text", "gzip"])
def test_a_chunk_larger_than_the_budget_is_stored_once_in_parts(start_service, compressed):
    """Its 20,000 records take several times limits.waiting_bytes."""
    service = start_service(config=f"{LISTEN}[limits]\nwaiting_bytes = 1_048_576\n")
    entries = b"".join(packed([1763800000, {"message": f"number {number}"}]) for number in range(20_000))
    entries = gzip.compress(entries) if compressed == "gzip" else entries
    message = packed(["app", entries, {"chunk": "some stream/1/1-20000", "compressed": compressed}])
    for _ in range(2):
        with socket.create_connection(service.tcp, DEADLINE) as sender:
            sender.sendall(message)
            assert packed({"ack": "some stream/1/1-20000"}) == sender.recv(100)

    assert [f"number {number}" for number in range(20_000)] == service.stored_messages()


def test_a_chunk_with_more_records_than_its_id_declares_is_cut_at_the_declared_number(start_service):
    service = start_service(config=f"{LISTEN}[limits]\nwaiting_bytes = 1_048_576\n")
    entries = packed([1763800000, {"message": "x"}]) * 20_000
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(packed(["app", entries, {"chunk": "some stream/1/1-100"}]))
        assert packed({"ack": "some stream/1/1-100"}) == sender.recv(100)

    (row,) = service.wait_for(1, "logger=logspool.undecoded")
    assert row["message"].endswith("it contains more records than its chunk id says")
    assert 'logspool_service_records_dropped_total{reason="unnumbered"} ' in service.get("/metrics")[1]


def test_a_long_entry_among_compressed_ones_is_stored(service):
    messages = ["before", "x" * 2_000_000, "after"]
    entries = b"".join(b"\x92\xce\x69\x21\x00\x00\x81" + packed("message") + text32(message) for message in messages)
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(packed(["app", gzip.compress(entries), {"chunk": "s/1/1-3", "compressed": "gzip"}]))
        assert packed({"ack": "s/1/1-3"}) == sender.recv(100)

    assert messages == service.stored_messages()


def test_a_chunk_of_more_than_16_mib_is_stored_whole(service):
    messages = [f"{number} " + "x" * 1_000_000 for number in range(20)]
    entries = b"".join(b"\x92\xce\x69\x21\x00\x00\x81" + packed("message") + text32(message) for message in messages)
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(packed(["app", gzip.compress(entries, 1), {"chunk": "large", "compressed": "gzip"}]))
        assert packed({"ack": "large"}) == sender.recv(100)

    assert messages == service.stored_messages()


@pytest.mark.parametrize("compressed", ["gzip", "text"])
def test_a_damaged_entry_of_a_chunk_loses_only_itself(service, compressed):
    entries = [packed([1763800000, {"message": f"number {number}"}]) for number in range(1_000)]
    entries[500] = b"\xc1" + entries[500][1:]
    content = b"".join(entries)
    packer = gzip.compress if compressed == "gzip" else bytes
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(packed(["app", packer(content), {"chunk": "c", "compressed": compressed, "size": 1_000}]))
        assert packed({"ack": "c"}) == sender.recv(100)

    (row,) = service.query("logger=logspool.undecoded")
    assert entries[500] == base64.b64decode(row["fields"]["frame_base64"])
    assert 999 == service.count("logger=app")


@pytest.mark.parametrize(
    ("records", "text"), [(30_000, "x" * 1_000), (420_000, "")], ids=["29.5 MiB inflated", "small records"]
)
def test_a_chunk_of_many_records_is_stored_whole(service, records, text):
    entry = b"\x92\xce\x69\x21\x00\x00\x82" + packed("message") + text32(text) + packed("n") + b"\xce"
    content = b"".join(entry + struct.pack(">I", number) for number in range(records))
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(packed(["app", gzip.compress(content, 1), {"chunk": "many", "compressed": "gzip"}]))
        assert packed({"ack": "many"}) == sender.recv(100)

    assert records == service.count("logger=app")
    assert 1 == service.count(f"logger=app n={records - 1}")


@pytest.mark.parametrize("kind", ["cut", "unknown"])
def test_an_unreadable_acknowledged_chunk_is_kept_whole(service, kind):
    entries = [packed([1763800000, {"message": f"number {number}"}]) for number in range(1_000)]
    content = b"".join(entries)
    if kind == "cut":
        content = gzip.compress(content)[:-300]
    compressed = {"cut": "gzip", "unknown": "lz4"}[kind]
    frame = packed(["app", content, {"chunk": kind, "compressed": compressed, "size": 1_000}])
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(frame)
        assert packed({"ack": kind}) == sender.recv(100)

    (row,) = service.query("logger=logspool.undecoded")
    assert frame == base64.b64decode(row["fields"]["frame_base64"])
    assert 1_000 == service.count("logger=app") + row["fields"]["records"]


@pytest.mark.parametrize("cut", [b'{"message":"cut","level":"info",', b"{", b'{"a":['])
def test_a_truncated_json_line_loses_only_itself(service, cut):
    lines = [b'{"message":"line %d"}' % number for number in range(100)]
    lines.insert(3, cut)
    send(service.tcp, b"\n".join(lines) + b"\n")

    service.wait_for(1, "logger=logspool.undecoded")
    service.wait_for(101, "")
    assert 1 == service.count("logger=logspool.undecoded")


def text32(value: str) -> bytes:
    return b"\xdb" + struct.pack(">I", len(value)) + value.encode()


def test_bytes_that_were_not_decoded_are_reported_at_the_end(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # A database that takes connections and never answers.
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        config = f'store = ["{store}"]\n{LISTEN}[limits]\nwaiting_bytes = 1_048_576\nshutdown_seconds = 1\n'
        service = start_service(config=config)
        with contextlib.ExitStack() as ends:
            for _ in range(3):
                sender = ends.enter_context(socket.create_connection(service.tcp, DEADLINE))
                sender.settimeout(1)
                with contextlib.suppress(TimeoutError):
                    sender.sendall(b'{"message": "%s"}\n' % (b"x" * 1_000) * 4_000)
            code, said = service.stop(), "\n".join(service.said)

    assert 1 == code, said
    assert "records are lost, and " in said and " bytes that were received and not decoded" in said
