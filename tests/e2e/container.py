"""A container for tests that kill it: a pid namespace, which ends when its first process ends.

Or a control group of its own, which can be killed as a whole.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from suite import programs
from suite.waiting import until

#: The first process: it starts the program and waits. With `private` the queue folder is a tmpfs of its own.
_FIRST = 'if [ "$1" = private ]; then mount -t tmpfs -o mode=0700 tmpfs "$LOGSPOOL_QUEUE_DIR"; fi; shift; "$@" & wait'
_UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc")


class Container:
    """A container started by `running`."""

    def __init__(self, outside: subprocess.Popen) -> None:
        self._outside = outside

    def kill(self) -> None:
        """Kill its first process, which ends every other one; return when they are gone."""
        pid = self._outside.pid
        first = Path(f"/proc/{pid}/task/{pid}/children")
        os.kill(int(first.read_text().split()[0]), signal.SIGKILL)
        until(lambda: self._outside.poll() is not None, 60, "the end of the container")


class Group:
    """A control group started by `grouped`."""

    def __init__(self, folder: Path, first: subprocess.Popen) -> None:
        self._folder, self._first = folder, first

    def kill(self) -> None:
        """Kill every process of it; return when they are gone."""
        (self._folder / "cgroup.kill").write_text("1")
        until(lambda: self._first.poll() is not None, 60, "the end of the program")
        until(lambda: not (self._folder / "cgroup.procs").read_text(), 60, "the end of all others")


@contextlib.contextmanager
def grouped(arguments: Iterable[str | Path], *, folder: Path, **popen: object):
    """Run the interpreter with `arguments` in a control group, or skip the test with the reason."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"), None)
    if root is None:
        pytest.skip("no control groups of version 2 are mounted here")
    group = root / f"logspool-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not (group / "cgroup.kill").exists():
            pytest.skip("control groups cannot be killed here: that came with Linux 5.14")
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        command = ["sh", "-c", enter, str(group), sys.executable, *map(str, arguments)]
        first = subprocess.Popen(command, cwd=folder, start_new_session=True, **popen)
        with programs.ended(first):
            yield Group(group, first)
    finally:
        with contextlib.suppress(OSError):
            (group / "cgroup.kill").write_text("1")
        until(lambda: not (group / "cgroup.procs").read_text(), 60, "the end of all processes")
        group.rmdir()


def _need_namespaces(folder: Path) -> None:
    """Skip the test with the reason where there can be no container."""
    probe = [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    tried = subprocess.run(probe, capture_output=True) if shutil.which("unshare") else None
    if tried is None or tried.returncode:
        pytest.skip(
            f"a pid namespace needs unshare and root: {tried.stderr.decode().strip() if tried else 'no command'}"
        )


def as_first(arguments: Iterable[str | Path], *, folder: Path, **run: object) -> subprocess.CompletedProcess:
    """Run the interpreter with `arguments` as the first process of a container until it ends, or skip the test."""
    _need_namespaces(folder)
    return subprocess.run([*_UNSHARE, sys.executable, *map(str, arguments)], cwd=folder, **run)


@contextlib.contextmanager
def running(arguments: Iterable[str | Path], *, private: bool, folder: Path, **popen: object):
    """Run the interpreter with `arguments` in a container, or skip the test with the reason."""
    _need_namespaces(folder)
    kind = "private" if private else "shared"
    outside = subprocess.Popen(
        [*_UNSHARE, "sh", "-c", _FIRST, "first", kind, sys.executable, *map(str, arguments)],
        cwd=folder,
        start_new_session=True,
        **popen,
    )
    with programs.ended(outside):
        yield Container(outside)
