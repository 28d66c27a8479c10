"""Formatters that override some methods: the arguments and effects of the methods, and changes that end their use.

The results are fixed texts, so that the lines of both sides can be compared. The shown times are not.
"""

# ruff: noqa: PLE1205

import copy
import itertools
import os
import threading
import time
import types
from unittest import mock

from differential.staging import NATIVE, STOCK, UNSAID, expect, note, scenario, to_file

_METHODS = ("formatTime", "formatException", "formatStack", "formatMessage", "usesTime")
_FORMAT = "%(asctime)s %(levelname)-8s %(name)s:%(lineno)d %(message)s"
_STYLES = (
    ("%", _FORMAT),
    ("{", "{asctime:>20} {levelname} {message!s:.40}"),
    ("$", "$asctime ${levelname} $message"),
)


def _time(self, record, datefmt=None):
    return f"<{record.message} at {datefmt}>"


def _exception(self, exc_info):
    return f"{exc_info[0].__name__}: {exc_info[1]}"


def _stack(self, stack_info):
    return f"{len(stack_info.splitlines())} lines"


def _message(self, record):
    return f"{record.levelname}/{record.message}/{getattr(record, 'asctime', None)}"


def _uses(self):
    return True


_OWN = dict(zip(_METHODS, (_time, _exception, _stack, _message, _uses), strict=True))


def _class(logging, *names, base=None, **methods):
    """Return a class of formatters with the named methods of `_OWN` and the given methods."""
    return type("Own", (base or logging.Formatter,), {**{name: _OWN[name] for name in names}, **methods})


def _caught(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def _log_all(log):
    log.info("plain")
    log.info("arguments %s %d %r", "é", -5, [1])
    log.info("100%")
    log.warning("mapping %(a)d", {"a": 1})
    log.log(25, "no name")
    log.info(["a", "list"])
    log.error("exception", exc_info=_caught(ValueError("on purpose")))
    log.error("no exception", exc_info=True)
    log.info("false", exc_info=False, stack_info=False)
    log.info("stack", stack_info=True)
    log.info("both\n", exc_info=_caught(KeyError("k")), stack_info=True)
    log.info("extra", extra={"field": 1})


@scenario(UNSAID)
def every_set_of_methods(logging, folder):
    log, handler = to_file(logging, folder)
    for count in range(1, len(_METHODS) + 1):
        for names in itertools.combinations(_METHODS, count):
            for style, fmt in _STYLES:
                if "formatTime" not in names:
                    fmt = fmt.replace("asctime", "levelno").replace(":>20", "")
                if "usesTime" in names and "formatTime" not in names:
                    continue
                handler.setFormatter(_class(logging, *names)(fmt, style=style))
                _log_all(log)


@scenario(UNSAID)
def every_method_on_the_formatter_itself(logging, folder):
    log, handler = to_file(logging, folder)
    formatter = handler.formatter = logging.Formatter("%(message)s|%(levelname)s")
    _log_all(log)
    for name in _METHODS:
        setattr(formatter, name, lambda *given, name=name: f"{name} {len(given)}")
        _log_all(log)
    for name in _METHODS:
        delattr(formatter, name)
        if name == "formatTime":
            formatter._style._fmt = formatter._style._fmt.replace("asctime", "name")
        _log_all(log)


@scenario(STOCK)
def a_method_runs_under_the_lock_of_the_handler(logging, folder):
    log, handler = to_file(logging, folder)

    def time_with_lock(self, record, datefmt=None):
        if record.args:
            raise ValueError(record.args)
        taken = []
        other = threading.Thread(target=lambda: taken.append(handler.lock.acquire(blocking=False)))
        other.start()
        other.join()
        note((handler.lock._is_owned(), taken))
        return "time"

    handler.setFormatter(_class(logging, formatTime=time_with_lock)("%(asctime)s %(message)s"))
    log.info("once")
    log.info("raises %d", 1)
    note(handler.lock._is_owned())
    with handler.lock:
        log.info("twice")
        note(handler.lock._is_owned())
    note(handler.lock._is_owned())
    held, go_on = threading.Event(), threading.Event()

    def hold():
        with handler.lock:
            held.set()
            go_on.wait(10)
            note("released")

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    threading.Timer(0.05, go_on.set).start()
    log.info("after the other thread")
    holder.join()
    note(handler.lock._is_owned())


@scenario(STOCK)
def methods_that_call_the_stock_ones(logging, folder):
    log, handler = to_file(logging, folder)

    class Own(logging.Formatter):
        def formatTime(self, record, datefmt=None):
            return f"[{super().formatTime(record, 'fixed')}]"

        def formatException(self, exc_info):
            return super().formatException(exc_info).replace("\n", "|")

        def formatStack(self, stack_info):
            return logging.Formatter.formatStack(self, stack_info).upper()

        def formatMessage(self, record):
            return f"({super().formatMessage(record)})"

        def usesTime(self):
            return super().usesTime()

    class Whole(Own):
        def format(self, record):
            return f"{{{super().format(record)}}}"

    for cls in (Own, Whole):
        for style, fmt in _STYLES:
            handler.setFormatter(cls(fmt, style=style))
            _log_all(log)


@scenario(STOCK)
def a_method_sees_the_attributes_of_the_record(logging, folder):
    log, handler = to_file(logging, folder)
    second = logging.FileHandler(folder / "second.log")

    def seen(step):
        def method(self, *given):
            record = given[0] if hasattr(given[0], "levelname") else None
            if record is not None:
                names = [name for name in vars(record) if name not in ("taskName", "args")]
                note(f"{step} {names} {record.message!r} {getattr(record, 'asctime', None)!r} {record.exc_text!r}")
            return f"{step} text"

        return method

    methods = {name: seen(name) for name in _METHODS[:4]}
    handler.setFormatter(type("Own", (logging.Formatter,), methods)(_FORMAT))
    second.setFormatter(logging.Formatter("%(message)s %(asctime)s", datefmt="fixed"))
    _log_all(log)
    log.addHandler(second)
    _log_all(log)
    log.addFilter(lambda record: setattr(record, "msg", f"changed {record.levelname}") or True)
    _log_all(log)


@scenario(STOCK)
def handlers_share_what_the_first_formatter_made(logging, folder):
    log, first = to_file(logging, folder)
    first.setFormatter(_class(logging, "formatTime", "formatException")(_FORMAT))
    for number, formatter in enumerate(
        (
            logging.Formatter("%(message)s"),
            _class(logging, "formatException")("second %(message)s"),
            _class(logging, "formatMessage")("third %(message)s"),
            logging.Formatter("%(asctime)s %(message)s", datefmt="fixed"),
        )
    ):
        handler = logging.FileHandler(folder / f"{number}.log")
        handler.setFormatter(formatter)
        handler.addFilter(lambda record, number=number: note((number, record.exc_text, record.message)) or True)
        log.addHandler(handler)
    _log_all(log)


class _Text(str):
    __slots__ = ()


class _Shown:
    def __str__(self):
        return "shown"

    def __repr__(self):
        return "represented"


@scenario(UNSAID)
def results_that_are_no_text(logging, folder):
    log, handler = to_file(logging, folder)
    for name in _METHODS:
        for value in (None, 5, "", "\n", "ends\n", "é\ud800", _Text("subclass"), _Shown(), [], b"bytes"):
            methods = {name: lambda self, *given, value=value: copy.copy(value)}
            if name != "formatTime":
                methods["formatTime"] = lambda self, *given: "time"
            handler.setFormatter(type("Own", (logging.Formatter,), methods)("%(levelname)s %(message)s"))
            _log_all(log)
            handler.setFormatter(type("Own", (logging.Formatter,), methods)("%(asctime)5s %(message)s"))
            _log_all(log)
            methods = {name: methods[name]}
            handler.setFormatter(type("Own", (logging.Formatter,), methods)("%(asctime)5s %(message)s", "fixed"))
            _log_all(log)


@scenario(UNSAID)
def methods_that_raise(logging, folder):
    log, handler = to_file(logging, folder)
    for name in _METHODS:
        for error in (ValueError("on purpose"), KeyError("asctime"), KeyboardInterrupt(), SystemExit(3)):

            def method(self, *given, error=error):
                raise type(error)(*error.args)

            for methods in ({"formatTime": _time, name: method}, {name: method}):
                handler.setFormatter(type("Own", (logging.Formatter,), methods)(_FORMAT, "fixed"))
                for log_one in (
                    lambda: log.info("plain %d", 1),
                    lambda: log.info("exception", exc_info=ValueError("v")),
                    lambda: log.info("stack", stack_info=True),
                ):
                    try:
                        log_one()
                    except BaseException as raised:
                        note(f"{name} {raised!r}")


@scenario(STOCK)
def messages_that_cannot_be_made(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(_class(logging, "formatTime")("%(asctime)s %(message)s"))
    log.info("%d", "no number")
    log.info("%s")
    log.info("%s", 1, 2)
    log.info("%(missing)s", {"a": 1})
    handler.setFormatter(_class(logging, "formatTime")("%(asctime)s %(missing)s"))
    log.info("a field is missing")
    log.info("the field is there", extra={"missing": 1})
    handler.setFormatter(_class(logging, "formatTime")("%(asctime)s %(levelname)d"))
    log.info("a directive for a number")


@scenario(STOCK)
def a_message_method_that_calls_the_stock_one(logging, folder):
    log, handler = to_file(logging, folder)

    class Own(logging.Formatter):
        def formatMessage(self, record):
            return f"({super().formatMessage(record)}|{record.message}|{getattr(record, 'asctime', None)})"

    fields = [True, 10**30, -7, 1.5, None, "é", "text\n", _Text("subclass"), _Shown(), b"bytes", (1, 2), {"a": 1}]
    for fmt in (
        "%(asctime)s %(levelname)-8s|%(name)30s|%(lineno)6d|%(lineno)-6s|%(levelno)1d|%%|%(message)s",
        "%(field)s|%(field)-9s|%(field)9s|%(field)r",
        "%(field)s|%(field)-9s|%(field)12s|%(message)s",
        "%(field)d %(message)s",
        "%(levelno)03d %(message).5s %(levelname)-300s",
        "é %(é)s %(asctime)-9s %(message)s",
        "%(message)s%",
        "%(message)",
        "no placeholder",
    ):
        formatter = Own("%(message)s", "fixed")
        formatter._style._fmt = formatter._fmt = fmt
        handler.setFormatter(formatter)
        _log_all(log)
        for field in fields:
            log.info("a field", extra={"field": field, "é": field})


def _with_methods_that(act, change):
    """Yield methods for formatters; each is called for each record and calls `change` first."""

    def formatTime(self, record, datefmt=None):
        change(act, self, record)
        return "time"

    def formatMessage(self, record):
        change(act, self, record)
        return f"{record.levelname} {record.name} {getattr(record, 'message', None)}"

    yield {"formatTime": formatTime}
    yield {"formatMessage": formatMessage}


@scenario(STOCK)
def methods_that_change_the_record(logging, folder):
    log, handler = to_file(logging, folder)

    def change(act):
        for methods in _with_methods_that(act, lambda act, formatter, record: act(record)):
            handler.setFormatter(_class(logging, **methods)(_FORMAT, "fixed"))
            log.info("message %d", 1)
            log.info("exception", exc_info=ValueError("v"))

    change(lambda record: setattr(record, "message", "another message"))
    change(lambda record: setattr(record, "message", 5))
    change(lambda record: setattr(record, "levelname", "CHANGED"))
    change(lambda record: setattr(record, "name", "changed.name"))
    change(lambda record: setattr(record, "lineno", 7))
    change(lambda record: setattr(record, "exc_text", "another text"))
    change(lambda record: setattr(record, "exc_info", None))
    change(lambda record: setattr(record, "stack_info", "a stack"))
    change(lambda record: setattr(record, "asctime", "another time"))
    change(lambda record: setattr(record, "__dict__", dict(vars(record), name="another dict")))
    change(lambda record: setattr(record, "__class__", type("Other", (logging.LogRecord,), {})))
    change(lambda record: vars(record).pop("message", None))
    change(lambda record: vars(record).pop("levelname", None))


@scenario(UNSAID)
def methods_that_change_the_configuration(logging, folder):
    log, handler = to_file(logging, folder)
    other = logging.Formatter("other %(message)s")

    def change(act):
        for methods in _with_methods_that(act, lambda act, formatter, record: act(formatter)):
            handler.setFormatter(_class(logging, **methods)(_FORMAT, "fixed"))
            log.info("changed by a method")
            log.info("after that")
            log.handlers[:] = [handler]
            handler.setLevel(0)
            handler.terminator = "\n"
            nested.clear()

    nested = []
    change(lambda own: handler.setFormatter(other))
    change(lambda own: setattr(own, "formatMessage", lambda record: "own message"))
    change(lambda own: setattr(own._style, "_fmt", "style %(message)s"))
    change(lambda own: setattr(own, "_style", logging.StrFormatStyle("brace {message}")))
    change(lambda own: setattr(own, "formatTime", lambda record, datefmt: "of the instance"))
    change(lambda own: setattr(handler, "terminator", "|\n"))
    change(lambda own: handler.setLevel(50))
    change(lambda own: log.removeHandler(handler))
    change(lambda own: handler.setStream(handler._open()).close())
    change(lambda own: handler.close())
    change(lambda own: None if nested else log.info("nested %s", nested.append(1)))


@scenario(UNSAID)
def classes_that_change(logging, folder):
    log, handler = to_file(logging, folder)

    class Own(logging.Formatter):
        pass

    handler.setFormatter(Own("%(levelname)s %(message)s"))
    for name in _METHODS:
        with expect(NATIVE):
            log.info("before %s", name)
        setattr(Own, name, lambda self, *given, name=name: f"{name} {len(given)}")
        _log_all(log)
        delattr(Own, name)
        with expect(NATIVE):
            log.info("after %s", name)
    for name in _METHODS:
        stock = getattr(logging.Formatter, name)
        setattr(logging.Formatter, name, lambda self, *given, name=name: f"patched {name} {len(given)}")
        _log_all(log)
        setattr(logging.Formatter, name, stock)
        with expect(NATIVE):
            log.info("restored %s", name)
    getMessage = logging.LogRecord.getMessage
    handler.setFormatter(_class(logging, "formatTime")("%(asctime)s %(message)s"))
    logging.LogRecord.getMessage = lambda self: f"patched {self.msg}"
    _log_all(log)
    logging.LogRecord.getMessage = getMessage
    _log_all(log)


@scenario(UNSAID)
def formatters_of_unusual_classes(logging, folder):
    log, handler = to_file(logging, folder)

    class Falsy(logging.Formatter):
        formatTime = _time

        def __bool__(self):
            return False

    class Answering(logging.Formatter):
        def __getattribute__(self, name):
            return "time" if name == "datefmt" else super().__getattribute__(name)

    class Delegating:
        def __init__(self, formatter):
            self.formatter = formatter

        def __getattr__(self, name):
            return getattr(self.formatter, name)

    class Described(logging.Formatter):
        formatTime = staticmethod(lambda record, datefmt: f"static {datefmt}")
        formatException = classmethod(lambda cls, exc_info: f"{cls.__name__} {exc_info[1]}")
        formatStack = property(lambda self: len)

    class Style(logging.PercentStyle):
        def format(self, record):
            return f"style {super().format(record)}"

    styled = _class(logging, "formatTime")(_FORMAT)
    styled._style = Style(_FORMAT)
    defaults = _class(logging, "formatTime")("%(asctime)s %(user)s %(message)s", defaults={"user": "nobody"})
    for formatter in (
        Falsy(_FORMAT),
        Answering("%(message)s %(asctime)s", "fixed"),
        Delegating(_class(logging, "formatTime")(_FORMAT)),
        Described("%(asctime)s %(message)s"),
        styled,
        defaults,
        _class(logging, "formatTime")(),
        None,
    ):
        handler.setFormatter(formatter)
        _log_all(log)
    handler.setFormatter(None)
    logging._defaultFormatter, default = _class(logging, "formatTime")(_FORMAT), logging._defaultFormatter
    _log_all(log)
    logging._defaultFormatter = default
    _log_all(log)


@scenario(UNSAID)
def records_of_other_classes(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(_class(logging, "formatTime")("%(asctime)s %(message)s"))

    class Record(logging.LogRecord):
        def getMessage(self):
            return f"own {super().getMessage()}"

    logging.setLogRecordFactory(Record)
    _log_all(log)
    logging.setLogRecordFactory(logging.LogRecord)
    log.info("shadowed", extra={"getMessage": lambda: "of the instance", "format": 1})
    _log_all(log)


@scenario(NATIVE)
def methods_that_no_record_needs(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(_class(logging, "formatTime", "formatException", "formatStack")("%(levelname)s %(message)s"))
    log.info("neither time")
    log.info("nor exception", exc_info=None)
    log.info("nor stack", stack_info=False, exc_info=False)
    second = logging.FileHandler(folder / "second.log")
    second.setFormatter(_class(logging, "formatException")("second %(message)s"))
    log.addHandler(second)
    log.info("two handlers %d", 2, extra={"a": 1})
    with expect(STOCK):
        log.error("the exception", exc_info=ValueError("v"))
        log.info("the stack", stack_info=True)


@scenario(STOCK)
def own_times_in_several_threads(logging, folder):
    log, handler = to_file(logging, folder)
    inside = []

    class Alone(logging.Formatter):
        def formatTime(self, record, datefmt=None):
            inside.append(None)
            seen = len(inside)
            inside.pop()
            return f"{seen} inside"

    def log_some(name):
        for number in range(50):
            log.info("%s %d", name, number)

    handler.setFormatter(Alone("%(asctime)s %(message)s"))
    threads = [threading.Thread(target=log_some, args=(f"thread {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.close()
    path = folder / "app.log"
    path.write_text("".join(sorted(path.read_text().splitlines(keepends=True))))


@scenario(UNSAID)
def own_times_after_a_fork(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(_class(logging, "formatTime", "formatException")("%(asctime)s %(message)s"))
    _log_all(log)
    handler.flush()
    child = os.fork()
    if child == 0:
        _log_all(log)
        logging.shutdown()
        os._exit(0)
    note(os.waitpid(child, 0)[1])
    _log_all(log)


_MOMENTS = (0.0, 1.5, 1e9, 1_234_567_890.123456, 1_234_567_890.999999, -1.5, 5e9, 1_234_567_890, "text")


@scenario(UNSAID)
def the_stock_methods_called_by_a_program(logging, folder):
    class Own(logging.Formatter):
        def format(self, record):
            texts = [super().format(record), self.formatTime(record), self.formatTime(record, "%H %Z")]
            texts += [
                self.formatTime(record, datefmt="%Y"),
                self.formatTime(record=record),
                self.formatTime(record, ""),
            ]
            return "|".join(texts)

    log, handler = to_file(logging, folder)
    formatters = [Own(fmt, datefmt, style=style) for style, fmt in _STYLES for datefmt in (None, "%d", "%d%%", "")]
    own = Own(_FORMAT)
    own.converter = time.gmtime
    own.default_msec_format = "%s.%05.1f"
    other = Own(_FORMAT)
    other.converter = lambda seconds: time.gmtime(seconds + 3600)
    other.default_time_format = "%M"
    without = Own("%(asctime)s %(message)s")
    without.default_msec_format = None
    for formatter in (*formatters, own, other, without):
        handler.setFormatter(formatter)
        for created in _MOMENTS:
            msecs = created % 1 * 1000 if isinstance(created, float) else 0
            record = logging.makeLogRecord(
                {"name": "app", "msg": "made %s", "args": (created,), "created": created, "msecs": msecs, "levelno": 20}
            )
            log.handle(record)
            note(getattr(record, "asctime", None))
            try:
                note((formatter.formatTime(record), logging.Formatter.format(formatter, record)))
            except Exception as raised:
                note(repr(raised))


@scenario(UNSAID)
def what_the_stock_methods_use_changes(logging, folder):
    log, handler = to_file(logging, folder)

    class Own(logging.Formatter):
        def format(self, record):
            record.created, record.msecs = 1_234_567_890.25, 250.0
            return f"{super().format(record)} {self.formatTime(record, '%H:%M %Z')}"

    handler.setFormatter(Own(_FORMAT))
    log.info("before")
    zone = os.environ.get("TZ")
    for name in ("Asia/Tokyo", "America/New_York", "UTC"):
        os.environ["TZ"] = name
        time.tzset()
        log.info("in %s", name)
    if zone is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = zone
    time.tzset()
    log.info("again")
    for owner, name in ((time, "strftime"), (logging, "time"), (logging.Formatter, "converter")):
        replaced = mock.Mock(**{"strftime.return_value": "mocked", "return_value": "patched"})
        replaced = staticmethod(time.gmtime) if name == "converter" else replaced
        if owner is logging:
            replaced = types.SimpleNamespace(**{**vars(time), "strftime": lambda *given: "of another module"})
        with mock.patch.object(owner, name, replaced):
            log.info("patched %s", name)
        log.info("restored %s", name)
    for name in ("format", "formatTime", "usesTime", "formatMessage"):
        with mock.patch.object(logging.Formatter, name, lambda self, *given: f"patched {len(given)}"):
            log.info("patched %s", name)
        log.info("restored %s", name)
    with mock.patch.object(logging.PercentStyle, "_format", lambda self, record: "patched style"):
        log.info("patched style")
    log.info("arguments %s %s", 1, [2])
    log.info("wrong %d", "text")
    log.error("exception", exc_info=ValueError("v"))
    log.info("stack", stack_info=True)
