"""A rsyslog of the comparison's own: a process with its own configuration, on loopback, in a temporary folder.

Its programs are Debian's packages rsyslog and rsyslog-pgsql. Where they are not installed they are fetched by apt and
unpacked below `build/`: installed, they would change how the machine keeps its own log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import terminal  # its folder was added by report
from ports import free_port
from services.database import USER
from services.part import Wrong

#: The packages, and their requirements that not every system with a PostgreSQL has.
PACKAGES = ["rsyslog", "rsyslog-pgsql", "libestr0", "libfastjson4", "liblognorm5"]
UNPACKED = Path(__file__).resolve().parents[2] / "build" / "rsyslog"
#: Below the root of the system, or of the unpacked packages.
PROGRAM, MODULE = "usr/sbin/rsyslogd", "usr/lib/*/rsyslog/ompgsql.so"
#: The tables that the module writes to, as the package brings them.
SCHEMA = "usr/share/dbconfig-common/data/rsyslog-pgsql/install/pgsql"
DEADLINE = 60.0

#: Nothing is thrown away where the destination is slower than the sender: the queue makes the input wait.
CONFIG = """
global(workDirectory="{folder}" maxMessageSize="8k")
module(load="imtcp")
{module}
ruleset(name="records" queue.type="FixedArray" queue.size="100000" queue.dequeueBatchSize="{batch}"
        queue.timeoutEnqueue="600000") {{
    {action}
}}
input(type="imtcp" address="127.0.0.1" port="{port}" ruleset="records")
"""


def missing() -> str | None:
    """Say why it cannot be used, after an attempt to fetch it."""
    if _tree() is None:
        _fetch()
    return None if _tree() else "there is no rsyslog: install Debian's packages rsyslog and rsyslog-pgsql"


def version() -> str:
    """Return its name and version."""
    tree = _tree()
    if tree is None:
        return "no rsyslog"
    said = subprocess.run([tree / PROGRAM, "-v"], stdout=subprocess.PIPE, text=True, env=_variables(tree)).stdout
    return " ".join(said.split(" (")[0].split())


def schema() -> str:
    """Return its tables, as statements."""
    tree = _tree()
    assert tree
    return (tree / SCHEMA).read_text()


def to_file(path: Path) -> str:
    """Return the action that writes lines: as it is set up by itself, flushed at the end of each batch."""
    return f'action(type="omfile" file="{path}")'


def to_postgres(port: int, database: str) -> str:
    """Return the action that inserts rows."""
    return f'action(type="ompgsql" server="127.0.0.1" port="{port}" user="{USER}" pass="none" db="{database}")'


@contextlib.contextmanager
def running(folder: Path, action: str, *, batch: int = 1024) -> Iterator[int]:
    """Run it and yield its port; at the end of the block it has written all that came."""
    port = free_port()
    config, log, pid = folder / "rsyslog.conf", folder / "rsyslog.log", folder / "rsyslog.pid"
    module = 'module(load="ompgsql")' if "ompgsql" in action else ""
    config.write_text(CONFIG.format(folder=folder, module=module, action=action, port=port, batch=batch))
    tree = _tree()
    assert tree
    modules = next(tree.glob(MODULE)).parent
    command = [tree / PROGRAM, "-n", "-f", config, "-i", pid, "-M", modules]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=_variables(tree))
    try:
        until = time.monotonic() + DEADLINE
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise Wrong(f"rsyslog does not start: {log.read_text().strip()[-300:]}")
            time.sleep(0.02)
        yield port
        process.terminate()
        process.wait(DEADLINE)
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    """Look without a connection, which would be counted."""
    wanted = f"0100007F:{port:04X} 00000000:0000 0A"
    return wanted in Path("/proc/net/tcp").read_text()


def _tree() -> Path | None:
    """Return the root folder of all its files."""
    for tree in (Path("/"), UNPACKED):
        if (tree / PROGRAM).exists() and (tree / SCHEMA).exists() and any(tree.glob(MODULE)):
            return tree
    return None


def _variables(tree: Path) -> dict[str, str]:
    """Let an unpacked program find its libraries."""
    libraries = [str(path.parent) for path in tree.glob("usr/lib/*/libfastjson.so.4")] if tree == UNPACKED else []
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)} if libraries else dict(os.environ)


def _fetch() -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return
    terminal.step(f"fetching what the service is compared with: apt-get download {' '.join(PACKAGES)}")
    UNPACKED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Root may bring the lists of packages up to date first.
        for arguments in [*([["update"]] if os.geteuid() == 0 else []), ["download", *PACKAGES]]:
            done = subprocess.run(["apt-get", "--quiet", *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                terminal.note(done.stderr.strip())
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, UNPACKED], check=True)
