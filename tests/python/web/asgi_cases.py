"""Cases of `logspool.asgi.Middleware` with plain ASGI calls. Run by `cases.main`."""

import asyncio
import logging
import random
import sys
import threading
from types import SimpleNamespace

import logspool
import logspool.asgi
from logspool.asgi import Middleware

log = logging.getLogger("app")
ID = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def _scope(path="/a", *headers, **more):
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("10.0.0.1", 5123),
        **more,
    }


async def _call(app, scope, received=()):
    """Return the messages that the application sent, and the exception that it raised."""
    sent, given = [], list(received)

    async def receive():
        return given.pop(0) if given else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    try:
        await app(scope, receive, send)
    except BaseException as error:
        return sent, error
    return sent, None


def _run(app, scope, received=()):
    return asyncio.run(_call(app, scope, received))


async def _answer(send, status=200, body=b"hello", headers=()):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def _plain(scope, receive, send):
    log.info("inside")
    await _answer(send, headers=[(b"set-cookie", b"session=secret")])


def _given_id(message):
    return [value.decode() for name, value in message["headers"] if name.lower() == b"x-request-id"]


def each_record_has_the_fields_of_its_request(lines):
    sent, _ = _run(Middleware(_plain), _scope())
    log.info("outside")

    inside, access, outside = lines.new()
    expected = {"request_id": _given_id(sent[0])[0], "method": "GET", "route": "/a", "client": "10.0.0.1:5123"}
    assert expected.items() <= inside.items(), inside
    assert expected.items() <= access.items(), access
    assert {"path": "/a", "status": 200, "response_bytes": 5, "level": "INFO"}.items() <= access.items(), access
    assert access["message"].startswith("GET /a 200 ") and 0 <= access["duration_seconds"] < 10
    assert "request_id" not in outside
    assert logspool.asgi.request_id() is None


def a_well_formed_id_is_taken_and_given_back(lines):
    sent, _ = _run(Middleware(_plain), _scope("/a", ("x-request-id", "req-7/a.b=")))

    assert _given_id(sent[0]) == ["req-7/a.b="]
    assert {record["request_id"] for record in lines.new()} == {"req-7/a.b="}


def other_ids_are_replaced(lines):
    for given in ("", "a b", "a\nb", 'a"b', "x" * 129, "é", "<script>"):
        sent, _ = _run(Middleware(_plain), _scope("/a", ("x-request-id", given)))
        assert len(_given_id(sent[0])[0]) == 32, given
        assert lines.access()["request_id"] == _given_id(sent[0])[0]
    sent, _ = _run(Middleware(_plain), _scope("/a", ("x-request-id", "a"), ("x-request-id", "b")))
    assert len(_given_id(sent[0])[0]) == 32
    sent, _ = _run(Middleware(_plain, trust_request_id=False), _scope("/a", ("x-request-id", "mine")))
    assert _given_id(sent[0]) != ["mine"]


def the_id_has_the_header_that_was_asked_for(lines):
    async def own(scope, receive, send):
        await _answer(send, headers=[(b"X-Trace", b"own")])

    sent, _ = _run(Middleware(own, request_id_header="X-Trace"), _scope("/a", ("x-trace", "t-1")))
    assert [value for name, value in sent[0]["headers"] if name.lower() == b"x-trace"] == [b"own"]
    assert lines.access()["request_id"] == "t-1"
    sent, _ = _run(Middleware(_plain, request_id_header=None), _scope("/a", ("x-request-id", "t-1")))
    assert _given_id(sent[0]) == [] and lines.access()["request_id"] != "t-1"


def a_traceparent_is_read_by_the_rules_of_w3c(lines):
    good = [f"00-{ID}-{SPAN}-01", f"00-{ID}-{SPAN}-00", f"cc-{ID}-{SPAN}-ff", f"cc-{ID}-{SPAN}-01-what-comes"]
    bad = [
        "",
        f"ff-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01-more",
        f"00-{ID}-{SPAN}-01-",
        f"cc-{ID}-{SPAN}-01.more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID.upper()}-{SPAN}-01",
        f"00-{ID[1:]}-{SPAN}-01",
        f"00-{ID}-{SPAN}-1",
        f"00-{ID}-{SPAN}-0g",
        f"0-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01\n",
        f" 00-{ID}-{SPAN}-01",
        f"00_{ID}_{SPAN}_01",
    ]
    for header in good:
        _run(Middleware(_plain), _scope("/a", ("traceparent", header)))
        for record in lines.new():
            assert (record["trace_id"], record["span_id"]) == (ID, SPAN), header
    for header in bad:
        _run(Middleware(_plain), _scope("/a", ("traceparent", header)))
        assert all("trace_id" not in record and "span_id" not in record for record in lines.new()), header
    _run(Middleware(_plain), _scope("/a", ("traceparent", good[0]), ("traceparent", good[0])))
    assert "trace_id" not in lines.access()


def the_current_span_of_opentelemetry_wins_over_the_header(lines):
    assert "opentelemetry" not in sys.modules
    span = SimpleNamespace(trace_id=0xABC, span_id=0xDEF, is_valid=True)
    current = SimpleNamespace(get_span_context=lambda: span)
    sys.modules["opentelemetry.trace"] = SimpleNamespace(get_current_span=lambda: current)
    try:
        scope = _scope("/a", ("traceparent", f"00-{ID}-{SPAN}-01"))
        _run(Middleware(_plain), scope)
        record = lines.access()
        assert (record["trace_id"], record["span_id"]) == ("abc".zfill(32), "def".zfill(16))
        span.is_valid = False
        _run(Middleware(_plain), scope)
        assert lines.access()["trace_id"] == ID
    finally:
        del sys.modules["opentelemetry.trace"]


def headers_are_shown_only_where_asked_for_and_secrets_never(lines):
    given = (
        ("user-agent", "curl"),
        ("authorization", "Bearer s3cret"),
        ("cookie", "s3cret"),
        ("x-api-key", "s3cret"),
        ("proxy-authorization", "s3cret"),
        ("x-tenant", "acme"),
    )
    _run(Middleware(_plain), _scope("/a", *given))
    text = str(lines.new())
    assert not any(word in text for word in ("s3cret", "acme", "curl", "session"))

    asked = Middleware(
        _plain, headers=[name.title() for name, _ in given], response_headers=["Set-Cookie", "X-Not-There"]
    )
    _run(asked, _scope("/a", *given))
    record = lines.access()
    assert record["header_user_agent"] == "curl" and record["header_x_tenant"] == "acme"
    for name in ("authorization", "cookie", "x_api_key", "proxy_authorization"):
        assert record[f"header_{name}"] == "[redacted]"
    assert record["response_header_set_cookie"] == "[redacted]"
    assert "s3cret" not in str(record) and "response_header_x_not_there" not in record

    revealing = Middleware(_plain, headers=["x-api-key"], response_headers=["set-cookie"], reveal=["X-Api-Key"])
    _run(revealing, _scope("/a", *given))
    record = lines.access()
    assert record["header_x_api_key"] == "s3cret" and record["response_header_set_cookie"] == "[redacted]"


def what_a_client_sends_forges_no_line(lines):
    handler = logging.FileHandler("text.log", encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(
        logging.Formatter("%(levelname)s %(message)s|%(method)s|%(route)s|%(client)s|%(header_agent)s")
    )
    access = logging.getLogger("forged")
    access.addHandler(handler)
    odd = "\n\r\x0b\x0c\x1b[31m\x00\x85\u2028\u2029\u202e\x7f"
    app = Middleware(_plain, logger=access, headers=["agent"])
    fields = {"method": f"GET{odd}", "client": (f"1{odd}", 2)}
    _run(app, _scope(f"/a{odd} 200 1.0 ms\nERROR forged \udc80", ("agent", "x\nERROR forged\x85\x1b[2J"), **fields))
    logspool.flush()
    with open("text.log", encoding="utf-8", newline="") as file:
        text = file.read()
    access.removeHandler(handler)

    record = next(found for found in lines.new() if found["logger"] == "forged")
    assert record["header_agent"] == "x\\nERROR forged\\x85\\x1b[2J"
    assert " " not in record["path"] and record["path"].startswith("/a%0A%0D%0B%0C%1B%5B31m%00%C2%85%E2%80%A8")
    for name in ("message", "method", "route", "path", "client", "header_agent"):
        assert record[name].isprintable(), (name, record[name])
    assert text.count("\n") == 1 and text.rstrip("\n").isprintable() and "forged" in text, text


def long_texts_are_cut(lines):
    _run(Middleware(_plain, headers=["agent"]), _scope("/" + "a" * 100_000, ("agent", "b" * 100_000)))

    record = lines.access()
    assert len(record["path"]) == len(record["header_agent"]) == 2048 + 3


def a_streamed_body_ends_with_one_record(lines):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 206, "headers": []})
        for number in range(3):
            log.info("part %d", number)
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
        await send({"type": "http.response.body"})
        log.info("after")

    _run(Middleware(app), _scope())
    records = lines.new()
    assert [record["message"].split(" 206")[0] for record in records] == [
        "part 0",
        "part 1",
        "part 2",
        "GET /a",
        "after",
    ]
    assert len({record["request_id"] for record in records}) == 1
    assert (records[3]["status"], records[3]["response_bytes"]) == (206, 12)


def an_exception_has_one_record_and_is_raised_on(lines):
    raised = ValueError("broken")

    async def app(scope, receive, send):
        raise raised

    sent, error = _run(Middleware(app), _scope())
    assert error is raised and sent == []
    (record,) = lines.new()
    assert (record["status"], record["level"]) == (500, "ERROR") and "ValueError: broken" in record["exception"]


def an_exception_after_the_error_page_of_a_framework_has_one_record(lines):
    async def app(scope, receive, send):
        try:
            raise ValueError("broken")
        except ValueError:
            await _answer(send, 500)
            raise

    sent, error = _run(Middleware(app), _scope())
    assert isinstance(error, ValueError) and _given_id(sent[0])
    (record,) = lines.new()
    assert record["status"] == 500 and "ValueError: broken" in record["exception"]


def an_exception_of_background_work_has_a_record_of_its_own(lines):
    async def app(scope, receive, send):
        await _answer(send)
        raise ValueError("background")

    _, error = _run(Middleware(app), _scope())
    assert isinstance(error, ValueError)
    access, failure = lines.new()
    assert access["status"] == 200 and "exception" not in access
    assert failure["level"] == "ERROR" and "ValueError: background" in failure["exception"]
    assert access["request_id"] == failure["request_id"]


def a_client_that_leaves_is_no_fault(lines):
    async def waits(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass

    async def streams(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        raise RuntimeError("the client has left")

    async def cancelled(scope, receive, send):
        raise asyncio.CancelledError

    left = [{"type": "http.request"}, {"type": "http.disconnect"}]
    _run(Middleware(waits), _scope(), left)
    record = lines.access()
    assert (record["status"], record["disconnected"], record["level"]) == (499, True, "INFO")
    _run(Middleware(streams), _scope(), left[1:])
    record = lines.access()
    assert (record["status"], record["disconnected"]) == (200, True) and "exception" not in record
    _run(Middleware(cancelled), _scope())
    assert lines.access()["disconnected"]
    _run(Middleware(_plain), _scope(), left[1:])
    assert "disconnected" not in lines.access()


def a_broken_connection_is_no_fault(lines):
    async def broken(message):
        raise OSError("broken pipe")

    async def call():
        try:
            await Middleware(_plain)(_scope(), None, broken)
        except OSError as error:
            return error

    assert asyncio.run(call())
    record = lines.access()
    assert record["disconnected"] and "exception" not in record


def websockets_and_lifespan_pass_through(lines):
    seen = []

    async def app(scope, receive, send):
        log.info(scope["type"])
        seen.append((scope["type"], receive, send))

    async def receive():
        pass

    async def send(message):
        pass

    for kind in ("websocket", "lifespan"):
        asyncio.run(Middleware(app)({"type": kind, "path": "/ws", "headers": []}, receive, send))
    assert seen == [(kind, receive, send) for kind in ("websocket", "lifespan")]
    websocket, lifespan = lines.new()
    assert websocket["route"] == "/ws" and "request_id" in websocket and "request_id" not in lifespan


def a_second_middleware_reports_itself_and_writes_nothing(lines):
    for _ in range(3):
        _run(Middleware(Middleware(_plain)), _scope())
    records = lines.new()
    assert sum(record["logger"] == "logspool.access" for record in records) == 3
    told = [record["message"] for record in records if record["logger"] == "logspool"]
    assert len(told) == 1 and "logspool.asgi.Middleware is installed twice" in told[0] and "(fix: " in told[0]


def the_route_of_the_framework_is_on_records_from_then_on(lines):
    def app(mount=False):
        async def call(scope, receive, send):
            log.info("before")
            if mount:
                scope.update({"root_path": scope["root_path"] + "/sub", "endpoint": None})
            scope["route"] = SimpleNamespace(path="/items/{id}")
            log.info("after")
            await _answer(send)

        return call

    _run(Middleware(app()), _scope("/items/7"))
    before, after, access = lines.new()
    assert (before["route"], after["route"], access["route"]) == ("/items/7", "/items/{id}", "/items/{id}")
    assert access["path"] == "/items/7"
    _run(Middleware(app(mount=True)), _scope("/proxy/sub/items/7", root_path="/proxy"))
    assert lines.access()["route"] == "/sub/items/{id}"

    async def sets(scope, receive, send):
        logspool.asgi.set_route("/own/{id}")
        await _answer(send)

    logspool.asgi.set_route("/no/request")
    _run(Middleware(sets), _scope("/own/7"))
    assert lines.access()["route"] == "/own/{id}"


def middlewares_around_it_see_what_the_framework_sets(lines):
    async def app(scope, receive, send):
        scope["endpoint"] = app
        scope.update({"path_params": {"id": 7}}, router="r")
        scope |= {"app": "a"}
        assert scope.setdefault("state", 1) == 1 and scope.setdefault("state", 2) == 1
        scope["gone"] = scope["deleted"] = 1
        assert scope.pop("gone") == 1 and scope.pop("gone", None) is None
        del scope["deleted"]
        assert isinstance(scope, dict) and scope.copy() == dict(scope)
        await _answer(send)

    scope = _scope()
    before = dict(scope)
    assert _run(Middleware(app), scope)[1] is None
    assert scope == {**before, "endpoint": app, "path_params": {"id": 7}, "router": "r", "app": "a", "state": 1}


def a_filter_that_raises_breaks_no_request(lines):
    access = logging.getLogger("raising")
    access.addFilter(lambda record: 1 / 0)
    sent, error = _run(Middleware(_plain, logger=access), _scope())
    assert error is None and sent[0]["status"] == 200


def the_logs_of_servers_are_replaced_where_asked_for(lines):
    server, errors = logging.getLogger("uvicorn.access"), logging.getLogger("uvicorn.error")
    werkzeug = logging.getLogger("werkzeug")
    werkzeug.setLevel(logging.INFO)

    def serve(app):
        server.info("line of the server")
        _, error = _run(app, _scope())
        server.info("line of the server")
        werkzeug.info('1 - - [now] "%s" %s %s\n', "GET /", "200", "-")
        werkzeug.info("Press CTRL+C to quit")
        if error:
            errors.error("Exception in ASGI application", exc_info=error)
        return [record["message"] for record in lines.new() if record["logger"] != "logspool.access"]

    async def fails(scope, receive, send):
        raise ValueError

    silent = logging.getLogger("silent")
    silent.propagate = False
    told = serve(Middleware(_plain, logger=silent, replace_server_log=True))
    assert told.count("line of the server") == 2 and "has no handler" in str(told) and "(fix: " in str(told), told
    assert len(serve(Middleware(fails))) == 5
    assert serve(Middleware(fails, replace_server_log=True)) == ["line of the server", "Press CTRL+C to quit"]
    errors.error("another")
    assert [record["message"] for record in lines.new()] == ["another"]
    server.disabled = False


def wrong_arguments_say_what_to_write(lines):
    wrong = [
        (TypeError, "wraps an application", lambda: Middleware("app:app")),
        (TypeError, 'headers=["user-agent"]', lambda: Middleware(_plain, headers="user-agent")),
        (ValueError, "no name of a header", lambda: Middleware(_plain, headers=["user agent"])),
        (ValueError, "no name of a header", lambda: Middleware(_plain, request_id_header="X Request")),
        (ValueError, "name it there", lambda: Middleware(_plain, reveal=["cookie"])),
        (TypeError, "logging.Logger", lambda: Middleware(_plain, logger=7)),
    ]
    for kind, text, call in wrong:
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


#: Number of concurrent requests, and of records of each: two of its own, and one each from a task, a thread, a
#: background task and the access log.
REQUESTS, RECORDS = 1000, 6


def no_record_carries_the_id_of_another_request(lines):
    pause = random.Random(7)
    background = []

    async def app(scope, receive, send):
        own = dict(scope["headers"])[b"x-request-id"].decode()

        async def in_task():
            await asyncio.sleep(pause.random() / 100)
            log.info("own %s task", own)

        def in_thread():
            log.info("own %s thread", own)

        async def later():
            await asyncio.sleep(pause.random() / 100)
            await asyncio.to_thread(log.info, "own %s background thread", own)

        log.info("own %s begin", own)
        task = asyncio.ensure_future(in_task())
        await asyncio.to_thread(in_thread)
        await asyncio.sleep(pause.random() / 100)
        await task
        background.append(asyncio.ensure_future(later()))
        log.info("own %s end", own)
        await _answer(send)

    served = Middleware(app)

    async def all_at_once():
        await asyncio.gather(
            *(_call(served, _scope(f"/{number}", ("x-request-id", f"id-{number}"))) for number in range(REQUESTS))
        )
        await asyncio.gather(*background)

    asyncio.run(all_at_once())
    # Concurrent requests on threads, each with its own loop.
    threads = [
        threading.Thread(
            target=lambda number=number: _run(
                Middleware(_plain), _scope(f"/t{number}", ("x-request-id", f"id-t{number}"))
            )
        )
        for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    records = lines.new()
    ids = [record["request_id"] for record in records]
    made_by = [
        "id-" + record["path"][1:] if record["logger"] == "logspool.access" else record["message"].split()[1]
        for record in records
        if record["message"] != "inside"
    ]
    assert len(records) == REQUESTS * RECORDS + 20 * 2, len(records)
    assert made_by == [given for given, record in zip(ids, records) if record["message"] != "inside"]
    assert all(ids.count(f"id-t{number}") == 2 for number in range(20))
