"""A handler class for each receiver that the core's table of sinks has: typed forms of `SinkHandler`.

The parameters and the Args of each class are written by `make generated` from the table.

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
    data. A formatter makes only the texts of tracebacks and stacks. For TLS, `authorities`, `certificate`, `key` and
    `server_name` follow the port: "tls://logs:6514?authorities=/etc/ca.pem". `docs/how-to/send-to-syslog.md` describes
    the messages.

    Args:
        address: `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram
            socket is tried first, then a stream socket; the receiver there has to read RFC 5424.
        facility: Which part of the system the records come from. Allowed: "kern", "user", "mail", "daemon", "auth",
            "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp", "security", "console", "solaris-cron",
            "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7".
        app_name: The APP-NAME of each message, at most 48 printable ASCII characters; without it the message has none.
        sd_id: The SD-ID under which a message carries the extra and bound fields of its record.
        max_bytes: Longest message. The text of a longer one is cut, at a character, and ends with `...`; fields that
            leave no room for text are left out. A datagram has at most 65,507 bytes. Allowed: 480 to 1,048,576 bytes.
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
    `JSONFormatter`; `setFormatter` replaces it. For TLS, `authorities`, `certificate`, `key` and `server_name` follow
    the port: "tls://logs:6514?authorities=/etc/ca.pem". `docs/how-to/send-lines.md` describes the lines.

    Args:
        address: `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram
            socket is tried first, then a stream socket.
        max_bytes: Longest datagram. A longer line is cut, at a character, and ends with `...`. Lines of a stream are
            never cut. Allowed: 480 to 65,507 bytes.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError: an option does not exist or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    _name = "socket"

    def __init__(
        self,
        address: str,
        *,
        max_bytes: int = 65_507,
        **options: Any,
    ) -> None:
        super().__init__(locals())
        self.setFormatter(_json.JSONFormatter())


class GelfHandler(_Destination):
    """Send records as GELF 1.1 messages to Graylog and other receivers.

    Works with and without `logspool.install()`. No call waits for the receiver. A formatter makes only the texts of
    tracebacks and stacks. For TLS, `authorities`, `certificate`, `key` and `server_name` follow the port:
    "tls://logs:12201?authorities=/etc/ca.pem". `docs/how-to/send-gelf.md` describes the messages.

    Args:
        address: `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram
            socket is tried first, then a stream socket.
        chunk_bytes: Longest datagram; a longer message is sent in up to 128 chunks. Use 1,420 where datagrams leave the
            local network. Allowed: 480 to 65,507 bytes.
        compression: How messages in datagrams are compressed. Streams are never compressed. Allowed: "none", "gzip",
            "zlib".
        max_bytes: Longest message before compression. Texts of a longer one are cut and end with `...`. Graylog accepts
            2 MiB. Allowed: 1,024 to 16,777,216 bytes.
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
        address: The socket of journald, `unix:///path`.
        identifier: The field SYSLOG_IDENTIFIER, which `journalctl -t` selects; without it journald shows the name of
            the command.
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
        address: `http://host:port` or `https://host:port`; `/loki/api/v1/push` is added.
        labels: Labels of all records: `app=shop,env=prod`. The label `level` is added.
        logger_label: Whether the name of the logger is a label, too.
        line: What a line is: a JSON object with all parts of the record, the same as `name=value`, or only the message
            with the traceback. Allowed: "json", "logfmt", "message".
        structured_metadata: Whether extra and bound fields are structured metadata instead of parts of the line.
        headers: More headers, one `Name: value` a line; `X-Scope-OrgID: NAME` chooses a tenant.
        user: User name for basic authentication.
        password: Password for basic authentication.
        token: Token for bearer authentication.
        authorities: File with the certificates of the authorities to trust, in PEM; by default those of the system.
        timeout_seconds: Longest time for a request and its answer. Allowed: 0.1 to 600 seconds.
        compress: Whether requests are compressed by gzip.
        batch_bytes: Most bytes of records in a request, before they are encoded. Allowed: 1,024 to 16,777,216 bytes.
        batch_records: Most records in a request. Allowed: 1 to 100,000 records.
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
        address: `http://host:port` or `https://host:port`; `/_bulk` is added.
        index: Name of the data stream or index.
        headers: More headers, one `Name: value` a line; `Authorization: ApiKey KEY` for an API key.
        user: User name for basic authentication.
        password: Password for basic authentication.
        token: Token for bearer authentication.
        authorities: File with the certificates of the authorities to trust, in PEM; by default those of the system.
        timeout_seconds: Longest time for a request and its answer. Allowed: 0.1 to 600 seconds.
        compress: Whether requests are compressed by gzip.
        batch_bytes: Most bytes of records in a request, before they are encoded. Allowed: 1,024 to 16,777,216 bytes.
        batch_records: Most records in a request. Allowed: 1 to 100,000 records.
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
        address: `http://host:port` or `https://host:port`; `/v1/logs` is added.
        service_name: Value of the resource attribute `service.name`.
        resource: More resource attributes: `deployment.environment.name=prod,service.version=1.2`.
        headers: More headers, one `Name: value` a line.
        user: User name for basic authentication.
        password: Password for basic authentication.
        token: Token for bearer authentication.
        authorities: File with the certificates of the authorities to trust, in PEM; by default those of the system.
        timeout_seconds: Longest time for a request and its answer. Allowed: 0.1 to 600 seconds.
        compress: Whether requests are compressed by gzip.
        batch_bytes: Most bytes of records in a request, before they are encoded. Allowed: 1,024 to 16,777,216 bytes.
        batch_records: Most records in a request. Allowed: 1 to 100,000 records.
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
        path: Path of the database. A missing database is created.
        synchronous: When SQLite syncs its log. With `normal` it does so before it moves the log into the database: a
            power cut may lose the last commits and never damages the database. With `full` it does so at each commit.
            Allowed: "normal", "full".
        busy_timeout: How long another program may lock the database before the sink reports it. Records wait in any
            case. Allowed: 0 to 3,600 seconds.
        keep_days: After how many days records are removed; by default never. The file does not shrink: its space is
            used again. Allowed: 1 to 36,500 days.
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
