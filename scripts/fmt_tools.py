"""Check that the tests find the C++ library {fmt}, with which templates of C++ programs are compared.

Where it is missing and the script runs as root on a system with apt, Debian's package libfmt-dev is installed. Without
the library the test is skipped with a note.
"""

import os
import shutil
import subprocess

import debian
import terminal


def is_found() -> bool:
    """Return whether the C++ compiler finds the headers of {fmt}."""
    compiler = os.environ.get("CXX", "c++")
    if not shutil.which(compiler):
        return False
    options = ["-std=c++17", "-fsyntax-only", "-include", "fmt/args.h", "-x", "c++", os.devnull]
    return subprocess.run([compiler, *options], capture_output=True).returncode == 0


def main() -> None:
    """Find the library; install it if it is missing."""
    if is_found():
        return
    if shutil.which(os.environ.get("CXX", "c++")):
        debian.install("libfmt-dev", "{fmt}")
    if not is_found():
        terminal.note(
            "the comparison with {fmt} is skipped: it needs a C++ compiler and Debian's packages g++ and libfmt-dev"
        )


if __name__ == "__main__":
    main()
