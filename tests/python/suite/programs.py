"""Runs a Python program as a child with a deadline, through pipes or pseudo terminals."""

import contextlib
import errno
import fcntl
import os
import pty
import re
import selectors
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suite import package as package_choice

STOCK = "stock"
INSTALLED = "installed"
SIDES = (STOCK, INSTALLED)

# Chosen: if the disk stalls, a child needs several seconds to write its queued records before it ends.
SHUTDOWN_SECONDS = 60

# Chosen: a child that hangs gets this long to print its stacks after SIGABRT.
ABORT_SECONDS = 3.0


class DeadlinePassed(AssertionError):
    """The child was still running at its deadline; the text has its stacks if the child could print them."""


@dataclass(frozen=True)
class Outcome:
    """The exit status of a child (negative: signal number) and all its output."""

    status: int
    out: bytes
    err: bytes
    seconds: float

    def expect_success(self) -> "Outcome":
        assert self.status == 0, f"exit status {self.status}\n{self.err.decode(errors='replace')}"
        return self


def environment(side: str, queue_dir: Path, package: str | None = None, **more: str) -> dict[str, str]:
    """Return the environment of a child: the test's environment without variables that would change a comparison."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LOGSPOOL", "SUITE_", "PYTEST_")) and name not in ("NO_COLOR", "FORCE_COLOR", "TZ")
    }
    kept.update(
        PYTHONHASHSEED="0",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONFAULTHANDLER="1",
        LC_ALL="C.UTF-8",
        COLUMNS="120",
        TERM="xterm",
        SUITE_SIDE=side,
        LOGSPOOL_QUEUE_DIR=str(queue_dir),
        LOGSPOOL_SHUTDOWN_TIMEOUT=str(SHUTDOWN_SECONDS),
    )
    kept.update(package_choice.environment(package or package_choice.chosen()))
    kept.update(more)
    return kept


@contextlib.contextmanager
def _stream(terminal: bool):
    """Yield (end to read, end for the child); the caller closes the child's end, this context the other one."""
    if terminal:
        reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, b"\x18\x00\x78\x00\x00\x00\x00\x00")
    else:
        reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        yield reader, writer
    finally:
        os.close(reader)


def _read_all(child: subprocess.Popen, ends: Mapping[int, bytearray], until: float) -> bool:
    """Read both streams until they end; return False if the deadline came first."""
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                return False
            for key, _ in selector.select(min(left, 0.2)):
                try:
                    data = os.read(key.fd, 1 << 16)
                except BlockingIOError:
                    continue
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
                    data = b""  # the last holder of the terminal is gone
                if data:
                    ends[key.fd] += data
                else:
                    selector.unregister(key.fd)
    try:
        child.wait(max(0.01, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(child: subprocess.Popen, ends: Mapping[int, bytearray]) -> None:
    """Let a child that hangs print its stacks, then end its whole session."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGABRT)
    _read_all(child, ends, time.monotonic() + ABORT_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def run(
    arguments: Iterable[str | Path],
    *,
    env: Mapping[str, str],
    folder: Path,
    deadline_seconds: float,
    terminal: bool = False,
    through: Iterable[str | Path] = (),
) -> Outcome:
    """Run the interpreter of this pytest with `arguments` in `folder` and wait for its end.

    `through` is a command that runs the interpreter, as an emulator does. Raises `DeadlinePassed` after
    `deadline_seconds`; the child's session is killed then.
    """
    began = time.monotonic()
    out, err = bytearray(), bytearray()
    with _stream(terminal) as (out_end, out_child), _stream(terminal) as (err_end, err_child):
        try:
            child = subprocess.Popen(
                [*map(str, through), sys.executable, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=out_child,
                stderr=err_child,
                env=dict(env),
                cwd=folder,
                start_new_session=True,
            )
        finally:
            os.close(out_child)
            os.close(err_child)
        ends = {out_end: out, err_end: err}
        if not _read_all(child, ends, began + deadline_seconds):
            _end(child, ends)
            raise DeadlinePassed(
                f"{' '.join(map(str, arguments))}: still running after {deadline_seconds} s\n"
                f"--- stdout ---\n{out[-2000:].decode(errors='replace')}\n"
                f"--- stderr ---\n{err[-6000:].decode(errors='replace')}"
            )
    if package_choice.is_pure():
        # One line on standard error says that nothing is accelerated; `pure/test_pure.py` looks at it.
        err = re.sub(rb"^logspool: native: no: .*\r?\n", b"", bytes(err), flags=re.M)
    return Outcome(child.returncode, bytes(out), bytes(err), time.monotonic() - began)


def start(
    arguments: Iterable[str | Path],
    *,
    env: Mapping[str, str],
    folder: Path,
    python: str = sys.executable,
    **popen: object,
) -> subprocess.Popen:
    """Start an interpreter and return at once, for tests that talk to the child while it runs.

    Use it in a `with ended(...)` block, which kills the remaining processes.
    """
    return subprocess.Popen(
        [python, *map(str, arguments)],
        env=dict(env),
        cwd=folder,
        start_new_session=True,
        **popen,
    )


@contextlib.contextmanager
def ended(child: subprocess.Popen):
    """Yield the child and make sure its whole session is gone afterwards."""
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()
