"""The first eighteen behaviours of stock logging that programs rely on, on a FileHandler."""

import os
import sys
import threading

from differential.staging import NATIVE, STOCK, UNSAID, alias, expect, note, scenario, to_file

LINE = "%(filename)s:%(lineno)d %(funcName)s %(module)s %(message)s"


# 1
@scenario(NATIVE)
def percent_arguments(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%s %d %5.2f %r %x %c %%", "text", 42, 3.14159, "quoted", 255, "c")
    log.info("%-10s|%+05d|%#o|%e|%G", "left", 7, 8, 12345.678, 1e-10)
    log.info("%s %s %s %s", None, True, b"bytes", ("a", 1))


@scenario(NATIVE)
def single_dict_argument(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("%(name)s has %(count)d", {"name": "x", "count": 3})
    log.info("the dict is %s", {"a": 1})
    log.info("empty %s", {})


@scenario(NATIVE)
def literal_percent_without_arguments(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("100%")
    log.info("%s %d %(x)s %%")
    log.info("")


@scenario(NATIVE)
def messages_that_are_no_text(logging, folder):
    log, _ = to_file(logging, folder)
    log.info(42)
    log.info(None)
    log.info(ValueError("an exception"))
    log.info(["a", "list"])
    log.info(b"bytes %s", "x")


@scenario(NATIVE)
def messages_of_many_lines_and_scripts(logging, folder):
    log, _ = to_file(logging, folder, encoding="utf-8")
    log.info("two\nlines")
    log.info("grüße, мир, 世界, 🎉 and \x00 \x1b[31m \r inside")
    log.info("long %s", "x" * 100_000)


# 2
@scenario(NATIVE)
def line_and_function_of_the_caller(logging, folder):
    log, _ = to_file(logging, folder, fmt=LINE)

    def inner():
        log.info("from inner")
        log.info(
            "over %s",
            "lines",
        )

    inner()
    (lambda: log.info("from a lambda"))()
    [log.info("from a comprehension") for _ in range(2)]

    class Some:
        def method(self):
            log.warning("from a method")

    Some().method()
    exec(compile("log.info('from exec')", "made-up.py", "exec"), {"log": log})


@scenario(NATIVE)
def path_name_of_the_caller(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(pathname)s %(message)s")
    log.info("from this file")
    exec(compile("log.info('x')", "relative/dir/file.name.py", "exec"), {"log": log})


@scenario(NATIVE)
def caller_made_by_exec_many_times(logging, folder):
    log, _ = to_file(logging, folder, fmt=LINE)
    for number in range(2000):
        source = "\n" * (number % 37) + f"def f{number}():\n    log.info('number %d', {number})\nf{number}()"
        exec(compile(source, f"file{number % 5}.py", "exec"), {"log": log})


@scenario(NATIVE)
def module_functions_report_their_caller(logging, folder):
    _, _handler = to_file(logging, folder, name=None, fmt=LINE)
    logging.debug("debug")
    logging.info("info %d", 1)
    logging.warning("warning")
    logging.error("error")
    logging.critical("critical")
    logging.log(35, "log")


# 3
@scenario(NATIVE)
def stacklevel(logging, folder):
    log, _ = to_file(logging, folder, fmt=LINE)

    def helper(level):
        log.info("level %d", level, stacklevel=level)

    def outer(level):
        helper(level)

    for level in (1, 2, 3):
        outer(level)
    log.info("far beyond", stacklevel=500)
    # Since 3.11 such a stacklevel names a line of the logging package itself.
    with expect(STOCK if sys.version_info >= (3, 11) else NATIVE):
        log.info("zero", stacklevel=0)
        log.info("below", stacklevel=-1)


# 4
@scenario(NATIVE)
def extra_in_the_format(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(request)r %(message)s")
    log.info("text and number", extra={"user": "ann", "request": 17})
    log.info("more than the format wants", extra={"user": None, "request": "r", "unused": object})
    # Only Python makes the `repr()` of values that are not scalars.
    with expect(STOCK):
        log.info("other types", extra={"user": None, "request": (1, 2.5)})
        log.info("others yet", extra={"user": "x", "request": [1], "unused": object})


@scenario(NATIVE)
def extra_not_in_the_format(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("extra", extra={"anything": 1})
    log.info("empty extra", extra={})
    log.info("no extra", extra=None)


@scenario(UNSAID)
def extra_missing_though_the_format_wants_it(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(message)s")
    log.info("nobody")


@scenario(UNSAID)
def formatter_defaults_fill_missing_extra(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(logging.Formatter("%(user)s %(message)s", defaults={"user": "nobody"}))
    log.info("without")
    log.info("with", extra={"user": "ann"})


# 5
@scenario(UNSAID)
def extra_that_overwrites_a_field_raises(logging, folder):
    log, _ = to_file(logging, folder)
    for key in ("message", "asctime", "name", "lineno"):
        try:
            log.info("x", extra={key: 1})
        except KeyError as error:
            note(f"{key}: {error!r}")


# 6
def _raise():
    raise ValueError("on purpose")


@scenario(NATIVE)
def exc_info_of_every_kind(logging, folder):
    log, _ = to_file(logging, folder)
    try:
        _raise()
    except ValueError as error:
        log.exception("exception %s", "method")
        log.error("true", exc_info=True)
        log.error("one", exc_info=1)
        log.error("instance", exc_info=error)
        log.error("tuple", exc_info=sys.exc_info())
        log.info("false", exc_info=False)
        log.debug("none", exc_info=None)
        kept = error
    log.error("afterwards", exc_info=kept)


@scenario(NATIVE)
def exc_info_without_an_exception(logging, folder):
    log, _ = to_file(logging, folder)
    log.error("nothing raised", exc_info=True)
    log.exception("nothing raised")
    log.error("tuple of none", exc_info=(None, None, None))


@scenario(NATIVE)
def exceptions_with_cause_group_and_notes(logging, folder):
    log, _ = to_file(logging, folder)
    try:
        try:
            _raise()
        except ValueError as error:
            raise KeyError("second") from error
    except KeyError:
        log.exception("caused")
    if sys.version_info >= (3, 11):
        group = ExceptionGroup("group", [ValueError(1), OSError(2, "two")])  # noqa: F821
        group.add_note("a note")
        log.error("grouped", exc_info=group)


@scenario(UNSAID)
def exception_text_is_made_once_and_shared(logging, folder):
    log, first = to_file(logging, folder)
    _, _second = to_file(logging, folder, file="second.log")

    class Short(logging.Formatter):
        def formatException(self, exc_info):
            return f"short: {exc_info[1]}"

    first.setFormatter(Short("%(message)s"))
    try:
        _raise()
    except ValueError:
        log.exception("first handler decides")


# 7
@scenario(NATIVE)
def stack_info(logging, folder):
    log, _ = to_file(logging, folder)
    log.info("with stack", stack_info=True)
    log.info("with stack of the caller", stack_info=True, stacklevel=2)
    try:
        _raise()
    except ValueError:
        log.exception("with both", stack_info=True)


# 8
@scenario(NATIVE)
def logger_adapter(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(lineno)d %(funcName)s %(message)s")
    adapter = logging.LoggerAdapter(log, {"user": "ann"})
    adapter.info("hello %s", "there")
    adapter.warning("replaced extra", extra={"user": "bob"})
    note(adapter.isEnabledFor(10))
    adapter.setLevel(logging.ERROR)
    adapter.info("no longer")
    adapter.critical("still")
    note((adapter.name, adapter.hasHandlers(), adapter.getEffectiveLevel()))


@scenario(NATIVE, since=(3, 13))
def logger_adapter_that_merges_extra(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(user)s %(step)s %(message)s")
    adapter = logging.LoggerAdapter(log, {"user": "ann", "step": 0}, merge_extra=True)
    adapter.info("merged", extra={"step": 2})


@scenario(NATIVE)
def logger_adapter_with_its_own_process(logging, folder):
    log, _ = to_file(logging, folder)

    class Prefixing(logging.LoggerAdapter):
        def process(self, msg, kwargs):
            return f"[{self.extra['tag']}] {msg}", kwargs

    Prefixing(log, {"tag": "t"}).info("hello %d", 1)
    Prefixing(Prefixing(log, {"tag": "inner"}), {"tag": "outer"}).error("nested")


# 9
@scenario(STOCK)
def filters_may_change_the_record(logging, folder):
    log, handler = to_file(logging, folder, fmt="%(levelname)s %(request)s %(message)s")
    _, _later = to_file(logging, folder, file="later.log", fmt="%(levelname)s %(request)s %(message)s")

    class AddRequest(logging.Filter):
        def filter(self, record):
            record.request = 7
            record.args = tuple(str(each).upper() for each in record.args)
            return True

    log.addFilter(AddRequest())

    def of_one_handler(record):
        record.levelname = "changed"
        return record.levelno != logging.ERROR

    handler.addFilter(of_one_handler)
    log.info("message %s", "lower")
    log.error("only in the later file")


# 10
@scenario(STOCK)
def formatter_subclasses(logging, folder):
    log, first = to_file(logging, folder)
    _, second = to_file(logging, folder, file="second.log")
    _, third = to_file(logging, folder, file="third.log")

    class Formatting(logging.Formatter):
        def format(self, record):
            return f"<{super().format(record)}>"

    class Timing(logging.Formatter):
        def formatTime(self, record, datefmt=None):
            return f"time as {datefmt}"

    class Excepting(logging.Formatter):
        def formatException(self, exc_info):
            return "one line: " + super().formatException(exc_info).replace("\n", "\\n")

        def formatStack(self, stack_info):
            return f"stack of {stack_info.count(chr(10))} lines"

    first.setFormatter(Formatting("%(message)s"))
    second.setFormatter(Timing("%(asctime)s %(message)s", datefmt="%Y"))
    third.setFormatter(Excepting("%(message)s"))
    log.info("info %d", 1)
    try:
        _raise()
    except ValueError:
        log.error("error", exc_info=True, stack_info=True)


# 11
@scenario(NATIVE)
def brace_and_dollar_styles(logging, folder):
    log, _ = to_file(logging, folder, file="percent.log", fmt="%(levelname)-8s|%(lineno)05d|%(message).10s")
    for style, fmt in (
        ("{", "{levelname:>10}|{lineno:+d}|{message:.30}|{{literal}}"),
        ("$", "$levelname ${name}-$message $$literal"),
    ):
        handler = logging.FileHandler(folder / f"style{ord(style)}.log")
        handler.setFormatter(logging.Formatter(fmt, style=style))
        log.addHandler(handler)
    log.info("message %s", "with 'quotes'")
    log.warning("{not} $formatted %s", "again")


# repr() of text needs the interpreter's tables of characters; the interpreter also groups digits.
@scenario(STOCK)
def brace_style_with_repr_and_grouped_digits(logging, folder):
    log, handler = to_file(logging, folder)
    handler.setFormatter(logging.Formatter("{levelname!r}|{lineno:+,d}|{message!r:.30}", style="{"))
    log.info("message %s", "with 'quotes' and \N{SNOWMAN}")
    log.warning("{not} $formatted %s", "again")


# 12: in clock.py


# 13
@scenario(NATIVE)
def propagation_and_inherited_levels(logging, folder):
    to_file(logging, folder, name=None, file="root.log", level=logging.WARNING)
    to_file(logging, folder, name="a", file="a.log", level=logging.DEBUG)
    to_file(logging, folder, name="a.b", file="b.log", level=logging.NOTSET)
    deep = logging.getLogger("a.b.c.d")
    deep.debug("inherits debug from a; handlers of ancestors do not look at levels of ancestors")
    logging.getLogger("other").info("root's level rejects it")
    logging.getLogger("other").warning("root's level lets it pass")
    logging.getLogger("a.b").propagate = False
    deep.info("not beyond b")
    logging.getLogger("a").setLevel(logging.ERROR)
    deep.info("cache is cleared by setLevel")
    deep.error("still")
    note([deep.getEffectiveLevel(), deep.isEnabledFor(30), deep.isEnabledFor(40)])
    note(deep.parent.name)
    logging.getLogger("a.b.c").error("placeholder became a logger")
    note(deep.parent.name)


# 14
@scenario(NATIVE)
def disable_at_every_level(logging, folder):
    log, _ = to_file(logging, folder)
    for level in (logging.DEBUG, logging.INFO, 25, logging.CRITICAL, logging.NOTSET):
        logging.disable(level)
        for of in (10, 20, 25, 30, 50):
            log.log(of, "disabled up to %d", level)
        note(log.isEnabledFor(30))
    logging.disable(logging.NOTSET)
    log.info("again")


# 15
@scenario(NATIVE)
def custom_levels(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(levelname)s %(levelno)d %(message)s", level=1)
    log.log(25, "no name yet")
    logging.addLevelName(25, "NOTICE")
    log.log(25, "named")
    logging.addLevelName(logging.INFO, "\x1b[32mINFO\x1b[0m")
    log.info("renamed")
    log.log(3, "low")
    log.log(2_000_000, "high")
    note([logging.getLevelName(25), logging.getLevelName("NOTICE"), logging.getLevelName(26)])
    log.setLevel("NOTICE")
    log.info("below")


@scenario(UNSAID)
def level_that_is_no_number(logging, folder):
    log, _ = to_file(logging, folder)
    try:
        log.log("INFO", "x")
    except TypeError as error:
        note(repr(error))
    logging.raiseExceptions = False
    note(log.log("INFO", "x"))
    for wrong in ("NONE", 1.5, None):
        try:
            log.setLevel(wrong)
        except (ValueError, TypeError) as error:
            note(repr(error))


@scenario(NATIVE)
def levels_that_are_true_or_subclasses_of_int(logging, folder):
    import enum

    class Level(enum.IntEnum):
        NOTICE = 25

    log, _ = to_file(logging, folder, level=1)
    log.log(True, "true")
    log.log(Level.NOTICE, "an IntEnum")
    log.setLevel(Level.NOTICE)
    log.info("below")
    log.warning("above")


# 16
@scenario(STOCK)
def logger_class_set(logging, folder):
    class Loud(logging.Logger):
        def _log(self, level, msg, args, **keywords):
            super()._log(level, f"LOUD {msg}", args, **keywords)

    logging.setLoggerClass(Loud)
    log, _ = to_file(logging, folder, name="loud")
    log.info("hello %s", "there")
    note(type(logging.getLogger("loud.deeper")).__name__)


@scenario(NATIVE)
def logger_class_that_only_adds_methods(logging, folder):
    class Noticing(logging.Logger):
        def notice(self, msg, *args):
            self.log(25, msg, *args, stacklevel=2)

    logging.setLoggerClass(Noticing)
    log, _ = to_file(logging, folder, name="noticing", fmt=LINE)
    log.notice("hello %s", "there")
    log.info("usual")


# 17
@scenario(STOCK)
def record_factory(logging, folder):
    log, _ = to_file(logging, folder, fmt="%(tenant)s %(message)s")
    original = logging.getLogRecordFactory()

    def make(*args, **keywords):
        record = original(*args, **keywords)
        record.tenant = "acme"
        return record

    logging.setLogRecordFactory(make)
    log.info("with a tenant")


# 18
@scenario(STOCK)
def custom_handler_gets_a_full_record(logging, folder):
    log, _ = to_file(logging, folder)
    alias(os.getpid(), "<pid>")
    alias(threading.get_ident(), "<ident>")

    class Noting(logging.Handler):
        def emit(self, record):
            fields = dict(vars(record))
            for moving in ("created", "msecs", "relativeCreated"):
                fields[moving] = type(fields[moving]).__name__
            note(sorted(fields.items(), key=lambda item: item[0]))

    log.addHandler(Noting())
    log.info("message %s %d", "a", 1, extra={"request": 7})
