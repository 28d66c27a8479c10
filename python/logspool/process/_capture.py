"""Records from lines that C code writes to a descriptor.

Pipeline stage: a source in front of *capture* (see ARCHITECTURE.md). A pipe takes the place of the descriptor, and a
native thread reads it, so that code that holds the interpreter's lock never waits for this module. A Python thread logs
the lines. The text streams of Python that used the descriptor, `sys.stderr` and those of handlers, move to a duplicate
of the original file, and so does logspool's own fallback: no record comes back as a line.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import sys
import threading

from logspool import _forks, _native
from logspool.base import _interpreter, _locks, _options

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

#: Bytes of the pipe. Chosen: the largest size that a user may set by default; a writer waits only if so much is unread.
_PIPE_BYTES = 1024 * 1024

#: Duplicates get numbers from here on, so that they do not take the place of a standard descriptor that is closed.
_FIRST_DUPLICATE = 10

#: Seconds that the end of a capture waits until its last lines are logged.
_END_SECONDS = 10.0

_NAMES = {1: "stdout", 2: "stderr"}

_lock = _locks.guard()

#: Captures of this process by their descriptor.
_active: dict[int, Capture] = {}

#: For each descriptor the duplicate of its original file. It stays open, because queued lines may be written to it.
_originals: dict[int, int] = {}

_registered = False


def capture_fd(
    fd: Any,
    *,
    logger: logging.Logger | str | None = None,
    level: int | str | Callable[[str], int | str] | None = None,
    max_line_bytes: int = 65_536,
) -> Capture:
    """Turn lines that C code writes to a descriptor into records, until `close()` or the end of the process.

    `print`, tracebacks and handlers on `sys.stderr` or `sys.stdout` still write to the original file. Lines of programs
    that this process starts become records too; a forked child is not captured. With `LOGSPOOL=off` nothing is
    captured. Thread-safe.

    Args:
        fd: The descriptor, mostly 2, or an object with `fileno()`.
        logger: The logger of the records, or its name. None: `stderr` for 2, `stdout` for 1, else `fd` and the number.
        level: The level of the records, a number or a name, or a function that returns it for a line. None: WARNING for
            2, else INFO.
        max_line_bytes: The limit of a line. The rest of a longer line is cut off and counted. Allowed: 1 to 16,777,216.

    Returns:
        The capture. It is a context manager that ends the capture at its end.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: the descriptor is not open or captured already, a handler would read its own lines, there is no such
            level, or the limit is out of range.
        OSError: no pipe or thread can be made.
    """
    number = _descriptor(fd)
    chosen = logger if isinstance(logger, logging.Logger) else logging.getLogger(_logger_name(number, logger))
    find_level = level if callable(level) else _constant(_level(number, level))
    limit = _options.whole("max_line_bytes", max_line_bytes)
    if not 1 <= limit <= 16_777_216:
        raise ValueError(f"max_line_bytes must be 1 to 16777216 bytes, not {limit}")
    capture = Capture(number, chosen, find_level)
    if os.environ.get("LOGSPOOL") != "off":
        if _interpreter.without_core:
            # C code that fills the pipe while it has the interpreter's lock would wait for ever.
            raise _interpreter.refusal("capture_fd()")
        with _lock:
            capture._begin(limit)
    return capture


class Capture:
    """The capture of one descriptor, as `capture_fd` returns it. `close()` ends it; so does a `with` block.

    Attributes:
        fd: the captured descriptor.
        logger: the logger of the records.
        original: a descriptor of the original file, for output that shall not become a record; `fd` if nothing is
            captured.
        lines: number of lines that became records.
        cut: number of these lines that were longer than the limit.
        failed: number of lines for which the function for the level, a filter or a handler raised an exception.
    """

    def __init__(self, fd: int, logger: logging.Logger, find_level: Callable[[str], int | str]) -> None:
        self.fd, self.logger, self.original = fd, logger, fd
        self.lines = self.cut = self.failed = 0
        self._find_level = find_level
        self._native: _native.CapturedLines | None = None
        self._thread: threading.Thread | None = None
        self._end = -1

    @property
    def dropped(self) -> int:
        """The number of lines that were dropped, because more than 16 MiB waited to be logged."""
        return self._native.dropped() if self._native is not None else 0

    @property
    def active(self) -> bool:
        """Whether lines become records now."""
        return _active.get(self.fd) is self

    def close(self) -> None:
        """Restore the descriptor, and wait until all lines that were written to it are logged. Idempotent."""
        with _lock:
            if not self.active:
                return
            _flush_c(self.fd)
            del _active[self.fd]
            self._restore(flush=True)
            os.close(self._end)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_SECONDS)

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self.lines} lines" if self.active else "closed"
        return f"<Capture of descriptor {self.fd} for logger {self.logger.name!r}: {state}>"

    def _begin(self, limit: int) -> None:
        import fcntl

        if self.fd in _active:
            raise ValueError(
                f"descriptor {self.fd} is captured already, for logger {_active[self.fd].logger.name!r} (fix: close() "
                "that capture first)"
            )
        original = self._duplicate()
        _move_streams(self.fd, original, flush=True)
        ends: list[int] = []
        try:
            stuck = _stream_users(self.fd)
            if stuck:
                raise ValueError(
                    f"{stuck[0]!r} writes to descriptor {self.fd} and would read its own lines (fix: give it sys.stderr"
                    " or a file, or capture before it is made)"
                )
            # Lines that are queued for the descriptor itself must not go through the pipe.
            _native.flush(_END_SECONDS)
            ends += os.pipe2(os.O_CLOEXEC)
            ends += os.pipe2(os.O_CLOEXEC)
            reader, writer, restored, _ = ends
            os.set_blocking(reader, False)
            try:
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                # The pipe keeps its default size, because the user has too many large pipes.
                pass
            self._native = _native.CapturedLines(reader, restored, original, limit)
            self._thread = threading.Thread(target=self._log_lines, name=f"logspool-fd-{self.fd}", daemon=True)
            self._thread.start()
        except BaseException:
            _move_streams(original, self.fd, flush=True)
            for end in ends:
                os.close(end)
            raise
        os.dup2(writer, self.fd, inheritable=os.get_inheritable(self.fd))
        for end in (reader, writer, restored):
            os.close(end)
        self.original, self._end = original, ends[3]
        _active[self.fd] = self
        _use_for_errors(self.fd, original)
        _register()

    def _duplicate(self) -> int:
        import fcntl

        known = _originals.get(self.fd)
        if known is None:
            _originals[self.fd] = known = fcntl.fcntl(self.fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_DUPLICATE)
        else:
            os.dup2(self.fd, known, inheritable=False)
        return known

    def _restore(self, *, flush: bool) -> None:
        os.dup2(self.original, self.fd, inheritable=os.get_inheritable(self.fd))
        _move_streams(self.original, self.fd, flush=flush)
        _use_for_errors(self.fd, self.fd)

    def _log_lines(self) -> None:
        lines, is_over = [], False
        while not is_over:
            lines, is_over = self._native.take(3600.0)  # type: ignore[union-attr]
            for data, cut in lines:
                self._log(data, cut)

    def _log(self, data: bytes, cut: int) -> None:
        text = data.decode("utf-8", "backslashreplace").removesuffix("\r")
        self.lines += 1
        if cut:
            self.cut += 1
            text = f"{text}... [{cut} more bytes]"
        try:
            level = self._find_level(text)
            self.logger.log(_number(level), "%s", text)
        except Exception:
            # As for a handler: an error of logging never reaches the program.
            self.failed += 1


def _descriptor(fd: Any) -> int:
    if not isinstance(fd, int) and hasattr(fd, "fileno"):
        fd = fd.fileno()
    if isinstance(fd, bool) or not isinstance(fd, int):
        raise TypeError(f"fd must be a descriptor or an object with fileno(), not {fd!r}")
    # While a descriptor is captured, Python's streams have the duplicate.
    number = next((own for own, original in _originals.items() if original == fd), fd)
    try:
        os.fstat(number)
    except (OSError, OverflowError):
        raise ValueError(f"descriptor {number} is not open (fix: capture it before it is closed)") from None
    return number


def _logger_name(number: int, name: Any) -> str:
    if name is None:
        return _NAMES.get(number, f"fd{number}")
    if not isinstance(name, str):
        raise TypeError(f"logger must be a logger or its name, not {name!r}")
    return name


def _level(number: int, level: Any) -> int:
    if level is None:
        return logging.WARNING if number == 2 else logging.INFO
    if isinstance(level, bool) or not isinstance(level, (int, str)):
        raise TypeError(f"level must be a number, a name or a function, not {level!r}")
    if isinstance(level, str) and level not in logging._nameToLevel:
        raise ValueError(f"level: no level is named {level!r}; {_options.meant(level, logging._nameToLevel)}")
    return _number(level)


def _number(level: int | str) -> int:
    return logging._nameToLevel[level] if isinstance(level, str) else level


def _constant(level: int) -> Callable[[str], int]:
    return lambda line: level


def _streams() -> Iterator[tuple[Any, Any]]:
    """Yield (text stream, its handler or None) for all streams that may use a descriptor."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        yield stream, None
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]
        handler = reference()
        stream = getattr(handler, "stream", None)
        if stream is not None:
            yield stream, handler


def _uses(stream: Any, fd: int) -> bool:
    try:
        return bool(stream.fileno() == fd)
    except Exception:
        # No stream, a closed one, or one without a descriptor.
        return False


def _move_streams(fd: int, to: int, *, flush: bool) -> None:
    """Let the text streams that borrow a descriptor write to another one, in place."""
    for stream, _ in _streams():
        if not _uses(stream, fd):
            continue
        raw = getattr(getattr(stream, "buffer", None), "raw", getattr(stream, "buffer", None))
        if type(raw) is not io.FileIO or raw.closefd:
            continue
        if flush:
            stream.flush()
        name = raw.name
        raw.__init__(to, "wb", closefd=False)  # type: ignore[misc]
        raw.name = name  # type: ignore[misc]


def _stream_users(fd: int) -> list[Any]:
    """Return the handlers whose streams cannot be moved away from a descriptor."""
    return [handler for stream, handler in _streams() if handler is not None and _uses(stream, fd)]


def _use_for_errors(fd: int, to: int) -> None:
    """Let logspool and `faulthandler` write to a descriptor instead of standard error."""
    if fd != 2:
        return
    _native.set_standard_error(to)
    faulthandler = sys.modules.get("faulthandler")
    if faulthandler is not None and faulthandler.is_enabled():
        faulthandler.enable(file=to)


def _flush_c(fd: int) -> None:
    """Write what the C library keeps of `stdout`; its `stderr` keeps nothing."""
    if fd == 1:
        import ctypes

        ctypes.CDLL(None).fflush(None)


def _register() -> None:
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_close_all)
        _forks.register(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget_in_child)


def _close_all() -> None:
    for capture in list(_active.values()):
        capture.close()


def _forget_in_child() -> None:
    """Give a forked child the original descriptors: the threads of the captures are not in it."""
    for capture in list(_active.values()):
        capture._restore(flush=False)
        os.close(capture._end)
    _active.clear()
