"""A PostgreSQL of the comparison's own: a temporary folder, a port of its own, ended by the process it started."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["-c", "shared_buffers=512MB", "-c", "max_wal_size=8GB", "-c", "fsync=on"]
DEADLINE = 60.0


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Start a server and yield the URL of a database; it is gone at the end."""
    found = subprocess.run(
        [sys.executable, ROOT / "scripts/postgres_tools.py"], stdout=subprocess.PIPE, text=True, check=True
    )
    programs = Path(found.stdout.strip())
    folder = Path(tempfile.mkdtemp(prefix="logspool-bench-"))
    user = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    data, log = folder / "data", folder / "log"
    initialise = [programs / "initdb", "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8", "--no-sync"]
    subprocess.run(initialise, stdout=subprocess.DEVNULL, check=True, cwd=folder, **user)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    address = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={port}", "-k", folder]
    with log.open("w") as output:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *address, *OPTIONS], stdout=output, stderr=output, cwd=folder, **user
        )
    try:
        ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        until = time.monotonic() + DEADLINE
        while subprocess.run(ready).returncode != 0:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {log.read_text()}")
            time.sleep(0.05)
        yield f"postgres://bench@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(DEADLINE)
        shutil.rmtree(folder, ignore_errors=True)
