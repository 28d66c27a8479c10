"""The folder that `make native` fills: a program finds logspool by pkg-config and by CMake, shared and static."""

import os
import shutil
import signal
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


def _expect_lines(program, folder):
    _run(program, folder=folder)
    assert "took" in (folder / "hello.log").read_text()


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is missing: apt-get install pkg-config")
def test_pkg_config_lists_all_flags(package, tmp_path):
    env = {"PKG_CONFIG_PATH": str(package / "lib/pkgconfig")}
    flags = _run("pkg-config", "--cflags", "--libs", "logspool", env=env).split()
    _run("cc", EXAMPLE, "-o", tmp_path / "shared", *flags)
    _expect_lines(tmp_path / "shared", tmp_path)

    flags = _run("pkg-config", "--cflags", "--libs", "logspool-static", env=env).split()
    _run("cc", EXAMPLE, "-o", tmp_path / "static", *flags)
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


MUSL = "x86_64-unknown-linux-musl"


@pytest.fixture(scope="module")
def musl(tmp_path_factory):
    """Return the folder that is filled for musl, from a debug build."""
    sysroot = Path(_run("rustc", "--print", "sysroot").strip())
    if not (sysroot / "lib/rustlib" / MUSL / "lib").is_dir():
        pytest.skip(f"Rust has no standard library for musl: rustup target add {MUSL}")
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is missing: apt-get install musl-tools")
    folder = tmp_path_factory.mktemp("musl") / "package"
    command = [sys.executable, ROOT / "scripts/native_package.py", "--profile", "dev", "--target", MUSL]
    _run(*command, "--folder", folder)
    return folder


@pytest.fixture(scope="module")
def static_ends(musl, tmp_path_factory):
    """Return the program `ends`, which needs no library at all."""
    path = tmp_path_factory.mktemp("static") / "ends"
    flags = _run("pkg-config", "--cflags", "--libs", "logspool", env={"PKG_CONFIG_PATH": str(musl / "lib/pkgconfig")})
    _run("musl-gcc", "-static", ROOT / "tests/native/programs/ends.c", "-o", path, *flags.split())
    return path


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is missing: apt-get install pkg-config")
@pytest.mark.xdist_group("musl")
@pytest.mark.parametrize(
    ("end", "code"),
    [("exit", 0), ("term", -signal.SIGTERM), ("kill", -signal.SIGKILL), ("segv", -signal.SIGSEGV)],
)
def test_a_static_program_for_musl_loses_nothing(static_ends, tmp_path, end, code):
    assert "INTERP" not in _run("readelf", "-l", static_ends)
    assert "NEEDED" not in _run("readelf", "-d", static_ends)
    path = tmp_path / "a.log"
    done = subprocess.run([static_ends, path, end, "1000"], capture_output=True, text=True)

    assert (code, "") == (done.returncode, done.stderr)
    _run(static_ends, path, "recover", "0")
    assert [f"line {i}" for i in range(1000)] == path.read_text().splitlines()


def test_a_target_missing_in_rust_is_an_error_with_a_fix(tmp_path):
    command = [sys.executable, ROOT / "scripts/native_package.py", "--target", "no-such-musl", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 1
    assert "rustup target add no-such-musl" in done.stderr
