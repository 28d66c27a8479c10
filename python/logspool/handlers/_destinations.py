"""A handler class for each receiver that the core's table of sinks has: typed forms of `SinkHandler`.

They are in a module separate from `_handlers`, so that a program which does not use them does not import them.
`tests/python/surface/test_destinations.py` compares the parameters of each class with the options in the table.
"""

from __future__ import annotations

import os
from typing import Any

from logspool.handlers import _handlers, _json, _sinks
from logspool.process import _install


class _Destination(_handlers.SinkHandler):
    """A `SinkHandler` for one kind of sink."""

    #: The name of the sink.
    _name = ""

    #: The cargo feature that a build needs for the sink; empty: every build has the sink.
    _feature = ""

    def __init__(self, given: dict[str, Any]) -> None:
        """Open the sink. `given` has the arguments of a class: options of the sink, and those of `install()`."""
        check_build(type(self))
        own = {name: value for name, value in given.items() if name not in ("self", "__class__", "options")}
        _install.check_names(type(self), given["options"])
        super().__init__(self._name, **own, **given["options"])


def check_build(cls: type[_Destination]) -> None:
    """Check that this build of logspool has the sink of a class.

    Raises:
        ValueError: it does not.
    """
    if cls._name not in _sinks.table():
        raise ValueError(
            f"{cls.__name__}: this build of logspool has no sink {cls._name!r} "
            f"(fix: install a build with the cargo feature {cls._feature!r})"
        )


class SyslogHandler(_Destination):
    """Send records to a syslog server by RFC 5424.

    Works with and without `logspool.install()`. No call waits for the server. Extra and bound fields are structured
    data. A formatter makes only the texts of tracebacks and stacks. `docs/how-to/send-to-syslog.md` describes the
    messages.

    Args:
        address: "udp://host:port", "tcp://host:port", "tls://host:port" or "unix:///path". For TLS, `authorities`,
            `certificate`, `key` and `server_name` follow the port: "tls://logs:6514?authorities=/etc/ca.pem".
        facility: the part of the system that the records come from.
        app_name: the APP-NAME of each message, at most 48 printable ASCII characters; None omits it.
        sd_id: the SD-ID of the structured data.
        max_bytes: the longest message; the text of a longer one is cut.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    _name = "syslog"

    def __init__(
        self,
        address: str,
        *,
        facility: str = "user",
        app_name: str | None = None,
        sd_id: str = "logspool@32473",
        max_bytes: int = 8192,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class LineSocketHandler(_Destination):
    """Send lines to a socket: a datagram for each line, or a stream of lines.

    Works with and without `logspool.install()`. No call waits for the receiver. The handler begins with a
    `JSONFormatter`; `setFormatter` replaces it. `docs/how-to/send-lines.md` describes the lines.

    Args:
        address: "udp://host:port", "tcp://host:port", "tls://host:port" or "unix:///path". For TLS, `authorities`,
            `certificate`, `key` and `server_name` follow the port: "tls://logs:6514?authorities=/etc/ca.pem".
        max_bytes: the longest datagram; a longer line is cut. Lines of a stream are never cut.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    _name = "socket"

    def __init__(self, address: str, *, max_bytes: int = 65_507, **options: Any) -> None:
        super().__init__(locals())
        self.setFormatter(_json.JSONFormatter())


class GelfHandler(_Destination):
    """Send records as GELF 1.1 messages to Graylog and other receivers.

    Works with and without `logspool.install()`. No call waits for the receiver. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/send-gelf.md` describes the messages.

    Args:
        address: "udp://host:port", "tcp://host:port", "tls://host:port" or "unix:///path". For TLS, `authorities`,
            `certificate`, `key` and `server_name` follow the port: "tls://logs:12201?authorities=/etc/ca.pem".
        chunk_bytes: the longest datagram; a longer message is sent in up to 128 chunks.
        compression: "none", "gzip" or "zlib", for messages in datagrams.
        max_bytes: the longest message before compression; texts of a longer one are cut.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    _name = "gelf"

    def __init__(
        self,
        address: str,
        *,
        chunk_bytes: int = 8192,
        compression: str = "none",
        max_bytes: int = 2_097_152,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class JournaldHandler(_Destination):
    """Send records to the journal of systemd, with all parts as fields.

    Works with and without `logspool.install()`. No call waits for the journal. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/send-to-journald.md` describes the fields.

    Args:
        address: the socket of the journal, "unix:///path".
        identifier: the field SYSLOG_IDENTIFIER, which `journalctl -t` selects; None omits it.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    _name = "journald"

    def __init__(
        self,
        address: str = "unix:///run/systemd/journal/socket",
        *,
        identifier: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class LokiHandler(_Destination):
    """Send records to Grafana Loki, or to another receiver of its push interface.

    Works with and without `logspool.install()`. No call waits for the receiver. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/send-to-loki.md` describes labels, lines and fields.

    Args:
        address: "http://host:port" or "https://host:port".
        labels: the labels of all records, as "app=shop,env=prod".
        logger_label: whether the name of the logger is a label, too.
        line: "json", "logfmt" or "message".
        structured_metadata: whether extra and bound fields are structured metadata instead of parts of the line.
        headers: more headers, one "Name: value" on each line.
        user, password: for basic authentication.
        token: for bearer authentication.
        authorities: a file (PEM) with the certificates of the trusted authorities; None uses those of the system.
        timeout_seconds: the longest time for a request and its answer.
        compress: whether requests are compressed by gzip.
        batch_bytes, batch_records: the most bytes and records in a request.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`. Also
            ValueError if this build of logspool does not have the sink.
        RuntimeError: as `logspool.install()`.
    """

    _name = "loki"
    _feature = "http"

    def __init__(
        self,
        address: str,
        *,
        labels: str = "",
        logger_label: bool = False,
        line: str = "json",
        structured_metadata: bool = False,
        headers: str | None = None,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        authorities: str | os.PathLike[str] | None = None,
        timeout_seconds: float = 10.0,
        compress: bool = True,
        batch_bytes: int = 1_048_576,
        batch_records: int = 1000,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class ElasticsearchHandler(_Destination):
    """Send records to Elasticsearch, OpenSearch or another receiver of their bulk interface.

    Works with and without `logspool.install()`. No call waits for the receiver. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/send-to-elasticsearch.md` describes the documents.

    Args:
        address: "http://host:port" or "https://host:port".
        index: the name of the data stream or index.
        headers: more headers, one "Name: value" on each line; "Authorization: ApiKey KEY" for an API key.
        user, password: for basic authentication.
        token: for bearer authentication.
        authorities: a file (PEM) with the certificates of the trusted authorities; None uses those of the system.
        timeout_seconds: the longest time for a request and its answer.
        compress: whether requests are compressed by gzip.
        batch_bytes, batch_records: the most bytes and records in a request.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`. Also
            ValueError if this build of logspool does not have the sink.
        RuntimeError: as `logspool.install()`.
    """

    _name = "elasticsearch"
    _feature = "http"

    def __init__(
        self,
        address: str,
        *,
        index: str = "logs-logspool-default",
        headers: str | None = None,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        authorities: str | os.PathLike[str] | None = None,
        timeout_seconds: float = 10.0,
        compress: bool = True,
        batch_bytes: int = 1_048_576,
        batch_records: int = 1000,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class OTLPHandler(_Destination):
    """Send records to an OpenTelemetry Collector, or to another receiver of OTLP over HTTP.

    Works with and without `logspool.install()`. No call waits for the receiver. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/send-otlp.md` describes the records.

    Args:
        address: "http://host:port" or "https://host:port".
        service_name: the resource attribute `service.name`.
        resource: more resource attributes, as "service.version=1.2,deployment.environment.name=prod".
        headers: more headers, one "Name: value" on each line.
        user, password: for basic authentication.
        token: for bearer authentication.
        authorities: a file (PEM) with the certificates of the trusted authorities; None uses those of the system.
        timeout_seconds: the longest time for a request and its answer.
        compress: whether requests are compressed by gzip.
        batch_bytes, batch_records: the most bytes and records in a request.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`. Also
            ValueError if this build of logspool does not have the sink.
        RuntimeError: as `logspool.install()`.
    """

    _name = "otlp"
    _feature = "http"

    def __init__(
        self,
        address: str,
        *,
        service_name: str = "unknown_service",
        resource: str = "",
        headers: str | None = None,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        authorities: str | os.PathLike[str] | None = None,
        timeout_seconds: float = 10.0,
        compress: bool = True,
        batch_bytes: int = 1_048_576,
        batch_records: int = 1000,
        **options: Any,
    ) -> None:
        super().__init__(locals())


class SQLiteHandler(_Destination):
    """Write records to the table `records` of a SQLite database.

    Works with and without `logspool.install()`. No call waits for the database. A formatter makes only the texts of
    tracebacks and stacks. `docs/how-to/write-to-sqlite.md` describes the table.

    Args:
        path: the path of the database. A missing database is created.
        synchronous: "normal" or "full": when SQLite syncs its log.
        busy_timeout: for how many seconds another program may lock the database before this is reported.
        keep_days: after how many days records are removed; None keeps all.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`. Also
            ValueError if this build of logspool does not have the sink.
        RuntimeError: as `logspool.install()`.
    """

    _name = "sqlite"
    _feature = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "normal",
        busy_timeout: float = 5.0,
        keep_days: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(locals())


#: The class for each name of a sink.
CLASSES: dict[str, type[_Destination]] = {
    cls._name: cls
    for cls in (
        SyslogHandler,
        LineSocketHandler,
        GelfHandler,
        JournaldHandler,
        LokiHandler,
        ElasticsearchHandler,
        OTLPHandler,
        SQLiteHandler,
    )
}
