"""Programs with real frameworks and servers for `test_web_servers.py`; each function is one program."""

import asyncio
import contextlib
import http.client
import json
import logging
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from web.cases import Lines

log = logging.getLogger("app")
DEADLINE_SECONDS = 60


def _until(condition):
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, "nothing happened before the deadline"
        time.sleep(0.01)


def _get(port, path, **headers):
    """Send a request; return status, request id and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["X-Request-ID"], answer.read()


def _leave(port, path):
    """Read the beginning of an answer and disconnect."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        connection.recv(100)


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _by_request(records):
    found = {}
    for record in records:
        found.setdefault(record.get("request_id"), []).append(record)
    return found


def _fastapi():
    from fastapi import APIRouter, BackgroundTasks, FastAPI
    from fastapi.responses import StreamingResponse

    import logspool.asgi

    router = APIRouter(prefix="/shops")

    @router.get("/{shop}/items/{item}")
    async def item(shop: int, item: int, background: BackgroundTasks):
        log.info("own %s async", item)
        background.add_task(log.info, "own %s background", item)
        return {}

    @router.get("/{shop}/threads/{item}")
    def in_thread(shop: int, item: int):
        log.info("own %s thread", item)
        return {}

    @router.get("/fail")
    def fail():
        raise ValueError("broken")

    @router.get("/stream")
    def stream():
        async def parts():
            for _ in range(10_000):
                yield b"x" * 10_000
                await asyncio.sleep(0)

        return StreamingResponse(parts())

    app, mounted = FastAPI(), FastAPI()

    @mounted.get("/deep/{name}")
    def deep(name: str):
        return {}

    app.include_router(router)
    app.mount("/mounted", mounted)
    app.mount("/internal", logspool.asgi.monitor_app())
    return app


@contextlib.contextmanager
def _uvicorn(app):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="info"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        _until(lambda: server.started)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(DEADLINE_SECONDS)


def fastapi_with_uvicorn():
    import logspool.asgi

    lines = Lines()
    handlers = [logging.FileHandler("server.log")]
    app = logspool.asgi.Middleware(_fastapi(), replace_server_log=True)
    with _uvicorn(app) as port:
        for name in ("uvicorn.access", "uvicorn.error"):
            logging.getLogger(name).handlers = handlers
        with ThreadPoolExecutor(8) as pool:
            kinds = ("items", "threads")
            answers = list(pool.map(lambda number: _get(port, f"/shops/1/{kinds[number % 2]}/{number}"), range(200)))
        assert {status for status, _, _ in answers} == {200}
        assert _get(port, "/shops/fail")[0] == 500
        _get(port, "/mounted/deep/7")
        _get(port, "/nowhere%0d%0aERROR")
        assert [_get(port, f"/internal/{name}")[0] for name in ("readyz", "livez", "metrics", "x")] == [200] * 3 + [404]
        _leave(port, "/shops/stream")
        seen = []
        _until(lambda: seen.extend(lines.new()) or any("disconnected" in record for record in seen))
    seen += lines.new()

    by_request = _by_request(seen)
    for number, (_, request, _) in enumerate(answers):
        records = by_request[request]
        own = [record for record in records if record["logger"] == "app"]
        assert len(records) == (3 if number % 2 == 0 else 2) and len(own) == len(records) - 1, records
        assert {record["message"].split()[1] for record in own} == {str(number)}
        kind = kinds[number % 2]
        assert {record["route"] for record in records} == {f"/shops/{{shop}}/{kind}/{{item}}"}
    access = [record for record in seen if record["logger"] == "logspool.access"]
    assert len(access) == len(answers) + 8
    fail, mounted, nowhere, *_, left = access[-8:]
    assert (fail["status"], fail["route"]) == (500, "/shops/fail") and "ValueError: broken" in fail["exception"]
    assert mounted["route"] == "/mounted/deep/{name}" and nowhere["path"] == "/nowhere%0D%0AERROR"
    assert nowhere["status"] == 404 and left["route"] == "/shops/stream" and left["level"] == "INFO"
    # The server writes neither access lines nor the exception a second time.
    assert "GET" not in Path("server.log").read_text() and "broken" not in Path("server.log").read_text()


def starlette_with_hypercorn():
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    import logspool.asgi

    lines = Lines()

    async def item(request):
        log.info("own %s", request.path_params["item"])
        return PlainTextResponse("hello")

    app = Starlette(routes=[Route("/items/{item}", item)])
    app.add_middleware(logspool.asgi.Middleware, replace_server_log=True)
    config, port = Config(), _free_port()
    config.bind, config.accesslog = [f"127.0.0.1:{port}"], "server.log"

    async def main():
        stopping = asyncio.Event()
        server = asyncio.ensure_future(serve(app, config, shutdown_trigger=stopping.wait))
        answers = []
        for number in range(3):
            while len(answers) == number:
                with contextlib.suppress(ConnectionRefusedError):
                    answers.append(await asyncio.to_thread(_get, port, f"/items/{number}"))
        stopping.set()
        await server
        return answers

    answers = asyncio.run(asyncio.wait_for(main(), DEADLINE_SECONDS))
    by_request = _by_request(lines.new())
    for number, (status, request, body) in enumerate(answers):
        own, access = by_request[request]
        assert (status, body, own["message"]) == (200, b"hello", f"own {number}")
        assert own["route"] == access["route"] == "/items/{item}" and access["status"] == 200
    assert "GET" not in Path("server.log").read_text()


def _flask():
    from flask import Flask, Response

    app = Flask("shop")

    @app.get("/items/<int:item>")
    def item(item):
        log.info("own %s", item)
        return "hello"

    @app.get("/fail")
    def fail():
        raise ValueError("broken")

    @app.get("/stream/<int:item>")
    def stream(item):
        def parts():
            for _ in range(3):
                log.info("own %s", item)
                yield "part"

        return Response(parts())

    return app


def flask_with_werkzeug():
    from werkzeug.serving import make_server

    import logspool.wsgi

    lines = Lines()
    app = _flask()
    app.wsgi_app = logspool.wsgi.Middleware(app.wsgi_app, replace_server_log=True)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with ThreadPoolExecutor(8) as pool:
        kinds = ("items", "stream")
        answers = list(pool.map(lambda number: _get(server.port, f"/{kinds[number % 2]}/{number}"), range(100)))
    failed = _get(server.port, "/fail")
    server.shutdown()
    thread.join()
    server.server_close()

    seen = lines.new()
    assert not [record for record in seen if record["logger"] == "werkzeug"]
    by_request = _by_request(seen)
    for number, (status, request, _) in enumerate(answers):
        records = by_request[request]
        assert status == 200 and len(records) == (4 if number % 2 else 2), records
        assert {record["message"] for record in records[:-1]} == {f"own {number}"}
        assert {record["route"] for record in records} == {f"/{kinds[number % 2]}/<int:item>"}
    of_flask, access = by_request[failed[1]]
    # Flask answers the exception itself and logs it in a record of its own.
    assert failed[0] == access["status"] == 500 and "exception" not in access and access["level"] == "ERROR"
    assert "ValueError: broken" in of_flask["exception"] and of_flask["route"] == "/fail"


#: A module for gunicorn. Its last request comes from a test client, because the worker ends with the server.
GUNICORN_APP = """\
import logging
from web import server_programs
from web.cases import Lines
import logspool.wsgi

lines = Lines()
app = server_programs._flask()
app.config["PROPAGATE_EXCEPTIONS"] = True
app = logspool.wsgi.Middleware(app, replace_server_log=True)
"""


def flask_with_gunicorn():
    import subprocess
    import sys

    Path("shop.py").write_text(GUNICORN_APP)
    port = _free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--access-logfile", "server.log"]
    options = ["--threads", "4", "--error-logfile", "errors.log", "--no-control-socket", "shop:app"]
    server = subprocess.Popen([*command, *options])
    try:
        _until(lambda: not _is_refused(port))
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda number: _get(port, f"/items/{number}"), range(40)))
        failed = _get(port, "/fail")
    finally:
        server.terminate()
        server.wait(DEADLINE_SECONDS)
    seen = [json.loads(line) for line in Path("app.log").read_text().splitlines()]
    by_request = _by_request(seen)
    for number, (status, request, _) in enumerate(answers):
        own, access = by_request[request]
        assert (status, own["message"], own["route"]) == (200, f"own {number}", "/items/<int:item>")
        assert access["status"] == 200 and access["client"].startswith("127.0.0.1:")
    assert failed[0] == 500
    (raised,) = [record for record in seen if record["logger"] == "logspool.access" and "exception" in record]
    assert (raised["status"], raised["route"]) == (500, "/fail") and "ValueError: broken" in raised["exception"]
    assert "GET" not in Path("server.log").read_text() and "broken" not in Path("errors.log").read_text()


def _is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


def django_with_both():
    import sys
    import types

    import django
    from django.conf import settings
    from django.core.handlers.asgi import ASGIHandler
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import HttpResponse
    from django.urls import path

    import logspool.asgi
    import logspool.wsgi
    from web import asgi_cases, wsgi_cases

    lines = Lines()

    def item(request, item):
        log.info("own %s", item)
        return HttpResponse("hello")

    async def async_item(request, item):
        log.info("own %s", item)
        return HttpResponse("hello")

    urls = types.ModuleType("shop_urls")
    urls.urlpatterns = [path("items/<int:item>/", item), path("async/<int:item>/", async_item)]
    sys.modules["shop_urls"] = urls
    settings.configure(
        ROOT_URLCONF="shop_urls",
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=["logspool.wsgi.django_route", "django.middleware.common.CommonMiddleware"],
        LOGGING_CONFIG=None,
    )
    django.setup()
    environ = {"wsgi.input": open(os.devnull, "rb"), "SERVER_NAME": "a", "SERVER_PORT": "80"}
    served = logspool.wsgi.Middleware(WSGIHandler())
    assert wsgi_cases._call(served, wsgi_cases._environ("/items/7/", **environ))[0] == "200 OK"
    own, access = lines.new()
    assert (own["message"], own["route"], access["route"]) == ("own 7", "/items/<int:item>/", "/items/<int:item>/")
    # While Django works, it waits for the client to disconnect.
    asgi = logspool.asgi.Middleware(ASGIHandler())
    for kind in ("async", "items"):
        sent = asyncio.run(_serve_django(asgi, asgi_cases._scope(f"/{kind}/7/", query_string=b"")))
        assert sent[0]["status"] == 200
        own, access = lines.new()
        assert own["route"] == access["route"] == f"/{kind}/<int:item>/", (own, access)
        assert own["request_id"] == access["request_id"]


async def _serve_django(app, scope):
    sent, received = [], [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        if received:
            return received.pop()
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent


def opentelemetry_span():
    from opentelemetry.sdk.trace import TracerProvider

    import logspool.asgi
    from web import asgi_cases

    lines = Lines()
    tracer = TracerProvider().get_tracer("shop")
    with tracer.start_as_current_span("request") as span:
        asgi_cases._run(logspool.asgi.Middleware(asgi_cases._plain), asgi_cases._scope())
    context = span.get_span_context()
    for record in lines.new():
        assert record["trace_id"] == f"{context.trace_id:032x}" and record["span_id"] == f"{context.span_id:016x}"
