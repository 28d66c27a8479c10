"""The senders of the survey: how each is run, its name on the page, and why a record of it may differ.

A sender is one program in `programs/survey/`, `go/` or `java/`, or a function in `daemons.py`, and one line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sender:
    """One sender, and its facts on the page."""

    #: Its name on the page; `program` is the program that sends.
    name: str
    program: str
    protocol: str
    #: The package whose version the page has.
    package: str
    #: Reasons by aspect, or by `ASPECT of KIND`: only these may differ from the sent record.
    differs: Mapping[str, str] = field(default_factory=dict)
    #: Kinds that it cannot send, and why.
    without: Mapping[str, str] = field(default_factory=dict)
    #: Whether each run of the tests sends with it, or only `make test-senders`.
    sample: bool = False


IN_MESSAGE = {"message of traceback": "the formatter adds the traceback to the message"}
SYSLOG = {"fields": "its texts have no fields", "traceback": "its texts have no traceback of their own", **IN_MESSAGE}
LABELS = {
    "message of object": "a line that is an object of JSON becomes fields",
    "fields": "names of labels have only ASCII letters, digits and `_`, and their values are texts",
    **IN_MESSAGE,
    "traceback": "the formatter adds the traceback to the message",
}
ECS = {
    "fields of numbers": "it does not send None",
    "fields of names": "it makes an object of a name with a dot",
}
CONTEXT = {"fields": "values of its context are texts"}
DOUBLES = {"fields of big": "numbers of JavaScript are doubles"}
NAMELESS = {"logger": "it has no name of a logger"}
NO_FATAL = {"level of critical": "its highest level is that of errors"}
APART = {"traceback": "the stack is in `stack`, and the text of the error is the field `error`"}
NO_STACK = {"traceback": "an error has no stack in Go; its text is the field `error`"}

PYTHON = [
    Sender("Python's SocketHandler", "stdlib_pickle.py", "pickles over TCP", "Python"),
    Sender("Python's SysLogHandler", "stdlib_syslog.py", "syslog over UDP", "Python", {**SYSLOG, **NAMELESS}),
    Sender("OpenTelemetry for Python", "opentelemetry_http.py", "OTLP over HTTP", "opentelemetry-sdk"),
    Sender("OpenTelemetry for Python", "opentelemetry_grpc.py", "OTLP over gRPC", "opentelemetry-sdk"),
    Sender("fluent-logger", "fluent_logger.py", "Forward over TCP", "fluent-logger", IN_MESSAGE),
    Sender("graypy", "graypy_udp.py", "GELF over UDP", "graypy"),
    Sender("pygelf", "pygelf_tcp.py", "GELF over TCP", "pygelf", sample=True),
    Sender("elasticsearch-py", "elasticsearch_bulk.py", "Elasticsearch's `_bulk`", "elasticsearch"),
    Sender("python-logging-loki", "loki_push.py", "Loki's push", "python-logging-loki", LABELS),
    Sender("seqlog", "seqlog_events.py", "Seq's events", "seqlog"),
    Sender("splunk-handler", "splunk_hec.py", "Splunk's collector", "splunk-handler"),
    Sender("python-json-logger", "json_logger.py", "JSON over TCP", "python-json-logger", sample=True),
    Sender("ecs-logging", "ecs_lines.py", "JSON over TCP", "ecs-logging", ECS),
    Sender("python-logstash-async", "logstash_async_tcp.py", "JSON over TCP", "python-logstash-async"),
    Sender("loguru", "loguru_json.py", "JSON over TCP", "loguru", sample=True),
    Sender("structlog", "structlog_json.py", "JSON over TCP", "structlog", sample=True),
]

NODE = [
    Sender("pino", "pino.cjs", "JSON over TCP", "pino", DOUBLES, sample=True),
    Sender("bunyan", "bunyan.cjs", "JSON over TCP", "bunyan", DOUBLES, sample=True),
    Sender("winston", "winston.cjs", "JSON over TCP", "winston", DOUBLES, sample=True),
    Sender("winston-loki", "winston_loki.cjs", "Loki's push", "winston-loki", DOUBLES),
    Sender("log4js", "log4js_tcp.cjs", "JSON over TCP", "log4js", DOUBLES, sample=True),
    Sender("OpenTelemetry JS", "opentelemetry_proto.cjs", "OTLP over HTTP", "@opentelemetry/sdk-logs", DOUBLES),
    Sender("OpenTelemetry JS", "opentelemetry_json.cjs", "OTLP's JSON", "@opentelemetry/sdk-logs", DOUBLES),
    Sender("OpenTelemetry JS", "opentelemetry_grpc.cjs", "OTLP over gRPC", "@opentelemetry/sdk-logs", DOUBLES),
    Sender("@fluent-org/logger", "fluent.cjs", "Forward with acks", "@fluent-org/logger", DOUBLES),
]

GO = [
    Sender("zap", "zap.go", "JSON over TCP", "go.uber.org/zap", APART, sample=True),
    Sender("zerolog", "zerolog.go", "JSON over TCP", "github.com/rs/zerolog", NO_STACK, sample=True),
    Sender("slog", "slog.go", "JSON over TCP", "Go", NO_STACK, sample=True),
    Sender("logrus", "logrus.go", "JSON over TCP", "github.com/sirupsen/logrus", NO_STACK),
    Sender("go-hclog", "hclog.go", "JSON over TCP", "github.com/hashicorp/go-hclog", {**NO_STACK, **NO_FATAL}),
]

JAVA = [
    Sender("Logback with logstash-encoder", "Logback.java", "JSON over TCP", "logstash-logback-encoder", NO_FATAL),
    Sender("Log4j 2", "Log4jTemplate.java", "JSON of ECS over TCP", "log4j-core", CONTEXT),
    Sender("Log4j 2", "Log4jGelf.java", "GELF over UDP", "log4j-core", CONTEXT),
    Sender("Log4j 2", "Log4jSyslog.java", "syslog over TCP", "log4j-core", {**SYSLOG, **CONTEXT}),
]

TEXTS = {"fields": "it sends texts", "traceback": "it sends texts"}
HEADER = {
    "level": "all its records have the level of its configuration",
    "logger": "its name is the logger",
    "message of indented": "a header of HTTP has no spaces before its text",
}
NO_HEADERS = {"control": "a header of HTTP has no control characters", "lines": "a header of HTTP has no line ends"}
NGINX = {**TEXTS, **HEADER}

DAEMONS = [
    Sender("rsyslog", "rsyslog", "syslog over TCP", "rsyslog", TEXTS),
    Sender("syslog-ng", "syslog_ng", "syslog over TCP", "syslog-ng-core", TEXTS),
    Sender("logger (util-linux)", "logger", "syslog over TCP", "util-linux", TEXTS),
    Sender("logger (busybox)", "busybox", "syslog to `/dev/log`", "busybox", TEXTS),
    Sender("nginx's access log", "nginx", "syslog to a socket", "nginx", NGINX, NO_HEADERS),
    Sender("haproxy's log", "haproxy", "syslog over UDP", "haproxy", NGINX, NO_HEADERS),
]

SENDERS = [*PYTHON, *NODE, *GO, *JAVA, *DAEMONS]
