"""Who may ask and write over HTTP."""

import contextlib
import json
import socket
import urllib.parse

import pytest

DIGEST = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
BASE = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'


def test_a_configured_token_is_required(start_service):
    service = start_service(config=BASE + f'[access]\ntoken_sha256 = ["{DIGEST}"]\n')

    assert 401 == service.get("/api/query")[0]
    assert 401 == service.get("/metrics")[0]
    assert 401 == service.post("/ingest", b"{}", "application/json")[0]
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert 200 == service.get("/api/query", Authorization=f"{scheme} secret")[0]
    # Whoever watches the service needs no token.
    assert (200, "ok\n") == service.get("/livez")
    done = service.command("query", "--service", service.url, "--token", "secret")
    assert 0 == done.returncode
    done = service.command("query", "--service", service.url)
    assert 1 == done.returncode and "token" in done.stderr


def test_pages_of_other_origins_can_neither_query_nor_write(service):
    good = b'{"message":"x"}'
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert 403 == service.get("/api/query", **headers)[0]
        assert 403 == service.post("/ingest", good, "application/json", **headers)[0]
        assert 403 == service.post("/log", b"msg=x&levelno=20", "application/x-www-form-urlencoded", **headers)[0]
    own = service.url
    assert 403 == service.post("/log", b"msg=x&levelno=20", "application/x-www-form-urlencoded", Origin=own)[0]
    # An image of a page: browsers send no `Origin` with it.
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Referer": "http://evil.example/"},
        {"Cookie": "a=b"},
        {"Accept-Language": "en"},
    ):
        assert 403 == service.get("/x?msg=forged&levelno=50", **headers)[0]
        assert 403 == service.post("/log", b"msg=x&levelno=20", "application/x-www-form-urlencoded", **headers)[0]
    # Requests that a form of a page can send without asking first.
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": own}, {"Referer": "http://evil.example/"}):
        assert 403 == service.post("/ingest", good, "text/plain", **headers)[0]
    assert [] == service.query()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/api/query?q=(", "expected"),
        ("/api/query?limit=x", '"x" is not a whole number'),
        ("/api/query?limits=5", "unknown field `limits`"),
        ("/api/query?format=xml", "text, ndjson or csv"),
        ("/api/histogram?interval=5", "30s"),
        ("/api/histogram?limit=-1", '"-1" is not a whole number'),
        ("/api/tail?since=1h", "unknown field `since`"),
    ],
)
def test_invalid_queries_are_refused(service, path, part):
    status, said = service.get(path)
    assert 400 == status and part in json.loads(said)["error"]


@pytest.mark.parametrize("before", [b"", b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["first", "second"])
@pytest.mark.parametrize("order", [1, -1], ids=["length-first", "length-last"])
def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(service, before, order):
    lengths = [b"Content-Length: 19\r\n", b"Transfer-Encoding: chunked\r\n"][::order]
    head = b"POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + b"".join(lengths)
    # A service that believes the length would take the bytes after the body for the next request.
    body = b'f\r\n{"message": "x"}\r\n0\r\n\r\n'
    url = urllib.parse.urlsplit(service.url)
    with socket.create_connection((url.hostname, url.port), timeout=30) as connection:
        if before:
            connection.sendall(before)
            assert connection.recv(4096).endswith(b"\r\n\r\nok\n")
        connection.sendall(head + b"\r\n" + body + b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(4096):
                answer += piece

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"connection: close\r\n" in answer
    assert "Content-Length" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert [] == service.query()


def test_the_service_describes_itself(service):
    paths = json.loads(service.get("/openapi.json")[1])["paths"]
    for path in (
        "/api/query",
        "/api/tail",
        "/api/histogram",
        "/api/fields",
        "/metrics",
        "/livez",
        "/readyz",
        "/ingest",
        "/v1/logs",
    ):
        assert path in paths
    assert (200, "ok\n") == service.get("/readyz")
    assert service.get("/metrics")[1].endswith("# EOF\n")
    assert "message" in json.loads(service.get("/api/fields")[1])["fields"]
