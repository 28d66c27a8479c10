"""Builds liblogspool once, and compiles the C programs of the tests against it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shared_builds import SharedBuilds

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from suite.fixtures import private_queue, queue_dir  # noqa: E402, F401

HEADERS = ROOT / "crates/logspool-c/include"
PROGRAMS = Path(__file__).parent / "programs"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Return the builds that the workers share."""
    return SharedBuilds(tmp_path_factory)


@pytest.fixture(scope="session")
def package(builds):
    """Return the folder that `make native` fills, from a debug build, moved after it was filled."""

    def build(path):
        folder = path.with_name("first")
        command = [sys.executable, ROOT / "scripts/native_package.py", "--profile", "dev", "--folder", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"PKG_CONFIG_PATH={folder}/lib/pkgconfig" in done.stdout
        folder.rename(path)

    return builds.get("package", (), build)


@pytest.fixture(scope="session")
def library(request, tmp_path_factory):
    """Return the folder with the library. LOGSPOOL_NATIVE_LIBRARY names the folder of a library built before."""
    built = os.environ.get("LOGSPOOL_NATIVE_LIBRARY")
    if built is None:
        return request.getfixturevalue("package") / "lib"
    folder = tmp_path_factory.mktemp("lib")
    shutil.copy(Path(built) / "liblogspool_c.so", folder / "liblogspool.so.1")
    (folder / "liblogspool.so").symlink_to("liblogspool.so.1")
    return folder


@pytest.fixture(scope="session")
def program(library, builds):
    """Return a function that compiles a program of the folder `programs` and returns its path."""

    def compiled(name, compiler="gcc"):
        command = [compiler, "-std=gnu11", "-O1", *WARNINGS, PROGRAMS / f"{name}.c", f"-I{HEADERS}"]
        command += [f"-L{library}", "-llogspool", "-pthread", f"-Wl,-rpath,{library}"]
        return builds.get(Path(name).name, command, lambda path: subprocess.run([*command, "-o", path], check=True))

    return compiled
