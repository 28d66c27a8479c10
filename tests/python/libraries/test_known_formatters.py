"""Formatters of packages that the core renders: the same bytes as the packages write, in 4,000 calls."""

import importlib
import importlib.util
import os
import re
import sys

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from formatting.worker import Batch, Formatted  # noqa: E402
from formatting.workers import Workers, difference  # noqa: E402
from libraries import known_values as made  # noqa: E402
from suite import queue_folder  # noqa: E402

CASES = int(os.environ.get("LOGSPOOL_EXAMPLES", "4000"))
CALLS = 8

#: Text that differs between two processes: times, numbers of threads and processes.
MOVING = (
    # `created` under any name that an option gives it.
    (rb"(: ?)1[6-9]\d{8}\.\d+", rb"\1N"),
    (rb'("(?:created|msecs|relativeCreated|thread|process|pid|id)": ?)[-\d.e+]+', rb"\1N"),
    (rb"would replace value `\d+`", b"would replace value `N`"),
    (rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?", b"TIME"),
    (rb"\d\d/\w{3}/\d{4} \d\d:\d\d:\d\d,\d+", b"TIME"),
    (rb"datetime\(\d{4}, [^)]*\)", b"TIME"),
)


def needs(module):
    """Skip a test if a package is not installed."""
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"needs {module}")


def cases(share):
    """Return the settings for a test that makes `share` of all calls."""
    return settings(
        max_examples=max(5, int(CASES * share / CALLS)),
        deadline=None,
        database=None,
        derandomize="LOGSPOOL_EXAMPLES" not in os.environ,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formatting")
    with queue_folder.private() as queue_dir, Workers(folder, queue_dir) as made:
        yield made


def masked(answer):
    """Replace the text that differs between two processes."""
    for pattern, stand_in in MOVING:
        answer.file = re.sub(pattern, stand_in, answer.file)
        answer.err = re.sub(pattern, stand_in, answer.err)
    return answer


def same(workers, batch):
    """Log the batch on both sides and fail if they differ; return the answer of the installed side."""
    ((stock, installed),) = workers.log(batch)
    found = difference(masked(stock), masked(installed))
    assert not found, found
    return installed


# python-json-logger ---------------------------------------------------------------------------------------------------

_FIELDS = st.sampled_from(
    [
        *("message", "levelname", "levelno", "name", "asctime", "created", "msecs", "lineno", "funcName", "module"),
        *("filename", "pathname", "process", "processName", "thread", "threadName", "taskName"),
        *("user", "host", "timestamp", "request_id", "exc_text", "args"),
    ]
)


@st.composite
def json_formatters(draw):
    """Draw options of `JsonFormatter`."""
    fields = draw(st.lists(_FIELDS, max_size=5))
    style = draw(st.sampled_from("%{$"))
    form = {"%": "%({})s", "{": "{{{}}}", "$": "${{{}}}"}[style]
    options = {"fmt": " ".join(form.format(field) for field in fields), "style": style, "validate": False}
    texts = st.sampled_from([*made.NAMES, "message", "levelname", "exc_info", "stack_info", "created"])
    optional = {
        "datefmt": st.sampled_from(["%H:%M", None]),
        "prefix": st.sampled_from(["", "@cee: ", "é"]),
        "rename_fields": st.dictionaries(texts, texts, max_size=3),
        "static_fields": st.dictionaries(texts, made.values, max_size=2),
        "timestamp": st.sampled_from([True, False, "when", "user"]),
        "json_ensure_ascii": st.booleans(),
        "json_default": st.sampled_from([str, repr, None]),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            options[name] = draw(values)
    if draw(st.integers(0, 3)) == 0:
        options["reserved_attrs"] = draw(
            st.sampled_from(
                [
                    ["args", "msg", "message", "asctime", "exc_info", "exc_text", "stack_info"],
                    ["args", "msg", "message", "asctime", "exc_info", "exc_text", "stack_info", "user", "created"],
                    [],
                ]
            )
        )
    return Formatted(of=(_home("pythonjsonlogger"), "JsonFormatter"), options=options)


def _home(package):
    return f"{package}.json" if importlib.util.find_spec(f"{package}.json") else f"{package}.jsonlogger"


@needs("pythonjsonlogger")
@given(formatted=json_formatters(), batch=made.batches())
@cases(0.5)
def test_python_json_logger_writes_the_same(workers, formatted, batch):
    same(workers, Batch(batch, formatted))


# uvicorn --------------------------------------------------------------------------------------------------------------

_TEMPLATES = {
    "%": ("%(asctime)s %(levelprefix)s %(message)s", "%(levelprefix)-12s|%(name)s", "%(levelname)s %(message)s"),
    "{": ("{asctime} {levelprefix} {message}", "{levelprefix:>12}|{message!r}", "{levelname} {message}"),
    "$": ("$asctime $levelprefix $message", "${levelprefix} ${name}"),
}


@st.composite
def uvicorn_formatters(draw, name="DefaultFormatter", templates=_TEMPLATES):
    """Draw options of a formatter of uvicorn."""
    style = draw(st.sampled_from("%{$"))
    options = {
        "fmt": draw(st.sampled_from(templates[style])),
        "style": style,
        "use_colors": draw(st.sampled_from([True, False, None])),
        "datefmt": draw(st.sampled_from([None, "%Y"])),
    }
    return Formatted(of=("uvicorn.logging", name), options=options)


@needs("uvicorn")
@given(formatted=uvicorn_formatters(), batch=made.batches())
@cases(0.2)
def test_uvicorn_writes_the_same(workers, formatted, batch):
    same(workers, Batch(batch, formatted))


_ACCESS = {
    "%": ('%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s', "%(status_code)20s|%(message)s"),
    "{": ("{levelprefix} {client_addr} - {request_line} {status_code}", "{request_line:_>40}{client_addr}{user}"),
    "$": ("$levelprefix $client_addr $request_line $status_code",),
}
_ARGUMENTS = st.tuples(
    st.one_of(st.just("127.0.0.1:5000"), made.values),
    st.sampled_from(["GET", "PÖST", None]),
    st.one_of(st.just("/users?id=1"), made.values),
    st.sampled_from(["1.1", "2", 2, 1.0]),
    st.one_of(st.integers(90, 610), st.sampled_from([200, 404, "200", True, 2.5, "x", None, -1, 2**70])),
)


@needs("uvicorn")
@given(
    formatted=uvicorn_formatters("AccessFormatter", _ACCESS),
    batch=st.lists(st.tuples(_ARGUMENTS, made.extras), min_size=CALLS, max_size=CALLS),
    shape=st.sampled_from(['%s - "%s %s HTTP/%s" %d', "%s %s %s %s %s", "%s %s %s"]),
)
@cases(0.3)
def test_uvicorns_access_lines_are_the_same(workers, formatted, batch, shape):
    same(workers, Batch([(20, shape, arguments, {"extra": extra}) for arguments, extra in batch], formatted))


# colorlog -------------------------------------------------------------------------------------------------------------


@st.composite
def colorlog_formatters(draw):
    """Draw options of `ColoredFormatter`."""
    fmt = draw(
        st.sampled_from(
            [
                None,
                "%(asctime)s %(log_color)s%(levelname)-8s%(reset)s %(blue)s%(message)s",
                "%(message_log_color)s%(message)s%(reset)s",
                "%(log_color)10s%(bg_12)s%(red)s%(bold_red)s%(message)s",
            ]
        )
    )
    colours = st.dictionaries(
        st.sampled_from(["DEBUG", "INFO", "ERROR", "NOTSET", "Level 11"]),
        st.sampled_from(["red", "bold_red,bg_white", "", "no_colour"]),
    )
    optional = {
        "log_colors": colours,
        "secondary_log_colors": st.fixed_dictionaries({}, optional={"message": colours}),
        "reset": st.booleans(),
        "no_color": st.booleans(),
        "force_color": st.booleans(),
    }
    options = {"fmt": fmt}
    for name, values in optional.items():
        if draw(st.booleans()):
            options[name] = draw(values)
    return Formatted(of=("colorlog", "ColoredFormatter"), options=options)


@needs("colorlog")
@given(formatted=colorlog_formatters(), batch=made.batches())
@cases(0.3)
def test_colorlog_writes_the_same(workers, formatted, batch):
    same(workers, Batch(batch, formatted))


# Django ---------------------------------------------------------------------------------------------------------------


@needs("django")
@given(
    fmt=st.sampled_from(
        ["[{server_time}] {message}", "{asctime} {message:>20} {status_code}", "{server_time!s} {name}"]
    ),
    fields=st.fixed_dictionaries(
        {},
        optional={
            "server_time": st.one_of(st.just("25/Nov/2026 10:00:00"), made.values),
            "status_code": st.one_of(st.integers(0, 700), made.values),
        },
    ),
    batch=made.batches(),
    datefmt=st.sampled_from([None, "%Y"]),
)
@cases(0.3)
def test_django_writes_the_same(workers, fmt, fields, batch, datefmt):
    options = {"fmt": fmt, "style": "{", "datefmt": datefmt}
    calls = [(*call[:3], {**call[3], "extra": {**call[3].get("extra", {}), **fields}}) for call in batch]
    same(workers, Batch(calls, Formatted(of=("django.utils.log", "ServerFormatter"), options=options)))


# ecs-logging ----------------------------------------------------------------------------------------------------------


#: Names with and without dots. Some of them have the place of another field, or of a field that an option removes.
_ECS_NAMES = st.sampled_from(
    [
        *("service", "service.name", "service.id", "host", "log.a", "log", "log.level", "log.origin.file"),
        *("a.b.c", "a", "a.b", "ecs.version", "ecs", "@timestamp", "process.pid.x", "http.request.method", "http"),
        *("z.", ".", "http..x", "elasticapm_span_id", "elasticapm_labels.x", "error.message"),
        *("grüße.user", "http.request.body.é"),
        # Since 3.12 each record has this attribute, and stock logging refuses it in `extra`.
        *(["taskName"] if sys.version_info < (3, 12) else []),
    ]
)
_ecs_values = st.one_of(
    made.values,
    st.recursive(
        st.one_of(made.values, st.dictionaries(_ECS_NAMES, made.values, max_size=2)),
        lambda inner: st.one_of(st.dictionaries(_ECS_NAMES, inner, max_size=3), st.lists(inner, max_size=2)),
        max_leaves=4,
    ),
)
_ecs_extras = st.one_of(
    made.extras,
    st.dictionaries(_ECS_NAMES, _ecs_values, max_size=3),
    st.dictionaries(st.one_of(_ECS_NAMES, made.names), made.values, max_size=5),
)


@needs("ecs_logging")
@given(
    options=st.fixed_dictionaries(
        {},
        optional={
            "extra": st.dictionaries(
                st.sampled_from(
                    ["service.name", "service.id", "host", "log.a", "log", "message", "a.b.c", "ecs.version"]
                ),
                st.one_of(made.values, st.just({"a": 1})),
                max_size=3,
            ),
            "exclude_fields": st.lists(
                st.sampled_from(
                    [
                        *("process", "log.origin.file", "log.level", "log", "message", "ecs", "@timestamp"),
                        *("service.name", "http", "http.request", "a.b"),
                    ]
                ),
                max_size=3,
            ),
            "ensure_ascii": st.booleans(),
        },
    ),
    batch=made.batches(st.one_of(st.just({}), _ecs_extras)),
)
@cases(0.5)
def test_ecs_logging_writes_the_same(workers, options, batch):
    same(workers, Batch(batch, Formatted(of=("ecs_logging", "StdlibFormatter"), options=options)))


# Usual configurations -------------------------------------------------------------------------------------------------

_USUAL = {
    "pythonjsonlogger": (
        _home("pythonjsonlogger"),
        "JsonFormatter",
        {
            "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s %(lineno)d %(user)s",
            "rename_fields": {"levelname": "level", "asctime": "at"},
            "static_fields": {"host": "grüße"},
            "timestamp": True,
        },
    ),
    "uvicorn": ("uvicorn.logging", "DefaultFormatter", {"fmt": "%(levelprefix)s %(message)s", "use_colors": True}),
    "uvicorn access": ("uvicorn.logging", "AccessFormatter", {"fmt": _ACCESS["%"][0], "use_colors": True}),
    "colorlog": (
        "colorlog",
        "ColoredFormatter",
        {"fmt": "%(asctime)s %(log_color)s%(levelname)-8s%(reset)s %(blue)s%(message)s"},
    ),
    "ecs_logging": ("ecs_logging", "StdlibFormatter", {"extra": {"service.name": "grüße"}}),
    "django": ("django.utils.log", "ServerFormatter", {"fmt": "[{server_time}] {message}", "style": "{"}),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name.split()[0])) for name in _USUAL])
def test_usual_formatters_take_the_native_path(workers, name):
    module, formatter, options = _USUAL[name]
    extra = {"user": "ann", "list": [1, {"a": None}], "status_code": 404}
    calls = [(20, '%s - "%s %s HTTP/%s" %d', ("::1", "GET", f"/{code}", "1.1", code), None) for code in range(195, 600)]
    fields = [(level, "%s%s%s%s%s", ("a", 1, 2.5, None, 404), {"extra": extra}) for level in (10, 20, 30, 40, 50, 7)]
    if name == "ecs_logging":
        nested = {"http.request.method": "get", "http": {"version": "1.1", "response": {"tags": [{"b": 1, "a": ()}]}}}
        fields.append((20, {"a": 1}, (), {"extra": nested}))
    # Before python-json-logger 3.1, Python formats messages that are dicts if fields are renamed.
    if name == "pythonjsonlogger" and hasattr(getattr(importlib.import_module(module), formatter), "_get_rename"):
        fields.append((20, {"a": 1, "user": [extra], "levelname": None}, (), {"extra": {"a": 2}}))
    traceback = (40, "%s%s%s%s%s", ("a", 1, 2.5, None, 404), {"exc_info": ValueError("x"), "stack_info": True})
    own_exceptions = name == "ecs_logging" or (name == "colorlog" and sys.version_info >= (3, 13))
    calls += fields if own_exceptions else [*fields, traceback]
    answer = same(workers, Batch(calls, Formatted(of=(module, formatter), options=options)))

    assert answer.native in (None, len(calls))
