"""Rotating handlers: names, sizes and contents of the files."""

import os
from pathlib import Path

from differential.staging import NATIVE, STOCK, UNSAID, note, note_file, scenario
from suite import side


def _rotating(logging, folder, name="app.log", **options):
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(folder / name, **options)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log = logging.getLogger("rotating")
    log.setLevel(10)
    log.addHandler(handler)
    return log, handler


def _timed(logging, folder, **options):
    from logging.handlers import TimedRotatingFileHandler

    handler = TimedRotatingFileHandler(folder / "app.log", **options)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log = logging.getLogger("timed")
    log.setLevel(10)
    log.addHandler(handler)
    return log, handler


@scenario(NATIVE)
def by_size(logging, folder):
    log, _ = _rotating(logging, folder, maxBytes=1000, backupCount=3)
    for number in range(500):
        log.info("number %d %s", number, "x" * (number % 50))


@scenario(NATIVE)
def by_size_at_the_exact_byte(logging, folder):
    for size in (39, 40, 41):
        log, handler = _rotating(logging, folder, name=f"{size}.log", maxBytes=size, backupCount=5)
        for _ in range(8):
            log.info("12345")  # 11 bytes with level and end
        log.removeHandler(handler)
        handler.close()


@scenario(NATIVE)
def by_size_with_characters_of_many_bytes(logging, folder):
    log, _ = _rotating(logging, folder, maxBytes=300, backupCount=4, encoding="utf-8")
    for number in range(50):
        log.info("größe 世界 %d", number)


@scenario(NATIVE)
def without_backups_or_without_size(logging, folder):
    log, _first = _rotating(logging, folder, name="no-backups.log", maxBytes=200, backupCount=0)
    _, _second = _rotating(logging, folder, name="no-size.log", maxBytes=0, backupCount=3)
    for number in range(50):
        log.info("number %d", number)


@scenario(NATIVE)
def record_longer_than_the_file(logging, folder):
    log, _ = _rotating(logging, folder, maxBytes=100, backupCount=4)
    log.info("short")
    log.info("x" * 500)
    log.info("short again")
    log.info("y" * 500)
    log.info("end")


@scenario(NATIVE)
def existing_file_counts(logging, folder):
    (folder / "app.log").write_text("o" * 900 + "\n")
    (folder / "app.log.1").write_text("older\n")
    log, _ = _rotating(logging, folder, maxBytes=1000, backupCount=2)
    for number in range(12):
        log.info("number %d", number)


@scenario(NATIVE)
def delayed(logging, folder):
    log, handler = _rotating(logging, folder, maxBytes=200, backupCount=2, delay=True)
    note(handler.stream is None)
    for number in range(30):
        log.info("number %d", number)


@scenario(NATIVE)
def mode_w_with_a_size_appends(logging, folder):
    (folder / "app.log").write_text("kept\n")
    log, _ = _rotating(logging, folder, mode="w", maxBytes=1000, backupCount=2)
    log.info("after")


@scenario(NATIVE)
def do_rollover_by_hand(logging, folder):
    log, handler = _rotating(logging, folder, maxBytes=0, backupCount=3)
    for number in range(4):
        for inner in range(50):
            log.info("turn %d line %d", number, inner)
        handler.doRollover()
        note_file("app.log")
        note_file("app.log.1")
    log.info("after the last")


@scenario(UNSAID)
def should_rollover_by_hand(logging, folder):
    log, handler = _rotating(logging, folder, maxBytes=60, backupCount=3)
    record = logging.makeLogRecord({"msg": "x" * 30, "levelname": "INFO"})
    for number in range(10):
        note(bool(handler.shouldRollover(record)))
        log.info("number %d", number)


def _note_stream(handler, name="app.log"):
    """Note whether the handler's stream is open on the file at its path."""
    note(os.path.samestat(os.stat(name), os.fstat(handler.stream.fileno())))


@scenario(UNSAID)
def stream_names_the_current_file(logging, folder):
    log, handler = _rotating(logging, folder, maxBytes=100, backupCount=1)
    for number in range(20):
        log.info("number %d %s", number, "x" * 40)
        side.settle()
        # The first call after a rotation updates the stream, and may itself cause the next rotation.
        log.info("%d", number)
        _note_stream(handler)


@scenario(UNSAID)
def stream_of_a_watched_file_names_the_current_file(logging, folder):
    from logging.handlers import WatchedFileHandler

    handler = WatchedFileHandler(folder / "app.log")
    log = logging.getLogger("watched")
    log.setLevel(10)
    log.addHandler(handler)
    for turn in range(5):
        log.info("turn %d", turn)
        side.settle()
        os.rename("app.log", f"app.log.{turn}")
        log.info("first of the next file")
        side.settle()
        log.info("second of the next file")
        _note_stream(handler)


@scenario(NATIVE)
def deleted_backups_are_not_kept_open(logging, folder):
    log, _ = _rotating(logging, folder, maxBytes=200, backupCount=1)
    for number in range(100):
        log.info("number %d", number)
        side.settle()
    log.info("last")
    links = [os.path.join("/proc/self/fd", entry) for entry in os.listdir("/proc/self/fd")]
    named = [os.readlink(link) for link in links if os.path.islink(link)]
    note(sum(name.startswith(str(folder)) and name.endswith("(deleted)") for name in named))


@scenario(STOCK)
def namer_and_rotator(logging, folder):
    log, handler = _rotating(logging, folder, maxBytes=200, backupCount=2)
    handler.namer = lambda name: f"{name}.old"
    handler.rotator = lambda source, target: (
        Path(target).write_bytes(Path(source).read_bytes()[::-1]) and os.remove(source)
    )
    for number in range(30):
        log.info("number %d", number)


@scenario(STOCK)
def subclass_with_its_own_rotation_filename(logging, folder):
    from logging.handlers import RotatingFileHandler

    class Numbered(RotatingFileHandler):
        def rotation_filename(self, default_name):
            return default_name.replace(".log.", "-")

    log = logging.getLogger("numbered")
    log.setLevel(10)
    log.addHandler(Numbered(folder / "app.log", maxBytes=100, backupCount=2))
    for number in range(30):
        log.info("number %d", number)


@scenario(NATIVE)
def file_that_is_no_regular_file_never_rotates(logging, folder):
    from logging.handlers import RotatingFileHandler

    log = logging.getLogger("device")
    log.setLevel(10)
    log.addHandler(RotatingFileHandler("/dev/null", maxBytes=10, backupCount=2))
    for number in range(10):
        log.info("number %d", number)
    note(os.path.exists("/dev/null.1"))


@scenario(NATIVE)
def timed_by_day(logging, folder):
    log, handler = _timed(logging, folder, when="D", utc=True, backupCount=2)
    for day in range(5):
        log.info("day %d", day)
        handler.flush()
        handler.rolloverAt = 1_000_000_000 + day * 86400
        log.info("first after rollover %d", day)


@scenario(NATIVE)
def timed_at_midnight_deletes_the_oldest(logging, folder):
    for day in range(1, 6):
        (folder / f"app.log.2001-01-0{day}").write_text(f"day {day}\n")
    (folder / "app.log.other").write_text("not a day\n")
    log, handler = _timed(logging, folder, when="midnight", utc=True, backupCount=3)
    handler.rolloverAt = 1_000_000_000
    log.info("rolls")
    log.info("after")


@scenario(NATIVE)
def timed_over_an_existing_target(logging, folder):
    log, handler = _timed(logging, folder, when="midnight", utc=True)
    (folder / "app.log.2001-09-08").write_text("is replaced\n")
    log.info("before")
    handler.flush()
    handler.rolloverAt = 1_000_000_000
    log.info("after")


# Another suffix is a customised handler: it rotates as stock logging does, in the caller.
@scenario(STOCK)
def timed_with_changed_suffix(logging, folder):
    log, handler = _timed(logging, folder, when="midnight", utc=True)
    handler.suffix = "%Y_%j"
    log.info("before")
    handler.flush()
    handler.rolloverAt = 1_000_000_000
    log.info("after")


@scenario(NATIVE)
def watched_file_renamed(logging, folder):
    from logging.handlers import WatchedFileHandler

    handler = WatchedFileHandler(folder / "app.log")
    log = logging.getLogger("watched")
    log.setLevel(10)
    log.addHandler(handler)
    for turn in range(5):
        for number in range(50):
            log.info("turn %d line %d", turn, number)
        handler.flush()
        os.rename("app.log", f"app.log.{turn}")
    log.info("last")


@scenario(NATIVE)
def watched_file_removed_and_replaced(logging, folder):
    from logging.handlers import WatchedFileHandler

    handler = WatchedFileHandler(folder / "app.log")
    log = logging.getLogger("watched")
    log.setLevel(10)
    log.addHandler(handler)
    log.info("first")
    handler.flush()
    os.remove("app.log")
    log.info("second")
    handler.flush()
    note_file("app.log")
    os.remove("app.log")
    Path("app.log").write_text("made by somebody else\n")
    log.info("third")
    handler.flush()
    note_file("app.log")
