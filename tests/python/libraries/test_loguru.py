"""`logspool.loguru.sink` writes the bytes that loguru's own file sink writes, also where a call skips the record."""

import contextlib
import datetime
import re
import sys
import threading

import pytest

import logspool

loguru = pytest.importorskip("loguru")

import logspool.loguru as ours  # noqa: E402
from logspool.handlers._loguru_formats import line_format  # noqa: E402

pytestmark = pytest.mark.real

#: Times, addresses and numbers of threads.
MOVING = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d{4})?|^\d\d:\d\d:\d\d,\d+|^\d\d(?= )"
    r"|\"(?:repr|seconds|timestamp)\": [^,}]+|0x[0-9a-f]+|\b\d{12,}\b",
    re.MULTILINE,
)
guru = loguru.logger


@pytest.fixture(autouse=True)
def _only_our_handlers():
    guru.remove()
    yield
    guru.remove()
    guru.configure(extra={}, activation=[("", True)])
    guru._core.patcher = None
    guru.add(sys.stderr)
    logspool.flush()


def _written(path, output, speak, **options):
    """Return what `speak` writes through a handler, without times."""
    before = guru.add(output, **options)
    errors = []
    try:
        # Tracebacks show values of outer frames. On a thread of its own `speak` has the same outer frames each time.
        thread = threading.Thread(target=speak, args=(errors,), name="speaking")
        thread.start()
        thread.join()
    finally:
        with contextlib.suppress(ValueError):
            guru.remove(before)
    return MOVING.sub("MOVING", path.read_text(encoding="utf-8")), errors


def _both(tmp_path, speak, **options):
    """Return what `speak` writes through loguru's own sink, and through ours."""
    makes = {"own.log": str, "native.log": ours.sink}
    return [_written(tmp_path / name, make(tmp_path / name), speak, **options) for name, make in makes.items()]


class Shown:
    """An object that defines its texts."""

    def __str__(self):
        return "shown"

    def __format__(self, spec):
        return f"formatted {spec}"


def _fail():
    raise ValueError("on purpose")


@guru.catch
def _caught():
    _fail()


def _speak(errors):
    guru.trace("trace")
    for method in ("debug", "info", "success", "warning", "error", "critical"):
        getattr(guru, method)("{} of {name:>8}", method, name="é")
    guru.info("no arguments {}")
    guru.info(Shown())
    guru.info("{:x}", Shown())
    guru.log("INFO", "by name")
    guru.log(33, "by number {}", 1)
    guru.log(70_000, "by a large number")
    guru.bind(a=1).info("bound {extra}", extra=2)
    with guru.contextualize(task=3):
        guru.info("in a context")
    guru.opt(lazy=True).info("lazy {}", lambda: 1)
    guru.opt(record=True).info("record {record[level]}")
    guru.opt(colors=True).info("<red>red</red> {}", 1)
    guru.opt(raw=True).info("raw {}\n", 1)
    guru.opt(depth=1).info("depth")
    (lambda: guru.opt(depth=1).info("outer"))()
    guru.patch(lambda record: record.update(message="patched")).info("unpatched")
    guru.info("two\nlines")
    guru.info("")
    try:
        _fail()
    except ValueError:
        guru.exception("failed {}", 1)
        guru.opt(exception=True).warning("with an exception")
    _caught()
    for call in (
        lambda: guru.info("{} {}", 1),
        lambda: guru.log("NO SUCH", "level"),
        lambda: guru.log(-1, "level"),
        lambda: guru.log(1.5, "level"),
        lambda: guru.info(7, 1),
    ):
        try:
            call()
        except Exception as error:
            errors.append((type(error), str(error)))
    thread = threading.Thread(target=lambda: guru.info("in a thread"), name="other")
    thread.start()
    thread.join()
    exec(compile("logger.info('made up')", "made-up.py", "exec"), {"logger": guru, "__name__": "made.up"})
    exec(compile("logger.info('no name')", "made-up.py", "exec"), {"logger": guru})


OPTIONS = {
    "default": {},
    "level_name": {"level": "TRACE"},
    "level_number": {"level": 40},
    "filter_name": {"filter": "made"},
    "filter": {"filter": lambda record: "a" in record["message"]},
    "format": {"format": "{time} {level.no} {extra} {message}"},
    "short_format": {"format": "{time:YYYY/MM/DD HH:mm:ss} {{ {level.name:>9} }} {level.no:03d} {line:>5} {message}"},
    "micros": {"format": "{time:HH:mm:ss,SSSSSS}|{level}|{message}"},
    "no_time": {"format": "{function} {message:>20}"},
    "colour_markup": {"format": "<red>{time:ss}</red> {message}"},
    "other_times": {"format": "{time:YYYY} {time:MM} {message}"},
    "named_month": {"format": "{time:DD MMM YYYY} {message!r}"},
    "format_of_names": {"format": "{message} {name} {thread.name} {file.name}"},
    "format_function": {"format": lambda record: "{level} {message}\n{exception}"},
    "colours": {"colorize": True},
    "serialized": {"serialize": True},
    "short_exceptions": {"backtrace": False, "diagnose": False},
    "queue": {"enqueue": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_file_has_the_same_bytes_as_with_the_sink_of_loguru(tmp_path, options):
    own, native = _both(tmp_path, _speak, **options)

    assert native == own
    assert own[0]


def test_a_patcher_and_default_fields_are_seen(tmp_path):
    guru.configure(patcher=lambda record: record.update(message=record["message"].upper()), extra={"host": "h"})

    own, native = _both(tmp_path, _speak, format="{extra} {message}")
    assert native == own
    own, native = _both(tmp_path, _speak)
    assert native == own


def test_modules_can_be_disabled_and_enabled(tmp_path):
    def speak(_):
        guru.info("on")
        guru.disable(__name__)
        guru.info("off")
        guru.enable(__name__)
        guru.info("on again")

    own, native = _both(tmp_path, speak)
    assert native == own
    assert own[0].count("\n") == 2


def test_a_second_handler_gets_every_record(tmp_path):
    seen = []
    guru.add(ours.sink(tmp_path / "native.log"))
    guru.info("one")
    other = guru.add(seen.append, format="{message} {line}")
    guru.info("two")
    guru.remove(other)
    guru.info("three")
    guru.remove()

    lines = (tmp_path / "native.log").read_text().splitlines()
    assert [line.rpartition(" - ")[2] for line in lines] == ["one", "two", "three"]
    assert [text.split()[0] for text in seen] == ["two"]


def test_the_time_is_the_local_time_of_the_call(tmp_path):
    before = datetime.datetime.now()
    guru.add(ours.sink(tmp_path / "native.log"))
    guru.info("now")
    guru.remove()

    shown = (tmp_path / "native.log").read_text().partition(" | ")[0]
    assert abs(datetime.datetime.strptime(shown, "%Y-%m-%d %H:%M:%S.%f") - before) < datetime.timedelta(minutes=5)


def test_a_replaced_clock_is_used(tmp_path, monkeypatch):
    from loguru import _logger

    at = _logger.aware_now().replace(year=1999)
    monkeypatch.setattr(_logger, "aware_now", lambda: at)
    guru.add(ours.sink(tmp_path / "native.log"))
    guru.info("then")
    guru.remove()

    assert (tmp_path / "native.log").read_text().startswith("1999-")


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("{time:YYYY-MM-DD HH:mm:ss.SSS} | {level: <8} | {name}:{function}:{line} - {message}\n{exception}", True),
        ("{message}", True),
        ("{time:HHmmss} {time:HHmmss}", True),
        ("{time}", False),
        ("{time:YYYY-MM-DDTHH:mm:ss}", False),
        ("{time:HH.SSS}", False),
        ("{time:ss!UTC}", False),
        ("{message!r}", False),
        ("{line:{level.no}}", False),
        ("{extra[a]} {message}", False),
        ("{exception!r}", False),
    ],
)
def test_a_format_is_known_if_its_fields_are(text, is_known):
    assert (line_format(text) is not None) == is_known


def test_log_is_restored_when_the_last_sink_is_removed(tmp_path):
    cls = type(guru)
    stock = cls._log
    first, second = (guru.add(ours.sink(tmp_path / name)) for name in ("first.log", "second.log"))
    assert cls._log is not stock
    guru.remove(first)
    assert cls._log is not stock
    guru.remove(second)
    assert cls._log is stock


def test_a_logspool_handler_accepts_the_lines(tmp_path):
    handler = logspool.RotatingFileHandler(tmp_path / "app.log", maxBytes=1000, backupCount=3)
    guru.add(ours.sink(handler), format="{message}")
    for number in range(100):
        guru.info("a line of some length, number {}", number)
    guru.remove()

    written = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("app.log*"), reverse=True))
    assert len(list(tmp_path.glob("app.log*"))) == 4
    assert written.splitlines()[-1] == b"a line of some length, number 99"


@pytest.mark.parametrize(
    ("make", "mend"),
    [
        (lambda path: ours.sink(7), "output must be a path or a handler"),
        (lambda path: ours.sink(path, rotation="1 day"), "rotation"),
        (lambda path: ours.sink(_with_level(path)), "level= and filter= of logger.add"),
    ],
)
def test_an_invalid_argument_raises_an_error_with_a_fix(tmp_path, make, mend):
    with pytest.raises((TypeError, ValueError), match=mend):
        make(tmp_path / "app.log")


def _with_level(path):
    handler = logspool.FileHandler(path, delay=True)
    handler.setLevel(10)
    return handler


def test_a_forked_child_and_its_parent_write_every_line(run_program):
    program = (
        "import os\nfrom loguru import logger\nimport logspool.loguru\n"
        "logger.remove()\nlogger.add(logspool.loguru.sink('app.log'))\n"
        "logger.info('before')\n"
        "child = os.fork()\n"
        "for number in range(100):\n    logger.info('{} {}', child == 0, number)\n"
        "if child:\n    os.waitpid(child, 0)\n"
    )
    outcome, folder = run_program(program, side="installed")

    lines = [line.rpartition(" - ")[2] for line in (folder / "app.log").read_text().splitlines()]
    expected = ["before"] + [f"{side} {number}" for side in (True, False) for number in range(100)]
    assert (outcome.expect_success().status, sorted(lines)) == (0, sorted(expected))
