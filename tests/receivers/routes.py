"""Each route from a sink to a receiver: its address, and the receiver's names for the parts of a record."""

import datetime
import json
import re
from dataclasses import dataclass, field

#: Levels as the receivers show them.
LEVELS = {"INFO": ("info", "6", "20"), "WARNING": ("warning", "4", "30"), "ERROR": ("error", "err", "3", "40")}
LEVEL_NAMES = {shown: name for name, all_shown in LEVELS.items() for shown in (name, *all_shown)}

RFC3339 = re.compile(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)(?:\.(\d+))?Z")


@dataclass(frozen=True)
class Route:
    """A way to a receiver."""

    server: str
    #: The name of the server's port. An empty one is a unix socket in its folder.
    port: str
    #: The address with {port}, {folder} of the server and {ca}, the file of the authority.
    address: str
    #: The names of the parts at the receiver.
    names: dict
    options: dict = field(default_factory=dict)
    #: Whether the server expects HTTPS on its HTTP port.
    secure: bool = False
    #: Whether the receiver acknowledges records.
    confirms: bool = True
    #: Options that split the records into many small requests, so that a fault happens between two.
    small: dict = field(default_factory=dict)
    #: Whether a repeated record is stored once.
    recognises: bool = False
    #: Whether the receiver makes a record of each line of a datagram. Lines after the first have no number.
    splits: bool = False

    def to(self, server, ca, port=None):
        """Return the address, optionally with another port."""
        port = port or server.ports.get(self.port)
        return self.address.format(port=port, folder=server.folder, ca=ca)

    def numbers(self, server):
        """Return the numbers of the records at the receiver, in its order. Half a message has no number."""
        name = self.names["order"]
        return [int(record[name]) for record in server.records() if name in record]

    def seen(self, server):
        """Return all records at the receiver by number, with their parts under common names."""
        name = self.names["order"]
        found = [self._parts(record) for record in server.records() if name in record]
        return sorted(found, key=lambda parts: parts["order"])

    def _parts(self, record):
        found = {part: record.get(name) for part, name in self.names.items()}
        found["order"] = int(found["order"])
        found["ratio"] = float(found["ratio"])
        found["level"] = LEVEL_NAMES[str(found["level"])]
        found["time"] = nanoseconds(found["time"])
        if isinstance(found.get("items"), str):
            found["items"] = json.loads(found["items"])
        return found


def nanoseconds(shown):
    """Return a time as nanoseconds since the epoch."""
    if isinstance(shown, float):
        return round(shown * 1e6) * 1000
    if not isinstance(shown, str) or shown.isdigit():
        return int(shown)
    *parts, fraction = RFC3339.fullmatch(shown).groups()
    whole = datetime.datetime(*map(int, parts), tzinfo=datetime.timezone.utc)
    return int(whole.timestamp()) * 10**9 + int((fraction or "0").ljust(9, "0"))


#: The parts of a record in logspool's own words.
OWN = {
    "order": "order",
    "message": "message",
    "level": "level",
    "time": "time",
    "logger": "logger",
    "shop": "shop",
    "ratio": "ratio",
    "items": "items",
    "exception": "exception",
    "file": "file",
    "line": "line",
    "function": "function",
}

#: A JSON line has no directory of the file, and texts for lists.
LINES = {part: name for part, name in OWN.items() if part not in ("file", "items")}

OTLP = {
    **OWN,
    "message": "body",
    "level": "severityText",
    "time": "timeUnixNano",
    "logger": "scope",
    "exception": "exception.stacktrace",
    "file": "code.file.path",
    "line": "code.line.number",
    "function": "code.function.name",
}

FORWARD = {**OWN, "message": "body", "time": "timeUnixNano"}

SYSLOG_AT_COLLECTOR = {
    **{part: part for part in ("order", "message", "shop", "ratio", "items")},
    "level": "severityText",
    "time": "timeUnixNano",
    "logger": "msg_id",
}

GELF = {
    **{part: f"_{part}" for part in OWN},
    "message": "short_message",
    "level": "level",
    "time": "timestamp",
    "exception": "exception",
}

AT_VICTORIA = {"message": "_msg", "time": "_time"}

LOKI_AT_VICTORIA = {**OWN, **AT_VICTORIA}

OTLP_AT_VICTORIA = {**OTLP, **AT_VICTORIA, "level": "severity_text", "logger": "scope.name"}

ELASTICSEARCH_AT_VICTORIA = {
    **OWN,
    **AT_VICTORIA,
    "level": "log.level",
    "logger": "log.logger",
    "exception": "error.stack_trace",
    "file": "log.origin.file.name",
    "line": "log.origin.file.line",
    "function": "log.origin.function",
}

SYSLOG_AT_VICTORIA = {
    **{part: f"logspool@32473.{part}" for part in ("order", "shop", "ratio", "items")},
    **AT_VICTORIA,
    "level": "severity",
    "logger": "msg_id",
}

#: Most records that are sent and not acknowledged with the options `small`; they may come again.
IN_FLIGHT = 1000


def http(server, port, sink, names, path="", **more):
    """Yield a route of a sink over HTTP, and the same over HTTPS."""
    more = {"small": {"batch_records": 200, "compress": False}, **more}
    yield sink, Route(server, port, f"{sink}+http://127.0.0.1:{{port}}{path}", names, **more)
    port = "otlp-tls" if port == "otlp" else port
    address = f"{sink}+https://127.0.0.1:{{port}}{path}?authorities={{ca}}"
    yield f"{sink}-tls", Route(server, port, address, names, secure=True, **more)


def sockets(server, scheme, name, names, **udp):
    """Yield the routes of a sink over UDP, TCP and TLS."""
    for way in ("udp", "tcp", "tls"):
        address = f"{scheme}{way}://127.0.0.1:{{port}}" + ("?authorities={ca}" if way == "tls" else "")
        more = udp if way == "udp" else {}
        yield f"{name}-{way}", Route(server, f"{name}-{way}", address, names, confirms=False, **more)


def all_routes():
    """Yield the name of each route and the route."""
    loki = {"options": {"labels": "app=shop"}}
    yield from http("loki", "http", "loki", {**OWN, "time": "_time"}, recognises=True, **loki)
    own_names = {"options": {"headers": "VL-Msg-Field: message"}}
    yield from http("victoria-logs", "http", "loki", LOKI_AT_VICTORIA, "/insert", **own_names)
    own_names = {"options": {"headers": "VL-Time-Field: @timestamp\nVL-Msg-Field: message"}}
    path = "/insert/elasticsearch"
    yield from http("victoria-logs", "http", "elasticsearch", ELASTICSEARCH_AT_VICTORIA, path, **own_names)
    yield from http("victoria-logs", "http", "otlp", OTLP_AT_VICTORIA, "/insert/opentelemetry")
    yield from sockets("victoria-logs", "syslog+", "syslog", SYSLOG_AT_VICTORIA, splits=True)
    yield from http("collector", "otlp", "otlp", OTLP)
    # At most 24 chunks are in flight, each with four times as many bytes.
    forward = {"small": {"chunk_bytes": 4096, "gather_seconds": 0.05}}
    for way, port, address in (
        ("tcp", "forward", "tcp://127.0.0.1:{port}"),
        ("unix", "", "unix://{folder}/forward.socket"),
    ):
        yield f"forward-{way}", Route("collector", port, f"forward+{address}", FORWARD, **forward)
    yield from sockets("collector", "syslog+", "syslog", SYSLOG_AT_COLLECTOR)
    yield from sockets("collector", "", "lines", LINES)
    address = "gelf+udp://127.0.0.1:{port}"
    for compression in ("none", "gzip", "zlib"):
        # The reader takes datagrams of at most `chunk_bytes`.
        options = {"chunk_bytes": 1420, "compression": compression}
        route = Route("graylog-reader", "gelf-udp", address, GELF, options=options, confirms=False)
        yield f"gelf-{compression}", route


ROUTES = {f"{name}-to-{route.server}": route for name, route in all_routes()}
