"""The basis of the invalidation table: the kinds of handler, the loggers of a row, the row itself."""

import inspect
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from differential.staging import FULL, NATIVE, PIPE, TERMINAL, WARM_CALLS


@dataclass(frozen=True)
class Kind:
    """One kind of handler."""

    name: str
    make: Callable
    native: bool = True
    streams: str = PIPE
    warm_calls: int = WARM_CALLS


def _rotating(logging, folder):
    from logging.handlers import RotatingFileHandler

    return RotatingFileHandler(folder / "app.log", maxBytes=40_000, backupCount=9)


def _timed(logging, folder):
    from logging.handlers import TimedRotatingFileHandler

    return TimedRotatingFileHandler(folder / "app.log", when="midnight", backupCount=2)


def _watched(logging, folder):
    from logging.handlers import WatchedFileHandler

    return WatchedFileHandler(folder / "app.log")


KINDS = (
    Kind("file", lambda logging, folder: logging.FileHandler(folder / "app.log")),
    Kind("rotating", _rotating, warm_calls=200),
    Kind("timed", _timed, warm_calls=200),
    Kind("watched", _watched, warm_calls=200),
    Kind("pipe", lambda logging, folder: logging.StreamHandler(), warm_calls=200),
    Kind("stdout", lambda logging, folder: logging.StreamHandler(sys.stdout), warm_calls=200),
    Kind("terminal", lambda logging, folder: logging.StreamHandler(), streams=TERMINAL),
    Kind("stringio", lambda logging, folder: logging.StreamHandler(io.StringIO()), native=False, warm_calls=200),
)


class Case:
    """The loggers and handlers that a row changes."""

    def __init__(self, logging, folder: Path, kind: Kind) -> None:
        self.logging = logging
        self.folder = folder
        self.root = logging.getLogger()
        self.parent = logging.getLogger("app")
        self.log = logging.getLogger("app.db")
        self.log.setLevel(logging.DEBUG)
        self.handler = kind.make(logging, folder)
        self.formatter = logging.Formatter(FULL)
        self.handler.setFormatter(self.formatter)
        self.log.addHandler(self.handler)
        self.parent_handler = self._file("parent", logging.ERROR)
        self.parent.addHandler(self.parent_handler)
        self.root_handler = self._file("root", logging.ERROR)
        self.root.addHandler(self.root_handler)
        self.other = self._file("other", logging.NOTSET)
        self._stream = self.handler.stream
        self._warm_calls = kind.warm_calls

    def _file(self, name: str, level: int):
        handler = self.logging.FileHandler(self.folder / f"{name}.log")
        handler.setFormatter(self.logging.Formatter(f"{name}: {FULL}"))
        handler.setLevel(level)
        return handler

    def warm(self, calls: int | None = None) -> None:
        log = self.log
        for number in range(calls or self._warm_calls):
            log.info("warm n%d of %s", number, "many")
            if not number % 100:
                log.error("warm error n%d", number)

    def keep_memory(self) -> None:
        """Write the text of a StringIO to a file, so that it is compared."""
        if isinstance(self._stream, io.StringIO):
            (self.folder / "memory.txt").write_text(self._stream.getvalue(), encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """One change: a plain function, or a generator that undoes it after its `yield`."""

    name: str
    change: Callable
    path: str
    warm_path: str
    prepare: Callable | None
    kinds: tuple[str, ...]
    since: tuple[int, int]
    until: tuple[int, int]

    @contextmanager
    def applied(self, case: Case) -> Iterator[None]:
        if inspect.isgeneratorfunction(self.change):
            with contextmanager(self.change)(case):
                yield
        else:
            self.change(case)
            yield


ROWS: list[Row] = []
EVERY_KIND = tuple(kind.name for kind in KINDS)
FILES = ("file", "rotating", "timed", "watched")
STREAMS = ("pipe", "terminal", "stringio")
# For changes whose effect does not depend on the handler: kinds with and without a writer thread.
ONE_OF_EACH = ("file", "terminal", "stringio")


def row(path, *, warm_path=NATIVE, prepare=None, kinds=EVERY_KIND, since=(3, 10), until=(4, 0)):
    """Add the decorated change to the table.

    `path` is the path of the calls after the change; `since` is the first Python version with the change, `until` the
    first one without it.
    """

    def add(change):
        ROWS.append(Row(change.__name__, change, path, warm_path, prepare, kinds, since, until))
        return change

    return add


def named_row(name, change, path, **options):
    """Add a change made in a loop to the table."""
    change.__name__ = name
    row(path, **options)(change)
