"""Peers that send garbage, too much, too slowly, or nothing: others are served, and memory stays bounded."""

import contextlib
import gzip
import json
import os
import select
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from test_protocols import packed, send

DEADLINE = 30

LISTEN = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'


def rss_mb(service) -> float:
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def peak_mb(service) -> float:
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def closed(connection: socket.socket) -> bool:
    """Whether the service closes the connection before the deadline."""
    connection.settimeout(DEADLINE)
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x7f\xff\xff\xff" + b"x" * 1000,
        b"\x00\x7f\xff\xff",
        b"\x16\x03\x01\x02\x00",
        b"zzzz",
        b"999999999 <14>x",
        b"{" + b"[" * 2_000_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x93\xa1t\xc1",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200_000,
    ],
    ids=["2-gb", "8-mb", "tls", "letters", "octets", "depth", "array", "no-messagepack", "header"],
)
def test_garbage_ends_only_its_own_connection(service, garbage):
    before = rss_mb(service)
    with socket.create_connection(service.tcp) as connection:
        try:
            connection.sendall(garbage)
        except OSError:
            pass
        else:
            assert closed(connection)
    send(service.tcp, b'{"message": "good"}\n')

    rows = service.wait_for(1, "good")

    assert "good" == rows[0]["message"]
    assert rss_mb(service) - before < 64


@pytest.mark.parametrize(
    ("begin", "piece", "records"),
    [
        (b"", b"\x92\x00\x81\xa7message\xdb" + struct.pack(">I", 200_000) + b"x" * 200_000, 100),
        (b"\x92\x00\x81\xa7message\xdb\xff\xff\xff\x00", b"x" * 200_000, 0),
    ],
    ids=["of-all-entries", "of-one-text"],
)
def test_an_announced_length_takes_no_memory(service, begin, piece, records):
    before = rss_mb(service)
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b"\x92\xa3app\xc6\xff\xff\xff\xff" + begin)
        for _ in range(100):
            connection.sendall(piece)

    # What cannot be read is in one record or in several, as it happened to arrive.
    until = time.monotonic() + DEADLINE
    while not service.query("logger=logspool.undecoded"):
        assert time.monotonic() < until
        time.sleep(0.02)

    assert records == len(service.query("logger=app", "--limit", "1000"))
    assert rss_mb(service) - before < 64


def test_bombs_are_refused(service):
    memo = (
        b"\x80\x02]q\x00"
        + b"".join(b"]q" + bytes([n]) + b"(h" + bytes([n - 1]) + b"h" + bytes([n - 1]) + b"e" for n in range(1, 200))
        + b"."
    )
    nested = b"(" * 400_000 + b"l" * 400_000 + b"."
    bomb = gzip.compress(bytes(200 << 20))
    before = rss_mb(service)
    for pickle in (memo, nested):
        send(service.tcp, struct.pack(">I", len(pickle)) + pickle)
    send(service.tcp, packed(["app", bomb, {"compressed": "gzip"}]))
    status, said = service.post("/ingest", bomb, "application/json", **{"Content-Encoding": "gzip"})
    assert 413 == status and "longer than" in said

    service.wait_for(3, "logger=logspool.undecoded")

    assert rss_mb(service) - before < 64


def test_pickles_that_refer_to_a_long_text_many_times_take_little_memory(service):
    def memo(code: bytes, text: bytes) -> bytes:
        return code + struct.pack("<I", len(text)) + text + b"q\0"

    def names(length: int, count: int) -> bytes:
        pickle = memo(b"X", b"x" * length + b"\xff") + b"h\0h\0\x93" * count + b"."
        return struct.pack(">I", len(pickle)) + pickle

    shown = b"}(X\3\0\0\0msg](" + memo(b"B", b"x" * 800_000) + b"h\0" * 9_990 + b"eX\7\0\0\0levelnoK\x14u."
    before, began = rss_mb(service), time.monotonic()
    send(service.tcp, names(800_000, 39_990), struct.pack(">I", len(shown)) + shown)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(names(9_000, 10_000), service.udp)

    service.wait_for(2, "logger=logspool.undecoded")
    service.wait_for(1, "level=info")

    assert time.monotonic() - began < DEADLINE
    assert rss_mb(service) - before < 64


def test_many_nearly_empty_records_are_refused(service):
    """Each is a row of a hundred bytes and more in memory."""
    inflated = {"Content-Encoding": "gzip"}
    before = peak_mb(service)
    for body in (b"{}\n" * (5 << 20), b"[" + b"{}," * (5 << 20) + b"{}]"):
        status, said = service.post("/ingest", gzip.compress(body), "application/json", **inflated)
        assert 413 == status and "records" in said
    records = b"\x12\x00" * (2 << 20)
    scope = b"\x12\x80\x80\x80\x02" + records
    body = b"\x0a\x85\x80\x80\x02" + scope
    status, said = service.post("/v1/logs", gzip.compress(body), "application/x-protobuf", **inflated)
    assert 413 == status and "too many log records" in said
    rows = gzip.compress(b"\x92\x00\x80" * (5 << 20))
    send(service.tcp, packed(["", rows, {"compressed": "gzip"}]))
    until = time.monotonic() + DEADLINE
    while json.loads(service.get("/api/stats")[1])["frames_rejected"] == 0:
        assert time.monotonic() < until
        time.sleep(0.02)

    assert peak_mb(service) - before < 256


def test_connections_that_send_nothing_or_stop_in_a_frame_are_closed_in_time(start_service):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nheader_seconds = 1\nframe_seconds = 1\n'
    service = start_service(config=config)
    with socket.create_connection(service.tcp) as silent, socket.create_connection(service.tcp) as slow:
        slow.sendall(b"\0\0\1\0abc")
        assert closed(silent) and closed(slow)
    with socket.create_connection(service.tcp) as line:
        line.sendall(b"<14>abc")
        assert closed(line)
    # The bytes that had arrived are kept.
    assert ["abc"] == [row["message"] for row in service.wait_for(1, "abc")]
    assert ["abc"] == [row["fields"]["frame"][4:] for row in service.wait_for(1, "logger=logspool.undecoded")]
    with socket.create_connection(service.tcp) as idle:
        idle.sendall(b'{"message": "then silent"}\n')
        service.wait_for(1, "silent")
        time.sleep(2)
        idle.sendall(b'{"message": "and back"}\n')
        service.wait_for(1, "back")


def test_endless_syslog_lines_that_begin_no_message_are_cut_in_time(start_service):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nframe_seconds = 1\n'
    service = start_service(config=config)
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b"<14>x\n")
        found = threading.Event()

        def go_on():
            while not found.wait(0.01):
                connection.sendall(b"y\n")

        sending = threading.Thread(target=go_on)
        sending.start()
        try:
            (row,) = service.wait_for(1)
        finally:
            found.set()
            sending.join()

    assert row["message"].startswith("x\ny\ny\n")


def test_tcp_keepalive_is_enabled_for_silent_peers(service):
    with socket.create_connection(service.tcp) as idle:
        idle.sendall(b'{"message": "then silent"}\n')
        service.wait_for(1)
        ours, theirs = (f"{port:04X}" for port in (service.tcp[1], idle.getsockname()[1]))
        ends = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        (timer,) = (end[5] for end in ends if (end[1][-4:], end[2][-4:]) == (ours, theirs))

    kind, hundredths = timer.split(":")
    assert "02" == kind and 0 < int(hundredths, 16) <= 60 * os.sysconf("SC_CLK_TCK")


def test_a_peer_that_reads_no_answers_is_closed_in_time(start_service):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nframe_seconds = 1\n'
    service = start_service(config=config)
    # More than the buffers of both ends take: each answer has the id in it.
    id = b"\xdb" + struct.pack(">I", 200_000) + b"c" * 200_000
    message = b"\x93\xa3app" + packed(packed([1763800000, {"message": "x"}])) + b"\x81\xa5chunk" + id
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(service.tcp)
        for _ in range(100):
            deaf.sendall(message)
        service.wait_said("it did not read its answers for longer than limits.frame_seconds", 1)

    service.wait_metric('logspool_service_connections_closed_total{reason="slow"} 1')


@pytest.mark.parametrize(
    "path, kind, status",
    # Senders of OTLP send again after a 503, and not after a 408.
    [("/ingest", "json", 408), ("/v1/logs", "json", 503), ("/log", "x-www-form-urlencoded", 408)],
)
def test_a_body_that_does_not_arrive_in_time_is_reported(start_service, path, kind, status):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nframe_seconds = 1\n'
    service = start_service(config=config)
    with socket.create_connection(service.tcp, timeout=DEADLINE) as slow:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/{kind}\r\n"
        slow.sendall(head.encode() + b"Content-Length: 16000000\r\n\r\n{")
        assert slow.recv(12) == b"HTTP/1.1 %d" % status
        assert closed(slow)


def test_a_request_waits_for_room_for_a_few_seconds_only(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # A database that takes connections and never answers.
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        config = (
            f'store = ["{store}"]\nlisten = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
            "[limits]\nwaiting_bytes = 1_048_576\nshutdown_seconds = 1\n"
        )
        service = start_service(config=config)
        body = b'{"message": "%s"}\n' % (b"x" * 1000) * 600
        with socket.create_connection(service.tcp, timeout=DEADLINE) as first:
            head = "POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            first.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            until = time.monotonic() + DEADLINE
            while json.loads(service.get("/api/stats")[1])["records_accepted"] == 0:
                assert time.monotonic() < until
            status, said = service.post("/ingest", body, "application/json")
            assert 429 == status and "limits.waiting_bytes" in said
            service.stop()


def test_all_requests_that_wait_for_room_share_a_limit(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent, contextlib.ExitStack() as ends:
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        service = start_service(config=f'store = ["{store}"]\n{LISTEN}[limits]\nshutdown_seconds = 0\n')
        # Each is some kilobytes, and 60 MiB as records.
        body = gzip.compress(b'{"k":"%s"}\n' % (b"x" * 31) * 400_000)
        head = "POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        before, statuses = peak_mb(service), []
        senders = [ends.enter_context(socket.create_connection(service.tcp, timeout=2 * DEADLINE)) for _ in range(16)]
        for sender in senders:
            sender.sendall(head.encode() + body)
        # One or two are taken, and never answered.
        while len(statuses) < 14:
            ready, _, _ = select.select(senders, [], [], 2 * DEADLINE)
            assert ready, statuses
            statuses += [sender.recv(12) for sender in ready]
            senders = [sender for sender in senders if sender not in ready]

        assert {b"HTTP/1.1 429"} == set(statuses)
        assert peak_mb(service) - before < 512


def test_connections_beyond_the_limit_are_closed_and_counted(start_service):
    service = start_service(config=LISTEN + "[limits]\nconnections = 4\nconnections_per_peer = 4\n")
    connections = [socket.create_connection(service.tcp) for _ in range(4)]
    try:
        for connection in connections:
            connection.sendall(b'{"message": "x"}\n')
        until = time.monotonic() + DEADLINE
        with socket.create_connection(service.tcp) as late:
            late.sendall(b'{"message": "late"}\n')
            assert closed(late)
        assert time.monotonic() < until
    finally:
        for connection in connections:
            connection.close()
    until = time.monotonic() + DEADLINE
    text = ""
    while "\nlogspool_service_connections 1\n" not in text:
        assert time.monotonic() < until, text
        with contextlib.suppress(OSError):
            text = service.get("/metrics")[1]
    assert 'logspool_service_connections_closed_total{reason="too_many"} ' in text


@pytest.mark.skipif(os.environ.get("LOGSPOOL_FAULTS") != "full", reason="5,000 connections: make faults")
def test_thousands_of_idle_connections_take_little_memory(start_service):
    service = start_service(config=LISTEN + "[limits]\nconnections_per_peer = 4096\n")
    connections = [socket.create_connection(service.tcp) for _ in range(4_000)]
    for connection in connections:
        connection.sendall(b'{"message": "x"}\n')
    service.wait_for(4_000)
    assert rss_mb(service) < 150
    for connection in connections:
        connection.close()


def test_a_gelf_message_with_missing_chunks_is_counted(service):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"\x1e\x0f" + b"12345678" + bytes([0, 2]) + b'{"short_', service.udp)
    service.wait_metric('logspool_service_records_dropped_total{reason="gelf_parts_missing"} 1')

    assert 1 == json.loads(service.get("/api/stats")[1])["records_dropped"]


def test_every_field_is_returned_unchanged_and_shown_escaped(service):
    nasty = "'; DROP TABLE records; --\0\x1b[2J\r\n\u202e\u2028\U0001f600\x07"
    record = dict.fromkeys(("message", "logger", "file", "function", "host", "task", "trace_id", "exception"), nasty)
    assert 200 == service.post("/ingest", json.dumps({**record, nasty: nasty}).encode(), "application/json")[0]

    (row,) = service.query()
    text = service.command("query", "--service", service.url).stdout

    assert record == {name: row[name] for name in record}
    assert {nasty: nasty} == row["fields"]
    assert not any(bad in text for bad in "\0\x1b\r\u202e\u2028\x07")
