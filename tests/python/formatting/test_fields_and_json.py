"""Fields of `extra` and `bind`, and JSON lines: native code writes the same text as the formatter in Python."""

import json

import pytest

pytestmark = pytest.mark.real

# Each call goes to a logger on a file, which is native, and to one on a StringIO, where the formatter itself runs.
_PRELUDE = """\
import decimal, enum, io, json, logging, sys, uuid
import logspool

FORMATTERS = {
    "default": lambda: logspool.JSONFormatter({
        "level": "level", "message": "message", "file": "filename", "line": "lineno", "function": "funcName",
        "exception": "exception", "stack": "stack"}),
    "named": lambda: logspool.JSONFormatter({"msg": "message", "who": "user", "exc": "exception"}),
    "named alone": lambda: logspool.JSONFormatter({"msg": "message", "who": "user"}, extras=False),
    "text": lambda: logging.Formatter("%(message)s [%(user)s] %(request)-4s"),
    "text and JSON": lambda: logging.Formatter("%(message)s [%(user)10s]"),
}

def pair(kind):
    native, twin = logging.getLogger(f"native.{kind}"), logging.getLogger(f"twin.{kind}")
    text = io.StringIO()
    handlers = [(native, logging.FileHandler(f"{kind}.log")), (twin, logging.StreamHandler(text))]
    for log, handler in handlers:
        handler.setFormatter(FORMATTERS[kind]())
        log.addHandler(handler)
        log.setLevel(1)
        log.propagate = False
    if kind == "text and JSON":
        beside = logging.FileHandler("beside.log")
        beside.setFormatter(logspool.JSONFormatter({"m": "message"}))
        native.addHandler(beside)
    return native, twin, text

class Colour(enum.Enum):
    RED = 1

class Text(str):
    pass

class Shown:
    def __str__(self):
        return 'shown "as" text'

def raised(error, cause=None):
    try:
        raise error from cause
    except Exception as caught:
        return caught

VALUES = ["ann", "grüße \\"世界\\"\\n", "", None, True, 7, -2**63, 2**63, 2**70, 1.5, float("nan"), float("-inf"), b"b",
          (1, "a"), [1], {"k": 1}, {1}, Colour.RED, Text("t"), Shown(),
          decimal.Decimal("1.50"), uuid.UUID(int=7), object]

logspool.install()
"""

_CALLS = """
def log_all(kind):
    native, twin, text = pair(kind)
    for log in (native, twin):
        for value in VALUES:
            log.info("message %s", "x", extra={"user": value, "request": 1, "zz": value})
            log.log(25, "message", extra={"request": value, "user": "u", "message_id": value})
        log.warning("stack", stack_info=True, extra={"user": 1, "request": 2})
        log.info("level", stacklevel=2, extra={"user": 1, "request": 2})
        for error in (raised(ValueError("v\\n")), raised(KeyError(1), raised(OSError(2, "two"))), ValueError()):
            log.error("", exc_info=error, extra={"user": 1, "request": 2})
            log.error("two\\nlines\\n", exc_info=error, stack_info=True, extra={"user": 1, "request": 2})
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("exception", extra={"request": 1, "user": Shown()})
        log.error("nothing", exc_info=True, extra={"request": 1, "user": None})
        logging.LoggerAdapter(log, {"user": "adapted", "request": Shown()}).info("adapter")
        with logspool.bind(user="bound", more=1):
            log.info("bound", extra={"request": 7})
            log.info("extra wins", extra={"request": 8, "user": "extra"})
            with logspool.bind(request=2**64):
                log.info("only bound")
                log.error("with an exception", exc_info=ValueError("v"))
    logspool.flush()
    counts = logspool.stats().loggers[native.name]
    return open(f"{kind}.log").read(), text.getvalue(), counts.native, counts.stock

print(json.dumps(log_all(sys.argv[1])))
"""


@pytest.mark.parametrize("kind", ["default", "named", "named alone", "text", "text and JSON"])
def test_lines_of_the_native_path_equal_those_of_the_formatter(run_program, kind):
    outcome, _ = run_program(_PRELUDE + _CALLS, kind)
    native, twin, native_calls, stock_calls = json.loads(outcome.expect_success().out)

    assert twin.splitlines() == native.splitlines()
    assert 0 == stock_calls
    assert native_calls > 50


def test_values_are_written_as_the_json_module_writes_them(run_program):
    body = """
PLAIN = (str, int, float, bool, type(None))
made = logspool.JSONFormatter({"m": "message"})
for value in [*VALUES, "".join(map(chr, range(0x100))), "\\u2028", "half \\udc80", int("9" * 4000)]:
    known = value if type(value) in PLAIN and value not in (float("inf"), float("-inf")) and value == value else None
    shown = known if type(value) in PLAIN else str(value)
    record = logging.makeLogRecord({"msg": "m", "a \\"key\\"": value})
    expected = json.dumps({"m": "m", "a \\"key\\"": shown}, ensure_ascii=False, separators=(",", ":"))
    assert expected == made.format(record), (expected, made.format(record))
"""
    run_program(_PRELUDE + body)[0].expect_success()


def test_each_field_is_in_the_json_once_and_fields_of_the_call_come_first(run_program):
    body = """
native, twin, text = pair("default")
for log in (native, twin):
    with logspool.bind(one=1, two=2, three=3):
        log.info("m", extra={"four": 4, "two": "from extra"})
logspool.flush()
print(json.dumps([open("default.log").read(), text.getvalue()]))
"""
    outcome, _ = run_program(_PRELUDE + body)
    native, twin = json.loads(outcome.expect_success().out)

    assert twin == native
    assert native.endswith('"four":4,"two":"from extra","one":1,"three":3}\n')


def test_an_attribute_that_only_some_records_have_is_not_an_extra_field(run_program):
    body = """
native, twin, text = pair("default")
for log in (native, twin):
    for name in ("taskName", "message", "lineno"):
        try:
            log.info("m", extra={name: "given"})
        except KeyError as error:
            log.info("%s", error)
logspool.flush()
print(json.dumps([open("default.log").read(), text.getvalue()]))
"""
    outcome, _ = run_program(_PRELUDE + body)
    native, twin = json.loads(outcome.expect_success().out)

    assert twin.splitlines() == native.splitlines()
