"""Rows: methods of handlers, loggers and records, replaced on the class and on one instance."""

import sys
from unittest import mock

from differential.staging import STOCK, UNSAID, note
from differential.table.cases import FILES, ONE_OF_EACH, named_row, row


# Methods of handlers and loggers, on the class and on one instance
def _noting(name, original):
    def patched(*args, **keywords):
        note(f"{name} called")
        return original(*args, **keywords)

    return patched


def _noting_method(name, original):
    def patched(self, *args, **keywords):
        note(f"{name} called on {type(self).__name__}")
        return original(self, *args, **keywords)

    return patched


def _fail_if_asked(case, name):
    if name == "handleError":
        case.log.info("bad %d", "arguments")


# A patched flush, acquire or release is called once per record, as by stock logging.
for _name in ("emit", "handle", "format", "filter", "flush", "acquire", "release", "handleError"):

    def _on_instance(case, name=_name):
        with mock.patch.object(case.handler, name, _noting(name, getattr(case.handler, name))):
            _fail_if_asked(case, name)
            yield

    def _on_class(case, name=_name):
        owner = next(base for base in type(case.handler).__mro__ if name in vars(base))
        with mock.patch.object(owner, name, _noting_method(name, vars(owner)[name])):
            _fail_if_asked(case, name)
            yield

    def _on_base_class(case, name=_name):
        with mock.patch.object(case.logging.Handler, name, _noting_method(name, getattr(case.logging.Handler, name))):
            _fail_if_asked(case, name)
            yield

    # handleError is called for bad arguments only; such calls take the stock path anyway.
    # Since 3.13 a call no longer uses acquire and release (`with self.lock`).
    _path = STOCK
    if _name == "handleError" or (_name in ("acquire", "release") and sys.version_info >= (3, 13)):
        _path = UNSAID
    named_row(f"handlers_{_name}_patched", _on_instance, _path)
    named_row(f"handler_classs_{_name}_patched", _on_class, _path)
    if _name not in ("emit", "flush"):
        named_row(f"base_handlers_{_name}_patched", _on_base_class, _path, kinds=ONE_OF_EACH)


@row(STOCK, kinds=FILES)
def file_handlers_open_patched(case):
    with mock.patch.object(
        case.logging.FileHandler, "_open", _noting_method("_open", vars(case.logging.FileHandler)["_open"])
    ):
        case.handler.close()
        yield


@row(STOCK, kinds=("rotating", "timed"))
def rotating_handlers_should_rollover_patched(case):
    with mock.patch.object(case.handler, "shouldRollover", lambda record: record.levelno == 30):
        yield


@row(STOCK, kinds=("rotating", "timed"))
def rotating_handlers_do_rollover_patched(case):
    case.handler.maxBytes = 100
    case.handler.rolloverAt = 0
    with mock.patch.object(case.handler, "doRollover", _noting("doRollover", lambda: None)):
        yield


@row(STOCK, kinds=("watched",))
def watched_handlers_reopen_patched(case):
    with mock.patch.object(case.handler, "reopenIfNeeded", _noting("reopenIfNeeded", case.handler.reopenIfNeeded)):
        yield


for _name in (
    "makeRecord",
    "handle",
    "callHandlers",
    "filter",
    "_log",
    "findCaller",
    "isEnabledFor",
    "getEffectiveLevel",
    "hasHandlers",
    "info",
    "debug",
    "log",
    "error",
):

    def _on_instance(case, name=_name):
        with mock.patch.object(case.log, name, _noting(name, getattr(case.log, name))):
            yield

    def _on_class(case, name=_name):
        with mock.patch.object(
            case.logging.Logger,
            name,
            _noting_method(name, vars(case.logging.Logger).get(name) or getattr(case.logging.Logger, name)),
        ):
            yield

    # The public methods are the entry to logspool: a patch calls the original method, or does not reach logspool.
    _inner = _name in ("makeRecord", "handle", "callHandlers", "filter", "_log", "findCaller", "isEnabledFor")
    named_row(f"logs_{_name}_patched", _on_instance, STOCK if _inner else UNSAID, kinds=ONE_OF_EACH)
    named_row(f"logger_classs_{_name}_patched", _on_class, STOCK if _inner else UNSAID, kinds=ONE_OF_EACH)


@row(STOCK, kinds=ONE_OF_EACH)
def logger_classs_call_handlers_assigned_as_sentry_does(case):
    original = case.logging.Logger.callHandlers

    def call_handlers(self, record):
        try:
            return original(self, record)
        finally:
            note(f"after {record.getMessage()}")

    case.logging.Logger.callHandlers = call_handlers
    yield
    case.logging.Logger.callHandlers = original


class _Proxy:
    """Forwards calls as a proxy of wrapt does: it has the class and the attributes of the function that it wraps."""

    def __init__(self, wrapped, around):
        self._wrapped = wrapped
        self._around = around

    @property
    def __class__(self):
        return type(self._wrapped)

    def __getattr__(self, name):
        return getattr(self._wrapped, name)

    def __get__(self, instance, owner):
        return _Proxy(self._wrapped.__get__(instance, owner), self._around)

    def __call__(self, *args, **keywords):
        return self._around(self._wrapped(*args, **keywords))


@row(STOCK, kinds=ONE_OF_EACH)
def logger_classs_make_record_wrapped_as_ddtrace_does(case):
    def changed(record):
        record.msg = f"traced {record.msg}"
        return record

    original = case.logging.Logger.makeRecord
    case.logging.Logger.makeRecord = _Proxy(vars(case.logging.Logger)["makeRecord"], changed)
    yield
    case.logging.Logger.makeRecord = original


@row(STOCK, kinds=ONE_OF_EACH)
def filterer_classs_filter_patched(case):
    with mock.patch.object(
        case.logging.Filterer, "filter", _noting_method("filter", vars(case.logging.Filterer)["filter"])
    ):
        yield


@row(UNSAID, kinds=ONE_OF_EACH)
def parents_call_handlers_patched(case):
    # A call uses `callHandlers` of its own logger only, never the parent's.
    with mock.patch.object(case.parent, "callHandlers", _noting("callHandlers", case.parent.callHandlers)):
        yield


# Records
@row(STOCK)
def record_factory_set(case):
    def make(*args, **keywords):
        record = case.logging.LogRecord(*args, **keywords)
        record.msg = f"made {record.msg}"
        return record

    case.logging.setLogRecordFactory(make)
    yield
    case.logging.setLogRecordFactory(case.logging.LogRecord)


@row(STOCK, kinds=ONE_OF_EACH)
def record_factory_assigned(case):
    class Tagged(case.logging.LogRecord):
        def getMessage(self):
            return f"tagged {super().getMessage()}"

    with mock.patch.object(case.logging, "_logRecordFactory", Tagged):
        yield


@row(UNSAID, kinds=ONE_OF_EACH)
def record_class_replaced_in_the_module(case):
    # `_logRecordFactory` was bound to the class before, so nothing changes.
    with mock.patch.object(case.logging, "LogRecord", type("Never", (case.logging.LogRecord,), {"getMessage": None})):
        yield


@row(STOCK, kinds=ONE_OF_EACH)
def records_get_message_patched(case):
    with mock.patch.object(case.logging.LogRecord, "getMessage", lambda self: f"got {self.msg}"):
        yield


@row(STOCK, kinds=ONE_OF_EACH)
def records_init_patched(case):
    original = case.logging.LogRecord.__init__

    def init(self, *args, **keywords):
        original(self, *args, **keywords)
        self.threadName = "patched"

    with mock.patch.object(case.logging.LogRecord, "__init__", init):
        yield
