"""Builds the libraries that are loaded before the C library.

`preload/at_calls.c` ends a program at a system call or makes its calls fail; `preload/clock.c` sets its wall clock.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "preload"


def build(folder, name="at_calls"):
    """Compile the library into a folder; skip where there is no C compiler, or a sanitizer is loaded first."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the library that is loaded first")
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("another library is loaded first")
    library, source = folder / f"{name}.so", SOURCES / f"{name}.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library
