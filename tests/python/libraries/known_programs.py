"""Programs that change a formatter which the core renders, its class, or its input, after the first records."""

from libraries.program import PRELUDE, Program

_LOG = """\
def handler(name, formatter):
    made = logging.FileHandler(name)
    made.setFormatter(formatter)
    return made

log = logging.getLogger("a.b")
log.setLevel(1)
"""

_JSON = """\
try:
    from pythonjsonlogger import json as home
except ImportError:
    from pythonjsonlogger import jsonlogger as home
formatter = home.JsonFormatter("%(levelname)s %(message)s %(user)s", static_fields={"host": "a", "of": {"x": 1}},
                               rename_fields={"levelname": "level"})
log.addHandler(handler("json.log", formatter))
side.install()
"""

_STEPS = """\
def step():
    log.info("step %s", 1, extra={"user": "ann", "more": [1]})
    log.warning("step", exc_info=ValueError("x"))

step()
"""

_DDTRACE = """\
import os
os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false",
    DD_CRASHTRACKING_ENABLED="false", DD_SERVICE="shop", DD_ENV="test", DD_TRACE_AGENT_URL="http://127.0.0.1:1")
import ddtrace
from ddtrace import config, tracer
from ddtrace.contrib.internal.logging.patch import patch, unpatch
from ddtrace.trace import Context, Span
logging.getLogger("ddtrace").disabled = True
FORM = "%(levelname)s [%(dd.service)s %(dd.env)s %(dd.version)s %(dd.trace_id)s %(dd.span_id)s] %(message)s"
first = handler("first.log", logging.Formatter(FORM))
log.addHandler(first)
activate = tracer.context_provider.activate
"""

_KNOWN = {
    "ddtrace_fields": (
        "ddtrace",
        _DDTRACE
        + """
patch()
side.install()

def step():
    log.info("step %d", 1)
    log.error("error", extra={"user": 1})
    log.info("own", extra={"dd.env": "own"})
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("exception")
    logging.LoggerAdapter(log, {"a": 1}).warning("adapter")

step()
span = Span("outer", trace_id=5, span_id=6)
activate(span)
step()
activate(Span("inner", trace_id=2**100, span_id=7))
step()
activate(Context(trace_id=8, span_id=9))
step()
activate(Context())
step()
activate(span)
span.finish()
step()
activate(None)
config.service, config.version = "other", "2"
step()
config.env = None
step()
tracer.enabled = False
activate(Span("unseen", trace_id=5, span_id=6))
step()
tracer.enabled = True
step()
second = handler("second.log", logging.Formatter("%(message)s"))
log.addHandler(second)
step()
second.addFilter(lambda record: record.__dict__["dd.env"] != "x")
step()
second.filters.clear()
second.setFormatter(logging.Formatter("{dd.env} {message}", style="{"))
step()
log.removeHandler(second)
log.addFilter(lambda record: record.levelno > 20)
step()
log.filters.clear()
make = logging.getLogRecordFactory()
def factory(*args, **kwargs):
    record = make(*args, **kwargs)
    record.msg = f"factory {record.msg}"
    return record
logging.setLogRecordFactory(factory)
step()
logging.setLogRecordFactory(make)
step()
stock = type(tracer).get_log_correlation_context
type(tracer).get_log_correlation_context = lambda self, active=None: {**stock(self, active), "dd.env": "patched"}
step()
type(tracer).get_log_correlation_context = stock
step()
class Own(logging.Logger):
    def makeRecord(self, *args, **kwargs):
        record = super().makeRecord(*args, **kwargs)
        record.msg = f"own {record.msg}"
        return record
logging.setLoggerClass(Own)
other = logging.getLogger("other")
other.addHandler(first)
other.warning("own class")
first.setFormatter(logging.Formatter("%(message)s"))
unpatch()
step()
activate(None)
""",
    ),
    "ddtrace_json": (
        "ddtrace",
        _DDTRACE
        + """
try:
    from pythonjsonlogger.json import JsonFormatter
except ImportError:
    from pythonjsonlogger.jsonlogger import JsonFormatter
first.setFormatter(JsonFormatter("%(message)s"))
patch()
side.install()
log.info("plain", extra={"user": 1})
activate(Span("outer", trace_id=5, span_id=6))
log.info("span", extra={"user": 1})
activate(None)
""",
    ),
    "json_options": (
        "pythonjsonlogger",
        _JSON
        + _STEPS
        + """
formatter.static_fields["host"] = "b"
step()
formatter.static_fields["of"]["x"] = 2
step()
formatter.rename_fields["user"] = "who"
step()
formatter.rename_fields = {}
step()
formatter.json_ensure_ascii = False
log.info("grüße")
formatter.prefix = "> "
step()
formatter.json_default = repr
step()
formatter.json_indent = 2
step()
formatter.json_indent = None
step()
formatter.process_log_record = lambda data: {"own": True, **data}
step()
del formatter.process_log_record
step()
""",
    ),
    "json_class": (
        "pythonjsonlogger",
        _JSON
        + _STEPS
        + """
stock = home.JsonFormatter.add_fields
def add_fields(self, data, record, messages):
    stock(self, data, record, messages)
    data["added"] = True
home.JsonFormatter.add_fields = add_fields
step()
home.JsonFormatter.add_fields = stock
step()
class Own(home.JsonFormatter):
    def process_log_record(self, data):
        return {"own": 1, **data}
log.handlers[0].setFormatter(Own("%(message)s"))
step()
logging.Formatter.formatException = lambda self, ei: "patched"
step()
""",
    ),
    "json_beside_others": (
        "pythonjsonlogger",
        _JSON
        + _STEPS
        + """
log.addHandler(handler("second.log", home.JsonFormatter("%(message)s", json_default=str)))
step()
log.addHandler(handler("text.log", logging.Formatter("%(message)s %(user)s %(more)s", defaults={"user": 1, "more": 2})))
log.info("objects", extra={"user": object, "more": {"a": (1, None)}})
step()
log.addFilter(lambda record: setattr(record, "filtered", [record.levelno]) or True)
step()
log.info({"a": "dict"}, extra={"user": 1})
log.info({"a": "dict", "exc_info": "own"}, exc_info=ValueError("x"))
""",
    ),
    "uvicorn_changed": (
        "uvicorn",
        """\
from uvicorn.logging import AccessFormatter, DefaultFormatter
formatter = DefaultFormatter("%(levelprefix)s %(name)s %(message)s", use_colors=False)
log.addHandler(handler("uvicorn.log", formatter))
side.install()
"""
        + _STEPS
        + """
formatter.use_colors = True
step()
log.info("plain", extra={"color_message": "\\x1b[1m%d\\x1b[0m"})
log.info("plain %d", 1, extra={"color_message": "\\x1b[1m%d\\x1b[0m"})
formatter.level_name_colors = {**formatter.level_name_colors, 20: lambda name: "<" + name + ">"}
step()
del formatter.level_name_colors
logging.addLevelName(20, "NOTE")
step()
log.log(21, "unnamed")
log.log(3, "unnamed")
access = AccessFormatter('%(levelprefix)s %(client_addr)s "%(request_line)s" %(status_code)s', use_colors=True)
log.handlers[0].setFormatter(access)
log.info('%s - "%s %s HTTP/%s" %d', "::1", "GET", "/", "1.1", 200)
log.addHandler(handler("beside.log", logging.Formatter("%(message)s")))
log.info('%s - "%s %s HTTP/%s" %d', "::1", "GET", "/", "1.1", 404)
logging.raiseExceptions = False
log.info("too few %s", 1)
""",
    ),
    "colorlog_variables": (
        "colorlog",
        """\
import colorlog, os
for name in ("NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)
formatter = colorlog.ColoredFormatter("%(log_color)s%(levelname)s%(reset)s %(blue)s%(message)s")
log.addHandler(handler("colour.log", formatter))
side.install()
"""
        + _STEPS
        + """
os.environ["NO_COLOR"] = "1"
step()
os.environ["FORCE_COLOR"] = "1"
step()
del os.environ["FORCE_COLOR"], os.environ["NO_COLOR"]
formatter.log_colors["INFO"] = "red"
step()
formatter.reset = False
step()
formatter.no_color = True
step()
""",
    ),
    "django_marks": (
        "django",
        """\
from django.core.management.color import make_style
from django.utils.log import ServerFormatter
formatter = ServerFormatter("{message} {status_code}", style="{")
log.addHandler(handler("server.log", formatter))
side.install()
def step():
    for status in (None, 0, 101, 200, 304, 301, 404, 400, 500, 999):
        log.info("GET %s", "/", extra={"status_code": status})
step()
formatter.style = make_style("")
step()
formatter.style.HTTP_SUCCESS = lambda text: "<" + text + ">"
step()
formatter.style = make_style("light")
log.addHandler(handler("plain.log", logging.Formatter("%(message)s|%(msg)s")))
step()
""",
    ),
    "ecs_changed": (
        "ecs_logging",
        """\
import ecs_logging
formatter = ecs_logging.StdlibFormatter(exclude_fields=["@timestamp", "process"], extra={"service.name": "a"})
log.addHandler(handler("ecs.log", formatter))
side.install()
def step():
    log.info("step %s", 1)
    log.info("step", extra={"http": {"request.method": "GET"}, "trace.id": "x"})
step()
formatter._extra["service.id"] = 7
step()
formatter.ensure_ascii = False
log.info("grüße")
log.info("stack", extra={"log": 1})
logging.addLevelName(20, "Note")
step()
""",
    ),
    "ecs_fields": (
        "ecs_logging",
        """\
import collections
import ecs_logging
first = handler("first.log", ecs_logging.StdlibFormatter(exclude_fields=["@timestamp", "process", "user.secret"]))
log.addHandler(first)
side.install()
cycle = {"a": 1}
cycle["b"] = cycle
class Odd:
    def __repr__(self):
        fields["added"] = 1
        return "odd"
fields = {"user": {"name": "ann", "secret": "x", "odd": Odd()}, "tags": ["a", {"z": 1, "b": (Odd(), None)}]}
def step():
    for extra in (fields, {"user": {"secret": {"of": 1}, "id": None}}, {"user.name": 1, "user": {"name": 2}},
            {"user": collections.OrderedDict(b=1)}, {"user": {1: 2}}, {"event": {}},
            {"elasticapm_trace_id": "t"}, {"elasticapm_labels.a": "t", "b": 1}, {"tags": [{1: 2, "a": 3}]},
            {"z": 2**70}):
        log.info("step %d", 1, extra=extra)
    try:
        log.warning("cycle", extra={"user": cycle})
    except RecursionError:
        print("RecursionError")
    logging.LoggerAdapter(log, {"labels": {"a": 1}}).warning({"a": "dict"})
    log.error({"a": "dict"}, extra={"error.code": 1})
step()
first.addFilter(lambda record: record.levelno > 10)
step()
log.addFilter(lambda record: setattr(record, "seen.by", {"filter": record.lineno}) or True)
step()
second = handler("second.log", logging.Formatter("%(message)s"))
log.addHandler(second)
step()
second.setFormatter(ecs_logging.StdlibFormatter(exclude_fields=["@timestamp", "process", "tags"]))
step()
log.filters.clear()
first.filters.clear()
step()
""",
    ),
    "json_dicts": (
        "pythonjsonlogger",
        _JSON
        + """
import collections
class Odd:
    def __str__(self):
        message["added"] = 1
        return "odd"
formatter.json_default = str
message = {"message": "own", "user": Odd(), "list": [Odd(), {1: 2}], "_private": 1, "level": None, "host": "b"}
def step():
    for made in (message, {}, {1: 2}, {"exc_info": ""}, {"stack_info": 7, "x": {"y": object}},
            collections.OrderedDict(a=1)):
        log.info(made, extra={"user": "ann", "list": 1, "more": 2})
        log.info(made, 1)
        log.info(made, exc_info=ValueError("x"))
        log.info(made, stack_info=True, extra={"more": 2})
    log.warning({"a": {"b": {"c": [1.5, None, True]}}, "big": 2**80, "bytes": b"x"})
    cycle = {"a": 1}
    cycle["b"] = cycle
    log.error(cycle)
step()
log.handlers[0].addFilter(lambda record: record.levelno > 10)
step()
log.addHandler(handler("text.log", logging.Formatter("%(message)s")))
step()
log.handlers[0].filters.clear()
step()
log.handlers[1].setFormatter(home.JsonFormatter("%(message)s", json_default=str))
step()
""",
    ),
    "correlation_filter": (
        "asgi_correlation_id",
        """\
from asgi_correlation_id import CorrelationIdFilter, correlation_id

form = logging.Formatter("%(levelname)s [%(correlation_id)s] %(message)s")
ids = CorrelationIdFilter(uuid_length=4, default_value="none-at-all")
first = handler("first.log", form)
first.addFilter(ids)
log.addHandler(first)
side.install()

def step():
    log.info("step %s", 1)
    log.warning("step", extra={"user": "ann"}, exc_info=ValueError("x"))

for value in (None, "abcdefgh", "", "grüße", None):
    step()
    correlation_id.set(value)
step()
for value in (7, 3.5):
    correlation_id.set(value)
    logging.raiseExceptions = False
    try:
        step()
    except TypeError as error:
        print(error)
ids.uuid_length = None
step()
correlation_id.set("abcdefgh")
ids.default_value = None
step()
log.info("own", extra={"correlation_id": 1})
ids.name = "elsewhere"
step()
first.setLevel(logging.WARNING)
step()
second = handler("second.log", logging.Formatter("%(message)s"))
log.addHandler(second)
step()
second.addFilter(ids)
step()
second.setFormatter(form)
second.addFilter(CorrelationIdFilter(uuid_length=2))
step()
second.filters.clear()
second.addFilter(logging.Filter("other"))
step()
log.removeHandler(second)
log.addFilter(CorrelationIdFilter(uuid_length=2))
step()
log.filters.clear()
stock = CorrelationIdFilter.filter
CorrelationIdFilter.filter = lambda self, record: setattr(record, "correlation_id", "patched") or True
step()
CorrelationIdFilter.filter = stock
import asgi_correlation_id.log_filters as home
from contextvars import ContextVar
home.correlation_id = ContextVar("other", default="o")
step()
first.filters.clear()
class Own(CorrelationIdFilter):
    def filter(self, record):
        return super().filter(record) and record.levelno > 20
first.addFilter(Own())
step()
""",
    ),
}

KNOWN = [Program(f"known_{name}", (package,), PRELUDE + _LOG + text) for name, (package, text) in _KNOWN.items()]
