"""Lines that containers cut into parts are one record; what else real streams hold is read part by part."""

import gzip
import hashlib
import http.client
import json
import socket
import struct
import zlib

import pytest
from test_mixed_streams import send

#: Docker cuts lines after 16 KiB.
PART = "x" * 16384
TIME = "2026-09-21T14:13:20.125Z"


def docker_file(text: str, stream: str = "stdout") -> dict:
    """Return a line of a file of Docker's driver `json-file`."""
    return {"log": text, "stream": stream, "time": TIME}


def docker_fluentd(text: str, number: int, last: str) -> dict:
    """Return a record of Docker's driver `fluentd`."""
    container = {"container_id": "c0ffee", "container_name": "/web", "source": "stdout"}
    part = {"partial_id": "id", "partial_ordinal": str(number), "partial_last": last}
    return {"log": text, **container, "partial_message": "true", **part}


def docker_journald(text: str, number: int, last: str) -> dict:
    """Return an entry of the journal that Docker's driver `journald` wrote."""
    part = {"CONTAINER_PARTIAL_ID": "id", "CONTAINER_PARTIAL_ORDINAL": str(number), "CONTAINER_PARTIAL_LAST": last}
    return {"MESSAGE": text, "PRIORITY": "6", "CONTAINER_ID": "c0ffee", "CONTAINER_PARTIAL_MESSAGE": "true", **part}


#: Records of senders that cut lines, and the messages that they become.
PARTS = {
    "json-file": ([docker_file(PART), docker_file("end\n")], [f"{PART}end"]),
    "json-file, two streams": (
        [docker_file(PART), docker_file("error\n", "stderr"), docker_file("short "), docker_file("end\n")],
        [f"{PART}short end", "error"],
    ),
    "json-file, no line ends": ([docker_file(f"line {number}") for number in range(20)], None),
    "fluentd": ([docker_fluentd(text, at, last) for text, at, last in (("a", 1, "false"), ("b", 2, "true"))], ["ab"]),
    "journald": ([docker_journald(text, at, last) for text, at, last in (("a", 1, "false"), ("b", 2, "true"))], ["ab"]),
    "cri": (
        [{"time": TIME, "stream": "stdout", "logtag": tag, "message": text} for tag, text in ("Pa", "Pb", "Fc")],
        ["abc"],
    ),
    "cri of Fluent Bit": (
        [{"time": TIME, "stream": "stdout", "_p": tag, "log": text} for tag, text in ("Pa", "Pb", "Fc")],
        ["abc"],
    ),
}

CRI = f"{TIME} stdout P two \n{TIME} stdout F words\n{TIME} stderr F alone\n".encode()


def messagepack(value) -> bytes:
    """Return texts, numbers, lists and maps as MessagePack."""
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, int):
        return b"\xce" + struct.pack(">I", value)
    if isinstance(value, dict):
        return (
            b"\xde" + struct.pack(">H", len(value)) + b"".join(messagepack(x) for pair in value.items() for x in pair)
        )
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(messagepack(part) for part in value)


def message(*parts, begin: bytes = b"") -> bytes:
    """Return a message of Forward."""
    return bytes([0x90 + len(parts)]) + begin + b"".join(messagepack(part) for part in parts)


@pytest.mark.parametrize("sender", PARTS)
@pytest.mark.parametrize("way", ["tcp", "http", "forward"])
def test_parts_of_a_line_become_one_record(service, sender, way):
    records, expected = PARTS[sender]
    expected = expected or [record["log"] for record in records]
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    if way == "tcp":
        send(service.tcp, *lines.splitlines(keepends=True))
    elif way == "http":
        status, answer = service.post("/ingest", lines, "application/x-ndjson")
        assert (200, {"records": len(expected)}) == (status, json.loads(answer))
    else:
        send(service.tcp, *[message("docker.web", 1_790_000_000, record) for record in records])

    rows = service.wait_for(len(expected))

    assert sorted(expected) == sorted(row["message"] for row in rows)
    assert not any(name.lower().startswith(("partial", "container_partial")) for row in rows for name in row["fields"])


@pytest.mark.parametrize("way", ["tcp", "http"])
def test_lines_of_containerd_are_read_as_text(service, way):
    if way == "tcp":
        send(service.tcp, CRI)
    else:
        assert 200 == service.post("/ingest", CRI, "text/plain")[0]

    rows = service.wait_for(2)

    assert ["alone", "two words"] == sorted(row["message"] for row in rows)
    assert {TIME} == {row["time"].replace("125000000Z", "125Z").replace("125000Z", "125Z") for row in rows}


def test_a_line_that_never_ends_is_stored_in_its_parts(service):
    first = json.dumps(docker_file(PART)).encode() + b"\n"
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(first)
        # The parts are stored although the connection stays open.
        (row,) = service.wait_for(1)
        assert (PART, True) == (row["message"], row["fields"]["partial"])
        connection.sendall(first)
    assert 2 == len(service.wait_for(2, "partial=true"))


def test_an_ack_is_sent_only_for_stored_parts(service):
    first, last = (
        message("t", 1_790_000_000, docker_fluentd(*part), {"chunk": part[0]})
        for part in (("one", 1, "false"), ("two", 2, "true"))
    )
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(first)
        assert b"one" in connection.recv(100)
        assert "one" == service.wait_for(1)[0]["message"]
        connection.sendall(last)
        assert b"two" in connection.recv(100)
    assert ["one", "two"] == sorted(row["message"] for row in service.wait_for(2))


def test_a_list_on_a_connection_becomes_its_elements(service):
    # As Fluent Bit's output `tcp` sends it: lists without line ends between them.
    send(
        service.tcp, b'[{"message":"1"},{"message":"2"}][{"message":"3"},bad,{"message":"4"},{"a":{},{"message":"5"}]\n'
    )
    rows = service.wait_for(7)
    assert ["1", "2", "3", "4", "5"] == sorted(row["message"] for row in rows if not row["logger"])
    undecoded = [row["fields"]["frame"] for row in rows if row["logger"] == "logspool.undecoded"]
    assert ["bad", '{"a":{}'] == sorted(undecoded)


def test_a_broken_line_costs_only_itself_among_lines_of_text(service):
    send(service.tcp, b'{"message":"cut",\nplain one\n  indented\nplain two\n{"message":"json"}\n')
    rows = service.wait_for(5)
    assert "json" in {row["message"] for row in rows}
    frames = {row["fields"]["frame"] for row in rows if row["logger"] == "logspool.undecoded"}
    assert {'{"message":"cut",', "plain one", "  indented", "plain two"} == frames


ENTRY = "__REALTIME_TIMESTAMP=1790000000125000\nPRIORITY=4\nMESSAGE=entry {}\n_HOSTNAME=web\n\n"


def test_a_compressed_journal_is_read(service):
    # journal-upload compresses each of its buffers alone.
    halves = ["".join(ENTRY.format(number) for number in part).encode() for part in (range(5000), range(5000, 10_000))]
    gzipped = b"".join(gzip.compress(half) for half in halves)
    kind = "application/vnd.fdo.journal"
    for coding, body in (("gzip", gzipped), ("deflate", zlib.compress(b"".join(halves)))):
        assert 202 == service.post("/upload", body, kind, **{"Content-Encoding": coding})[0]
    service.wait_metric("logspool_service_records_accepted_total 20000")

    host, port = service.address("tcp", "http")
    connection = http.client.HTTPConnection(host, port)
    connection.request("POST", "/upload", halves[0], {"Content-Type": kind, "Content-Encoding": "xz"})
    answer = connection.getresponse()
    assert (415, True) == (answer.status, b"Compression=zstd" in answer.read())


def entry(number: int, text: str = "x" * 100) -> bytes:
    """Return an entry of Forward."""
    return b"\x92" + messagepack(1_790_000_000) + messagepack({"message": f"{number} {text}"})


def packed(entries: bytes, options: dict) -> bytes:
    """Return a message with packed entries."""
    begin = b"\x93" + messagepack("tag") + b"\xc6" + struct.pack(">I", len(entries))
    return begin + entries + messagepack(options)


def listed(entries: "list[bytes]", options: dict) -> bytes:
    """Return a message with a list of entries."""
    begin = b"\x93" + messagepack("tag") + b"\xdc" + struct.pack(">H", len(entries))
    return begin + b"".join(entries) + b"\x81\xa5chunk" + messagepack(options["chunk"])


def acknowledged(address, sent: bytes) -> bytes:
    """Return the answer to a message."""
    with socket.create_connection(address) as connection:
        connection.settimeout(30)
        connection.sendall(sent)
        return connection.recv(100)


SMALL = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\nlimits.frame_bytes = 65536\n'
COUNT = 20_000


@pytest.mark.parametrize("form", ["packed", "listed", "gzip"])
def test_a_message_of_any_length_is_read_while_it_arrives(start_service, form):
    # Ten frames of the limit are 640 KiB, and these messages have some MiB.
    service = start_service(config=SMALL)
    options = {"chunk": "the id"}
    if form == "listed":
        sent = listed([entry(number) for number in range(COUNT)], options)
    elif form == "packed":
        sent = packed(b"".join(map(entry, range(COUNT))), options)
    else:
        texts = (hashlib.sha512(str(number).encode()).hexdigest() for number in range(COUNT))
        entries = b"".join(entry(number, text) for number, text in enumerate(texts))
        sent = packed(gzip.compress(entries, 1), {**options, "compressed": "gzip"})
    assert len(sent) > 10 * 65536

    # Another message follows on the connection.
    assert b"the id" in acknowledged(service.tcp, sent + packed(entry(COUNT), {}))

    service.wait_metric(f"logspool_service_records_accepted_total {COUNT + 1}")
    assert 0 == service.count("logger=logspool.undecoded")


@pytest.mark.parametrize("place", [500, 999])
def test_damage_in_a_list_of_entries_costs_one_entry(service, place):
    entries = [entry(number) for number in range(1000)]
    entries[place] = entries[place].replace(b"x", b"\xc1", 1).replace(b"\xdb", b"\xc1", 1)

    assert b"the id" in acknowledged(service.tcp, listed(entries, {"chunk": "the id"}))

    assert 999 == service.count("logger=tag")
    (row,) = service.query("logger=logspool.undecoded")
    assert "frame" in row["fields"]


def test_a_long_message_that_cannot_be_decompressed_is_kept(start_service):
    service = start_service(config=SMALL)
    texts = (hashlib.sha512(str(number).encode()).hexdigest() for number in range(COUNT))
    entries = gzip.compress(b"".join(entry(number, text) for number, text in enumerate(texts)), 1)
    damaged = entries[: len(entries) // 2] + b"\xff" * 100 + entries[len(entries) // 2 + 100 :]

    assert b"the id" in acknowledged(service.tcp, packed(damaged, {"chunk": "the id"}))

    assert 1000 < service.count("logger=tag") < COUNT
    kept = sum(row["fields"]["frame_bytes"] for row in service.query("logger=logspool.undecoded", "--limit", "1000"))
    assert kept > len(entries) // 3


def test_the_zone_of_a_sender_is_that_of_its_times(start_service):
    service = start_service(config='zones = ["127.0.0.0/8=Europe/Berlin"]\n' + SMALL)
    send(service.tcp, b'{"message":"local","time":"2026-07-21 14:13:20"}\n')
    (row,) = service.wait_for(1)
    assert row["time"].startswith("2026-07-21T12:13:20")


def test_the_answer_to_a_long_body_arrives(start_service):
    # The limit is 1 MiB, and the sender reads the answer after it has sent all.
    service = start_service(config=SMALL)
    body = b'{"message":"line"}\n' * 200_000
    status, answer = service.post("/ingest", body, "application/x-ndjson")
    assert (413, True) == (status, "1048576 bytes" in answer)
