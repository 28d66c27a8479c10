"""The life of a web request: fields on each of its records, and one access record. For `logspool.asgi` and `.wsgi`.

A `RequestLog` has the options of a middleware. It makes a `WebRequest` of each request; the
middleware calls its methods at each event.
"""

from __future__ import annotations

import inspect
import logging
import time
import traceback
from contextvars import ContextVar

from logspool import _bind
from logspool.web import _server_logs, _web_request

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

#: Key of the request in the scope of ASGI and the environ of WSGI.
KEY = "logspool.request"

#: Status in the access record of a request whose client left before the response began. nginx has introduced it.
CLIENT_LEFT = 499

_current: ContextVar[WebRequest | None] = ContextVar("logspool_request", default=None)

#: Messages that were logged; each is logged once.
_told: set[str] = set()


def tell_once(text: str) -> None:
    """Log a warning about the middlewares, once in a process."""
    if text not in _told:
        _told.add(text)
        logging.getLogger("logspool").warning("%s", text)


class RequestLog:
    """The checked options of a middleware, in the form that requests need."""

    def __init__(
        self,
        middleware: str,
        app: Any,
        *,
        logger: str | logging.Logger,
        request_id_header: str | None,
        trust_request_id: bool,
        headers: Iterable[str],
        response_headers: Iterable[str],
        reveal: Iterable[str],
        replace_server_log: bool,
    ) -> None:
        if not callable(app):
            raise TypeError(f"{middleware} wraps an application, as {middleware}(app), not {app!r}")
        if not isinstance(logger, (str, logging.Logger)):
            raise TypeError(f"logger takes a name or a logging.Logger, not {logger!r}")
        self.middleware = middleware
        self.logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        id_header = [] if request_id_header is None else [request_id_header]
        self.id_header = "".join(_web_request.header_names("request_id_header", id_header))
        #: The header as it is given back; empty if it is not.
        self.id_header_name = request_id_header or ""
        self.trusts_id = trust_request_id and bool(self.id_header)
        revealed = _web_request.header_names("reveal", reveal)
        asked = _web_request.header_names("headers", headers)
        given = _web_request.header_names("response_headers", response_headers)
        if strangers := [name for name in revealed if name not in (*asked, *given)]:
            raise ValueError(f"reveal: {strangers[0]!r} is in neither headers nor response_headers; name it there, too")
        secret = _web_request.SECRET_HEADERS.difference(revealed)
        #: The field of each header that a record shows, and whether its value is a secret.
        self.headers = {name: (_web_request.field_of_header("header_", name), name in secret) for name in asked}
        self.response_headers = {
            name: (_web_request.field_of_header("response_header_", name), name in secret) for name in given
        }
        #: All headers of a request that are read.
        self.read = frozenset((*asked, "traceparent", *([self.id_header] if self.trusts_id else [])))
        self._replaces = replace_server_log

    def begin(self, method: str, path: str | bytes, client: str | None, sent: dict[str, list[str]]) -> WebRequest:
        """Return a request that begins now. `sent` has the headers named in `read`, in lower case."""
        if self._replaces:
            self.replace_server_log()
        return WebRequest(self, method, path, client, sent)

    def replace_server_log(self) -> None:
        """Silence the access log of the server, if that was asked for and has not happened."""
        if self._replaces:
            self._replaces = False
            if kept := _server_logs.replace(self.logger):
                tell_once(kept)

    def tell_of_second(self) -> None:
        """Report that a request came through two middlewares."""
        tell_once(
            f"{self.middleware} is installed twice around one application; the outer one writes the access record "
            "(fix: install it once, around the whole application)"
        )


class Middleware:
    """The options that the middlewares for ASGI and WSGI share."""

    #: The name in messages.
    _NAME = ""

    def __init__(
        self,
        app: Any,
        *,
        logger: str | logging.Logger = "logspool.access",
        request_id_header: str | None = "X-Request-ID",
        trust_request_id: bool = True,
        headers: Iterable[str] = (),
        response_headers: Iterable[str] = (),
        reveal: Iterable[str] = (),
        replace_server_log: bool = False,
    ) -> None:
        self._log = RequestLog(
            self._NAME,
            app,
            logger=logger,
            request_id_header=request_id_header,
            trust_request_id=trust_request_id,
            headers=headers,
            response_headers=response_headers,
            reveal=reveal,
            replace_server_log=replace_server_log,
        )
        self.app = app
        self._prepare()

    def _prepare(self) -> None:
        """Make what each request needs of the options."""


class WebRequest:
    """One request from its first to its last byte. Used by one thread or task at a time."""

    __slots__ = (
        "_began",
        "_is_written",
        "_log",
        "_seconds",
        "_sent",
        "bytes",
        "disconnected",
        "fields",
        "id",
        "method",
        "path",
        "response_fields",
        "status",
    )

    def __init__(
        self, log: RequestLog, method: str, path: str | bytes, client: str | None, sent: dict[str, list[str]]
    ) -> None:
        self._log = log
        self._sent = sent
        self.method = _web_request.shown(method)
        self.path = _web_request.shown_path(path)
        self.id = _web_request.request_id(sent.get(log.id_header, []) if log.trusts_id else [])
        #: The fields that each record of the request carries. The dict is replaced, never changed.
        self.fields: dict[str, Any] = {"request_id": self.id, "method": self.method, "route": self.path}
        if client is not None:
            self.fields["client"] = _web_request.shown(client)
        if trace := _web_request.current_span() or _web_request.trace_of(sent.get("traceparent", [])):
            self.fields["trace_id"], self.fields["span_id"] = trace
        self.status = 0
        self.bytes: int | None = 0
        self.disconnected = False
        self.response_fields: dict[str, str] = {}
        self._seconds: float | None = None
        self._is_written = False
        self._began = time.perf_counter()

    def bound(self) -> _Bound:
        """Return a context manager: the records in it carry the fields of the request."""
        return _Bound(self)

    def set_route(self, route: str) -> None:
        """Set the route of all further records of the current context, and of the access record."""
        changed = {"route": _web_request.shown(route)}
        # A tracing middleware between this one and the framework may have begun a span.
        if span := _web_request.current_span():
            changed["trace_id"], changed["span_id"] = span
        self.fields = {**self.fields, **changed}
        bound = _bind.fields.get()
        if bound:
            _bind.fields.set({**bound, **changed})

    def note_response(self, status: int, headers: Callable[[str], str | None]) -> None:
        """Note the head of the response. `headers` finds a header by its name in lower case."""
        self.status = status
        for name, (field, is_secret) in self._log.response_headers.items():
            value = headers(name)
            if value is not None:
                self.response_fields[field] = _web_request.REDACTED if is_secret else _web_request.shown(value)

    def end_response(self) -> None:
        """Note that the last byte of the response was sent. The access record is written, unless an exception may
        still belong to it: frameworks send their response to an exception before they raise it on.
        """
        self._seconds = time.perf_counter() - self._began
        if self.status < 500:
            self.write(None)

    @property
    def is_complete(self) -> bool:
        """Return whether the last byte of the response was sent."""
        return self._seconds is not None

    def end(self) -> None:
        """Note that the application is done with the request."""
        if not self._is_written:
            self.write(None)

    def fail(self, error: BaseException) -> None:
        """Note that the application has raised an exception. The caller raises it on."""
        if not isinstance(error, Exception):
            # The task was cancelled, or the program ends: that is no fault of the application.
            self.disconnected |= not self.is_complete
            self.end()
        elif self.disconnected:
            self.end()
        elif self._is_written:
            self._log_safely(
                logging.ERROR, "%s %s failed after its response", (self.method, self.path), dict(self.fields), error
            )
        else:
            # The server answers 500 if the response has not begun.
            self.status = self.status if self.is_complete or self.status >= 500 else 500
            self.write(error)

    def write(self, error: BaseException | None) -> None:
        """Write the access record."""
        self._is_written = True
        seconds = time.perf_counter() - self._began if self._seconds is None else self._seconds
        status = self.status or (CLIENT_LEFT if self.disconnected else 500)
        fields = {**self.fields, "path": self.path, "status": status, "duration_seconds": round(seconds, 6)}
        if self.bytes is not None:
            fields["response_bytes"] = self.bytes
        if self.disconnected:
            fields["disconnected"] = True
        for name, (field, is_secret) in self._log.headers.items():
            if values := self._sent.get(name):
                fields[field] = _web_request.REDACTED if is_secret else _web_request.shown(", ".join(values))
        fields.update(self.response_fields)
        level = logging.ERROR if status >= 500 else logging.INFO
        self._log_safely(level, "%s %s %d %.1f ms", (self.method, self.path, status, seconds * 1e3), fields, error)

    def _log_safely(
        self, level: int, message: str, values: tuple[Any, ...], fields: dict[str, Any], error: BaseException | None
    ) -> None:
        try:
            self._log.logger.log(level, message, *values, extra=fields, exc_info=error)
            if error is not None:
                _server_logs.note_recorded(error)
        except Exception:
            # A filter or a handler of the program raised. The request must not fail because of its log.
            if logging.raiseExceptions:
                traceback.print_exc()


class _Bound:
    """Binds the fields of a request."""

    __slots__ = ("_block", "_request", "_token")

    def __init__(self, request: WebRequest) -> None:
        self._request = request
        self._block = _bind.block_of(request.fields)

    def __enter__(self) -> None:
        self._block.__enter__()
        self._token = _current.set(self._request)

    def __exit__(self, *_: object) -> None:
        self._block.__exit__()
        try:
            _current.reset(self._token)
        except ValueError:
            pass  # Left in another context than entered, which keeps its value.


def set_route(route: str) -> None:
    """Set the route of the current request, for a framework whose route the middleware does not find.

    Does nothing outside a request. Records of the current context carry it from now on.

    Args:
        route: the pattern that the path has matched, as "/items/{id}".
    """
    request = _current.get()
    if request is not None:
        request.set_route(route)


def request_id() -> str | None:
    """Return the id of the current request, for a header of a request to another service; None outside a request."""
    request = _current.get()
    return None if request is None else request.id


def django_route(get_response: Any) -> Any:
    """Set the route of each request to the pattern of Django. A middleware of Django:

    MIDDLEWARE = ["logspool.wsgi.django_route", ...]
    """
    middleware: Any
    if inspect.iscoroutinefunction(get_response):

        async def middleware(request: Any) -> Any:
            return await get_response(request)
    else:

        def middleware(request: Any) -> Any:
            return get_response(request)

    middleware.process_view = _set_route_of_django
    return middleware


django_route.sync_capable = django_route.async_capable = True  # type: ignore[attr-defined]


def _set_route_of_django(request: Any, *_: Any) -> None:
    match = getattr(request, "resolver_match", None)
    if match is not None:
        set_route("/" + str(match.route).lstrip("/"))
