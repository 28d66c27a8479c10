"""curl: records by HTTP, and the answers to records that cannot be taken."""

import gzip
import json
import time

import pytest

from . import sent
from .conftest import run
from .page import addressed, sample

TYPES = {"json": "application/json", "ndjson": "application/x-ndjson"}


@pytest.fixture
def post(curl, service, tmp_path):
    """Post a file by curl; return the status and the answer."""

    def post(path, body, *options):
        (tmp_path / "body").write_bytes(body)
        command = [curl, "--silent", "--show-error", "--write-out", "\n%{http_code}", "--data-binary", "@body"]
        answer, status = run([*command, *options, f"{service.url}{path}"], tmp_path).rsplit("\n", 1)
        return int(status), answer

    return post


def kind(name):
    return "--header", f"Content-Type: {TYPES[name]}"


def objects():
    return [
        {"message": record.message, "level": record.level.lower(), "logger": "shop", **record.fields}
        for record in sent.records()
    ]


def check(rows, host="127.0.0.1"):
    assert sent.in_order(
        [(record.message, record.number, "shop", host, record.fields) for record in sent.records()]
    ) == sent.found(rows, "message", "level", "logger", "host", "fields")


def test_json_lines_are_stored_when_curl_has_its_answer(service, post):
    began = time.time()
    lines = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects())
    assert (200, '{"records":10}') == post("/ingest", lines.encode(), *kind("ndjson"))
    rows = service.query()
    check(rows)
    # The records have the time of their arrival.
    assert sent.times_between(rows, began, time.time())


@pytest.mark.parametrize("indent", [None, 2])
def test_each_object_of_a_json_list_becomes_a_record(service, post, indent):
    body = json.dumps(objects(), indent=indent).encode()
    assert (200, '{"records":10}') == post("/ingest", body, *kind("json"))
    check(service.query())


def test_a_json_object_can_have_many_lines_and_be_gzipped(service, post):
    for each in objects():
        body = gzip.compress(json.dumps(each, indent=1).encode())
        answer = post("/ingest", body, *kind("json"), "--header", "Content-Encoding: gzip")
        assert (200, '{"records":1}') == answer
    check(service.query())


def test_otlp_in_json_is_accepted(service, post):
    def value(of):
        kinds = {str: "stringValue", bool: "boolValue", float: "doubleValue"}
        if isinstance(of, list):
            return {"arrayValue": {"values": [value(each) for each in of]}}
        if isinstance(of, dict):
            return {"kvlistValue": {"values": attributes(of)}}
        if isinstance(of, int) and not isinstance(of, bool):
            return {"intValue": str(of)}
        return {} if of is None else {kinds[type(of)]: of}

    def attributes(of):
        return [{"key": name, "value": value(each)} for name, each in of.items()]

    numbers = {"DEBUG": 5, "INFO": 9, "WARNING": 13, "ERROR": 17, "CRITICAL": 21}
    logs = [
        {
            "timeUnixNano": str(1_763_800_000_000_000_000 + place),
            "severityNumber": numbers[record.level],
            "body": value(record.message),
            "attributes": attributes(record.fields),
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": "eee19b7ec3c1b174",
        }
        for place, record in enumerate(sent.records())
    ]
    resource = {"attributes": attributes({"host.name": "web-1"})}
    scopes = [{"scope": {"name": "shop"}, "logRecords": logs}]
    body = json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": scopes}]}).encode()

    assert (200, "{}") == post("/v1/logs", body, *kind("json"))

    rows = service.query("trace_id=5b8efff798038103d269b633813fc60c span_id=eee19b7ec3c1b174")
    check(rows, host="web-1")
    assert list(range(len(logs))) == sorted(row["time_ns"] - 1_763_800_000_000_000_000 for row in rows)


def test_a_form_becomes_a_record(curl, service, tmp_path):
    for record in sent.records():
        words = [f"msg={record.message}", f"levelno={record.number}", "name=shop", "order=7"]
        options = [word for each in words for word in ("--data-urlencode", each)]
        run([curl, "--silent", "--fail", *options, f"{service.url}/any/path"], tmp_path)
    assert sent.in_order(
        [(record.message, record.number, "shop", {"order": "7"}) for record in sent.records()]
    ) == sent.found(service.query(), "message", "level", "logger", "fields")


def reason(body):
    """Return why a request was refused: OTLP has its own form for it, and protobuf holds the text as it is."""
    try:
        said = json.loads(body)
    except ValueError:
        return body
    return said["error"] if "error" in said else said["message"]


def test_invalid_input_is_refused_with_the_reason(service, post):
    good = b'{"message": "good"}'
    for expected, why, answer in [
        # The type that curl sends if no type is given.
        (415, "application/x-www-form-urlencoded", post("/ingest", good)),
        (415, "send application/x-protobuf or application/json", post("/v1/logs", good, *kind("ndjson"))),
        (
            415,
            "use gzip, deflate, zstd or identity",
            post("/ingest", good, *kind("json"), "--header", "Content-Encoding: br"),
        ),
        (400, "EOF while parsing", post("/ingest", b'{"message": "cut o', *kind("json"))),
        (400, "the line is not JSON", post("/ingest", b"{bad}\n{worse}\n", *kind("ndjson"))),
        (400, "is not a JSON object", post("/ingest", b'"text"', *kind("json"))),
        (400, "not JSON", post("/v1/logs", b"{bad", *kind("json"))),
        (400, "not protobuf", post("/v1/logs", b"\xff" * 9, "--header", "Content-Type: application/x-protobuf")),
        (400, "none of the attributes", post("/", b"a=b")),
        (413, "limits.frame_bytes", post("/ingest", b'{"message": "%s"}' % (b"x" * (1 << 20)), *kind("json"))),
        (413, "limits.frame_bytes", post("/ingest", b'[{"message": "%s"}]' % (b"x" * (1 << 20)), *kind("json"))),
        (413, "16 times limits.frame_bytes", post("/ingest", b" " * (17 << 20), *kind("json"))),
        (413, "16 times limits.frame_bytes", post("/v1/logs", b" " * (17 << 20), *kind("json"))),
        (404, "unknown path /nowhere", post("/nowhere", good, *kind("json"))),
    ]:
        status, body = answer
        assert expected == status and why in reason(body), answer
    assert [] == service.query()


def test_the_records_before_the_cut_of_a_truncated_list_are_stored(service, post):
    assert {"records": 1} == json.loads(post("/ingest", b'[{"message": "whole"},', *kind("json"))[1])
    assert ["whole"] == [row["message"] for row in service.query()]


def test_unreadable_lines_are_reported_and_kept_beside_readable_ones(service, post):
    lines = b'{"message": "one"}\n{bad}\n{"message": "two"}\n'
    assert {"records": 2, "rejected": 1} == json.loads(post("/ingest", lines, *kind("ndjson"))[1])
    rows = service.query()
    undecoded = [row for row in rows if row["logger"] == "logspool.undecoded"]
    assert ["{bad}"] == [row["fields"]["frame"] for row in undecoded]
    assert ["one", "two"] == sorted(row["message"] for row in rows if row not in undecoded)


def test_the_samples_on_the_page_are_accepted(curl, service, tmp_path):
    (tmp_path / "records.ndjson").write_text('{"message": "from a file"}\n')
    commands = [line[2:] for line in sample("curl").splitlines() if line.startswith("$ ")]
    for command in commands:
        said = run(["bash", "-e", "-c", addressed(command, service)], tmp_path)
        assert '"records":' in said, said
    assert ["from a file", "order 7 paid", "order 7 paid", "order 8 paid"] == sorted(
        row["message"] for row in service.query()
    )
