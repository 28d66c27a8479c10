"""Calls with `exc_info`, `extra`, `stack_info` and `stacklevel`, alone and together, through several handlers."""

import asyncio
import enum
import gc
import sys
import traceback
import weakref
from unittest import mock

from differential.staging import NATIVE, STOCK, UNSAID, expect, note, scenario, to_file

LINE = "%(levelname)s %(filename)s:%(lineno)d %(funcName)s %(message)s"


def _several(logging, folder, name="app"):
    """Return a logger with three handlers and two formatters; the last handler takes errors only."""
    log, _ = to_file(logging, folder, name=name, fmt=LINE)
    for file, fmt, style, level in (
        ("brace.log", "{lineno:>6}|{funcName}|{message}|", "{", 10),
        ("errors.log", "$message", "$", logging.ERROR),
    ):
        handler = logging.FileHandler(folder / file)
        handler.setFormatter(logging.Formatter(fmt, style=style))
        handler.setLevel(level)
        log.addHandler(handler)
    return log


def _raise(error):
    raise error


def _caught(error):
    try:
        _raise(error)
    except BaseException as caught:
        return caught


def _chained(cause):
    """Return an exception that was raised `from` another (`cause`), or while another was handled."""
    try:
        try:
            _raise(KeyError("first"))
        except KeyError as error:
            if cause:
                raise ValueError("second\nof two lines") from error
            raise ValueError("second")  # noqa: B904
    except ValueError as error:
        return error


def _recursive(depth):
    return _recursive(depth - 1) if depth else 1 / 0


class Shown:
    """An object that defines its text."""

    def __str__(self):
        return "shown as text"


def _exceptions():
    try:
        _recursive(20)
    except ZeroDivisionError as error:
        yield error
    try:
        compile("a b", "made-up.py", "exec")
    except SyntaxError as error:
        yield error
    yield _caught(ValueError("on purpose"))
    yield _caught(ValueError())
    yield _caught(ValueError("ends with a newline\n"))
    yield _caught(ValueError("grüße 世界 🎉 \x00"))
    yield _caught(SystemExit(3))
    yield _chained(True)
    yield _chained(False)
    # Never raised: no traceback.
    yield OSError(2, "two")
    if sys.version_info >= (3, 11):
        group = ExceptionGroup("group", [_caught(ValueError(1)), _chained(True)])  # noqa: F821
        group.add_note("a note\nof two lines")
        yield _caught(group)


@scenario(NATIVE)
def exceptions_of_every_kind_behind_messages_of_every_kind(logging, folder):
    log = _several(logging, folder)
    for error in _exceptions():
        for message in ("", "message", "ends with a newline\n", "two\nlines", "\n"):
            log.error(message, exc_info=error)
        log.log(25, "with %s and %d", "arguments", 2, exc_info=(type(error), error, error.__traceback__))


@scenario(NATIVE)
def exception_that_is_being_handled(logging, folder):
    log = _several(logging, folder)
    try:
        _raise(ValueError("outer"))
    except ValueError:
        log.exception("exception %s", "method")
        logging.getLogger("app.child").critical("one", exc_info=1)
        try:
            _raise(KeyError("inner"))
        except KeyError:
            log.info("the inner one", exc_info=True)
        log.info("the outer one again", exc_info=True)

        def each():
            # A generator sees the exception that its caller handles.
            log.info("in a generator", exc_info=True)
            yield

        list(each())
        log.exception("not wanted", exc_info=False)
    log.info("nothing any more", exc_info=True)
    for nothing in (None, False, 0, ()):
        log.info("nothing asked", exc_info=nothing)


@scenario(NATIVE)
def stack_info_in_calls_inside_calls(logging, folder):
    log = _several(logging, folder)

    def inner(**keywords):
        log.warning("from inside", stack_info=True, **keywords)

    def outer(**keywords):
        inner(**keywords)

    outer()
    for level in (1, 2, 3):
        outer(stacklevel=level)
    outer(exc_info=_caught(ValueError("both")))
    log.info("ends with a newline\n", stack_info=True)
    log.info("no stack", stack_info=False)
    log.info("none", stack_info=None)


@scenario(NATIVE)
def stacklevel_through_loggings_own_frames(logging, folder):
    log = _several(logging, folder, name=None)
    adapter = logging.LoggerAdapter(log, {"unused": 1})

    def inner(level):
        log.info("info %d", level, stacklevel=level)
        log.exception("exception %d", level, stacklevel=level, exc_info=None)
        logging.info("module function %d", level, stacklevel=level)
        logging.exception("module exception %d", level, stacklevel=level, exc_info=False)
        adapter.info("adapter %d", level, stacklevel=level)
        adapter.exception("adapter exception %d", level, stacklevel=level, exc_info=False, stack_info=True)
        logging.LoggerAdapter(adapter).log(25, "two adapters %d", level, stacklevel=level)
        exec(
            compile("log.info('exec %d', level, stacklevel=level)", "made-up.py", "exec"), {"log": log, "level": level}
        )

    def outer(level):
        inner(level)

    for level in (1, 2, 3, 4, 5, 6, 7, 8, 1000, 2**40):
        outer(level)


@scenario(NATIVE)
def extra_in_every_style(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)-6s|%(count)05d|%(ratio).2f|%(message)s")
    for style, fmt in (("{", "{user!s:>6}|{count:+d}|{ratio}|{message}"), ("$", "$user ${count} $ratio $message")):
        handler = logging.FileHandler(folder / f"style{ord(style)}.log")
        handler.setFormatter(logging.Formatter(fmt, style=style))
        log.addHandler(handler)
    for user in ("ann", "Jürgen", "", None, True, 17, 1.5, ["a", 1], ("t",), {"k": 1}, Shown(), ValueError("v")):
        log.info("message %s", "x", extra={"user": user, "count": 7, "ratio": 0.125, "unused": Shown()})
    for count in (0, -1, 2**63 - 1, -(2**63)):
        log.info("message", extra={"ratio": float(count), "count": count, "user": count})
    with expect(STOCK):
        log.info("no number", extra={"user": "u", "count": "text", "ratio": 1.0})
        log.info("no field", extra={"user": "u", "count": 1})
        log.info("no extra")


@scenario(NATIVE)
def extra_of_every_type_as_text(logging, folder):
    class Text(str):
        def __str__(self):
            return "own text"

    class Number(int):
        pass

    class Colour(enum.Enum):
        RED = 1

    log, _ = to_file(logging, folder, fmt="%(message)s [%(field)s]")
    for value in (Text("plain"), Number(7), Colour.RED, 2**63, -(2**70), b"bytes", 1e300, float("nan"), {1}, object):
        log.info("message", extra={"field": value})


@scenario(NATIVE)
def extra_that_only_one_of_two_handlers_shows(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(message)s")
    to_file(logging, folder, file="second.log")
    log.info("x", extra={"user": "ann"})
    log.info("y", extra={"user": Shown(), "other": Shown()})


@scenario(NATIVE)
def extra_shows_its_values_at_the_call(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(items)s %(user)s %(message)s")
    items = ["a"]
    fields = {"items": items, "user": "ann"}

    class Changing:
        def __str__(self):
            fields.clear()
            fields.update({f"key{number}": number for number in range(100)})
            return "changed"

    log.info("before", extra=fields)
    items.append("b")
    log.info("after", extra=fields)
    log.info("%s", Changing(), extra=dict(fields))
    fields.update(items=Changing(), user=str(12345678901234567890))
    log.info("changed while it is read", extra=fields)


@scenario(UNSAID)
def extra_that_is_unusual(logging, folder):
    import collections
    import types

    log, _ = to_file(logging, folder, fmt="%(user)s %(message)s")
    ordered = collections.OrderedDict(user="ordered")
    log.info("x", extra=ordered)
    log.info("x", extra=types.MappingProxyType({"user": "proxy"}))
    log.info("x", extra={"user": "with a number", 7: 7})
    log.info("x", extra={"user": "with surrogates", "\ud800": 1})
    log.info("x", extra={"user": "\ud800"})
    for wrong in (5, "ab", ["user"], {"args": 1}, {"taskName": 1}, {"user": 1, "message": 2}):
        try:
            log.info("x %s", "y", extra=wrong)
        except (TypeError, KeyError) as error:
            note(repr(error))


@scenario(STOCK)
def extra_with_a_name_that_is_no_text(logging, folder):
    for style, fmt in (("%", "%(message)s"), ("{", "{message}"), ("$", "$message")):
        log, handler = to_file(logging, folder, name=f"app{ord(style)}", file=f"style{ord(style)}.log")
        handler.setFormatter(logging.Formatter(fmt, style=style))
        log.info("x", extra={7: 7})


@scenario(UNSAID)
def keywords_that_are_wrong_raise_as_ever(logging, folder):
    log, handler = to_file(logging, folder)

    def tried(*arguments, **keywords):
        try:
            log.info(*arguments, **keywords)
        except TypeError as error:
            note(f"{keywords}: {error}")

    def every():
        tried("x", nothing=1)
        tried("x", extra={"a": 1}, nothing=1)
        tried("x", args=())
        tried("x", level=1)
        tried("x", stacklevel="2")
        tried("x", stacklevel=None)
        tried("x", stacklevel=1.5)
        tried("x", stacklevel=True)
        tried("x", stack_info="yes")
        tried("x", exc_info="yes")
        tried("x", exc_info=(1, 2))
        tried("x", exc_info=(ValueError, ValueError("v"), None))
        tried("x", exc_info=[])
        tried(msg="x")
        tried(msg="x %s", extra={"a": 1})
        tried()

    every()
    handler.setLevel(logging.ERROR)
    every()
    log.setLevel(logging.ERROR)
    every()


@scenario(UNSAID)
def exceptions_that_are_unusual(logging, folder):
    class Falsy(Exception):
        def __bool__(self):
            return False

    class Unanswering(Exception):
        def __bool__(self):
            raise ValueError("no answer")

    class Textless(Exception):
        def __str__(self):
            raise ValueError("no text")

    log = _several(logging, folder)
    log.error("falsy", exc_info=Falsy("f"))
    log.error("textless", exc_info=_caught(Textless()))
    log.error("surrogates", exc_info=ValueError("\ud800"))
    try:
        log.error("unanswering", exc_info=Unanswering())
    except ValueError as error:
        note(repr(error))


@scenario(UNSAID)
def makers_of_texts_that_are_patched(logging, folder):
    log, handler = to_file(logging, folder)

    def log_all():
        log.error("error", exc_info=_caught(ValueError("v")), stack_info=True)
        log.error("handled", exc_info=True)

    with expect(NATIVE):
        log_all()
    formatter = handler.formatter
    for owner, name, patched in (
        (formatter, "formatException", lambda exc_info: f"formatter: {exc_info[1]}"),
        (formatter, "formatStack", lambda text: f"formatter: {len(text.splitlines())} lines"),
        (logging.Formatter, "formatException", lambda self, exc_info: f"class: {exc_info[1]}"),
        (logging.Formatter, "formatStack", lambda self, text: "class"),
    ):
        with mock.patch.object(owner, name, patched):
            with expect(STOCK):
                log.error("error", exc_info=_caught(ValueError("v")), stack_info=True)
            log_all()
        # On either path, patches of the functions that formatException and formatStack call take effect.
        log_all()
    for owner, name, patched in (
        (sys, "exc_info", lambda: (KeyError, KeyError("patched"), None)),
        (traceback, "print_exception", lambda *given, file=None, **keywords: (file or given[-1]).write("exception\n")),
        (traceback, "print_stack", lambda frame, file: file.write(f"stack of {frame.f_code.co_name}")),
        (logging, "traceback", mock.Mock()),
        (logging, "_srcfile", None),
    ):
        with mock.patch.object(owner, name, patched):
            log_all()
    log_all()


@scenario(UNSAID, addresses=True)
def texts_whose_making_raises(logging, folder):
    class Raising:
        def __init__(self, error):
            self.error = error

        def __str__(self):
            raise type(self.error)("no text")

    log, _ = to_file(logging, folder, fmt="%(field)s %(message)s")
    # An exception that is no `Exception` passes every handler and reaches the caller.
    for error in (ValueError(), KeyboardInterrupt(), SystemExit()):
        for message, keywords in (
            ("field", {"extra": {"field": Raising(error)}}),
            (Raising(error), {"extra": {"field": 1}, "stack_info": True}),
            ("exception", {"extra": {"field": 1}, "exc_info": ValueError(Raising(error))}),
        ):
            try:
                log.info(message, **keywords)
            except BaseException as raised:
                note(f"{message if type(message) is str else 'message'}: {raised!r}")
    with mock.patch.object(traceback, "print_exception", side_effect=KeyboardInterrupt("no text")):
        try:
            log.info("interrupted", extra={"field": 1}, exc_info=True)
        except KeyboardInterrupt as raised:
            note(repr(raised))


@scenario(STOCK)
def bad_arguments_with_an_exception(logging, folder):
    log, _ = to_file(logging, folder)
    log.error("%d", "text", exc_info=ValueError("v"))
    log.error("%d %d", 1, exc_info=ValueError("v"), stack_info=True)


@scenario(NATIVE)
def adapters_of_every_kind(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(lineno)d %(funcName)s %(message)s")
    adapter = logging.LoggerAdapter(log, {"user": "ann"})
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(adapter, name)("%s of an adapter", name)
    adapter.log(25, "log of an adapter")
    try:
        _raise(ValueError("v"))
    except ValueError:
        adapter.exception("exception of an adapter")
        adapter.info("with all", exc_info=True, stack_info=True, stacklevel=1)
    with expect(STOCK):
        # The format needs `user`, and this adapter has no extra fields.
        logging.LoggerAdapter(log, None).info("none")


@scenario(NATIVE, since=(3, 13))
def adapters_that_merge_extra(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(step)s %(message)s")
    adapter = logging.LoggerAdapter(log, {"user": "ann", "step": 0}, merge_extra=True)
    adapter.info("own")
    adapter.info("merged", extra={"step": [2]})
    adapter.error("merged", extra={"step": 3, "more": Shown()}, exc_info=ValueError("v"))


@scenario(NATIVE)
def keywords_in_tasks(logging, folder):
    log = _several(logging, folder)

    async def work(who):
        for number in range(3):
            try:
                await asyncio.sleep(0)
                _raise(ValueError(f"{who} {number}"))
            except ValueError:
                log.exception("task %d", who)
                await asyncio.sleep(0)
                log.info("still the same", exc_info=True, stacklevel=1, extra={"who": who})
        log.info("none", exc_info=True)

    async def main():
        await asyncio.gather(*(work(each) for each in range(3)))

    asyncio.run(main())


@scenario(NATIVE)
def nothing_is_kept_after_the_call(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(field)s %(message)s")

    class Kept(Exception):
        pass

    def once(error):
        field = Shown()
        log.error("%s", field, exc_info=error, stack_info=True, extra={"field": field})
        return weakref.ref(error), weakref.ref(field)

    # Freed at once if the program makes no reference cycle. A raised exception and its frame are a cycle.
    for kept in once(Kept("never raised")):
        note(kept())
    found = once(_caught(Kept("raised")))
    gc.collect()
    for kept in found:
        note(kept())


@scenario(NATIVE)
def texts_that_are_long(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(message)s %(field)s")
    log.error("long", exc_info=ValueError("x" * 300_000), stack_info=True, extra={"field": "y" * 300_000})
    log.info("after", extra={"field": 1})


@scenario(NATIVE)
def keywords_from_a_dict(logging, folder):
    log = _several(logging, folder)
    for number in range(3):
        # Names that are made at run time, so they are no constants of the program.
        keywords = {"".join(["stack", "level"]): 1, "".join(["ex", "tra"]): {"".join(["a", str(number)]): number}}
        log.info("message %d", number, **keywords)
        log.log(35, "message %d", number, **keywords)


@scenario(STOCK)
def keywords_behind_a_filter(logging, folder):
    # The filter puts the calls on the stock path, which reaches the same handlers by their `emit`.
    log = _several(logging, folder)
    log.addFilter(lambda record: True)
    for error in _exceptions():
        for message in ("", "message", "ends with a newline\n"):
            log.error(message, exc_info=error, extra={"user": "ann"})
    log.info("%s", "stack", stack_info=True, stacklevel=1)
    log.exception("nothing")


@scenario(UNSAID)
def records_made_by_hand(logging, folder):
    log = _several(logging, folder)
    to_file(logging, folder, file="fields.log", fmt="%(user)s %(message)s")
    error = _caught(ValueError("v"))
    info = (type(error), error, error.__traceback__)
    for number, (exc_info, stack) in enumerate(((None, None), (info, None), (None, "a stack"), (info, "a stack"))):
        record = log.makeRecord("app", 40, "made-up.py", 7, "%d", (number,), exc_info, "function", {"user": 1}, stack)
        log.handle(record)
        note(sorted(set(vars(record)) - {"taskName"}))
        log.handle(record)
        record.exc_text = "another text"
        log.handle(record)
        for handler in log.handlers:
            handler.emit(record)
