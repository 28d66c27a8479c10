"""Answers to a sender of OTLP: in its own encoding, whether records are safe, and whether to send them again."""

import gzip
import http.client
import json
import socket
import time

import pytest

import ports

DEADLINE = 30

PROTOBUF, JSON = "application/x-protobuf", "application/json"

BASE = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'


def export(service, body: bytes, kind: str, method: str = "POST", **headers: str):
    """Send a request; return status, headers and body."""
    connection = http.client.HTTPConnection(*service.address("tcp", "http"), timeout=DEADLINE)
    try:
        connection.request(method, "/v1/logs", body, {"Content-Type": kind, **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def accepted(service) -> int:
    """How many records the service has taken."""
    return json.loads(service.get("/api/stats")[1])["records_accepted"]


def field(number: int, content: bytes) -> bytes:
    """A field of protobuf with a length."""
    length, left = b"", len(content)
    while left >= 0x80:
        length += bytes([left & 0x7F | 0x80])
        left >>= 7
    return bytes([number << 3 | 2]) + length + bytes([left]) + content


def number_at(body: bytes) -> "tuple[int, bytes]":
    """Return the number at the start of `body`, and the rest."""
    number, shift = 0, 0
    for place, byte in enumerate(body):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, body[place + 1 :]
    raise AssertionError("a number is cut off")


def pair_of(body: bytes) -> "tuple[int, str]":
    """The number in field 1 and the text in field 2, as status and partial success have them."""
    assert body[0] == 1 << 3
    number, body = number_at(body[1:])
    assert body[0] == 2 << 3 | 2
    length, body = number_at(body[1:])
    assert length == len(body)
    return number, body.decode()


def request(*records: bytes) -> bytes:
    """A request in protobuf."""
    return field(1, field(2, b"".join(field(2, record) for record in records)))


def said(text: str) -> bytes:
    """A record in protobuf."""
    return field(5, field(1, text.encode()))


def request_json(*records) -> bytes:
    """A request in JSON."""
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}).encode()


def status_of(headers, body: bytes) -> "tuple[int, str]":
    """Code and message of a `google.rpc.Status`."""
    if headers["Content-Type"] == PROTOBUF:
        return pair_of(body)
    assert headers["Content-Type"] == JSON
    told = json.loads(body)
    assert {"code", "message"} == set(told)
    return told["code"], told["message"]


def test_stored_records_are_answered_with_an_empty_response_in_their_encoding(service):
    for kind, body, expected in ((PROTOBUF, request(said("a")), b""), (JSON, request_json({}), b"{}")):
        status, headers, answer = export(service, body, kind + "; charset=utf-8")
        assert (200, kind, expected) == (status, headers["Content-Type"], answer)
    assert 2 == service.count()


def test_unreadable_records_are_counted_and_the_others_are_stored(service):
    status, headers, body = export(service, request(said("a"), b"\x2a\x05", said("b"), b"\x2a\x05"), PROTOBUF)

    assert (200, PROTOBUF) == (status, headers["Content-Type"])
    assert body[0] == 1 << 3 | 2
    length, partial = number_at(body[1:])
    assert length == len(partial)
    assert (2, "the body is not protobuf with log records: it is truncated") == pair_of(partial)

    status, headers, body = export(service, request_json({"body": {"stringValue": "c"}}, 7), JSON)
    partial = json.loads(body)["partialSuccess"]
    assert (200, JSON, "1") == (status, headers["Content-Type"], partial["rejectedLogRecords"])
    assert "not JSON with log records" in partial["errorMessage"]
    stored = [row["message"] for row in service.query()]
    assert ["a", "b", "c"] == sorted(message for message in stored if len(message) == 1)
    assert 3 == service.count("logger=logspool.undecoded")


def test_many_unreadable_records_become_few_error_records(service):
    body = request(said("a"), *[b"\x2a\x05"] * 100_000)
    assert 200 == export(service, body, PROTOBUF)[0]

    assert 10 == service.count("logger=logspool.undecoded")


def test_json_with_common_errors_is_read_and_a_bad_record_loses_only_itself(service):
    number = {"key": "a", "value": {"doubleValue": 7}}
    faulty = request_json({"body": {"stringValue": "number"}, "attributes": [number]})
    records = [
        faulty.replace(b"7}", b"NaN}"),
        request_json({"body": {"stringValue": "tab"}}).replace(b"tab", b"a\ttab"),
        request_json({"body": {"stringValue": "latin"}}, 7).replace(b"latin", b"caf\xe9"),
        b"\xef\xbb\xbf" + request_json({"body": {"stringValue": "mark"}}),
    ]
    answers = [export(service, body, JSON) for body in records]

    assert [200] * 4 == [status for status, *_ in answers]
    assert ["1"] == [
        partial["rejectedLogRecords"] for *_, body in answers if (partial := json.loads(body).get("partialSuccess"))
    ]
    rows = service.query("not logger=logspool.undecoded")
    assert ["a\ttab", "caf\ufffd", "mark", "number"] == sorted(row["message"] for row in rows)
    assert ["nan"] == [row["fields"]["a"] for row in rows if row["message"] == "number"]
    # A double of OTLP has this value as text. A body that cannot be mended is refused, with the place in the body.
    status, _, body = export(service, b'{"resourceLogs":[NaN,{]}', JSON)
    assert 400 == status and "column 18" in json.loads(body)["message"]


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_short_body_whose_records_need_too_much_memory_is_refused_whole(service, kind):
    # Each record has the fields of the resource: together more than 64 MiB.
    large, count = "x" * 9_000, 8_000
    if kind == PROTOBUF:
        pair = field(1, b"a") + field(2, field(1, large.encode()))
        body = field(1, field(1, field(1, pair)) + field(2, field(2, said("m")) * count))
    else:
        resource = {"attributes": [{"key": "a", "value": {"stringValue": large}}]}
        scopes = [{"logRecords": [{"body": {"stringValue": "m"}}] * count}]
        body = json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": scopes}]}).encode()

    status, headers, answer = export(service, gzip.compress(body), kind, **{"Content-Encoding": "gzip"})

    assert 413 == status
    assert "send fewer at once" in status_of(headers, answer)[1]
    assert [] == service.query()


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_errors_are_a_status_in_the_encoding_of_the_request(start_service, kind):
    config = BASE + '[access]\ntoken_sha256 = ["2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"]\n'
    service = start_service(config=config + "[limits]\nframe_bytes = 1024\n")
    bearer = {"Authorization": "Bearer secret"}
    unreadable = request(b"\x2a\x05") if kind == PROTOBUF else request_json(7, 8)
    for expected, code, part, body, headers in [
        (401, 16, "Authorization: Bearer", b"", {}),
        (403, 7, "is not a host name", b"", {**bearer, "Host": "evil.example"}),
        (400, 3, "with log records", b"\x0a\x05", bearer),
        (400, 3, "log records can be read", unreadable, bearer),
        (400, 3, "cannot decompress", b"no gzip", {**bearer, "Content-Encoding": "gzip"}),
        (413, 3, "16384 bytes", b"x" * 20_000, bearer),
        (413, 3, "16384 bytes", gzip.compress(b"x" * 20_000), {**bearer, "Content-Encoding": "gzip"}),
        (415, 3, "use gzip, deflate, zstd", b"", {**bearer, "Content-Encoding": "br"}),
    ]:
        status, answered, answer = export(service, body, kind, **headers)

        assert expected == status, answer
        assert answered["Retry-After"] is None
        told = status_of(answered, answer)
        assert code == told[0] and part in told[1], told
        assert kind == answered["Content-Type"]
    status, answered, answer = export(service, b"", kind, "GET", **bearer)
    assert (405, (12, "Method Not Allowed")) == (status, status_of(answered, answer))
    status, answered, answer = export(service, b"", "text/plain", **bearer)
    assert 415 == status and "application/x-protobuf or application/json" in status_of(answered, answer)[1]
    # Only here: others are answered as ever.
    assert "error" in json.loads(service.post("/ingest", b"{}", JSON)[1])


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_failing_store_is_reported_with_the_time_to_retry(start_service, kind):
    store = f"postgres://nobody@127.0.0.1:{ports.free_port()}/none"
    service = start_service(config=BASE + f'store = ["{store}"]\n[limits]\nshutdown_seconds = 0\n')
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b'{"message": "waits"}\n')
        until = time.monotonic() + DEADLINE
        while service.get("/readyz")[0] == 200 or accepted(service) == 0:
            assert time.monotonic() < until
    status, headers, body = export(service, request(said("a")) if kind == PROTOBUF else request_json({}), kind)

    assert (503, "1") == (status, headers["Retry-After"])
    code, told = status_of(headers, body)
    assert 14 == code and "the store postgres does not work: " in told
    # It was not taken: nothing of it is lost when the service ends.
    assert 1 == accepted(service)


def test_slow_stores_are_reported_with_the_time_to_retry(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        service = start_service(
            config=BASE + f'store = ["{store}"]\n[limits]\nwaiting_bytes = 1_048_576\nshutdown_seconds = 0\n'
        )
        with socket.create_connection(service.tcp) as connection:
            connection.setblocking(False)
            line = json.dumps({"message": "x" * 100_000}).encode() + b"\n"
            left, until = line * 40, time.monotonic() + DEADLINE
            # Until the waiting records fill the budget and the connection is not read any more.
            while json.loads(service.get("/api/stats")[1])["waiting"] < 0.9:
                assert time.monotonic() < until
                try:
                    left = left[connection.send(left) :]
                except BlockingIOError:
                    time.sleep(0.01)
            time.sleep(0.1)
            status, headers, body = export(service, request(said("a")), PROTOBUF)

            assert (429, "1") == (status, headers["Retry-After"]), body
            code, told = status_of(headers, body)
            assert 8 == code and "limits.waiting_bytes" in told
        service.process.kill()
        service.process.wait(DEADLINE)
