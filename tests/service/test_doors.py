"""Paths of other services: their senders get the answers they know, and their records are stored before that."""

import base64
import gzip
import http.client
import json
import socket
import struct
import subprocess
import zlib

import pytest

DEADLINE = 30
SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
BASE = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'

NS = 1_700_000_000_125_000_000
LOKI = {"streams": [{"stream": {"job": "shop", "level": "warn"}, "values": [[str(NS), "by loki"]]}]}
BULK = b'{"create":{"_index":"logs"}}\n{"@timestamp":"2023-11-14T22:13:20.125Z","message":"by bulk","level":"warn"}\n'
GELF = b'{"version":"1.1","host":"h","short_message":"by gelf","level":4,"timestamp":1700000000.125}'
CLEF = b'{"@t":"2023-11-14T22:13:20.125Z","@mt":"by {Way}","@l":"Warning","Way":"clef"}\n'
ENVELOPE = (
    b'{"Events":[{"Timestamp":"2023-11-14T22:13:20.125Z","Level":"Warning","MessageTemplate":"by {Way}",'
    b'"Properties":{"Way":"envelope"}}]}'
)
HEC = b'{"time":1700000000.125,"event":{"message":"by hec","severity":"warn"}}'
JOURNAL = b"__REALTIME_TIMESTAMP=1700000000125000\nPRIORITY=4\nMESSAGE=by journal\n_HOSTNAME=h\n\n"

#: Path, content type, body, the status of the answer and the message that is stored with level 30 and the time above.
DOORS = [
    ("/loki/api/v1/push", "application/json", json.dumps(LOKI).encode(), 204, "by loki"),
    ("/_bulk", "application/x-ndjson", BULK, 200, "by bulk"),
    ("/logs/_bulk", "application/vnd.elasticsearch+x-ndjson; compatible-with=8", BULK, 200, "by bulk"),
    ("/gelf", "application/json", GELF, 202, "by gelf"),
    ("/ingest/clef", "application/vnd.serilog.clef", CLEF, 201, "by clef"),
    ("/api/events/raw?clef", "application/json", CLEF, 201, "by clef"),
    ("/api/events/raw", "application/json", ENVELOPE, 201, "by envelope"),
    ("/services/collector", "application/json", HEC, 200, "by hec"),
    ("/services/collector/event", "", HEC, 200, "by hec"),
    ("/upload", "application/vnd.fdo.journal", JOURNAL, 202, "by journal"),
]
PATHS = [door[0] for door in DOORS]


def ask(service, method, path, body=None, **headers):
    """Send a request; return status, headers and body."""
    connection = http.client.HTTPConnection(*service.address("tcp", "http"), timeout=DEADLINE)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def post(service, path, kind, body, **headers):
    """Post a body."""
    return ask(service, "POST", path, body, **({"Content_Type": kind} if kind else {}), **headers)


def raw_deflate(body):
    """Compress without the header that `deflate` should have."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def test_each_endpoint_stores_its_record_and_answers_as_its_protocol_expects(service):
    for path, kind, body, status, _ in DOORS:
        answer = post(service, path, kind, body)
        assert status == answer[0], (path, answer)

    rows = service.query("", "--limit", "1000")
    assert sorted(message for *_, message in DOORS) == sorted(row["message"] for row in rows)
    assert {(30, NS)} == {(row["level"], row["time_ns"]) for row in rows}


def test_all_endpoints_accept_bodies_in_each_usual_compression(service):
    codings = {
        "gzip": gzip.compress,
        "X-GZIP": gzip.compress,
        "deflate": zlib.compress,
        "Deflate": raw_deflate,
        "Identity": bytes,
    }
    sent = 0
    for path, kind, body, status, _ in DOORS[:-1]:
        for name, compress in codings.items():
            answer = post(service, path, kind, compress(body), Content_Encoding=name)
            assert status == answer[0], (path, name, answer)
            sent += 1
    assert sent == service.count("level=warning")

    for path, kind, body, *_ in DOORS:
        assert 415 == post(service, path, kind, body, Content_Encoding="br")[0], path
        assert post(service, path, kind, body[:-20], Content_Encoding="gzip")[0] in (400, 415), path
    assert sent == service.count()


def test_invalid_bodies_are_refused_and_not_stored(service):
    for path, kind, *_ in DOORS:
        for bad in (b"no\xff {", b"\0\0\0", b"[1", b'{"message":"x"', b"A\n\xff\xff\xff\xff\xff\xff\xff\x7fx\n"):
            status, headers, body = post(service, path, kind, bad)
            assert 400 == status, (path, bad, status, body)
            assert "nosniff" == headers["X-Content-Type-Options"]
    assert [] == service.query()


def test_a_token_is_accepted_in_the_form_of_each_sender(start_service):
    service = start_service(config=BASE + f'[access]\ntoken_sha256 = ["{SECRET}"]\n')
    pair = base64.b64encode(b"user:secret").decode()
    allowed = [
        {"Authorization": "Bearer secret"},
        {"Authorization": "Splunk secret"},
        {"Authorization": "ApiKey " + pair},
        {"Authorization": "Basic " + pair},
        {"X_Seq_ApiKey": "secret"},
    ]
    for path, kind, body, status, _ in DOORS:
        assert 401 == post(service, path, kind, body)[0], path
        assert 401 == post(service, path, kind, body, Authorization="Bearer wrong")[0], path
        for headers in allowed:
            assert status == post(service, path, kind, body, **headers)[0], (path, headers)
    _, headers, body = post(service, "/_bulk", "application/x-ndjson", BULK)
    assert ("Elasticsearch", 401) == (headers["X-Elastic-Product"], json.loads(body)["status"])
    assert 2 == json.loads(post(service, "/services/collector", "", HEC)[2])["code"]


def test_no_page_of_another_origin_can_send_records(service):
    for path, kind, body, *_ in DOORS:
        for simple in ("text/plain", "application/x-www-form-urlencoded", ""):
            status = post(service, path, simple, body, Sec_Fetch_Site="cross-site")[0]
            assert 403 == status, (path, simple, status)
        assert 403 == post(service, path, kind, body, Origin="http://evil.example")[0], path
    assert [] == service.query()


def test_each_document_of_a_bulk_has_its_own_answer(service):
    lines = [
        b'{"index":{"_index":"a","_id":"1"}}',
        b'{"message":"one"}',
        b'{"create":{"_index":"b"}}',
        b"no JSON at all, but kept whole",
        b'{"delete":{"_index":"a","_id":"1"}}',
        b'{"update":{"_index":"a","_id":"1"}}',
        b'{"doc":{"message":"x"}}',
        b'{"create":{}}',
        b'{"message":"two"}',
    ]
    status, _, body = post(service, "/c/_bulk", "application/x-ndjson", b"\r\n".join(lines) + b"\n")

    answer = json.loads(body)
    assert (200, True) == (status, answer["errors"])
    told = [(action, item["_index"], item["status"]) for pair in answer["items"] for action, item in pair.items()]
    assert told == [
        ("index", "a", 201),
        ("create", "b", 400),
        ("delete", "a", 400),
        ("update", "a", 400),
        ("create", "c", 201),
    ]
    assert "1" == answer["items"][0]["index"]["_id"]
    assert "no JSON at all, but kept whole" == service.query("logger=logspool.undecoded")[0]["fields"]["frame"]
    assert {("one", "a"), ("two", "c")} == {
        (row["message"], row["fields"]["_index"]) for row in service.query("not logger=logspool.undecoded")
    }
    for bad in (b"", b'{"index":{}}\n', b'{"message":"x"}\n{}\n'):
        assert 400 == post(service, "/_bulk", "application/x-ndjson", bad)[0]


def test_elasticsearch_clients_get_the_answers_that_they_check(service):
    agent = {"Accept": "application/json"}
    status, headers, body = ask(service, "GET", "/", **agent)
    assert (200, "Elasticsearch") == (status, headers["X-Elastic-Product"])
    assert json.loads(body)["version"]["number"].startswith("8.")
    assert 200 == ask(service, "HEAD", "/", X_Elastic_Product_Origin="logstash-output-elasticsearch")[0]
    assert b"<html" in ask(service, "GET", "/", Accept="text/html,application/json;q=0.9")[2]
    assert b"<html" in ask(service, "GET", "/", Accept="*/*")[2]
    assert "active" == json.loads(ask(service, "GET", "/_license", **agent)[2])["license"]["status"]
    for method, path in [
        ("GET", "/_ilm/policy/filebeat"),
        ("HEAD", "/_index_template/logstash"),
        ("PUT", "/_index_template/logstash"),
        ("GET", "/_template/x"),
        ("PUT", "/_data_stream/filebeat"),
        ("GET", "/_cluster/health"),
        ("GET", "/_xpack"),
        ("GET", "/_nodes/http"),
    ]:
        status, headers, _ = ask(service, method, path, b"{}" if method == "PUT" else None, **agent)
        assert (200, "Elasticsearch") == (status, headers["X-Elastic-Product"]), path


def test_splunk_and_loki_clients_get_the_answers_that_they_check(service):
    assert 17 == json.loads(ask(service, "GET", "/services/collector/health")[2])["code"]
    assert 200 == ask(service, "GET", "/ready")[0]
    path = "/services/collector/raw?host=web-1&source=s&time=1700000000.125"
    assert 200 == post(service, path, "", b"raw one\r\n\n  raw two\n", X_Splunk_Request_Channel="c")[0]
    assert {("raw one", "web-1", NS), ("  raw two", "web-1", NS)} == {
        (row["message"], row["host"], row["time_ns"]) for row in service.query()
    }
    for body, code in ((b"", 5), (b"{", 6), (b"{}", 12), (b'{"event":""}', 13)):
        status, _, answer = post(service, "/services/collector", "", body)
        assert (400, code) == (status, json.loads(answer)["code"]), body


def test_a_journal_longer_than_any_body_is_stored_while_it_arrives(start_service):
    service = start_service(config=BASE + "[limits]\nframe_bytes = 65536\n")
    entry = b"__REALTIME_TIMESTAMP=1700000000125000\nMESSAGE\n" + struct.pack("<Q", 1000) + b"m" * 1000 + b"\n\n"
    pieces = [(entry * 2500)[start : start + 7777] for start in range(0, 2500 * len(entry), 7777)]
    assert 202 == ask(service, "POST", "/upload", iter(pieces), Content_Type="application/vnd.fdo.journal")[0]
    assert 2500 == service.count()


def test_json_lines_are_accepted_with_all_their_media_types(service):
    kinds = ["application/ndjson", "application/x-ndjson", "APPLICATION/JSONL", "text/plain; charset=utf-8"]
    for kind in kinds:
        assert 200 == post(service, "/ingest", kind, b'{"message":"in JSON"}\n')[0], kind
    assert 200 == post(service, "/ingest", "text/plain", b"plain one\n\n  plain two\n")[0]
    assert ["  plain two", *["in JSON"] * 4, "plain one"] == sorted(row["message"] for row in service.query())
    assert 403 == post(service, "/ingest", "text/plain", b"x", Origin="http://evil.example")[0]


def raw(service, head):
    """Send bytes; return the first line of the answer."""
    with socket.create_connection(service.address("tcp", "http"), DEADLINE) as connection:
        connection.sendall(head)
        connection.settimeout(DEADLINE)
        return connection.makefile("rb").readline().decode()


def test_load_balancers_can_check_health_without_a_host_name(service):
    for path in ("/livez", "/readyz"):
        assert " 200 " in raw(service, f"OPTIONS {path} HTTP/1.0\r\n\r\n".replace("OPTIONS", "GET").encode())
        assert " 200 " in raw(service, f"HEAD {path} HTTP/1.0\r\n\r\n".encode())
        assert " 200 " in raw(
            service, f"GET {path} HTTP/1.1\r\nHost: backend.example\r\nConnection: close\r\n\r\n".encode()
        )
    assert " 200 " in raw(service, b"GET /api/stats HTTP/1.0\r\n\r\n")
    assert " 403 " in raw(service, b"GET /api/stats HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    twice = b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert " 400 " in raw(service, twice)
    assert " 403 " in raw(service, b"GET http://evil.example/api/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")


@pytest.mark.parametrize("part", [b"PRI", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_a_silent_connection_with_http2_is_closed(start_service, part):
    service = start_service(config=BASE + "[limits]\nheader_seconds = 1\n")
    with socket.create_connection(service.address("tcp", "http"), DEADLINE) as connection:
        connection.settimeout(DEADLINE)
        connection.sendall(part)
        while connection.recv(4096):
            pass


def test_http2_serves_the_same_paths_and_checks_the_host_name(service):
    def curl(*arguments):
        command = ["curl", "--silent", "--http2-prior-knowledge", "--max-time", "30", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE).stdout

    if "HTTP2" not in subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("curl has no HTTP/2")
    assert "ok\n" == curl(service.url + "/livez")
    sent = curl("-H", "Content-Type: application/json", "--data", '{"message":"by HTTP/2"}', service.url + "/ingest")
    assert {"records": 1} == json.loads(sent)
    assert "403" == curl(
        "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example", service.url + "/api/stats"
    )
