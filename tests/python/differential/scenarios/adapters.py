"""Calls through `logging.LoggerAdapter`: its keywords, subclasses, replaced methods, and loggers of other kinds."""

import logging as stock_logging
import sys

from differential.staging import NATIVE, STOCK, UNSAID, expect, note, scenario, to_file, warm

LINE = "%(levelname)s %(lineno)d %(funcName)s [%(user)s] %(message)s"


def _adapter(logging, folder, extra=None, **options):
    """Return (adapter, its logger); lines show the `user` of the adapter."""
    log, _ = to_file(logging, folder, fmt=LINE, **options)
    return logging.LoggerAdapter(log, {"user": "ann"} if extra is None else extra), log


def _speak(adapter):
    adapter.debug("debug %d", 1)
    adapter.info("info %s %d %.2f", "text", -5, 2.5)
    adapter.warning("warning without arguments")
    adapter.error("error %(key)s", {"key": "value"})
    adapter.critical("critical", exc_info=None)
    adapter.log(25, "between %r", "é")
    try:
        raise ValueError("v")
    except ValueError:
        adapter.exception("exception %d", 2)
        adapter.exception("without its traceback", exc_info=False)
        adapter.error("with it", exc_info=True, stack_info=True)


@scenario(NATIVE)
def an_adapter_speaks_at_every_level(logging, folder):
    adapter, log = _adapter(logging, folder)
    _speak(adapter)
    log.setLevel(logging.ERROR)
    _speak(adapter)
    logging.disable(logging.CRITICAL)
    _speak(adapter)
    logging.disable(logging.NOTSET)
    log.disabled = True
    _speak(adapter)
    log.disabled = False
    adapter.setLevel(logging.DEBUG)
    _speak(adapter)


@scenario(NATIVE)
def an_adapter_of_a_parents_handler(logging, folder):
    to_file(logging, folder, fmt=LINE, name=None)
    adapter = logging.LoggerAdapter(logging.getLogger("a.b"), extra={"user": "ann"})
    _speak(adapter)


@scenario(NATIVE)
def the_extra_of_a_call_is_replaced(logging, folder):
    adapter, _ = _adapter(logging, folder)
    adapter.info("the adapter's", extra={"user": "bob"})
    adapter.info("the adapter's", extra=None)
    adapter.info("not even read", extra=7)
    adapter.info("not even read", extra={"message": 1})
    adapter.extra["user"] = "changed in place"
    adapter.info("changed")
    adapter.extra = {"user": "another dict"}
    adapter.info("replaced")


@scenario(UNSAID, since=(3, 13))
def the_extra_of_a_call_is_merged(logging, folder):
    adapter, _ = _adapter(logging, folder)
    with expect(NATIVE):
        adapter.info("the adapter's", extra={"user": "bob"})
        adapter.merge_extra = True
        adapter.info("the call's", extra={"user": "bob"})
        adapter.info("the adapter's", extra={"other": 1})
        adapter.info("no extra", stacklevel=1)
        adapter.exception("the call's", extra={"user": "eve"}, exc_info=ValueError("v"))
    for extra in (None, [("user", "pairs")], {"message": 1}):
        try:
            adapter.info("wrong", extra=extra)
        except (TypeError, KeyError) as error:
            note(repr(error))
    adapter.merge_extra = 1
    with expect(NATIVE):
        adapter.info("the call's", extra={"user": "a number that is true"})


@scenario(UNSAID)
def an_extra_that_is_no_plain_dict(logging, folder):
    class Fields(dict):
        pass

    for extra in (None, {}, Fields(user="subclass"), [], "text", {"message": 1}, {"user": object}, {1: 2, "user": "u"}):
        adapter, log = _adapter(logging, folder, extra)
        try:
            adapter.info("with %s", type(extra).__name__)
        except Exception as error:
            note(repr(error))
        log.handlers.clear()
    note(logging.LoggerAdapter(log).extra)


@scenario(UNSAID)
def wrong_calls_of_an_adapter(logging, folder):
    adapter, _ = _adapter(logging, folder)
    adapter.info(msg="by keyword")
    for call in (
        lambda: adapter.info(),
        lambda: adapter.log(),
        lambda: adapter.log(20),
        lambda: adapter.log("20", "no number"),
        lambda: adapter.info("unknown", colour="red"),
        lambda: adapter.exception("twice", exc_info=1, stacklevel="2"),
    ):
        try:
            call()
        except Exception as error:
            note(type(error).__name__)
    adapter.log(level=20, msg="all by keyword")
    adapter.log(True, "a truth value as level")


@scenario(STOCK)
def arguments_of_an_adapter_that_do_not_fit(logging, folder):
    adapter, _ = _adapter(logging, folder)
    adapter.info("%d", "text")
    adapter.error("%d %d", 1, exc_info=ValueError("v"))


@scenario(NATIVE)
def stacklevel_of_an_adapter(logging, folder):
    adapter, _ = _adapter(logging, folder)

    def inner(level):
        adapter.info("info %d", level, stacklevel=level)
        adapter.log(25, "log %d", level, stacklevel=level)
        adapter.error("error %d", level, stacklevel=level, stack_info=True)

    def middle(level):
        inner(level)

    def outer(level):
        middle(level)

    for level in (1, 2, 3, 4, 99):
        outer(level)


class Tagged(stock_logging.LoggerAdapter):
    """As in the documentation of `logging`: the message gets a prefix."""

    def process(self, msg, kwargs):
        return f"[{self.extra['user']}] {msg}", {"extra": self.extra, **kwargs}


class Plain(stock_logging.LoggerAdapter):
    """A subclass that overrides no method which a call uses."""

    def __init__(self, logger, user):
        super().__init__(logger, {"user": user})
        self.note = "an attribute of its own"

    def twice(self, msg, *args):
        self.info(msg, *args)
        self.info(msg, *args, stacklevel=2)


class Wordy(stock_logging.LoggerAdapter):
    """A subclass that overrides the method of a level and calls the stock one."""

    def info(self, msg, *args, **kwargs):
        super().info("wordy: " + msg, *args, **kwargs)


class Counting(stock_logging.LoggerAdapter):
    """A subclass that sees each call."""

    def log(self, level, msg, *args, **kwargs):
        note((level, msg))
        super().log(level, msg, *args, **kwargs)


class Quiet(stock_logging.LoggerAdapter):
    """A subclass with a level of its own."""

    def isEnabledFor(self, level):
        return level >= 40


@scenario(NATIVE)
def subclasses_of_an_adapter(logging, folder):
    _, log = _adapter(logging, folder)
    plain = Plain(log, "plain")
    _speak(plain)
    plain.twice("twice %d", 2)
    for cls in (Tagged, Wordy, Counting, Quiet):
        _speak(cls(log, {"user": cls.__name__}))


@scenario(NATIVE)
def methods_replaced_on_an_adapter(logging, folder):
    adapter, _log = _adapter(logging, folder)
    warm(adapter, 20)
    adapter.process = lambda msg, kwargs: (f"processed {msg}", {"extra": {"user": "eve"}})
    _speak(adapter)
    del adapter.process
    adapter.isEnabledFor = lambda level: level == 20
    _speak(adapter)
    del adapter.isEnabledFor
    adapter.log = lambda *args, **kwargs: note((args, kwargs))
    adapter.info("noted")
    del adapter.log
    adapter.unrelated = 1
    _speak(adapter)


@scenario(NATIVE)
def methods_replaced_on_the_class_of_an_adapter(logging, folder):
    adapter, _log = _adapter(logging, folder)
    warm(adapter, 20)
    stock = logging.LoggerAdapter.process
    logging.LoggerAdapter.process = lambda self, msg, kwargs: (f"patched {msg}", {"extra": {"user": "eve"}})
    try:
        adapter.info("patched %d", 1)
        Plain(adapter.logger, "plain").info("patched %d", 2)
    finally:
        logging.LoggerAdapter.process = stock
    adapter.info("as before")
    Plain.process = Tagged.process
    try:
        Plain(adapter.logger, "plain").info("patched %d", 3)
    finally:
        del Plain.process
    Plain(adapter.logger, "plain").info("as before")


@scenario(UNSAID)
def log_replaced_on_the_logger_of_an_adapter(logging, folder):
    adapter, log = _adapter(logging, folder)
    warm(adapter, 20)
    log.log = lambda *args, **kwargs: note((args, kwargs))
    adapter.info("noted %d", 1)
    adapter.exception("noted %d", 2)
    del log.log

    class Loud(logging.Logger):
        def log(self, level, msg, *args, **kwargs):
            super().log(level, msg.upper(), *args, **kwargs)

    log.__class__ = Loud
    adapter.info("loud %d", 3)
    log.__class__ = logging.Logger
    adapter.info("as before")
    with expect(NATIVE):
        adapter.info("natively again")
    stock = logging.Logger.log
    logging.Logger.log = lambda self, *args, **kwargs: note((args, kwargs))
    try:
        adapter.info("noted %d", 4)
    finally:
        logging.Logger.log = stock
    with expect(NATIVE):
        adapter.info("natively again")


@scenario(UNSAID)
def adapters_of_things_that_are_no_loggers(logging, folder):
    adapter, _log = _adapter(logging, folder)
    outer = logging.LoggerAdapter(adapter, {"user": "outer"})
    _speak(outer)

    class Proxy:
        def isEnabledFor(self, level):
            return level > 10

        def log(self, *args, **kwargs):
            note((args, kwargs))

    adapter.logger = Proxy()
    adapter.debug("too low")
    adapter.info("noted %d", 1)
    adapter.logger = None
    try:
        adapter.info("no logger")
    except AttributeError as error:
        note(error)
    bare = logging.LoggerAdapter.__new__(logging.LoggerAdapter)
    try:
        bare.info("no attributes")
    except AttributeError as error:
        note(error)


@scenario(STOCK)
def an_adapters_record_passes_filters_and_handlers(logging, folder):
    adapter, log = _adapter(logging, folder)

    class Keeping(logging.Handler):
        def emit(self, record):
            note((record.user, record.levelname, record.lineno, record.getMessage(), sorted(vars(record))))

    log.addFilter(lambda record: record.levelno != 30)
    log.addHandler(Keeping())
    _speak(adapter)
    adapter.info("extra of the call", extra={"user": "bob"})


@scenario(UNSAID, installed=False, isolated=True)
def the_stock_methods_come_back(logging, folder):
    from suite import side

    adapter, _log = _adapter(logging, folder)
    before = {name: vars(logging.LoggerAdapter)[name] for name in ("debug", "info", "exception", "log")}
    adapter.info("before")
    side.install()
    adapter.info("installed")
    side.uninstall()
    adapter.info("after")
    note(all(vars(logging.LoggerAdapter)[name] is stock for name, stock in before.items()))
    note(sys.getrefcount(adapter.extra) < 10)
