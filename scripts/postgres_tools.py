"""Print the folder with the programs of PostgreSQL with which the tests start a temporary server.

It is the folder in LOGSPOOL_POSTGRES_BIN, else a folder on the PATH, else Debian's newest. If there is no such folder
and the script runs as root on a system with apt, Debian's package is installed first, without a server of its own.
With LOGSPOOL_WITHOUT_POSTGRES=1 nothing is looked for, and the tests that need a server are skipped with a note.
"""

import os
import shutil
from pathlib import Path

import debian
import terminal

PROGRAMS = ("initdb", "postgres")
DEBIAN = Path("/usr/lib/postgresql")
# Read by Debian's package when it is installed: else it would make a server and start it.
NO_SERVER = Path("/etc/postgresql-common/createcluster.conf")


def find() -> Path | None:
    """Return the folder with the programs."""
    named = os.environ.get("LOGSPOOL_POSTGRES_BIN")
    on_path = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    versions = [folder for folder in DEBIAN.glob("*") if folder.name.isdigit()]
    newest_first = sorted(versions, key=lambda folder: int(folder.name), reverse=True)
    folders = [Path(named)] if named else [*on_path, *(folder / "bin" for folder in newest_first)]
    return next((folder for folder in folders if all(os.access(folder / name, os.X_OK) for name in PROGRAMS)), None)


def install() -> None:
    """Install Debian's package if possible."""
    if os.geteuid() == 0 and shutil.which("apt-get") and not NO_SERVER.exists():
        NO_SERVER.parent.mkdir(parents=True, exist_ok=True)
        NO_SERVER.write_text("create_main_cluster = false\n")
    debian.install("postgresql", "PostgreSQL")


def main() -> None:
    """Find the programs; install them if they are missing."""
    if os.environ.get("LOGSPOOL_WITHOUT_POSTGRES") == "1":
        return
    folder = find()
    if not folder and not os.environ.get("LOGSPOOL_POSTGRES_BIN"):
        install()
        folder = find()
    if not folder:
        raise terminal.fail(
            "the tests need the programs of PostgreSQL (initdb, postgres): install Debian's package postgresql, "
            "name their folder in LOGSPOOL_POSTGRES_BIN, or do without by LOGSPOOL_WITHOUT_POSTGRES=1"
        )
    print(folder)


if __name__ == "__main__":
    main()
