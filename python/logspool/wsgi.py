"""Fields of the request on each record, and one access record a request, for WSGI applications.

    import logspool, logspool.wsgi

    logspool.install()
    app.wsgi_app = logspool.wsgi.Middleware(app.wsgi_app, replace_server_log=True)      # Flask

Works with every framework and server of WSGI (PEP 3333), and imports no framework.
"""

from __future__ import annotations

import sys

from logspool.watch import _monitor
from logspool.web import _web
from logspool.web._web import django_route, request_id, set_route

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["Middleware", "django_route", "monitor_app", "request_id", "set_route"]

#: Responses with these codes have no body, so a server need not read it to its end.
_WITHOUT_BODY = (204, 304)


class Middleware(_web.Middleware):
    """Bind the fields of a request to all of its records, and log one access record for it.

    Each record in a request carries `request_id`, `method`, `route`, `client`, and with a `traceparent` header or a
    span of OpenTelemetry `trace_id` and `span_id`; so do records while its body is sent. The access record adds `path`,
    `status`, `duration_seconds` and `response_bytes`. A second middleware of this kind around one application does
    nothing but report itself.

    Args:
        app: the application.
        logger: the logger of access records, or its name.
        request_id_header: header that the request id is taken from and given back in; None for neither.
        trust_request_id: whether a well-formed id of the client is taken. Otherwise each request gets a new one.
        headers: names of request headers that the access record shows, in fields such as `header_user_agent`.
        response_headers: names of response headers that it shows, in fields such as `response_header_content_type`.
        reveal: names of headers in these lists whose values are shown although they are secrets. Authorization, Cookie,
            Set-Cookie, Proxy-Authorization and X-Api-Key are shown as `[redacted]` otherwise.
        replace_server_log: whether to silence the access log of the server: gunicorn's, werkzeug's.

    Raises:
        TypeError, ValueError: an argument has a wrong type or value; the text says what to write instead.
    """

    _NAME = "logspool.wsgi.Middleware"

    def _prepare(self) -> None:
        self._read = [(name, _environ_key(name)) for name in self._log.read]
        _follow_flask(self.app)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Serve one request. Called by the server."""
        if _web.KEY in environ:
            self._log.tell_of_second()
            return self.app(environ, start_response)
        request = environ[_web.KEY] = self._begin(environ)

        def start_and_note(status: str, headers: Any, *exc_info: Any) -> Any:
            return start_response(status, self._note_start(request, status, headers), *exc_info)

        with request.bound():
            try:
                body = self.app(environ, start_and_note)
            except BaseException as error:
                _find_route(request, environ)
                request.fail(error)
                raise
        wrapper = environ.get("wsgi.file_wrapper")
        if isinstance(wrapper, type) and isinstance(body, wrapper) and _note_close(body, request):
            # The server sends the file itself, which it would not with another iterable.
            return body
        return (_SizedBody if isinstance(body, (list, tuple)) else _Body)(body, request, environ)

    def _begin(self, environ: Any) -> _web.WebRequest:
        sent = {name: [value] for name, key in self._read if (value := environ.get(key)) is not None}
        client, port = environ.get("REMOTE_ADDR"), environ.get("REMOTE_PORT")
        if client and port:
            client = f"{client}:{port}"
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        # PEP 3333: the text holds the bytes of the decoded path, as latin-1.
        given = path if path.isascii() else path.encode("latin-1", "replace")
        return self._log.begin(environ.get("REQUEST_METHOD", ""), given, client or None, sent)

    def _note_start(self, request: _web.WebRequest, status: str, headers: Any) -> Any:
        def find(name: str) -> str | None:
            values = [value for given, value in headers if given.lower() == name]
            return ", ".join(values) if values else None

        code = status[:3]
        request.note_response(int(code) if code.isdecimal() else 500, find)
        if not self._log.id_header or find(self._log.id_header) is not None:
            return headers
        return [*headers, (self._log.id_header_name, request.id)]


class _Body:
    """The body of a response. Its records carry the fields of the request, and its end writes the access record."""

    def __init__(self, body: Any, request: _web.WebRequest, environ: Any) -> None:
        self._body = body
        self._parts: Iterator[bytes] | None = None
        self._request = request
        self._environ = environ

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        request = self._request
        with request.bound():
            try:
                if self._parts is None:
                    self._parts = iter(self._body)
                part = next(self._parts)
            except StopIteration:
                if not request.is_complete:
                    _find_route(request, self._environ)
                    request.end_response()
                    request.end()
                raise
            except BaseException as error:
                _find_route(request, self._environ)
                request.fail(error)
                raise
        if request.bytes is not None:
            request.bytes += len(part)
        return part

    def close(self) -> None:
        """Close the body. Called by the server, also if the client has left."""
        request = self._request
        with request.bound():
            try:
                close = getattr(self._body, "close", None)
                if close is not None:
                    close()
            except BaseException as error:
                request.fail(error)
                raise
            finally:
                _find_route(request, self._environ)
                has_body = request.method != "HEAD" and request.status not in _WITHOUT_BODY
                request.disconnected |= has_body and not request.is_complete and request.status < 500
                request.end()


class _SizedBody(_Body):
    """A body of known parts: servers make the header Content-Length of one part."""

    def __len__(self) -> int:
        return len(self._body)


def monitor_app(
    *, stalled_seconds: float = _monitor.STALLED_SECONDS, full_percent: float = _monitor.FULL_PERCENT
) -> Any:
    """Return a WSGI application for monitoring systems.

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

    def app(environ: Any, start_response: Any) -> list[bytes]:
        method = environ.get("REQUEST_METHOD", "GET")
        status, kind, body = monitor.answer(method, environ.get("PATH_INFO", ""))
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [] if method == "HEAD" else [body]

    return app


def _environ_key(header: str) -> str:
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def _note_close(body: Any, request: _web.WebRequest) -> bool:
    """Make the `close` of a file that the server sends write the access record. Returns whether that is possible."""
    inner = getattr(body, "close", None)

    def close() -> None:
        try:
            if inner is not None:
                inner()
        finally:
            request.bytes = None
            request.end_response()
            request.end()

    try:
        body.close = close
    except AttributeError:
        return False
    return True


def _find_route(request: _web.WebRequest, environ: Any) -> None:
    """Set the route that Flask has found, if the request was served by Flask somewhere inside the application."""
    rule = getattr(getattr(environ.get("werkzeug.request"), "url_rule", None), "rule", None)
    if isinstance(rule, str) and rule != request.fields["route"]:
        request.set_route(rule)


def _follow_flask(app: Any) -> None:
    """Set the route as soon as Flask has found it, if the application is Flask's."""
    flask = sys.modules.get("flask")
    owner = getattr(app, "__self__", app)
    if flask is not None and isinstance(owner, flask.Flask):
        try:
            flask.request_started.connect(_set_route_of_flask, owner)
        except RuntimeError:
            pass  # A Flask before 2.3 without the package blinker. Only the access record has the route then.


def _set_route_of_flask(_: Any, **__: Any) -> None:
    rule = sys.modules["flask"].request.url_rule
    if rule is not None:
        set_route(rule.rule)
