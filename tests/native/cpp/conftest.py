"""Compiles the C++ programs of the tests, with each compiler that is there."""

import subprocess
from pathlib import Path

import pytest
from toolchain import INCLUDES, PROGRAMS, STRICT, compile_silently


@pytest.fixture(scope="session")
def cpp(library, builds):
    """Return a function that compiles a program and returns its path. The compiler must say nothing."""

    def compiled(name, compiler="g++", *flags):
        source = name if Path(name).is_absolute() else PROGRAMS / f"{name}.cpp"
        command = [compiler, *STRICT, *INCLUDES, "-O2", source, *flags]
        command += [f"-L{library}", "-llogspool", "-pthread", f"-Wl,-rpath,{library}"]
        return builds.get(Path(name).stem, command, lambda path: compile_silently(*command, "-o", path))

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
