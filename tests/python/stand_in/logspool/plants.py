"""Differences from stock logging, planted on purpose: the suite must turn red on each.

`stale` behaves like a native path that sees no change after its first call. A row of the invalidation table that stays
green with it tests nothing, or tests a change that has no effect in stock logging either.
"""

import copy
import functools
import logging
import multiprocessing
import os
import sys
import threading
import time
import weakref

_undo = []


def remove():
    """Remove the planted difference, as `uninstall()` would."""
    while _undo:
        _undo.pop()()


def _replace(owner, name, value):
    original = vars(owner)[name]
    _undo.append(lambda: setattr(owner, name, original))
    setattr(owner, name, value)


# stale: everything is looked up once -------------------------------------------------------------------------------

_Record = logging.LogRecord
_get_message = logging.LogRecord.getMessage
_record_init = logging.LogRecord.__init__


class _FrozenRecord(logging.LogRecord):
    __init__ = _record_init
    getMessage = _get_message


class _Plan:
    def __init__(self, log):
        self.threshold = max(log.getEffectiveLevel(), log.manager.disable + 1)
        self.disabled = log.disabled
        self.name = log.name
        self.filters = list(log.filters)
        self.steps = []
        found = log
        while found:
            for handler in found.handlers:
                formatter = copy.deepcopy(handler.formatter) if type(handler.formatter) is logging.Formatter else None
                self.steps.append(
                    (handler, handler.level, list(handler.filters), formatter, handler.terminator, handler.stream)
                )
            found = found.parent if found.propagate else None
        self.level_names = dict(logging._levelToName)
        self.thread_name = threading.current_thread().name
        self.process_name = multiprocessing.current_process().name

    def call(self, level, msg, args, frame):
        if level < self.threshold or self.disabled:
            return
        code = frame.f_code
        record = _FrozenRecord(self.name, level, code.co_filename, frame.f_lineno, msg, args, None, code.co_name)
        record.levelname = self.level_names.get(level, f"Level {level}")
        record.threadName, record.processName = self.thread_name, self.process_name
        record.process = os.getpid()
        if not all(_passes(each, record) for each in self.filters):
            return
        for _handler, lowest, filters, formatter, terminator, stream in self.steps:
            if level >= lowest and all(_passes(each, record) for each in filters):
                text = formatter._style._fmt % {**vars(record), "message": record.getMessage()} if formatter else msg
                try:
                    stream.write(text + terminator)
                    stream.flush()
                except ValueError:
                    pass


def _passes(found, record):
    return (found.filter if hasattr(found, "filter") else found)(record)


def _stale():
    plans = weakref.WeakKeyDictionary()

    def call(log, level, msg, args, frame):
        if log not in plans:
            plans[log] = _Plan(log)
        plans[log].call(level, msg, args, frame)

    def method(level):
        return lambda self, msg, *args, **keywords: call(self, level, msg, args, sys._getframe(1))

    for name in ("debug", "info", "warning", "error", "critical"):
        _replace(logging.Logger, name, method(getattr(logging, name.upper())))
    _replace(
        logging.Logger,
        "log",
        lambda self, level, msg, *args, **keywords: call(self, level, msg, args, sys._getframe(1)),
    )


# One small fault each ----------------------------------------------------------------------------------------------


def _around_emit(change):
    original = vars(logging.StreamHandler)["emit"]

    @functools.wraps(original)
    def emit(self, record):
        change(original, self, record)

    _replace(logging.StreamHandler, "emit", emit)


def _drops():
    """One record in fifty is lost."""
    count = iter(range(10**9))
    _around_emit(lambda emit, handler, record: None if next(count) % 50 == 49 else emit(handler, record))


def _doubles():
    """One record in fifty is written twice."""
    count = iter(range(10**9))

    def change(emit, handler, record):
        emit(handler, record)
        if next(count) % 50 == 49:
            emit(handler, record)

    _around_emit(change)


def _swaps():
    """In every fifty records, two neighbours change places."""
    state = {"count": 0, "held": None}

    def change(emit, handler, record):
        state["count"] += 1
        if state["count"] % 50 == 49:
            state["held"] = record
            return
        emit(handler, record)
        if state["held"] is not None:
            emit(handler, state["held"])
            state["held"] = None

    _around_emit(change)


def _late():
    """A record is written with the next one: no record is lost, but files miss a line when they are read."""
    held = {}

    def change(emit, handler, record):
        before, held[id(handler)] = held.get(id(handler)), record
        if before is not None:
            emit(handler, before)

    _around_emit(change)
    original = vars(logging.StreamHandler)["flush"]

    def close(self):
        record = held.pop(id(self), None)
        if record is not None and self.stream:
            self.stream.write(self.format(record) + self.terminator)
        original_close(self)

    original_close = vars(logging.FileHandler)["close"]
    _replace(logging.FileHandler, "close", close)
    _undo.append(lambda: original)


def _wrong_line():
    """The caller's line is off by one."""
    original = vars(logging.Logger)["makeRecord"]

    def make_record(self, name, level, fn, lno, *more, **keywords):
        return original(self, name, level, fn, lno + 1, *more, **keywords)

    _replace(logging.Logger, "makeRecord", make_record)


def _short_report():
    """Bad arguments are reported in one line."""

    def handle_error(self, record):
        if logging.raiseExceptions and sys.stderr:
            print(f"--- Logging error --- {record.msg}", file=sys.stderr)

    _replace(logging.Handler, "handleError", handle_error)


def _rounded():
    """Floats are rounded to six digits, as a naive native formatter would."""
    original = vars(logging.LogRecord)["getMessage"]

    def get_message(self):
        if isinstance(self.args, tuple):
            self.args = tuple(float(f"{each:.6g}") if type(each) is float else each for each in self.args)
        return original(self)

    _replace(logging.LogRecord, "getMessage", get_message)


def _cached_zone():
    """The offset to UTC is looked up once."""
    zone = time.strftime("%Z"), time.strftime("%z")
    original = vars(logging.Formatter)["formatTime"]

    def format_time(self, record, datefmt=None):
        if datefmt:
            datefmt = datefmt.replace("%Z", zone[0]).replace("%z", zone[1])
        return original(self, record, datefmt)

    _replace(logging.Formatter, "formatTime", format_time)


def _raises():
    """Bad arguments raise in the caller."""

    def handle_error(self, record):
        raise sys.exc_info()[1]

    _replace(logging.Handler, "handleError", handle_error)


def _hangs():
    """The call of record 501 never returns."""
    count = iter(range(10**9))

    def change(emit, handler, record):
        emit(handler, record)
        while next(count) >= 500:
            time.sleep(1)

    _around_emit(change)


def _dies():
    """Record 501 ends the process, as a fault in native code would."""
    count = iter(range(10**9))

    def change(emit, handler, record):
        emit(handler, record)
        if next(count) == 500:
            os.abort()

    _around_emit(change)


def _leaves_a_file():
    """A file is left in the queue folder."""
    with open(os.path.join(os.environ["LOGSPOOL_QUEUE_DIR"], "segment"), "w") as segment:
        segment.write("left")


# Faults in the counting --------------------------------------------------------------------------------------------

PATHS = {"native": 0, "by_record": 0, "stock": 0}


def _counts_as(path):
    """Every call claims to have taken one path."""
    from types import SimpleNamespace

    import logspool

    original = vars(logging.Logger)["_log"]

    def _log(self, level, msg, args, *more, **keywords):
        PATHS[path] += 1
        keywords["stacklevel"] = keywords.get("stacklevel", 1) + (0 if sys.version_info >= (3, 11) else 1)
        return original(self, level, msg, args, *more, **keywords)

    _log.__code__ = _log.__code__.replace(co_filename=logging._srcfile)
    _replace(logging.Logger, "_log", _log)
    logspool.stats = lambda: SimpleNamespace(paths=dict(PATHS), levels={}, sinks={})


PLANTS = {
    "stale": _stale,
    "drops": _drops,
    "doubles": _doubles,
    "swaps": _swaps,
    "late": _late,
    "wrong-line": _wrong_line,
    "short-report": _short_report,
    "rounded": _rounded,
    "cached-zone": _cached_zone,
    "raises": _raises,
    "hangs": _hangs,
    "dies": _dies,
    "leaves-a-file": _leaves_a_file,
    "counts-native": lambda: _counts_as("native"),
    "counts-stock": lambda: _counts_as("stock"),
}
