"""Streams and datagrams that are not what one protocol describes: each record is found."""

import json
import logging.handlers
import pickle
import socket
import struct

import pytest

GELF = {"version": "1.1", "host": "web", "short_message": "gelf", "level": 3}


def send(address, *pieces: bytes):
    """Send pieces on one connection, and close it."""
    with socket.create_connection(address) as connection:
        for piece in pieces:
            connection.sendall(piece)


def messages(rows):
    """Return the messages, sorted."""
    return sorted(row["message"] for row in rows)


#: The bytes that a connection sends, and the messages that are found.
STREAMS = {
    "text": (
        b"Hello world\n  indented\n2026-11-22 10:00 paid\n\nlast",
        ["  indented", "2026-11-22 10:00 paid", "Hello world", "last"],
    ),
    "text with records": (b'plain\n{"message":"json"}\n<14>syslog\n', ["json", "plain", "syslog"]),
    "byte order mark": (b'\xef\xbb\xbf{"message":"json"}\n', ["json"]),
    "line feed first": (b"\n \r\n<14>one\n<14>two\n", ["one", "two"]),
    "blank": (b" \n", []),
    "counted and plain": (
        b"7 <14>one\r\n7 <14>two\0\n<14>three\n9 <14>four\n\n<14>five",
        ["five", "four", "one", "three", "two"],
    ),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("piece", [1, 1000])
def test_each_record_of_a_mixed_stream_is_found(service, stream, piece):
    sent, expected = STREAMS[stream]
    send(service.tcp, *[sent[at : at + piece] for at in range(0, len(sent), piece)])
    assert expected == messages(service.wait_for(len(expected)))


def test_a_connection_may_change_its_protocol_between_records(service):
    # log4j2 shares one connection between all appenders of one port.
    octets = b"<14>counted"
    send(
        service.tcp,
        b'{"message":"one"}\n',
        b"%d %s" % (len(octets), octets),
        json.dumps(GELF).encode() + b"\0",
        b"<14>syslog\0",
        b'{"message":"two"}\n',
    )
    assert ["counted", "gelf", "one", "syslog", "two"] == messages(service.wait_for(5))


@pytest.mark.parametrize("piece", [1, 100_000])
def test_pickles_and_forward_are_found_after_other_records(service, piece):
    record = logging.makeLogRecord({"msg": "pickle", "levelno": 20})
    pickled = logging.handlers.SocketHandler("", 0).makePickle(record)
    newer = pickle.dumps({"msg": "newer pickle", "levelno": 20})
    forward = b"\x93\xa3tag\xce\x6a\xb1\x3b\x80\x81\xa7message\xa7forward"
    sent = b"".join(
        [
            b'{"message":"json"}\n',
            pickled,
            json.dumps(GELF).encode() + b"\0",
            struct.pack(">I", len(newer)) + newer,
            b"<14>syslog\0",
            pickled,
            b"<14>last\0",
            forward,
        ]
    )
    send(service.tcp, *[sent[at : at + piece] for at in range(0, len(sent), piece)])

    expected = ["forward", "gelf", "json", "last", "newer pickle", "pickle", "pickle", "syslog"]
    assert expected == messages(service.wait_for(8))


def test_datagrams_can_end_with_nul_and_a_heartbeat_is_not_a_record(service):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        for datagram in (b"\0", json.dumps(GELF).encode() + b"\0", b"<14>syslog\0", b"\0"):
            datagrams.sendto(datagram, service.udp)
    assert ["gelf", "syslog"] == messages(service.wait_for(2))


def test_nil_values_and_the_groups_of_fluent_bit_are_understood(service):
    def text(value):
        return bytes([0xA0 + len(value)]) + value

    def entry(seconds, metadata, body):
        return b"\x92\x92\xd7\x00" + struct.pack(">II", seconds & 0xFFFFFFFF, 0) + metadata + body

    body = {name: b"\x81" + text(b"message") + text(name) for name in (b"in", b"out")}
    resource = b"\x81" + text(b"resource") + b"\x81" + text(b"attributes") + b"\x81" + text(b"service") + text(b"shop")
    entries = (
        entry(-1, b"\x81" + text(b"schema") + text(b"otlp"), resource)
        + entry(1_700_000_000, b"\x80", body[b"in"])
        + entry(-2, b"\x80", b"\x80")
        + entry(1_700_000_001, b"\x80", body[b"out"])
    )
    packed = b"\x92" + text(b"tag") + b"\xc5" + struct.pack(">H", len(entries)) + entries
    send(service.tcp, b"\xc0" + packed + b"\xc0\xc0" + packed)

    rows = service.wait_for(4)

    found = sorted((row["message"], row["time_ns"], row.get("fields", {}).get("service")) for row in rows)
    assert found == [("in", 1_700_000_000 * 10**9, "shop")] * 2 + [("out", 1_700_000_001 * 10**9, None)] * 2


def test_a_unix_socket_takes_datagrams(start_service, tmp_path):
    path = tmp_path / "log.sock"
    service = start_service(config=f'listen = ["unix://{path}?kind=datagram"]\nhttp = "127.0.0.1:0"\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"<14>Nov 27 10:00:00 haproxy[7]: by datagram\n", str(path))
    (row,) = service.wait_for(1)
    assert ("by datagram", "haproxy", 7, "localhost") == tuple(
        row[name] for name in ("message", "logger", "process", "host")
    )
    service.stop()
    assert not path.exists()


def test_unreadable_frames_are_counted_by_protocol_and_reason(service):
    send(service.tcp, b'{"a":1 this line is no JSON, and long}\n{"message":"good","pid":7,"level":"info"}\n{}\n')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"a datagram without a priority, that is kept", service.udp)
    service.wait_for(4)

    counted = service.query("logger=logspool.undecoded | count by protocol")
    assert {("json", 2), ("syslog", 1)} == {(row["protocol"], row["count"]) for row in counted}
    reasons = [row["reason"] for row in service.query("logger=logspool.undecoded | count by reason")]
    assert 3 == len(reasons) and "the line is an empty JSON object" in reasons


def test_a_key_named_like_a_part_of_the_record_can_be_queried(service):
    send(service.tcp, b'{"message":"own","pid":7,"process":"worker","level":"odd"}\n{"message":"other","pid":8}\n')
    service.wait_for(2)

    for expression in ("fields.process=worker", "fields.level=odd", '"level"=odd', "pid=7"):
        assert ["own"] == messages(service.query(expression)), expression
    assert [] == service.query("fields.pid=7")
