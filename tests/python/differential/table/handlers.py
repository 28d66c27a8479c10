"""Rows: attributes of handlers and formatters."""

import io
import sys
from pathlib import Path
from unittest import mock

from differential.staging import FULL, NATIVE, STOCK, UNSAID, note
from differential.table.cases import FILES, ONE_OF_EACH, STREAMS, named_row, row


# Handler attributes
@row(NATIVE)
def handler_set_level(case):
    case.handler.setLevel(case.logging.ERROR)


@row(NATIVE)
def handler_level_assigned(case):
    case.handler.level = case.logging.WARNING


@row(NATIVE)
def ancestors_handler_level_assigned(case):
    case.root_handler.level = case.logging.DEBUG
    case.parent_handler.level = case.logging.CRITICAL


@row(NATIVE)
def handler_set_formatter(case):
    case.handler.setFormatter(case.logging.Formatter("other %(message)s"))


@row(NATIVE)
def handler_formatter_assigned(case):
    case.handler.formatter = case.logging.Formatter("{levelname:>9} {message}", style="{")


@row(NATIVE)
def handler_formatter_none(case):
    case.handler.formatter = None


@row(NATIVE)
def handler_formatter_without_format(case):
    case.handler.setFormatter(case.logging.Formatter())


@row(STOCK)
def handler_formatter_of_a_subclass(case):
    class Shouting(case.logging.Formatter):
        def format(self, record):
            return super().format(record).upper()

    case.handler.setFormatter(Shouting(FULL))


@row(STOCK)
def handler_formatter_that_is_no_formatter(case):
    class Short:
        def format(self, record):
            return f"short {record.getMessage()}"

    case.handler.formatter = Short()


@row(NATIVE, kinds=STREAMS)
def handler_terminator_assigned(case):
    case.handler.terminator = "|\n"


@row(NATIVE, kinds=FILES)
def file_handler_terminator_assigned(case):
    case.handler.terminator = ""


@row(NATIVE)
def handler_terminator_of_the_class_assigned(case):
    with mock.patch.object(case.logging.StreamHandler, "terminator", "<end>\n"):
        yield


@row(NATIVE, kinds=("pipe", "terminal", "stdout"))
def handler_set_stream(case):
    case.handler.setStream(case.other.stream)


@row(NATIVE, kinds=("file", "rotating", "timed", "pipe", "terminal"))
def handler_stream_assigned(case):
    case.handler.flush()
    stream = case.handler.stream
    case.handler.stream = case.other.stream
    yield
    case.handler.flush()
    case.handler.stream = stream


@row(STOCK, kinds=("file", "pipe", "terminal"))
def handler_stream_assigned_to_stringio(case):
    case.handler.flush()
    stream = case.handler.stream
    memory = case.handler.stream = io.StringIO()
    yield
    note(memory.getvalue())
    case.handler.stream = stream


@row(UNSAID, kinds=("file", "pipe", "terminal"))
def handler_streams_write_patched(case):
    stream = case.handler.stream
    original = stream.write
    stream.write = lambda text: original(text.replace("e", "E"))
    yield
    del stream.write


@row(UNSAID, kinds=("file", "pipe"))
def handler_stream_reconfigured(case):
    stream = case.handler.stream
    before = {"encoding": stream.encoding, "errors": stream.errors, "newline": "\n"}
    stream.reconfigure(encoding="utf-16-le", newline="\r\n", errors="replace")
    yield
    case.handler.flush()
    stream.reconfigure(**before)


@row(STOCK, kinds=("file", "pipe"))
def handler_streams_newline_reconfigured(case):
    stream = case.handler.stream
    stream.reconfigure(newline="\r\n")
    yield
    stream.reconfigure(newline="\n")


@row(NATIVE, kinds=("file", "pipe"))
def handler_streams_errors_reconfigured(case):
    stream = case.handler.stream
    before = stream.errors
    stream.reconfigure(errors="xmlcharrefreplace")
    case.log.info("half \ud800 pair")
    yield
    stream.reconfigure(errors=before)


@row(STOCK, kinds=("file", "pipe", "terminal"))
def handler_streams_flush_patched(case):
    stream = case.handler.stream
    original = stream.flush
    stream.flush = lambda: (note("flush"), original())
    yield
    del stream.flush


@row(STOCK, kinds=("file",))
def handler_streams_buffers_write_patched(case):
    buffer = case.handler.stream.buffer
    original = buffer.write
    buffer.write = lambda data: original(bytes(data).upper())
    yield
    del buffer.write


@row(UNSAID, kinds=FILES)
def handler_stream_closed(case):
    case.handler.flush()
    case.handler.stream.close()


@row(UNSAID, kinds=("file",))
def handler_streams_buffer_closed(case):
    case.handler.flush()
    case.handler.stream.buffer.close()


@row(STOCK, kinds=("file",))
def handler_stream_detached(case):
    stream = case.handler.stream
    case.handler.flush()
    case.buffer = stream.detach()
    yield
    case.handler.stream = case.other.stream
    case.buffer.close()


@row(NATIVE, until=(3, 13))
def handler_lock_none(case):
    case.handler.lock = None
    yield
    case.handler.createLock()


class _NotingLock:
    def acquire(self):
        note("acquire")

    def release(self):
        note("release")

    def __enter__(self):
        note("enter")

    def __exit__(self, *exception):
        note("exit")


@row(STOCK)
def handler_lock_of_another_kind(case):
    case.handler.lock = _NotingLock()
    yield
    case.handler.createLock()


@row(NATIVE)
def handler_name_assigned(case):
    case.handler.name = "named"
    note(case.logging.getHandlerByName("named") is case.handler if sys.version_info >= (3, 12) else True)


@row(STOCK)
def handler_class_assigned(case):
    original = type(case.handler)

    class Doubling(original):
        def emit(self, record):
            super().emit(record)
            super().emit(record)

    case.handler.__class__ = Doubling
    yield
    case.handler.__class__ = original


@row(NATIVE, kinds=FILES)
def handler_closed(case):
    case.handler.close()


@row(NATIVE, kinds=FILES)
def handler_closed_and_base_filename_assigned(case):
    case.handler.close()
    case.handler.baseFilename = str(case.folder / "moved.log")


@row(NATIVE, kinds=("rotating",))
def handler_max_bytes_assigned(case):
    case.handler.maxBytes = 300


@row(NATIVE, kinds=("rotating",))
def handler_max_bytes_zero(case):
    case.handler.maxBytes = 0
    yield
    case.warm(300)


@row(NATIVE, kinds=("rotating",))
def handler_backup_count_assigned(case):
    case.handler.backupCount = 1
    case.handler.maxBytes = 200


@row(NATIVE, kinds=("timed",))
def handler_rollover_time_assigned(case):
    case.handler.rolloverAt = 1_000_000_000


@row(STOCK, kinds=("rotating",))
def handler_namer_assigned(case):
    case.handler.namer = lambda name: name.replace("app.log", "named.log")
    case.handler.maxBytes = 300


@row(STOCK, kinds=("rotating",))
def handler_rotator_assigned(case):
    def rotate(source, target):
        Path(target).write_bytes(Path(source).read_bytes().upper())
        Path(source).unlink()

    case.handler.rotator = rotate
    case.handler.maxBytes = 300


# Formatter attributes
@row(NATIVE)
def formatters_style_format_assigned(case):
    case.formatter._style._fmt = "style %(message)s"


@row(NATIVE)
def formatters_style_assigned(case):
    case.formatter._style = case.logging.StrFormatStyle("{levelname} {message}")


@row(NATIVE)
def formatters_fmt_alone_assigned(case):
    # The formatter formats by its `_style` only, so nothing changes.
    case.formatter._fmt = "never %(message)s"


@row(NATIVE)
def formatters_date_format_assigned(case):
    case.formatter.datefmt = "the day"
    case.formatter._style._fmt = "%(asctime)s %(message)s"


@row(STOCK)
def formatters_converter_assigned(case):
    case.formatter.converter = lambda seconds: (1999, 12, 31, 23, 59, 58, 4, 365, 0)
    case.formatter._style._fmt = "%(asctime)s %(message)s"
    case.formatter.default_msec_format = None


@row(STOCK)
def formatter_classs_converter_assigned(case):
    case.formatter._style._fmt = "%(asctime)s %(message)s"
    case.formatter.default_msec_format = None
    with mock.patch.object(
        case.logging.Formatter, "converter", staticmethod(lambda seconds: (1999, 12, 31, 23, 59, 58, 4, 365, 0))
    ):
        yield
    case.formatter._style._fmt = FULL


@row(NATIVE)
def formatters_default_time_format_assigned(case):
    case.formatter._style._fmt = "%(asctime)s %(message)s"
    case.formatter.default_time_format = "on a day"
    case.formatter.default_msec_format = None


@row(NATIVE)
def formatter_classs_default_time_format_assigned(case):
    case.formatter._style._fmt = "%(asctime)s %(message)s"
    case.formatter.default_msec_format = None
    with mock.patch.object(case.logging.Formatter, "default_time_format", "on any day"):
        yield
    case.formatter._style._fmt = FULL


@row(STOCK)
def formatters_defaults_assigned(case):
    case.formatter._style._defaults = {"tenant": "acme"}
    case.formatter._style._fmt = "%(tenant)s %(message)s"


def _with_a_constant_time(case):
    case.formatter.datefmt = "a day"
    case.formatter._style._fmt = f"%(asctime)s|{FULL}"


for _name in ("format", "formatMessage", "usesTime", "formatTime"):

    def _on_instance(case, name=_name):
        original = getattr(case.formatter, name)

        def patched(*args):
            result = original(*args)
            note(f"{name} -> {result!r}") if name in ("usesTime", "formatTime") else None
            return f"[{name}] {result}" if isinstance(result, str) else result

        setattr(case.formatter, name, patched)
        yield
        delattr(case.formatter, name)

    def _on_class(case, name=_name):
        original = getattr(case.logging.Formatter, name)

        def patched(self, *args, **keywords):
            result = original(self, *args, **keywords)
            note(f"{name} -> {result!r}") if name in ("usesTime", "formatTime") else None
            return f"[{name}] {result}" if isinstance(result, str) else result

        with mock.patch.object(case.logging.Formatter, name, patched):
            yield

    named_row(f"formatters_{_name}_patched", _on_instance, STOCK, kinds=ONE_OF_EACH, prepare=_with_a_constant_time)
    named_row(f"formatter_classs_{_name}_patched", _on_class, STOCK, kinds=ONE_OF_EACH, prepare=_with_a_constant_time)


@row(STOCK, kinds=ONE_OF_EACH)
def percent_styles_format_patched(case):
    with mock.patch.object(case.logging.PercentStyle, "format", lambda self, record: f"styled {record.getMessage()}"):
        yield


@row(STOCK, kinds=ONE_OF_EACH)
def percent_styles_inner_format_patched(case):
    with mock.patch.object(case.logging.PercentStyle, "_format", lambda self, record: f"inner {record.getMessage()}"):
        yield


@row(STOCK, kinds=ONE_OF_EACH)
def formatters_style_of_a_subclass(case):
    class Bracketed(case.logging.PercentStyle):
        def format(self, record):
            return f"[{super().format(record)}]"

    case.formatter._style = Bracketed(FULL)


@row(NATIVE, kinds=ONE_OF_EACH)
def default_formatter_replaced(case):
    case.handler.formatter = None
    with mock.patch.object(case.logging, "_defaultFormatter", case.logging.Formatter("default %(message)s")):
        yield
