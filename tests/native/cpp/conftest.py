"""Compiles the C++ programs of the tests, with each compiler that is there."""

import subprocess
from pathlib import Path

import pytest
from toolchain import INCLUDES, PROGRAMS, STRICT, compile_silently


@pytest.fixture(scope="session")
def cpp(library, tmp_path_factory):
    """Return a function that compiles a program and returns its path. The compiler must say nothing."""
    folder = tmp_path_factory.mktemp("cpp")
    known = {}

    def compiled(name, compiler="g++", *flags):
        key = (name, compiler, flags)
        if key not in known:
            path = folder / f"{Path(name).stem}-{len(known)}"
            source = name if Path(name).is_absolute() else PROGRAMS / f"{name}.cpp"
            link = [f"-L{library}", "-llogspool", "-pthread", f"-Wl,-rpath,{library}"]
            compile_silently(compiler, *STRICT, *INCLUDES, "-O2", source, "-o", path, *flags, *link)
            known[key] = path
        return known[key]

    return compiled


@pytest.fixture(scope="session")
def run_cpp(cpp):
    """Return a function that compiles and runs a program and returns its output; it must end with `code`."""

    def run(name, *arguments, compiler="g++", flags=(), code=0):
        command = [cpp(name, compiler, *flags), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (code, "") == (done.returncode, done.stderr)
        return done.stdout

    return run
