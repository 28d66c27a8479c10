"""Compilers and flags of the C++ tests."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"
STAND_IN = Path(__file__).parent / "stand_in"
INCLUDES = [f"-I{ROOT / 'bindings/cpp'}", f"-I{ROOT / 'crates/logspool-c/include'}", f"-I{STAND_IN}"]
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
# Of the versions of clang that are there, the newest one.
CLANG = next((name for name in ("clang++-19", "clang++-16", "clang++") if shutil.which(name)), None)
COMPILERS = ["g++", *([CLANG] if CLANG else [])]


def compile_silently(*command):
    """Run a compiler, which must say nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
