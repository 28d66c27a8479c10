"""A temporary PostgreSQL with its own folder and port; tests kill, freeze and restart it, and then it is removed."""

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FINDER = Path(__file__).with_name("postgres_tools.py")

# Ten times the start on a slow machine.
DEADLINE = 60.0


def programs() -> Path | None:
    """Return the folder of its programs, installed first where that is possible; `None`: no server is wanted.

    Raises:
        subprocess.CalledProcessError: The programs cannot be found or installed; the finder has said why.
    """
    found = subprocess.run([sys.executable, FINDER], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return Path(found) if found else None


def _account() -> dict[str, Any]:
    """Return the account that it runs as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam(name)
            return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no other user")


def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="logspool-"))
    if account := _account():
        os.chown(folder, account["user"], account["group"])
    return folder


def _surroundings(folder: Path) -> dict[str, Any]:
    """Return the folder, environment and account of the programs."""
    return {"cwd": folder, "env": {**os.environ, "HOME": str(folder)}, **_account()}


@functools.cache
def _template(folder_of_programs: Path, user: str) -> Path:
    """Make the data of a new server, once for a process: each server begins with a copy."""
    folder = _make_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = ["-A", "trust", "-U", user, "-E", "UTF8", "--locale=C", "--no-sync"]
    command = [folder_of_programs / "initdb", "-D", folder / "data", *options]
    subprocess.run(command, check=True, capture_output=True, **_surroundings(folder))
    return folder / "data"


class Server:
    """A server on 127.0.0.1 that accepts every client as `user`."""

    def __init__(self, folder_of_programs: Path, port: int, user: str, settings: Sequence[str]) -> None:
        """Make its data and start it."""
        self.programs, self.port, self.user = folder_of_programs, port, user
        self.settings = [*settings, "listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories="]
        self.folder = _make_folder()
        try:
            subprocess.run(["cp", "-a", _template(folder_of_programs, user), self.folder / "data"], check=True)
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgres://{self.user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, again and again: it refuses to start while processes of a killed server are alive.

        Raises:
            RuntimeError: It does not start.
        """
        until = time.monotonic() + DEADLINE
        command = [self.programs / "postgres", "-D", self.folder / "data"]
        for setting in self.settings:
            command += ["-c", setting]
        while True:
            with (self.folder / "log").open("a") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, **_surroundings(self.folder))
            while self.process.poll() is None and time.monotonic() < until:
                if self.answers():
                    return
                time.sleep(0.02)
            if time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def startup(self) -> bytes:
        """Return the message with which a client begins a session."""
        parameters = f"user\0{self.user}\0database\0postgres\0\0".encode()
        return struct.pack("!II", 8 + len(parameters), 3 << 16) + parameters

    def answers(self) -> bool:
        """Return whether it accepts sessions. While it recovers after a kill, it accepts only connections."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(self.startup())
            # The beginning of its answer that a user may connect; an error begins with E.
            return connection.recv(1) == b"R"
        return False

    def family(self) -> list[int]:
        """Return the started process and its children."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def kill(self) -> None:
        """Kill all its processes at once, like a power failure that keeps the data on the disk."""
        for member in self.family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.wait(DEADLINE)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes, like a machine that hangs: it accepts connections and never answers."""
        members = self.family()
        try:
            for member in members:
                os.kill(member, signal.SIGSTOP)
            yield
        finally:
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        process = getattr(self, "process", None)
        if process and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
