import io
import logging
import logging.handlers
import os

import pytest
from thread_handler_support import new_logger, run_python

from logspool.thread._batch import is_plain_stream
from logspool.thread._handler import ThreadHandler


def log_everything(logger):
    logger.info("plain")
    logger.debug("below the handler's level")
    logger.warning("filtered out")
    logger.error("two\nlines")
    logger.info("argument %s %d", "text", 7)
    logger.info("%s", ["list"])
    for number in range(1000):
        logger.info("%d %s", number, "x" * 200)


def customised(handler):
    handler.setLevel(logging.INFO)
    handler.addFilter(lambda record: record.msg != "filtered out")
    handler.setFormatter(logging.Formatter("%(levelname)s|%(message)s"))
    handler.terminator = "|END\n"
    return handler


def test_the_file_is_byte_for_byte_the_same_as_with_stock_logging(tmp_path):
    stock = customised(logging.FileHandler(tmp_path / "stock"))
    wrapped = customised(logging.FileHandler(tmp_path / "thread", delay=True))
    handler = ThreadHandler(wrapped, blocking_levels={"INFO"})
    logger = new_logger("plain", stock)
    logger.addHandler(handler)
    log_everything(logger)
    handler.close()
    stock.close()

    assert (tmp_path / "thread").read_bytes() == (tmp_path / "stock").read_bytes()


def test_stock_handlers_on_text_files_are_written_in_batches(tmp_path):
    with open(tmp_path / "out", "w") as stream:
        assert is_plain_stream(logging.StreamHandler(stream))
    file_handler = logging.FileHandler(tmp_path / "out")
    assert is_plain_stream(file_handler)
    file_handler.close()


@pytest.mark.parametrize("name", ["emit", "handle", "flush"])
def test_a_handler_that_overrides_a_method_is_called_record_by_record(name, tmp_path):
    calls = []

    def method(self, *arguments):
        calls.append(name)
        return getattr(logging.FileHandler, name)(self, *arguments)

    kind = type("Custom", (logging.FileHandler,), {name: method})
    wrapped = kind(tmp_path / "out")
    assert not is_plain_stream(wrapped)
    handler = ThreadHandler(wrapped)
    logger = new_logger("plain", handler)
    for _ in range(10):
        logger.info("x")
    handler.close()

    assert len(calls) >= 10
    assert (tmp_path / "out").read_text() == 10 * "x\n"


def test_other_handlers_and_streams_are_called_record_by_record(tmp_path):
    wrapped = logging.FileHandler(tmp_path / "out")
    wrapped.emit = lambda record: None
    assert not is_plain_stream(wrapped)
    wrapped.close()
    assert not is_plain_stream(logging.StreamHandler(io.StringIO()))
    assert not is_plain_stream(logging.NullHandler())
    rotating = logging.handlers.RotatingFileHandler(tmp_path / "rotating", maxBytes=100, backupCount=3)
    assert not is_plain_stream(rotating)
    rotating.close()


@pytest.mark.parametrize("installed", [False, True])
def test_a_python_stream_gets_one_write_per_line_and_one_flush_per_batch(installed):
    run_python(COUNTING, str(int(installed)))


COUNTING = """
import logging, sys, threading
import logspool

if sys.argv[1] == "1":
    logspool.install()
errors = []

class Noting(logging.StreamHandler):
    def handleError(self, record):
        errors.append(record.getMessage())

class Stream:
    lines, flushed, flushes = [], 0, 0

    def write(self, text):
        if text == "refused\\n":
            raise OSError("refused")
        self.lines.append(text)

    def flush(self):
        self.flushed = len(self.lines)
        self.flushes += 1

stream = Stream()
wrapped = Noting(stream)
handler = logspool.ThreadHandler(wrapped, queue_size=4000)
log = logging.getLogger("app")
log.addHandler(handler)
with wrapped.lock:
    for number in range(2000):
        log.warning("refused" if number == 700 else "%d", *[] if number == 700 else [number])
assert handler.flush(30)
assert errors == ["refused"], errors
assert stream.lines == [f"{number}\\n" for number in range(2000) if number != 700]
assert stream.flushed == 1999
# The first batch has one record; then each is larger, unless the machine is busy.
assert stream.flushes < 2000, stream.flushes
assert handler.stats().written == 2000
handler.close()
"""


def test_a_record_that_cannot_be_encoded_does_not_affect_others(tmp_path):
    errors = []

    class Ascii(logging.FileHandler):
        def handleError(self, record):
            errors.append(record.getMessage())

    wrapped = Ascii(tmp_path / "out", encoding="ascii")
    assert is_plain_stream(wrapped)
    handler = ThreadHandler(wrapped)
    logger = new_logger("plain", handler)
    with wrapped.lock:
        for word in ("one", "tw\u00f6", "three"):
            logger.info(word)
    handler.close()

    assert (tmp_path / "out").read_text() == "one\nthree\n"
    assert errors == ["tw\u00f6"]


def test_a_record_that_cannot_be_formatted_does_not_affect_others(tmp_path, capsys):
    handler = ThreadHandler(logging.FileHandler(tmp_path / "out"))
    logger = new_logger("plain", handler)
    logger.info("one")
    logger.info("%d", "two")
    logger.info("three")
    handler.close()

    assert (tmp_path / "out").read_text() == "one\nthree\n"
    assert "Message: '%d'" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_every_record_that_a_full_disk_may_have_lost_is_reported():
    errors = []

    class Full(logging.StreamHandler):
        def handleError(self, record):
            errors.append(record.getMessage())

    stream = open("/dev/full", "w")
    wrapped = Full(stream)
    handler = ThreadHandler(wrapped)
    logger = new_logger("plain", handler)
    with wrapped.lock:
        for number in range(5):
            logger.info("%d", number)
    try:
        handler.close()
    except OSError:
        pass
    try:
        stream.close()
    except OSError:
        pass

    assert errors == [str(number) for number in range(5)]
    assert handler.stats().written == 5


def test_setting_another_stream_takes_effect_for_later_records(tmp_path):
    first, second = open(tmp_path / "first", "w"), open(tmp_path / "second", "w")
    wrapped = logging.StreamHandler(first)
    handler = ThreadHandler(wrapped)
    logger = new_logger("plain", handler)
    logger.info("one")
    handler.flush()
    wrapped.setStream(second)
    logger.info("two")
    handler.close()
    first.close()
    second.close()

    assert (tmp_path / "first").read_text() == "one\n"
    assert (tmp_path / "second").read_text() == "two\n"


def test_rotation_works_with_the_queue(tmp_path):
    rotating = logging.handlers.RotatingFileHandler(tmp_path / "out", maxBytes=1000, backupCount=100)
    handler = ThreadHandler(rotating, blocking_levels={"INFO"}, shutdown_timeout=60.0)
    logger = new_logger("plain", handler)
    for number in range(500):
        logger.info("%d", number)
    handler.close()
    numbers = [int(word) for path in tmp_path.iterdir() for word in path.read_text().split()]

    assert sorted(numbers) == list(range(500))
    assert len(list(tmp_path.iterdir())) > 1
