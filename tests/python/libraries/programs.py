"""The programs, one for each library and way to use it. Each is written so that two runs print the same."""

from libraries.known_programs import KNOWN
from libraries.program import PRELUDE as _PRELUDE
from libraries.program import Program

# Sentry -------------------------------------------------------------------------------------------------------------

_SENTRY_WITH_TRANSPORT = """\
import sentry_sdk
from sentry_sdk.transport import Transport

events = []

class Collecting(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            events.append(event)

def init():
    sentry_sdk.init(
        dsn="http://key@localhost/1", transport=Collecting, auto_session_tracking=False, shutdown_timeout=0,
        default_integrations=True, auto_enabling_integrations=False, send_client_reports=False,
    )

def show():
    for event in events:
        print(event.get("level"), event.get("logger"), event.get("logentry"))
        for crumb in event.get("breadcrumbs", {}).get("values", ()):
            print("   ", crumb.get("category"), crumb.get("level"), crumb.get("message"))
        for error in event.get("exception", {}).get("values", ()):
            print("   ", error["type"], error["value"], [frame["function"] for frame in error["stacktrace"]["frames"]])
"""

_SPEAK_AND_SHOW = """
speak(logging.getLogger("a.b"))
speak(logging.getLogger())
show()
"""

_SENTRY = [
    Program(
        f"sentry_{name}",
        ("sentry_sdk",),
        _PRELUDE + _SENTRY_WITH_TRANSPORT + body + _SPEAK_AND_SHOW,
    )
    for name, body in (
        ("before_install", "to_file()\ninit()\nside.install()"),
        ("after_install", "to_file()\nside.install()\ninit()"),
        ("before_configuration", "init()\nside.install()\nto_file()"),
        (
            "after_a_thousand_calls",
            "to_file()\nside.install()\n"
            "for number in range(1000):\n    logging.getLogger('a.b').info('warm %d', number)\ninit()",
        ),
    )
]

_SENTRY_WITHOUT_DSN = [
    Program(
        f"sentry_without_dsn_{name}",
        ("sentry_sdk",),
        _PRELUDE + "import sentry_sdk\n" + body + "\nspeak(logging.getLogger('a.b'))\n",
    )
    for name, body in (
        ("before_install", "to_file()\nsentry_sdk.init()\nside.install()"),
        ("after_install", "to_file()\nside.install()\nsentry_sdk.init()"),
    )
]

# OpenTelemetry and ddtrace ------------------------------------------------------------------------------------------

_OPENTELEMETRY = """\
import asyncio
from opentelemetry import trace
from opentelemetry.instrumentation.logging import LoggingInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

class Counting(IdGenerator):
    spans = traces = 0

    def generate_span_id(self):
        self.spans += 1
        return self.spans

    def generate_trace_id(self):
        self.traces += 1
        return self.traces

trace.set_tracer_provider(TracerProvider(id_generator=Counting()))
tracer = trace.get_tracer("test")
FORMAT = "%(levelname)s %(name)s [%(otelTraceID)s %(otelSpanID)s %(otelTraceSampled)s %(otelServiceName)s] %(message)s"
INJECT = {"inject_trace_context": True, "enable_log_auto_instrumentation": False}
"""

_TRACED = """
log = logging.getLogger("a.b")
speak(log)
with tracer.start_as_current_span("outer"):
    speak(log)
    with tracer.start_as_current_span("inner"):
        speak(log)
    log.info("outer again")
remote = trace.SpanContext(trace_id=77, span_id=7, is_remote=True, trace_flags=trace.TraceFlags(1))
for context in (remote, trace.INVALID_SPAN_CONTEXT):
    with trace.use_span(trace.NonRecordingSpan(context)):
        log.info("span %d", context.span_id)

class Own(trace.Span):
    number = 0
    def get_span_context(self):
        self.number += 1
        return trace.SpanContext(trace_id=self.number, span_id=self.number, is_remote=False)
    def nothing(self, *args, **kwargs):
        pass
    add_event = add_link = end = is_recording = record_exception = set_attribute = set_attributes = nothing
    set_status = update_name = nothing

with trace.use_span(Own()):
    log.info("a span with ids that change")
    log.info("a span with ids that change")

async def task(number):
    with tracer.start_as_current_span(f"task {number}"):
        for step in range(3):
            log.info("task %d step %d", number, step)
            await asyncio.sleep(0)

async def tasks():
    await asyncio.gather(*(task(number) for number in range(3)))

asyncio.run(tasks())
try:
    log.info("extra of a name that the factory sets", extra={"otelSpanID": "mine"})
except KeyError as error:
    print(error)
LoggingInstrumentor().uninstrument()
logging.getLogger().handlers[0].setFormatter(logging.Formatter("%(message)s"))
speak(log)
"""

_TRACING = [
    *(
        Program(
            f"opentelemetry_{name}",
            ("opentelemetry.instrumentation.logging", "opentelemetry.sdk"),
            _PRELUDE + _OPENTELEMETRY + body + _TRACED,
        )
        for name, body in (
            ("before_install", "LoggingInstrumentor().instrument()\nto_file(fmt=FORMAT)\nside.install()"),
            ("after_install", "to_file(fmt=FORMAT)\nside.install()\nLoggingInstrumentor().instrument(**INJECT)"),
            ("injected", "LoggingInstrumentor().instrument(**INJECT)\nto_file(fmt=FORMAT)\nside.install()"),
            (
                "with_a_hook",
                "def hook(span, record):\n    record.msg = f'hooked {record.msg}'\n"
                "LoggingInstrumentor().instrument(log_hook=hook, **INJECT)\nto_file(fmt=FORMAT)\nside.install()",
            ),
            (
                "with_a_filter",
                "LoggingInstrumentor().instrument(**INJECT)\nto_file(fmt=FORMAT)\nside.install()\n"
                "logging.getLogger().handlers[0].addFilter(lambda record: print(sorted(vars(record))) or True)",
            ),
            (
                "after_a_thousand_calls",
                "to_file(fmt='%(message)s')\nside.install()\n"
                "for number in range(1000):\n    logging.getLogger('a.b').info('warm %d', number)\n"
                "LoggingInstrumentor().instrument()\n"
                "logging.getLogger().handlers[0].setFormatter(logging.Formatter(FORMAT))",
            ),
        )
    ),
    *(
        Program(
            f"ddtrace_{name}",
            ("ddtrace",),
            "import os\n"
            "os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED='false',\n"
            "    DD_REMOTE_CONFIGURATION_ENABLED='false',\n"
            "    DD_TRACE_ENABLED='false', DD_SERVICE='service', DD_ENV='env', DD_VERSION='1',\n"
            "    DD_LOGS_INJECTION='true',\n"
            "    DD_CRASHTRACKING_ENABLED='false')\n" + _PRELUDE + "from ddtrace import patch\n"
            "FORMAT = '%(levelname)s [%(dd.service)s %(dd.env)s %(dd.version)s %(dd.trace_id)s] %(message)s'\n"
            + body
            + "\nspeak(logging.getLogger('a.b'))\n",
        )
        for name, body in (
            ("before_install", "patch(logging=True)\nto_file(fmt=FORMAT)\nside.install()"),
            ("after_install", "side.install()\npatch(logging=True)\nto_file(fmt=FORMAT)"),
        )
    ),
]

# Frameworks ---------------------------------------------------------------------------------------------------------

_DJANGO = """\
import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

def index(request):
    logging.getLogger("project.views").info("index asked by %s", request.method)
    return HttpResponse("ok")

def broken(request):
    raise ValueError("broken view")

urlpatterns = [path("", index), path("broken", broken)]
BEFORE = {before}
if BEFORE:
    side.install()
settings.configure(
    DEBUG={debug}, SECRET_KEY="x", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], USE_TZ=True,
    LOGGING={{
        "version": 1, "disable_existing_loggers": False,
        "formatters": {{"verbose": {{"format": "{{levelname}} {{name}} {{module}} {{message}}", "style": "{{"}}}},
        "filters": {{"debug": {{"()": "django.utils.log.RequireDebugTrue"}}}},
        "handlers": {{
            "file": {{"class": "logging.FileHandler", "filename": "django.log", "formatter": "verbose"}},
            "console": {{"class": "logging.StreamHandler", "filters": ["debug"], "formatter": "verbose"}},
        }},
        "root": {{"handlers": ["file", "console"], "level": "INFO"}},
    }},
)
django.setup()
if not BEFORE:
    side.install()
from django.test import Client
client = Client(raise_request_exception=False)
for path_ in ("/", "/missing", "/broken", "/"):
    print(client.get(path_).status_code)
speak(logging.getLogger("django.request"))
speak(logging.getLogger("project.deep"))
from django.utils.log import configure_logging
configure_logging("logging.config.dictConfig", settings.LOGGING)
speak(logging.getLogger("project.deep"))
"""

_CELERY = """\
from celery import Celery
from celery.utils.log import get_task_logger

BEFORE = {before}
if BEFORE:
    side.install()
app = Celery("project", broker="memory://", backend="cache+memory://")
app.conf.update(
    task_always_eager=True,
    worker_log_format="[%(levelname)s/%(processName)s] %(message)s",
    worker_task_log_format="[%(levelname)s] %(task_name)s[%(name)s]: %(message)s",
    worker_hijack_root_logger=True,
)
task_log = get_task_logger("project.tasks")

@app.task(name="project.add")
def add(x, y):
    task_log.info("adding %s and %s", x, y)
    print("printed in the task")
    return x + y

app.log.setup(loglevel="INFO", logfile={logfile!r}, redirect_stdouts=True, redirect_level="WARNING")
if not BEFORE:
    side.install()
add.apply(args=(1, 2), task_id='task-1')
speak(logging.getLogger("celery.worker"))
speak(logging.getLogger("project"))
print("printed outside")
app.log.redirect_stdouts_to_logger(logging.getLogger("celery.redirected"), loglevel="ERROR")
print("redirected again")
sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
"""

_UVICORN = """\
import copy, logging.config
from uvicorn.config import LOGGING_CONFIG

BEFORE = {before}
if BEFORE:
    side.install()
config = copy.deepcopy(LOGGING_CONFIG)
for formatter in config["formatters"].values():
    formatter["use_colors"] = {colors}
logging.config.dictConfig(config)
if not BEFORE:
    side.install()
log, access = logging.getLogger("uvicorn.error"), logging.getLogger("uvicorn.access")
log.info("Started server process [%d]", 42, extra={{"color_message": "Started server process [%d] in colour"}})
log.info("Waiting for application startup.")
for status in (200, 301, 404, 500, 799):
    access.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:5000", "GET", "/päth?x=1", "1.1", status)
access.warning("not an access line %s", 1)
speak(log)
"""

_FRAMEWORKS = [
    *(
        Program(
            f"django_{'installed_before' if before else 'installed_after'}_{'debug' if debug else 'production'}",
            ("django",),
            _PRELUDE + _DJANGO.format(before=before, debug=debug),
        )
        for before in (True, False)
        for debug in (True, False)
    ),
    *(
        Program(
            f"celery_{'installed_before' if before else 'installed_after'}_{'file' if logfile else 'console'}",
            ("celery",),
            _PRELUDE + _CELERY.format(before=before, logfile=logfile),
            moving=(rb"succeeded in [-0-9.e]+s",),
        )
        for before in (True, False)
        for logfile in ("celery.log", None)
    ),
    *(
        Program(
            f"uvicorn_{'installed_before' if before else 'installed_after'}_{'colours' if colors else 'plain'}",
            ("uvicorn",),
            _PRELUDE + _UVICORN.format(before=before, colors=colors),
        )
        for before in (True, False)
        for colors in (True, False, None)
    ),
    Program("uvicorn_on_a_terminal", ("uvicorn",), _PRELUDE + _UVICORN.format(before=True, colors=None), terminal=True),
]

# Formatters and handlers --------------------------------------------------------------------------------------------

_COLOREDLOGS = """\
import coloredlogs
{before}
coloredlogs.install(level="DEBUG", fmt="%(name)s %(levelname)s %(message)s", {options})
{after}
speak(logging.getLogger("a.b"))
coloredlogs.increase_verbosity()
coloredlogs.decrease_verbosity()
coloredlogs.decrease_verbosity()
speak(logging.getLogger("a.b"))
"""

_JSON_LOGGER = """\
from pythonjsonlogger.json import JsonFormatter
handler = logging.{handler}
handler.setFormatter(JsonFormatter(
    "%(levelname)s %(name)s %(message)s %(lineno)d", rename_fields={{"levelname": "level"}},
    static_fields={{"service": "x"}}, json_ensure_ascii=False))
log = logging.getLogger("a.b")
log.setLevel(10)
log.addHandler(handler)
side.install()
speak(log)
log.info({{"message": "a dict", "more": [1, 2]}})
log.info("grüße %s", "世界", extra={{"fields": {{"a": None}}, "amount": 1.5}})
"""

_RICH = """\
from rich.console import Console
from rich.logging import RichHandler
{before}
console = Console(file={file}, width=100, force_terminal={terminal}, color_system="truecolor")
logging.basicConfig(level="DEBUG", format="%(message)s", handlers=[
    RichHandler(console=console, show_time=False, enable_link_path=False, rich_tracebacks={tracebacks}, markup=True),
    logging.FileHandler("beside.log"),
])
{after}
speak(logging.getLogger("a.b"))
logging.getLogger("a.b").info("[bold]markup[/bold] %s", {{"a": 1}})
"""

_STRUCTLOG = """\
import structlog
shared = [structlog.contextvars.merge_contextvars, structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name]
structlog.configure(
    processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.PositionalArgumentsFormatter(),
        {last}],
    logger_factory=structlog.stdlib.LoggerFactory(), wrapper_class=structlog.stdlib.{wrapper},
    cache_logger_on_first_use=True,
)
handler = logging.FileHandler("app.log")
handler.setFormatter({formatter})
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.DEBUG)
side.install()
log = structlog.stdlib.get_logger("a.b")
log.info("event", number=1, text="grün")
structlog.contextvars.bind_contextvars(request="r1")
log.bind(user="ann").warning("bound %s", "x")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
log.debug("debug")
speak(logging.getLogger("foreign"))
"""

_LOGURU = """\
import inspect
from loguru import logger

class InterceptHandler(logging.Handler):
    def emit(self, record):
        try:
            level = logger.level(record.levelname).name
        except ValueError:
            level = record.levelno
        frame, depth = inspect.currentframe(), 0
        while frame and (depth == 0 or frame.f_code.co_filename == logging.__file__):
            frame = frame.f_back
            depth += 1
        logger.opt(depth=depth, exception=record.exc_info).log(level, record.getMessage())

logger.remove()
logger.add("loguru.log", format="{{level}} {{name}}:{{function}}:{{line}} {{message}}",
    diagnose=False, backtrace={backtrace}, level=0)
logging.basicConfig(handlers=[InterceptHandler()], level=0, force=True)
side.install()
def inner():
    speak(logging.getLogger("a.b"))
inner()
logger.info("directly {{}}", 1)
logger.add(logging.FileHandler("by-handler.log"), format="{{message}}")
logger.warning("into a handler of the standard library")
logging.getLogger("a").log(25, "between")
"""

_FORMATTERS = [
    *(
        Program(
            f"coloredlogs_{name}_{'terminal' if terminal else 'pipe'}",
            ("coloredlogs",),
            _PRELUDE + _COLOREDLOGS.format(before=before, after=after, options=options),
            terminal=terminal,
        )
        for name, before, after, options in (
            ("installed_before", "side.install()", "", ""),
            ("installed_after", "", "side.install()", ""),
            ("with_forced_colours", "side.install()", "", "isatty=True"),
        )
        for terminal in (False, True)
    ),
    *(
        Program(f"python_json_logger_{name}", ("pythonjsonlogger",), _PRELUDE + _JSON_LOGGER.format(handler=handler))
        for name, handler in (("file", "FileHandler('app.log')"), ("console", "StreamHandler(sys.stdout)"))
    ),
    *(
        Program(
            f"rich_{name}",
            ("rich",),
            _PRELUDE + _RICH.format(before=before, after=after, file=file, terminal=terminal, tracebacks=tracebacks),
        )
        for name, before, after, file, terminal, tracebacks in (
            ("installed_before", "side.install()", "", "sys.stdout", True, True),
            ("installed_after", "", "side.install()", "sys.stdout", False, False),
            ("into_a_file", "", "side.install()", "open('rich.log', 'w')", False, False),
        )
    ),
    *(
        Program(
            f"structlog_{name}",
            ("structlog",),
            _PRELUDE + _STRUCTLOG.format(last=last, formatter=formatter, wrapper=wrapper),
        )
        for name, last, formatter, wrapper in (
            (
                "rendered_by_structlog",
                "structlog.processors.CallsiteParameterAdder({structlog.processors.CallsiteParameter.LINENO}), "
                "structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=True)",
                "logging.Formatter('%(levelname)s %(message)s')",
                "BoundLogger",
            ),
            (
                "processor_formatter",
                "structlog.processors.CallsiteParameterAdder({structlog.processors.CallsiteParameter.LINENO}), "
                "structlog.stdlib.ProcessorFormatter.wrap_for_formatter",
                "structlog.stdlib.ProcessorFormatter(processors=[structlog.stdlib.ProcessorFormatter"
                ".remove_processors_meta, structlog.processors.format_exc_info, "
                "structlog.processors.JSONRenderer(sort_keys=True)], foreign_pre_chain=shared)",
                "BoundLogger",
            ),
            (
                "rendered_to_arguments",
                "structlog.stdlib.render_to_log_kwargs",
                "logging.Formatter('%(levelname)s %(funcName)s %(message)s')",
                "BoundLogger",
            ),
        )
    ),
    *(
        Program(f"loguru_intercept_{name}", ("loguru",), _PRELUDE + _LOGURU.format(backtrace=backtrace))
        for name, backtrace in (("backtrace", True), ("plain", False))
    ),
]

# gevent -------------------------------------------------------------------------------------------------------------

_GEVENT = """\
from contextvars import ContextVar

import gevent

task = ContextVar("task", default="none")

class Waits(logging.Filter):
    # Other greenlets run inside a filter, with calls of their own.
    def filter(self, record):
        gevent.sleep(0.0005 if record.args[0] % 7 == 0 else 0)
        record.task = task.get()
        return record.args[0] % 5 != 3

class Notes(logging.Handler):
    def emit(self, record):
        gevent.sleep(0)
        seen.append((task.get(), record.getMessage()))

def work(name, log):
    task.set(name)
    for number in range(100):
        log.info("number %d", number)
        if number % 30 == 0:
            try:
                raise ValueError(number)
            except ValueError:
                log.exception("failed %d", number)
        gevent.sleep(0)

seen = []
handler = logging.FileHandler("greenlets.log")
handler.setFormatter(logging.Formatter("%(task)s %(levelname)s %(message)s"))
{before}
filtered, plain, noted = (logging.getLogger(name) for name in ("filtered", "plain", "noted"))
for log in (filtered, noted):
    log.setLevel(logging.INFO)
handler.addFilter(Waits())
filtered.addHandler(handler)
noted.addHandler(Notes())
to_file()
{after}
gevent.joinall([
    gevent.spawn(work, f"{{log.name}} {{number}}", log) for number in range(25) for log in (filtered, plain, noted)
])
logging.shutdown()
# Greenlets take turns as their waits end; each keeps its own order.
for file in ("greenlets.log", "app.log"):
    with open(file) as stream:
        lines = stream.read().splitlines()
    print(file, len(lines), sorted(lines))
    if file == "greenlets.log":
        for number in range(25):
            own = [line for line in lines if line.startswith(f"filtered {{number}} INFO")]
            print(own == sorted(own, key=lambda line: int(line.split()[-1])), len(own))
    open(file, "w").close()
print(sorted(seen))
"""

_GREENLETS = [
    Program(
        f"gevent_{name}",
        ("gevent",),
        "from gevent import monkey\nmonkey.patch_all()\n" + _PRELUDE + _GEVENT.format(before=before, after=after),
    )
    for name, before, after in (("installed_before", "side.install()", ""), ("installed_after", "", "side.install()"))
]

# Daemons ------------------------------------------------------------------------------------------------------------

# The daemon context closes every descriptor except the stream's; files of the daemon then reuse the numbers.
_PYTHON_DAEMON = Program(
    "python_daemon",
    ("daemon",),
    _PRELUDE
    + """
import os

import daemon

handler = logging.FileHandler("daemon.log")
log = logging.getLogger("a.b")
log.addHandler(handler)
log.setLevel(logging.INFO)
side.install()
log.info("before")
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(reader)
    log.info("in the child")
    with daemon.DaemonContext(files_preserve=[handler.stream, writer], working_directory=os.getcwd()):
        files = [open(f"own-{number}", "wb") for number in range(20)]
        for file in files:
            file.write(b"payload")
            file.flush()
        for number in range(3000):
            log.info("%d", number)
        log.info("large %s", "x" * 100_000)
    sys.exit(0)
os.close(writer)
# It ends when the daemon has.
os.read(reader, 1)
""",
)

PROGRAMS = [*_SENTRY, *_SENTRY_WITHOUT_DSN, *_TRACING, *_FRAMEWORKS, *_FORMATTERS, *KNOWN, *_GREENLETS, _PYTHON_DAEMON]
