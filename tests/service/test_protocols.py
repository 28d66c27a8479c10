"""One port for every stream protocol: the first bytes tell them apart."""

import gzip
import json
import socket
import struct


def send(address, *pieces: bytes):
    """Send pieces on one connection, and close it."""
    with socket.create_connection(address) as connection:
        for piece in pieces:
            connection.sendall(piece)


def messages(rows):
    return sorted(row["message"] for row in rows)


def test_json_lines_are_read_whole_and_in_pieces(service):
    send(service.tcp, b'{"message": "o', b'ne", "level": "info"}\n{"msg": "two",\n "n": [1,\n2]}\0{"message": "three"}')

    rows = service.wait_for(3)

    assert ["one", "three", "two"] == messages(rows)
    assert [{"n": [1, 2]}] == [row["fields"] for row in rows if row["message"] == "two"]


def test_syslog_can_be_framed_by_lines_by_nul_and_by_counted_octets(service):
    line = "<165>1 2026-11-22T10:00:00.5Z web app 7 ID - {}"
    send(service.tcp, line.format("a").encode() + b"\n" + line.format("b\n  more").encode() + b"\n")
    send(service.tcp, b"<14>c\0<14>d\ne\0")
    counted = line.format("f").encode()
    send(service.tcp, b"%d %s" % (len(counted), counted) * 2)

    rows = service.wait_for(6)

    assert ["a", "b\n  more", "c", "d\ne", "f", "f"] == messages(rows)
    assert {("web", 7)} == {(row["host"], row["process"]) for row in rows if row["message"] in "abf"}


def test_a_syslog_line_is_found_although_its_connection_stays_open(service):
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b"<14>waiting\n")
        assert ["waiting"] == messages(service.wait_for(1))
        connection.sendall(b"<14>goes on\n")
        service.wait_for(2)


def test_gelf_is_read_over_tcp_and_in_chunks_over_udp(service):
    gelf = {"version": "1.1", "host": "web", "short_message": "by tcp", "level": 3, "_user": 5}
    send(service.tcp, json.dumps(gelf).encode() + b"\0")
    packed = gzip.compress(json.dumps({**gelf, "short_message": "in chunks"}).encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        halves = packed[:40], packed[40:]
        for place, half in reversed(list(enumerate(halves))):
            datagrams.sendto(b"\x1e\x0f" + b"12345678" + bytes([place, 2]) + half, service.udp)
        datagrams.sendto(b'{"message": "one datagram"}', service.udp)
        datagrams.sendto(b"<14>syslog datagram", service.udp)

    rows = service.wait_for(4)

    assert ["by tcp", "in chunks", "one datagram", "syslog datagram"] == messages(rows)
    assert [{"user": 5}] * 2 == [row["fields"] for row in rows if row["host"] == "web"]


def packed(*values) -> bytes:
    """MessagePack of text, whole numbers, maps and lists, as far as these tests need it."""
    out = b""
    for value in values:
        if isinstance(value, bool):
            out += b"\xc3" if value else b"\xc2"
        elif isinstance(value, int):
            out += b"\xce" + struct.pack(">I", value)
        elif isinstance(value, str):
            text = value.encode()
            out += (bytes([0xA0 | len(text)]) if len(text) < 32 else b"\xd9" + bytes([len(text)])) + text
        elif isinstance(value, bytes):
            out += b"\xc6" + struct.pack(">I", len(value)) + value
        elif isinstance(value, dict):
            out += bytes([0x80 | len(value)]) + b"".join(packed(*pair) for pair in value.items())
        else:
            out += bytes([0x90 | len(value)]) + packed(*value)
    return out


def test_forward_chunks_are_acknowledged_when_they_are_stored(service):
    entries = packed([1763800000, {"message": "m1", "level": 30}], [1763800000, {"log": "m2"}])
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(packed(["app", entries, {"chunk": "abc", "compressed": "text"}]))
        assert packed({"ack": "abc"}) == connection.recv(100)
        # Acknowledged records are there at once.
        assert ["m1", "m2"] == messages(service.query())
        connection.sendall(packed(["app", gzip.compress(entries), {"chunk": "def", "compressed": "gzip"}]))
        assert packed({"ack": "def"}) == connection.recv(100)

    assert 4 == service.count("logger=app")


def numbered(first, last, **options) -> bytes:
    entries = b"".join(packed([1763800000, {"message": f"r{number}"}]) for number in range(first, last + 1))
    return packed(["logspool", entries, {"chunk": f"stream/1/{first}-{last}", **options}])


def acknowledgement(first, last) -> bytes:
    return packed({"ack": f"stream/1/{first}-{last}"})


def test_numbered_chunks_are_stored_once(service):
    with socket.create_connection(service.tcp) as connection:
        for chunk in ((1, 3), (4, 5)):
            connection.sendall(numbered(*chunk))
            assert acknowledgement(*chunk) == connection.recv(100)
    with socket.create_connection(service.tcp) as connection:
        # Records are missing before 9: they are an open gap, which the late chunk fills.
        for chunk in ((1, 3), (4, 5), (6, 6), (9, 9), (7, 8), (9, 9)):
            connection.sendall(numbered(*chunk))
            assert acknowledgement(*chunk) == connection.recv(100)

    assert {f"r{number}" for number in range(1, 10)} == set(messages(service.query()))
    stats = json.loads(service.get("/api/stats")[1])
    assert (9, 6) == (stats["stores"][0]["records_stored"], stats["stores"][0]["records_repeated"])


def test_an_unreadable_numbered_chunk_is_reported_once_and_the_stream_continues(service):
    broken = packed(["logspool", b"no gzip", {"chunk": "stream/1/1-9", "compressed": "gzip"}])
    with socket.create_connection(service.tcp) as connection:
        for _ in range(2):
            connection.sendall(broken)
            assert acknowledgement(1, 9) == connection.recv(100)
        connection.sendall(numbered(10, 11))
        assert acknowledgement(10, 11) == connection.recv(100)

    rows = service.query()
    assert ["r10", "r11"] == messages(row for row in rows if row["logger"] != "logspool.undecoded")
    assert 3 == len(rows)


def test_records_sent_over_http_are_stored_when_the_answer_arrives(service):
    assert (200, '{"records":2}') == service.post(
        "/ingest", b'{"message":"a"}\n{"message":"b"}', "application/x-ndjson"
    )
    assert ["a", "b"] == messages(service.query())

    otlp = {
        "resourceLogs": [
            {
                "scopeLogs": [
                    {
                        "scope": {"name": "lib"},
                        "logRecords": [
                            {
                                "timeUnixNano": "1763800000000000000",
                                "severityNumber": 17,
                                "body": {"stringValue": "otlp"},
                                "traceId": "5b8efff798038103d269b633813fc60c",
                            }
                        ],
                    }
                ]
            }
        ]
    }
    body = gzip.compress(json.dumps(otlp).encode())
    assert (200, "{}") == service.post("/v1/logs", body, "application/json", **{"Content-Encoding": "gzip"})
    (row,) = service.query("trace_id=5b8efff798038103d269b633813fc60c")
    assert ("otlp", "lib", 40) == (row["message"], row["logger"], row["level"])


def test_the_port_for_all_protocols_also_accepts_http(service):
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(1000), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK") and answer.endswith(b"ok\n")


def test_a_port_with_a_fixed_protocol_accepts_no_other(start_service):
    service = start_service("--listen", "tcp://127.0.0.1:0?protocol=json")
    address = service.address("tcp", "json")
    send(address, b"<14>no\n")
    send(address, b'{"message": "yes"}\n')

    rows = service.wait_for(2)

    assert ["yes"] == [row["message"] for row in rows if row["logger"] != "logspool.undecoded"]


def test_unix_sockets_are_served_and_removed_at_the_end(start_service, tmp_path):
    path = tmp_path / "socket"
    service = start_service("--listen", f"unix://{path}")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(b'{"message": "local"}\n')

    assert "localhost" == service.wait_for(1)[0]["host"]
    assert 0 == service.stop()
    assert not path.exists()
