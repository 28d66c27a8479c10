"""The folder that `make native` fills: a program finds logspool by pkg-config and by CMake, shared and static."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

EXAMPLE = ROOT / "examples/c/hello.c"


def _run(*command, env=None, folder=None):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return the filled folder, moved after it was filled."""
    folder = tmp_path_factory.mktemp("native") / "first"
    shown = _run(sys.executable, ROOT / "scripts/native_package.py", "--profile", "dev", "--folder", folder)
    assert f"PKG_CONFIG_PATH={folder}/lib/pkgconfig" in shown
    return folder.rename(folder.parent / "moved")


def _expect_lines(program, folder):
    _run(program, folder=folder)
    assert "took" in (folder / "hello.log").read_text()


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is missing: apt-get install pkg-config")
def test_pkg_config_names_everything(package, tmp_path):
    env = {"PKG_CONFIG_PATH": str(package / "lib/pkgconfig")}
    flags = _run("pkg-config", "--cflags", "--libs", "logspool", env=env).split()
    _run("cc", EXAMPLE, "-o", tmp_path / "shared", *flags)
    _expect_lines(tmp_path / "shared", tmp_path)

    flags = _run("pkg-config", "--static", "--cflags", "--libs", "logspool", env=env).split()
    static = [str(package / "lib/liblogspool.a") if flag == "-llogspool" else flag for flag in flags]
    _run("cc", EXAMPLE, "-o", tmp_path / "static", *static)
    (tmp_path / "hello.log").unlink()
    _expect_lines(tmp_path / "static", tmp_path)
    assert "liblogspool" not in _run("ldd", tmp_path / "static")


CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(hello LANGUAGES C CXX)
find_package(logspool 0.1 REQUIRED)
add_executable(shared {example})
target_link_libraries(shared logspool::logspool)
add_executable(static {example})
target_link_libraries(static logspool::static)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is missing: apt-get install cmake")
def test_cmake_finds_both_libraries(package, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS.format(example=EXAMPLE))
    _run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={package}")
    _run("cmake", "--build", tmp_path / "build")

    for program in ("shared", "static"):
        _expect_lines(tmp_path / "build" / program, tmp_path)
        (tmp_path / "hello.log").unlink()


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    command = [sys.executable, ROOT / "scripts/native_package.py", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 2
    assert "name a new folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
