"""Raises CASES exceptions of all kinds and logs them; a seed gives the same exceptions on both sides.

Run as `program.py CASES SEED`, in an empty folder. The files of the program's modules change and vanish in between.
"""

import importlib
import json
import linecache
import logging
import logging.handlers
import os
import random
import sys
import threading
import traceback
import types
import warnings
import zipfile
from pathlib import Path

from suite import side
from tracebacks import odd, sources

CASES, SEED = int(sys.argv[1]), int(sys.argv[2])
#: Cases with the same modules.
ROUND = 100
#: The program sets the times of files, because two writes may fall into one tick of the clock.
BEGIN = 1_600_000_000

sys.modules["odd"] = odd


class Loader:
    """The loader of a module that has no file."""

    def __init__(self, source: str | None) -> None:
        self._source = source

    def get_source(self, name: str) -> str | None:
        if self._source == "":
            raise ImportError(name)
        return self._source


class Passing(logging.Filter):
    """A filter in Python: the logger's records are made before they are queued."""

    def filter(self, record: logging.LogRecord) -> bool:
        return True


class Texts(logging.Handler):
    """Writes the texts that earlier handlers left on the record."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = open(path, "w", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        self._file.write(f"{record.getMessage()}: {record.exc_text!r} {record.stack_info!r}\n")
        self._file.flush()


class Own(logging.Formatter):
    """A formatter that changes the texts of exceptions."""

    def formatException(self, ei) -> str:
        return f"own: {super().formatException(ei)}"


def loggers() -> list[logging.Logger]:
    """Return a logger for each path of a record."""
    made = []
    for name in ("native", "filtered", "two", "own", "console"):
        log = logging.getLogger(name)
        log.propagate = False
        log.setLevel(1)
        handler = logging.FileHandler(f"{name}.log", encoding="utf-8", errors="backslashreplace")
        formatter = Own if name == "own" else logging.Formatter
        handler.setFormatter(formatter("%(levelname)s %(message)s"))
        log.addHandler(handler)
        made.append(log)
    made[1].addFilter(Passing())
    made[2].addHandler(Texts("texts.log"))
    made[4].addFilter(Passing())
    made[4].addHandler(logging.FileHandler("console2.log", encoding="utf-8", errors="backslashreplace"))
    return made


class Modules:
    """The modules of a round, and changes of their files."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self._rng = rng
        self._time = BEGIN + number * 1000
        self.folder = Path(f"round{number}").absolute()
        self.folder.mkdir()
        sys.path.insert(0, str(self.folder))
        self.functions = []
        self.paths = []
        for index in range(6):
            name = f"made_{number}_{index}"
            source = self._source()
            module = getattr(self, f"_{rng.choice(['file', 'file', 'file', 'zipped', 'served', 'relative'])}")(
                name, source
            )
            self.functions += [getattr(module, f"f{place}") for place in range(12)]

    def _source(self) -> str:
        for _ in range(100):
            source = sources.module(self._rng, 12, odd.NAMES)
            try:
                compile(source, "made", "exec")
            except SyntaxError:
                continue
            return source
        raise AssertionError("no source compiles")

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        self._time += 1
        os.utime(path, (self._time, self._time))

    def _file(self, name: str, source: str) -> types.ModuleType:
        path = self.folder / f"{name}.py"
        self._write(path, source)
        self.paths.append(path)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def _relative(self, name: str, source: str) -> types.ModuleType:
        path = self.folder / f"{name}.py"
        self._write(path, source)
        self.paths.append(path)
        module = types.ModuleType(name)
        exec(compile(source, os.path.relpath(path), "exec"), module.__dict__)
        return module

    def _zipped(self, name: str, source: str) -> types.ModuleType:
        path = self.folder / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo(f"{name}.py"), source)
        sys.path.insert(0, str(path))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def _served(self, name: str, source: str) -> types.ModuleType:
        module = types.ModuleType(name)
        module.__loader__ = Loader(self._rng.choice([source, source, None, ""]))
        file = self._rng.choice([f"/served/{name}.py", f"<served {name}>", f"served_{name}.py"])
        exec(compile(source, file, "exec"), module.__dict__)
        return module

    def disturb(self) -> None:
        """Change the entries of `linecache`, or the files that it would read."""
        rng = self._rng
        kind = rng.randrange(9)
        if kind == 0:
            linecache.clearcache()
        elif kind == 1:
            linecache.checkcache()
        elif kind == 2:
            linecache.cache["<string>"] = (10, None, ["a line of its own\n"] * 50, "<string>")
        elif kind == 3:
            linecache.cache.pop("<string>", None)
        elif self.paths:
            path = rng.choice(self.paths)
            if kind == 4:
                path.unlink(missing_ok=True)
            elif kind == 5:
                self._write(path, "# moved down\n" * rng.randrange(1, 4) + self._source())
            elif kind == 6 and path.exists():
                # The same bytes with another modification time.
                self._write(path, path.read_text(encoding="utf-8"))
            elif kind == 7 and path.exists():
                # A difference of 1 ns, which is lost in a float.
                status = path.stat()
                os.utime(path, ns=(status.st_mtime_ns + 1, status.st_mtime_ns + 1))
            elif kind == 8:
                name = str(path)
                linecache.cache[name] = (1, None, [f"replaced line {line}\n" for line in range(40)], name)

    def end(self) -> None:
        sys.path[:] = [entry for entry in sys.path if not entry.startswith(str(self.folder))]


def log_one(rng: random.Random, log: logging.Logger, number: int, error: BaseException) -> None:
    """Log an exception in a random way that programs use."""
    kind = rng.randrange(8)
    if kind < 3:
        log.exception("case %d", number)
    elif kind == 3:
        log.error("case %d", number, exc_info=error)
    elif kind == 4:
        log.log(15, "case %d", number, exc_info=True, stack_info=rng.random() < 0.1)
    elif kind == 5:
        tb = error.__traceback__
        tb = rng.choice([tb, None, tb.tb_next if tb else None])
        log.warning("case %d", number, exc_info=(type(error), error, tb))
    elif kind == 6:
        log.warning(
            "case %d", number, exc_info=rng.choice([(None, None, None), (), 1, 0, None, (ValueError, error, None)])
        )
    else:
        record = log.makeRecord(
            log.name, 30, "path.py", 7, "case %d", (number,), (type(error), error, error.__traceback__)
        )
        if rng.random() < 0.3:
            record.exc_text = rng.choice(["", "made before", "größe"])
        if rng.random() < 0.3:
            record.stack_info = rng.choice(["", "Stack (most recent call last):\n  here"])
        if rng.random() < 0.1:
            record.exc_info = rng.choice([False, None, ()])
        log.handle(record)


def patched(rng: random.Random, number: int):
    """Patch a global during a case; return a function that restores it."""
    kind = rng.randrange(6)
    if kind == 0:
        sys.tracebacklimit = rng.choice([None, 0, 2, -1])
        return lambda: delattr(sys, "tracebacklimit")
    if kind == 1:
        stock = traceback.TracebackException.format_exception_only
        traceback.TracebackException.format_exception_only = lambda self, **more: [f"patched {number}\n"]
        return lambda: setattr(traceback.TracebackException, "format_exception_only", stock)
    if kind == 2:
        stock_getline = linecache.getline
        linecache.getline = lambda *args, **more: f"  patched {number}\n"
        return lambda: setattr(linecache, "getline", stock_getline)
    if kind == 3:
        stock_exception = logging.Formatter.formatException
        logging.Formatter.formatException = lambda self, ei: f"patched {number}"
        return lambda: setattr(logging.Formatter, "formatException", stock_exception)
    if kind == 4:
        logging.traceback = types.SimpleNamespace(
            print_exception=lambda *args, **more: None, print_stack=traceback.print_stack
        )
        return lambda: setattr(logging, "traceback", traceback)
    stock_format = traceback.StackSummary.format
    traceback.StackSummary.format = lambda self, **more: [f"frames {len(self)}\n"]
    return lambda: setattr(traceback.StackSummary, "format", stock_format)


def one(rng: random.Random, modules: Modules, logs: list[logging.Logger], number: int) -> None:
    chain = [rng.choice(modules.functions) for _ in range(rng.choice([1, 2, 3, 5, 8]))]
    log = rng.choice([logs[0], logs[0], *logs])
    take_back = patched(rng, number) if rng.random() < 0.03 else None
    again = rng.choice([1, 1, 2, 3])
    try:
        for _ in range(again):
            try:
                chain[0](chain[1:])
            except BaseException as error:
                log_one(rng, log, number, error)
            else:
                log.info("case %d raised nothing", number)
    finally:
        if take_back:
            take_back()


def count_calls() -> dict[str, int]:
    """Count the calls of the Python functions from which native code gets texts."""
    counts: dict[str, int] = {}
    if side.INSTALLED:
        from logspool.adoption import _texts, _traceback

        for module, name in ((_texts, "exception_text"), (_traceback, "frame_texts"), (_traceback, "final_lines")):
            setattr(module, name, _counted(getattr(module, name), name, counts))
    return counts


def _counted(function, name: str, counts: dict[str, int]):
    counts[name] = 0

    def counted(*args):
        counts[name] += 1
        return function(*args)

    return counted


def main() -> None:
    warnings.simplefilter("ignore")
    threading.stack_size(64 << 20)
    # A low limit, so that an endless recursion has few frames.
    sys.setrecursionlimit(400)
    logs = loggers()
    asked = count_calls()
    side.install()
    for begin in range(0, CASES, ROUND):
        rng = random.Random(f"{SEED} {begin}")
        modules = Modules(rng, begin // ROUND)
        for number in range(begin, min(begin + ROUND, CASES)):
            if rng.random() < 0.1:
                modules.disturb()
            if rng.random() < 0.05:
                worker = threading.Thread(target=one, args=(rng, modules, logs, number))
                worker.start()
                worker.join()
            else:
                one(rng, modules, logs, number)
        modules.end()
    side.settle()
    Path("counts.txt").write_text(f"{odd.COUNTS}\n")
    Path("asked.json").write_text(json.dumps(asked))


if __name__ == "__main__":
    main()
