"""The senders of the survey: how each is run, what it is called on the page, and why a record of it may differ.

A sender is one program in `programs/survey/`, `go/` or `java/`, or a function in `daemons.py`, and one line here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sender:
    """One sender, and what the page says of it."""

    #: Its name on the page, and in front of it the program that sends.
    name: str
    program: str
    protocol: str
    #: The package whose version the page has.
    package: str
    #: Reasons by aspect, or by `ASPECT of KIND`: only what is named here may differ from what was sent.
    differs: Mapping[str, str] = field(default_factory=dict)
    #: Kinds that it cannot send, and why.
    without: Mapping[str, str] = field(default_factory=dict)
    #: Whether each run of the tests sends with it, or only `make test-senders`.
    sample: bool = False
    #: What of the package's program is run, for a program that is no script.
    run: "Callable | None" = None


SYSLOG = {
    "fields": "syslog's text has no fields",
    "traceback": "the text has the traceback only where the formatter adds it to the message",
}
DOUBLES = {"fields of big": "numbers of JavaScript are doubles"}
NAMELESS = {"logger": "it has no name of a logger"}
NO_FATAL = {"level of critical": "its highest level is that of errors"}
NO_STACK = {"traceback": "an error has no stack in Go; its text is the field `error`"}

PYTHON = [
    Sender("Python's SocketHandler", "stdlib_pickle.py", "pickles over TCP", "Python"),
    Sender("Python's SysLogHandler", "stdlib_syslog.py", "syslog over UDP", "Python"),
    Sender("OpenTelemetry for Python", "opentelemetry_http.py", "OTLP over HTTP", "opentelemetry-sdk"),
    Sender("OpenTelemetry for Python", "opentelemetry_grpc.py", "OTLP over gRPC", "opentelemetry-sdk"),
    Sender("fluent-logger", "fluent_logger.py", "Forward over TCP", "fluent-logger"),
    Sender("graypy", "graypy_udp.py", "GELF over UDP", "graypy"),
    Sender("pygelf", "pygelf_tcp.py", "GELF over TCP", "pygelf", sample=True),
    Sender("elasticsearch-py", "elasticsearch_bulk.py", "Elasticsearch's `_bulk`", "elasticsearch"),
    Sender("python-logging-loki", "loki_push.py", "Loki's push", "python-logging-loki"),
    Sender("seqlog", "seqlog_events.py", "Seq's events", "seqlog"),
    Sender("splunk-handler", "splunk_hec.py", "Splunk's collector", "splunk-handler"),
    Sender("python-json-logger", "json_logger.py", "JSON over TCP", "python-json-logger", sample=True),
    Sender("ecs-logging", "ecs_lines.py", "JSON over TCP", "ecs-logging"),
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
    Sender("zap", "zap.go", "JSON over TCP", "go.uber.org/zap", sample=True),
    Sender("zerolog", "zerolog.go", "JSON over TCP", "github.com/rs/zerolog", NO_STACK, sample=True),
    Sender("slog", "slog.go", "JSON over TCP", "Go", NO_STACK, sample=True),
    Sender("logrus", "logrus.go", "JSON over TCP", "github.com/sirupsen/logrus", NO_STACK),
    Sender("go-hclog", "hclog.go", "JSON over TCP", "github.com/hashicorp/go-hclog", {**NO_STACK, **NO_FATAL}),
]

JAVA = [
    Sender("Logback with logstash-encoder", "Logback.java", "JSON over TCP", "logstash-logback-encoder", NO_FATAL),
    Sender("Log4j 2", "Log4jTemplate.java", "JSON of ECS over TCP", "log4j-core"),
    Sender("Log4j 2", "Log4jGelf.java", "GELF over UDP", "log4j-core"),
    Sender("Log4j 2", "Log4jSyslog.java", "syslog over TCP", "log4j-core"),
]

SENDERS = [*PYTHON, *NODE, *GO, *JAVA]
