"""Check that the tools for the tests of C, C++ and Nim programs are installed.

Where a tool is missing and the script runs as root on a system with apt, Debian's packages are installed. Otherwise
the tests that need it are skipped with a note, and this script names them. With LOGSPOOL_TOOLS=required, as in CI, it
fails then.

Where the system's Nim is older than 2, the package of a newer Debian is unpacked into `build/nim-2`.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import debian
import terminal

#: A required command or header, its package, and the tests that need it.
NEEDED = (
    ("g++", "g++", "C++ programs"),
    ("nim", "nim", "Nim programs"),
    ("cmake", "cmake", "find_package(logspool)"),
    ("pkg-config", "pkg-config", "pkg-config logspool"),
    ("clang++", "clang", "a second compiler, and the sanitizers"),
    ("musl-gcc", "musl-tools", "static programs for musl"),
    ("valgrind", "valgrind", "memory errors of C programs"),
    ("/usr/include/spdlog/spdlog.h", "libspdlog-dev", "the sink for spdlog"),
)


def is_there(what: str) -> bool:
    """Return whether a command is in PATH, or a header is a file."""
    return Path(what).exists() if what.startswith("/") else shutil.which(what) is not None


NIM_2 = Path(__file__).resolve().parent.parent / "build/nim-2"
NEWER_DEBIAN = "forky"


def has_nim_2() -> bool:
    """Return whether there is a Nim 2: the system's, or one that was unpacked earlier."""
    for command in (NIM_2 / "bin/nim", shutil.which("nim")):
        if command and Path(command).exists():
            done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
            if " Version 2." in done.stdout:
                return True
    return False


def unpack_nim_2() -> None:
    """Unpack the Nim of a newer Debian, which apt checks, into a folder with the places that Nim looks at."""
    with tempfile.TemporaryDirectory() as name:
        package = debian.download("nim", NEWER_DEBIAN, Path(name))
        if package is None:
            return
        subprocess.run(["dpkg-deb", "--extract", package, Path(name) / "files"], check=True)
        shutil.rmtree(NIM_2, ignore_errors=True)
        (NIM_2 / "bin").mkdir(parents=True)
        for unpacked, to in {"usr/bin/nim": "bin/nim", "usr/lib/nim/lib": "lib", "etc/nim": "config"}.items():
            shutil.move(Path(name) / "files" / unpacked, NIM_2 / to)


def main() -> None:
    """Find all tools; install the missing ones."""
    missing = [package for what, package, _ in NEEDED if not is_there(what)]
    if missing:
        debian.install(" ".join(missing), "compilers and libraries")
    if not has_nim_2():
        unpack_nim_2()
    left = [(package, purpose) for what, package, purpose in NEEDED if not is_there(what)]
    for package, purpose in left:
        terminal.note(f"the tests of {purpose} are skipped: Debian's package {package} is missing")
    if not has_nim_2():
        terminal.note(f"Nim programs are not tested with Nim 2: Debian's package of {NEWER_DEBIAN} cannot be unpacked")
    if left and os.environ.get("LOGSPOOL_TOOLS") == "required":
        raise terminal.fail("LOGSPOOL_TOOLS=required: install these packages")


if __name__ == "__main__":
    main()
