"""Child process: logs batches of calls, answers each with the bytes written to its file and to stderr.

Reads pickled `Batch` values from stdin, writes pickled `Answer` values to stdout, each after its length (8 bytes).
"""

import importlib
import logging
import os
import pickle
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from suite import side, stats_view


@dataclass
class Formatted:
    """A Formatter as data."""

    fmt: str | None = "%(message)s"
    datefmt: str | None = None
    style: str = "%"
    defaults: dict | None = None
    zone: str | None = None
    gmt: bool = False
    default_time_format: str | None = None
    default_msec_format: str | bool | None = True  # True: keep the class's value
    # For a formatter of a package: the module and the name of its class; `options` are its keywords.
    of: tuple[str, str] | None = None
    options: dict = field(default_factory=dict)


@dataclass
class Batch:
    """Calls `log(level, msg, *args, **keywords)` through one handler."""

    calls: list[tuple]  # (level, msg, args, keywords or None)
    formatted: Formatted = field(default_factory=Formatted)
    errors: str = "backslashreplace"
    logger: str = "app"


@dataclass
class Answer:
    """The output of a batch, and the number of its calls on each path (None if paths are not counted)."""

    file: bytes
    err: bytes
    native: int | None
    stock: int | None


def _zone(name: str | None) -> None:
    if os.environ.get("TZ") != name:
        if name is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = name
        time.tzset()


def _formatter(asked: Formatted) -> logging.Formatter:
    if asked.of is not None:
        module, name = asked.of
        return getattr(importlib.import_module(module), name)(**asked.options)
    formatter = logging.Formatter(asked.fmt, asked.datefmt, asked.style, validate=False, defaults=asked.defaults)
    if asked.gmt:
        formatter.converter = time.gmtime
    if asked.default_time_format is not None:
        formatter.default_time_format = asked.default_time_format
    if asked.default_msec_format is not True:
        formatter.default_msec_format = asked.default_msec_format
    return formatter


_HANDLERS: dict[str, logging.FileHandler] = {}


def work(batch: Batch, folder: Path, err: int) -> Answer:
    """Log one batch and return its output."""
    os.ftruncate(err, 0)
    _zone(batch.formatted.zone)
    # One handler for all batches with the same `errors`; this test is not about processes that open thousands.
    path = folder / f"{batch.errors}.log"
    if batch.errors not in _HANDLERS:
        _HANDLERS[batch.errors] = logging.FileHandler(path, encoding="utf-8", errors=batch.errors)
    handler = _HANDLERS[batch.errors]
    handler.setFormatter(_formatter(batch.formatted))
    log = logging.getLogger(batch.logger)
    log.setLevel(1)
    log.propagate = False
    log.addHandler(handler)
    before = stats_view.paths() if side.INSTALLED else None
    for level, msg, args, keywords in batch.calls:
        log.log(level, msg, *args, **(keywords or {}))
    counted = stats_view.paths().since(before) if before else None
    log.removeHandler(handler)
    handler.flush()
    sys.stderr.flush()
    written = path.read_bytes()
    os.truncate(path, 0)
    return Answer(
        written,
        os.pread(err, 1 << 24, 0),
        counted.native if counted else None,
        counted.stock if counted else None,
    )


def _read(stream, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main() -> None:
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    with tempfile.TemporaryDirectory(prefix="formatting-") as name, open(Path(name) / "stderr", "wb+") as err:
        os.dup2(err.fileno(), 2)
        # In append mode (set below) the file can be truncated between batches.
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        os.set_inheritable(err.fileno(), False)
        import fcntl

        fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_APPEND)
        side.install()
        while True:
            try:
                size = struct.unpack("<Q", _read(source, 8))[0]
            except EOFError:
                return
            answer = pickle.dumps(work(pickle.loads(_read(source, size)), Path(name), err.fileno()))
            target.write(struct.pack("<Q", len(answer)) + answer)
            target.flush()


if __name__ == "__main__":
    # pickle needs the classes of the imported module, not those of `__main__`.
    from formatting import worker

    worker.main()
