"""Fields of the request on each record, and one access record a request, for ASGI applications.

    import logspool, logspool.asgi

    logspool.install()
    app = logspool.asgi.Middleware(app, replace_server_log=True)

Works with every framework and server of ASGI 3, and imports no framework.
"""

from __future__ import annotations

from logspool.watch import _monitor
from logspool.web import _web
from logspool.web._web import django_route, request_id, set_route

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Middleware", "django_route", "monitor_app", "request_id", "set_route", "watch_loop"]

_RESPONSE_ENDS = ("http.response.pathsend", "http.response.zerocopysend")


class Middleware(_web.Middleware):
    """Bind the fields of a request to all of its records, and log one access record for it.

    Each record in a request carries `request_id`, `method`, `route`, `client`, and with a `traceparent` header or a
    span of OpenTelemetry `trace_id` and `span_id`; so do records of its tasks, threads of its framework and background
    tasks. The access record adds `path`, `status`, `duration_seconds` and `response_bytes`. A second middleware of this
    kind around one application does nothing but report itself. Records in a websocket carry the fields, too.

    Args:
        app: the application.
        logger: the logger of access records, or its name.
        request_id_header: header that the request id is taken from and given back in; None for neither.
        trust_request_id: whether a well-formed id of the client is taken. Otherwise each request gets a new one.
        headers: names of request headers that the access record shows, in fields such as `header_user_agent`.
        response_headers: names of response headers that it shows, in fields such as `response_header_content_type`.
        reveal: names of headers in these lists whose values are shown although they are secrets. Authorization, Cookie,
            Set-Cookie, Proxy-Authorization and X-Api-Key are shown as `[redacted]` otherwise.
        replace_server_log: whether to silence the access log of the server: uvicorn's, hypercorn's, gunicorn's.

    Raises:
        TypeError, ValueError: an argument has a wrong type or value; the text says what to write instead.
    """

    _NAME = "logspool.asgi.Middleware"

    def _prepare(self) -> None:
        self._read = {name.encode("ascii"): name for name in self._log.read}
        self._id_header = self._log.id_header.encode("ascii")
        self._id_header_name = self._log.id_header_name.encode("ascii")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection. Called by the server."""
        kind = scope["type"]
        if kind == "lifespan":
            self._log.replace_server_log()
        if kind not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if _web.KEY in scope:
            self._log.tell_of_second()
            await self.app(scope, receive, send)
            return
        request = self._begin(scope)
        scope = _Scope(scope, request)
        if kind == "websocket":
            with request.bound():
                await self.app(scope, receive, send)
            return

        async def receive_and_note() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect" and not request.is_complete:
                request.disconnected = True
            return message

        async def send_and_note(message: Any) -> None:
            kind = message["type"]
            is_last = False
            if kind == "http.response.start":
                message = self._note_start(request, message)
            elif kind == "http.response.body":
                if request.bytes is not None:
                    request.bytes += len(message.get("body", b""))
                is_last = not message.get("more_body", False)
            elif kind in _RESPONSE_ENDS:
                request.bytes = None
                is_last = kind == _RESPONSE_ENDS[0] or not message.get("more_body", False)
            try:
                await send(message)
            except OSError:
                request.disconnected = True
                raise
            if is_last and not request.is_complete:
                request.end_response()

        with request.bound():
            try:
                await self.app(scope, receive_and_note, send_and_note)
            except BaseException as error:
                request.fail(error)
                raise
            request.end()

    def _begin(self, scope: Any) -> _web.WebRequest:
        sent: dict[str, list[str]] = {}
        for name, value in scope.get("headers", ()):
            # Servers send names in lower case.
            known = self._read.get(name)
            if known is not None:
                sent.setdefault(known, []).append(value.decode("latin-1"))
        client = scope.get("client")
        return self._log.begin(
            scope.get("method", "WEBSOCKET"),
            scope["path"],
            None if client is None else f"{client[0]}:{client[1]}",
            sent,
        )

    def _note_start(self, request: _web.WebRequest, message: Any) -> Any:
        headers = list(message.get("headers", ()))

        def find(name: str) -> str | None:
            wanted = name.encode("ascii")
            values = [value.decode("latin-1") for given, value in headers if given.lower() == wanted]
            return ", ".join(values) if values else None

        request.note_response(message["status"], find)
        if not self._id_header or any(name.lower() == self._id_header for name, _ in headers):
            return message
        return {**message, "headers": [*headers, (self._id_header_name, request.id.encode("ascii"))]}


def monitor_app(
    *, stalled_seconds: float = _monitor.STALLED_SECONDS, full_percent: float = _monitor.FULL_PERCENT
) -> Any:
    """Return an ASGI application for monitoring systems.

    Serves `/metrics` (OpenMetrics, as `logspool.metrics_text()`), `/readyz` (503 while an output accepts nothing or the
    queue is too full) and `/livez` (503 only if a thread of logspool hangs). The last part of the path decides, so it
    can be mounted anywhere. The answers name files and error texts: let only your monitoring reach them.

    Args:
        stalled_seconds: how long a thread of logspool has to do nothing, while records wait for it, to count as hung.
        full_percent: part of the overflow in use from which on the process is not ready, in percent.

    Raises:
        TypeError, ValueError: an argument is no number, or out of its range.
    """
    monitor = _monitor.Monitor(stalled_seconds=stalled_seconds, full_percent=full_percent)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _serve_lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        status, kind, body = await _off_the_loop(monitor.answer, scope["method"], scope["path"])
        headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": int(status[:3]), "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return app


def watch_loop() -> None:
    """Measure from now on how late the running event loop runs a timer, 20 times a second.

    `logspool.metrics_text()` and `logspool.prometheus.Collector()` show it as the histogram
    `logspool_loop_lag_seconds`. Call it once on each loop, for example in the lifespan of the application. Another call
    on the same loop does nothing. For asyncio and uvloop.

    Raises:
        RuntimeError: no event loop of asyncio runs in this thread.
    """
    from logspool.watch import _loop_lag

    _loop_lag.watch()


async def _serve_lifespan(receive: Any, send: Any) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _off_the_loop(function: Any, *arguments: Any) -> Any:
    """Call a function that may wait for a disk: on a thread of asyncio, or here under another event loop."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return function(*arguments)
    return await loop.run_in_executor(None, function, *arguments)


class _Scope(dict):  # type: ignore[type-arg]
    """The scope of a request, which notices when the framework has found the route.

    Frameworks set `route` in the scope that they were called with, in the context in which they call the endpoint. All
    changes are made in the server's scope, too, for middlewares around this one that read them afterwards.
    """

    __slots__ = ("_first_root", "_outer", "_request")

    def __init__(self, scope: Any, request: _web.WebRequest) -> None:
        super().__init__(scope)
        self._outer = scope
        self._request = request
        self._first_root = scope.get("root_path", "")
        super().__setitem__(_web.KEY, request)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._outer[key] = value
        if key == "route":
            self._follow_route()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._outer.pop(key, None)

    def pop(self, key: Any, *default: Any) -> Any:
        value = super().pop(key, *default)
        self._outer.pop(key, None)
        return value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **values: Any) -> None:
        before = self.get("route"), self.get("root_path")
        changed = dict(*others, **values)
        super().update(changed)
        self._outer.update(changed)
        if (self.get("route"), self.get("root_path")) != before:
            self._follow_route()

    def __ior__(self, others: Any) -> Any:  # type: ignore[misc]
        self.update(others)
        return self

    def _follow_route(self) -> None:
        pattern = _pattern(self)
        if pattern is not None:
            # A mounted application has the path of its mount in `root_path`.
            mounted = str(self.get("root_path", "")).removeprefix(self._first_root)
            self._request.set_route(mounted + pattern)


def _pattern(scope: Any) -> str | None:
    """Return the pattern of the route that Starlette or FastAPI has found."""
    pattern = getattr(scope.get("route"), "path", None)
    return pattern if isinstance(pattern, str) else None
