"""`logspool.structlog` writes the bytes that structlog's own renderers, processors and loggers write."""

import datetime
import enum
import io
import json
import logging
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logspool

structlog = pytest.importorskip("structlog")

import logspool.structlog as ours  # noqa: E402

pytestmark = pytest.mark.real

EXAMPLES = int(os.environ.get("LOGSPOOL_EXAMPLES", "10000")) // 5


class Colour(enum.IntEnum):
    """An enum whose JSON text is a number and whose repr is a name."""

    RED = 3


class Text(str):
    """A text with a repr of its own."""

    def __repr__(self):
        return "<text>"


class Shown:
    """An object that structlog renders by its method."""

    def __structlog__(self):
        return {"shown": 1}

    def __repr__(self):
        return "<shown>"


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(["two words", "a=b", "tab\t", 'quote"', "both\"'", "é\u2028\U0001f600", "\ud800", "\x7f\x00"]),
    st.sampled_from([Colour.RED, Text("t"), Shown(), b"bytes", datetime.date(2026, 1, 2), 10**30, -(2**63), 2**63]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.none()), inner, max_size=3),
    ),
    max_leaves=6,
)
keys = st.one_of(
    st.sampled_from(["event", "level", "timestamp", "logger", "logger_name", "stack", "exception", "exc_info", "é"]),
    st.text(max_size=8),
)
events = st.dictionaries(keys, values, max_size=7)

RENDERERS = {
    "json": (ours.JSONRenderer(), structlog.processors.JSONRenderer()),
    "json_default": (ours.JSONRenderer(default=str), structlog.processors.JSONRenderer(default=str)),
}
for name, options in {
    "key_values": {},
    "sorted": {"sort_keys": True},
    "ordered": {"key_order": ["timestamp", "event", "missing"]},
    "ordered_and_sorted": {"key_order": ["event", "event", "é"], "sort_keys": True, "drop_missing": True},
    "plain_texts": {"repr_native_str": False, "key_order": ("level",), "drop_missing": True},
}.items():
    RENDERERS[name] = (ours.KeyValueRenderer(**options), structlog.processors.KeyValueRenderer(**options))
for name, options in {
    "console": {},
    "console_narrow": {
        "pad_event_to"
        if "pad_event_to" in structlog.dev.ConsoleRenderer.__init__.__code__.co_varnames
        else "pad_event": 5
    },
    "console_unsorted": {"sort_keys": False, "repr_native_str": True},
    "console_keys": {"event_key": "logger", "timestamp_key": "é"},
    "console_same_keys": {"event_key": "level", "timestamp_key": "event"},
    "console_unpadded": {"pad_level": False},
    "console_styles": {"level_styles": {"info": "!", "a longer level": ""}},
}.items():
    RENDERERS[name] = (ours.ConsoleRenderer(**options), structlog.dev.ConsoleRenderer(colors=False, **options))


def _outcome(render, event):
    try:
        return render(None, "info", dict(event))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_is_native_unless_it_has_styles(name):
    native = isinstance(getattr(RENDERERS[name][0], "__self__", None), logspool._native.EventRenderer)

    assert native == (name != "console_styles")


@pytest.mark.parametrize("name", RENDERERS)
@given(event=events)
@settings(max_examples=EXAMPLES // len(RENDERERS), deadline=None)
def test_an_event_has_the_text_of_structlogs_renderer(name, event):
    native, own = RENDERERS[name]

    assert _outcome(native, event) == _outcome(own, event)


def test_nested_and_circular_values_have_the_text_of_structlog():
    deep = circular = []
    for _ in range(60):
        deep = [deep]
    circular.append(circular)
    for value in (deep, {"a": {"b": ({"c": []},)}}, circular):
        for name in ("json", "key_values", "console"):
            native, own = RENDERERS[name]
            assert _outcome(native, {"value": value}) == _outcome(own, {"value": value})


def test_an_exception_has_the_text_of_structlog():
    native, own = RENDERERS["console"]
    events = ({"event": "failed", "exc_info": True}, {"event": "failed", "exc_info": True})
    try:
        raise ValueError("on purpose")
    except ValueError:
        # rich shows the variables of this frame, so none may change between the two calls.
        texts = tuple(map(_outcome, (native, own), events))

    assert texts[0] == texts[1]
    assert "ValueError: on purpose" in texts[0]


@pytest.mark.parametrize(
    ("make", "mend"),
    [
        (lambda: ours.JSONRenderer(json.loads), "structlog.processors.JSONRenderer"),
        (lambda: ours.JSONRenderer(sort_keys=True), "for sort_keys use structlog.processors.JSONRenderer"),
        (lambda: ours.ConsoleRenderer(colors=True), "for colors use structlog.dev.ConsoleRenderer"),
        (lambda: ours.ConsoleRenderer(columns=[]), "for columns use structlog.dev.ConsoleRenderer"),
        (lambda: ours.TimeStamper(fmt="%Y"), "use structlog.processors.TimeStamper"),
        (lambda: ours.TimeStamper(utc=False), "use structlog.processors.TimeStamper"),
        (lambda: ours.LoggerFactory(7), "output must be a path or a handler"),
        (lambda: ours.LoggerFactory(logging.NullHandler(), mode="a"), "give mode to the handler"),
        (lambda: ours.LoggerFactory(_handler(formatter=logging.Formatter())), r"handler.setFormatter\(None\)"),
        (lambda: ours.LoggerFactory(_handler(level=10)), "make_filtering_bound_logger"),
    ],
)
def test_an_invalid_argument_raises_an_error_with_a_fix(make, mend):
    with pytest.raises((TypeError, ValueError), match=mend):
        make()


def _handler(formatter=None, level=0):
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(formatter)
    handler.setLevel(level)
    return handler


def test_the_stamp_is_the_time_of_the_call_as_structlog_writes_it():
    before = datetime.datetime.now(tz=datetime.timezone.utc)
    event = ours.TimeStamper(key="at")(None, "info", {"event": "e"})
    own = structlog.processors.TimeStamper(fmt="iso", key="at")(None, "info", {"event": "e"})

    assert list(event) == list(own)
    assert event["at"].endswith("Z")
    assert own["at"].endswith("Z")
    times = [datetime.datetime.fromisoformat(each["at"].replace("Z", "+00:00")) for each in (event, own)]
    assert before <= times[0] <= times[1]


def test_a_replaced_clock_is_used(monkeypatch):
    stamp = ours.TimeStamper()

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 2, tzinfo=tz)

    monkeypatch.setattr(datetime, "datetime", Clock)

    assert stamp(None, "info", {}) == {"timestamp": "2026-01-02T00:00:00Z"}
    assert ours.TimeStamper()(None, "info", {}) == {"timestamp": "2026-01-02T00:00:00Z"}


def test_a_clock_with_replaced_code_is_used():
    time_machine = pytest.importorskip("time_machine")
    stamp = ours.TimeStamper()

    with time_machine.travel(0, tick=False):
        there = stamp(None, "info", {}), ours.TimeStamper()(None, "info", {})
    back = stamp(None, "info", {})

    assert there == ({"timestamp": "1970-01-01T00:00:00Z"},) * 2
    assert not back["timestamp"].startswith("1970")


class Calls:
    """A logger that keeps the calls of its methods."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))


def _drop(logger, name, event):
    raise structlog.DropEvent


def _fail(logger, name, event):
    raise KeyError(name)


ENDS = {
    "text": lambda logger, name, event: f"{name} {event}",
    "bytes": lambda logger, name, event: b"bytes",
    "dict": lambda logger, name, event: event,
    "both": lambda logger, name, event: (("a", name), {"event": event}),
    "three": lambda logger, name, event: (1, 2, 3),
    "number": lambda logger, name, event: 7,
    "drop": _drop,
    "fail": _fail,
    "adopt": structlog.stdlib.render_to_log_kwargs,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_call_reaches_the_logger_as_with_structlogs_own_class(end, kind):
    outcomes = []
    for module in (structlog, ours):
        logger = Calls()
        seen = []
        see = lambda logger, name, event, seen=seen: seen.append((name, dict(event))) or event  # noqa: E731
        log = structlog.wrap_logger(
            logger, processors=kind([see, ENDS[end]]), wrapper_class=module.make_filtering_bound_logger(20)
        ).bind(a=1)
        results = []
        for call in (
            lambda log=log: log.info("event %d", 7, b=2),
            lambda log=log: log.debug("too low"),
            lambda log=log: log.bind(a=3).error("bound", a=4),
            lambda log=log: log.warning(None, c=5),
            lambda log=log: log.log(40, "by number", d=6),
            lambda log=log: log._proxy_to_logger("info"),
            lambda log=log: log._proxy_to_logger("info", "event", method_name="twice"),
            lambda log=log: log._proxy_to_logger(method_name="info", event="by name"),
            lambda log=log: log.exception("failed"),
        ):
            try:
                results.append(call())
            except Exception as error:
                results.append((type(error), str(error).replace("BoundLoggerBase.", "")))
        outcomes.append((results, logger.calls, seen))

    assert outcomes[1] == outcomes[0]


def test_context_in_a_custom_class_is_kept():
    class Context(dict):
        pass

    logger = Calls()
    log = structlog.wrap_logger(
        logger,
        processors=[lambda logger, name, event: type(event).__name__],
        wrapper_class=ours.make_filtering_bound_logger(20),
        context_class=Context,
    )
    log.info("event")

    assert logger.calls == [("info", (dict.copy.__name__ and type(Context().copy()).__name__,), {})]


def _configured(processors, factory, wrapper):
    return structlog.wrap_logger(factory(), processors=processors, wrapper_class=wrapper)


@pytest.mark.parametrize("installed", [False, True])
def test_the_file_has_the_same_bytes_as_with_structlog_alone(tmp_path, installed):
    if installed:
        logspool.install()
    try:
        with (tmp_path / "own.log").open("w", encoding="utf-8") as file:
            own = _configured(
                [structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
                structlog.WriteLoggerFactory(file),
                structlog.make_filtering_bound_logger(10),
            )
            factory = ours.LoggerFactory(tmp_path / "native.log")
            native = _configured(
                [structlog.processors.add_log_level, ours.JSONRenderer()], factory, ours.make_filtering_bound_logger(10)
            )
            for log in (own, native):
                for method in ("debug", "info", "warn", "warning", "error", "critical", "fatal", "exception", "msg"):
                    getattr(log, method)("é %s", method, number=1, shown=Shown(), exc_info=None)
            factory.handler.close()
        assert (tmp_path / "native.log").read_bytes() == (tmp_path / "own.log").read_bytes()
        assert (tmp_path / "own.log").stat().st_size > 0
    finally:
        logspool.uninstall()


def test_lines_of_bytes_and_of_other_renderers_reach_the_file(tmp_path):
    factory = ours.LoggerFactory(tmp_path / "app.log")
    log = factory("a name is ignored")
    log.info(b"bytes")
    log.msg("text é")
    log.log("")
    with pytest.raises(TypeError, match="must be a renderer such as"):
        log.info({"event": 1})
    factory.handler.close()

    assert (tmp_path / "app.log").read_text(encoding="utf-8") == "bytes\ntext é\n\n"
    assert factory() is log
    assert log.handler is factory.handler


def test_a_handler_that_is_not_native_gets_every_line():
    stream = io.StringIO()
    log = ours.LoggerFactory(logging.StreamHandler(stream))()
    log.error("one")
    log.error(b"two")

    assert stream.getvalue() == "one\ntwo\n"


def test_a_forked_child_and_its_parent_write_every_line(run_program):
    program = (
        "import os, logspool.structlog as ours\n"
        "log = ours.LoggerFactory('app.log')()\n"
        "log.info('before')\n"
        "child = os.fork()\n"
        "for number in range(100):\n    log.info(f'{child == 0} {number}')\n"
        "if child:\n    os.waitpid(child, 0)\n"
    )
    outcome, folder = run_program(program, side="installed")

    lines = (folder / "app.log").read_text().splitlines()
    expected = ["before"] + [f"{side} {number}" for side in (True, False) for number in range(100)]
    assert (outcome.expect_success().status, sorted(lines)) == (0, sorted(expected))
