"""See that what the tests of C, C++ and Nim programs need is there.

Where something is missing and the script runs as root on a system with apt, Debian's packages are installed. Otherwise
the tests that need it say that they are skipped, and this script says which they are. With LOGSPOOL_TOOLS=required, as
in CI, it fails then.
"""

import os
import shutil
from pathlib import Path

import debian
import terminal

#: A command or a header that is looked for, its package, and what is tested with it.
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


def main() -> None:
    """Find everything, at need after installing it."""
    missing = [package for what, package, _ in NEEDED if not is_there(what)]
    if missing:
        debian.install(" ".join(missing), "compilers and libraries")
    left = [(package, purpose) for what, package, purpose in NEEDED if not is_there(what)]
    for package, purpose in left:
        terminal.note(f"the tests of {purpose} are skipped: Debian's package {package} is missing")
    if left and os.environ.get("LOGSPOOL_TOOLS") == "required":
        raise terminal.fail("LOGSPOOL_TOOLS=required: install these packages")


if __name__ == "__main__":
    main()
