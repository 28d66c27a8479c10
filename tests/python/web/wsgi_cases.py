"""Cases of `logspool.wsgi.Middleware` with plain WSGI calls. Run by `cases.main`."""

import io
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from wsgiref.util import FileWrapper

import logspool
import logspool.wsgi
from logspool.wsgi import Middleware

log = logging.getLogger("app")
ID = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def _environ(path="/a", **more):
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "REMOTE_ADDR": "10.0.0.1",
        "REMOTE_PORT": "5123",
        **more,
    }


def _call(app, environ, parts=None):
    """Serve a request as a server does and send at most `parts` parts. Returns status, headers, body."""
    started = []

    def start_response(status, headers, exc_info=None):
        started[:] = [status, dict(headers)]
        return lambda data: None

    sent = []
    body = app(environ, start_response)
    try:
        for part in body:
            sent.append(part)
            if len(sent) == parts:
                break
    finally:
        if hasattr(body, "close"):
            body.close()
    return (*started, b"".join(sent))


def _plain(environ, start_response):
    log.info("inside")
    start_response("200 OK", [("Set-Cookie", "session=secret")])
    return [b"hel", b"lo"]


def each_record_has_the_fields_of_its_request(lines):
    _, headers, body = _call(Middleware(_plain), _environ())
    log.info("outside")

    inside, access, outside = lines.new()
    expected = {"request_id": headers["X-Request-ID"], "method": "GET", "route": "/a", "client": "10.0.0.1:5123"}
    assert body == b"hello"
    assert expected.items() <= inside.items(), inside
    assert expected.items() <= access.items(), access
    assert {"path": "/a", "status": 200, "response_bytes": 5, "level": "INFO"}.items() <= access.items(), access
    assert "request_id" not in outside and logspool.wsgi.request_id() is None


def ids_and_traces_come_from_the_headers(lines):
    environ = _environ(HTTP_X_REQUEST_ID="req-7", HTTP_TRACEPARENT=f"00-{ID}-{SPAN}-01")
    _, headers, _ = _call(Middleware(_plain), environ)
    assert headers["X-Request-ID"] == "req-7"
    for record in lines.new():
        assert (record["request_id"], record["trace_id"], record["span_id"]) == ("req-7", ID, SPAN)
    _, headers, _ = _call(Middleware(_plain), _environ(HTTP_X_REQUEST_ID="a\nb", HTTP_TRACEPARENT="00-1-2-01"))
    record = lines.access()
    assert record["request_id"] == headers["X-Request-ID"] != "a\nb" and "trace_id" not in record


def the_id_that_the_application_sets_stays(lines):
    def app(environ, start_response):
        start_response("200 OK", [("x-request-id", "own")])
        return []

    _, headers, _ = _call(Middleware(app), _environ())
    assert headers == {"x-request-id": "own"}


def headers_are_shown_only_where_asked_for_and_secrets_never(lines):
    given = _environ(
        HTTP_AUTHORIZATION="s3cret", HTTP_COOKIE="s3cret", HTTP_X_API_KEY="s3cret", CONTENT_TYPE="text/plain"
    )
    _call(Middleware(_plain), dict(given))
    assert not any(word in str(lines.new()) for word in ("s3cret", "session", "text/plain"))
    asked = Middleware(
        _plain,
        headers=["Authorization", "Cookie", "X-Api-Key", "Content-Type", "X-None"],
        response_headers=["set-cookie"],
        reveal=["x-api-key"],
    )
    _call(asked, dict(given))
    record = lines.access()
    shown = {name: value for name, value in record.items() if "header" in name}
    assert shown == {
        "header_authorization": "[redacted]",
        "header_cookie": "[redacted]",
        "header_x_api_key": "s3cret",
        "header_content_type": "text/plain",
        "response_header_set_cookie": "[redacted]",
    }


def what_a_client_sends_forges_no_line(lines):
    path = "/a\nERROR forged \x1b[31mé\u2028".encode().decode("latin-1")
    _call(Middleware(_plain, headers=["agent"]), _environ(path, HTTP_AGENT="x\r\nERROR forged", REQUEST_METHOD="G\nT"))

    record = lines.access()
    assert record["path"] == "/a%0AERROR%20forged%20%1B%5B31m%C3%A9%E2%80%A8"
    assert record["header_agent"] == "x\\r\\nERROR forged" and record["method"] == "G\\nT"
    assert record["message"].startswith("G\\nT /a%0AERROR%20forged")


def a_streamed_body_keeps_the_fields_and_ends_with_one_record(lines):
    closed = []

    def app(environ, start_response):
        start_response("200 OK", [])
        try:
            for number in range(3):
                log.info("part %d", number)
                yield b"part"
        finally:
            closed.append(logspool.wsgi.request_id())

    _, headers, body = _call(Middleware(app), _environ())
    records = lines.new()
    assert body == b"part" * 3 and closed == [headers["X-Request-ID"]]
    assert [record["message"].split(" 200")[0] for record in records] == ["part 0", "part 1", "part 2", "GET /a"]
    assert {record["request_id"] for record in records} == {headers["X-Request-ID"]}
    assert records[-1]["response_bytes"] == 12


def two_bodies_sent_in_turns_by_one_thread_keep_their_ids(lines):
    def app(environ, start_response):
        start_response("200 OK", [])
        for number in range(3):
            log.info("%s part %d", environ["HTTP_X_REQUEST_ID"], number)
            yield b"part"

    served = Middleware(app)
    bodies = [iter(served(_environ(HTTP_X_REQUEST_ID=name), lambda *_: None)) for name in ("a", "b")]
    for _ in range(3):
        for body in bodies:
            next(body)
            assert logspool.wsgi.request_id() is None
    for body in bodies:
        assert list(body) == []
    records = lines.new()
    assert len(records) == 8
    assert all(record["message"].startswith((record["request_id"], "GET")) for record in records)


def a_client_that_leaves_is_no_fault(lines):
    def app(environ, start_response):
        start_response("200 OK", [])
        yield from [b"1", b"2", b"3"]

    _call(Middleware(app), _environ(), parts=1)
    record = lines.access()
    assert (record["status"], record["disconnected"], record["level"]) == (200, True, "INFO")
    _call(Middleware(app), _environ(REQUEST_METHOD="HEAD"), parts=1)
    assert "disconnected" not in lines.access()


def exceptions_have_one_record_and_are_raised_on(lines):
    def at_once(environ, start_response):
        raise ValueError("broken")

    def later(environ, start_response):
        start_response("200 OK", [])
        yield b"1"
        raise ValueError("broken")

    for app in (at_once, later):
        try:
            _call(Middleware(app), _environ())
        except ValueError as error:
            assert str(error) == "broken"
        else:
            raise AssertionError("not raised on")
        (record,) = lines.new()
        assert (record["status"], record["level"]) == (500, "ERROR") and "ValueError: broken" in record["exception"]
        assert "disconnected" not in record


def a_failing_close_has_a_record_of_its_own(lines):
    class Body:
        def __iter__(self):
            return iter([b"1"])

        def close(self):
            raise ValueError("closing")

    def app(environ, start_response):
        start_response("200 OK", [])
        return Body()

    try:
        _call(Middleware(app), _environ())
    except ValueError:
        pass
    else:
        raise AssertionError("not raised on")
    access, failure = lines.new()
    assert access["status"] == 200 and "ValueError: closing" in failure["exception"]


def the_server_gets_files_and_lists_as_they_are(lines):
    def sends_file(environ, start_response):
        start_response("200 OK", [])
        return environ["wsgi.file_wrapper"](io.BytesIO(b"file"))

    environ = {**_environ(), "wsgi.file_wrapper": FileWrapper}
    body = Middleware(sends_file)(environ, lambda *_: None)
    assert type(body) is FileWrapper and list(body) == [b"file"]
    body.close()
    record = lines.access()
    assert body.filelike.closed and record["status"] == 200 and "response_bytes" not in record
    assert len(Middleware(_plain)(_environ(), lambda *_: None)) == 2


def a_second_middleware_reports_itself_and_writes_nothing(lines):
    for _ in range(3):
        _call(Middleware(Middleware(_plain)), _environ())
    records = lines.new()
    assert sum(record["logger"] == "logspool.access" for record in records) == 3
    told = [record["message"] for record in records if record["logger"] == "logspool"]
    assert len(told) == 1 and "logspool.wsgi.Middleware is installed twice" in told[0] and "(fix: " in told[0]


def the_route_is_that_of_flask_or_set_by_hand(lines):
    def flask(environ, start_response):
        environ["werkzeug.request"] = SimpleNamespace(url_rule=SimpleNamespace(rule="/items/<id>"))
        return _plain(environ, start_response)

    def own(environ, start_response):
        logspool.wsgi.set_route("/own/{id}")
        return _plain(environ, start_response)

    _call(Middleware(flask), _environ("/items/7"))
    assert lines.access()["route"] == "/items/<id>"
    _call(Middleware(own), _environ("/own/7"))
    inside, access = lines.new()
    assert inside["route"] == access["route"] == "/own/{id}"


#: Number of requests, of threads that serve them at once, and of records of each request.
REQUESTS, THREADS, RECORDS = 1000, 16, 4


def no_record_carries_the_id_of_another_request(lines):
    def app(environ, start_response):
        own = environ["HTTP_X_REQUEST_ID"]
        log.info("own %s begin", own)
        start_response("200 OK", [])
        yield b"1"
        log.info("own %s middle", own)
        yield b"2"
        log.info("own %s end", own)

    served = Middleware(app)
    barrier = threading.Barrier(THREADS)

    def serve(number):
        if number < THREADS:
            barrier.wait(60)
        _call(served, _environ(f"/{number}", HTTP_X_REQUEST_ID=f"id-{number}"))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(serve, range(REQUESTS)))
    records = lines.new()
    made_by = [
        "id-" + record["path"][1:] if record["logger"] == "logspool.access" else record["message"].split()[1]
        for record in records
    ]
    assert len(records) == REQUESTS * RECORDS
    assert made_by == [record["request_id"] for record in records]
