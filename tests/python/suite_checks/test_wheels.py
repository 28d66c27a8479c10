"""`scripts/wheels.py` asks maturin for the right wheel, names missing requirements and refuses an unfit wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import environment
import interpreters
import musl_python
import pure_wheel
import wheel_contents
import wheel_targets
import wheel_trials
import wheels
from environment import ROOT
from wheel_targets import TARGETS

PYTHON = interpreters.Interpreter("/usr/bin/python3.11", "3.11.2", "3.11")


def script(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "scripts" / "wheels.py"), *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


@pytest.fixture
def library(tmp_path):
    """Return a function that builds a library from text in C; its symbols get the `version`."""

    def build(name: str, text: str, *options: str, version: str = "") -> Path:
        source, made = tmp_path / f"{name}.c", tmp_path / f"lib{name}.so"
        source.write_text(text)
        if version:
            (tmp_path / f"{name}.map").write_text(f"{version} {{ global: *; }};")
            options = (f"-Wl,--version-script={tmp_path / name}.map", *options)
        command = ["cc", "-shared", "-fPIC", "-nostdlib", "-o", str(made), str(source), *options]
        subprocess.run(command, check=True)
        return made

    return build


def test_a_target_that_is_unknown_is_refused_with_the_names_of_all():
    done = script("--target", "riscv64-manylinux2014")

    assert done.returncode == 2
    for name in TARGETS:
        assert name in done.stderr


@pytest.mark.parametrize(
    ("name", "rust"),
    [
        ("x86_64-manylinux2014", "x86_64-unknown-linux-gnu"),
        ("x86_64-musllinux_1_2", "x86_64-unknown-linux-musl"),
        ("aarch64-manylinux2014", "aarch64-unknown-linux-gnu"),
        ("aarch64-musllinux_1_2", "aarch64-unknown-linux-musl"),
    ],
)
def test_a_target_that_rust_lacks_is_named_with_the_command_that_adds_it(tmp_path, name, rust):
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    rustc.chmod(0o755)

    done = script("--target", name, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert done.returncode == 1
    assert f"error: Rust has no standard library for {rust}: rustup target add {rust}" in done.stderr


def asked_of_maturin(monkeypatch, tmp_path, make) -> "tuple[list[str], Path, dict[str, str]]":
    """Return the command of maturin that `make` runs, its folder and its variables; the wheel is an empty file."""
    asked = []

    def run(command, folder=ROOT, **variables):
        (Path(command[command.index("--out") + 1]) / "made.whl").touch()
        asked.append((command, folder, variables))

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(environment, "tools", lambda: Path("/tools"))
    monkeypatch.setattr(wheel_targets, "tools", lambda: Path("/tools"))
    monkeypatch.setattr(wheels, "DIST", tmp_path / "dist")
    monkeypatch.setattr(wheel_contents, "complete", lambda *given: None)
    assert make() == tmp_path / "dist" / "made.whl"
    [one] = asked
    return one


def test_a_wheel_for_a_target_is_linked_by_zig_with_its_oldest_c_library(monkeypatch, tmp_path):
    target = TARGETS["aarch64-musllinux_1_2"]
    command, folder, variables = asked_of_maturin(monkeypatch, tmp_path, lambda: wheels.build(PYTHON, target))

    words = " ".join(command)
    assert "--zig --target aarch64-unknown-linux-musl --compatibility musllinux_1_2" in words
    assert "-i python3.11 " in words
    assert command[command.index("--profile") + 1] == "wheel"
    assert folder == ROOT
    # Neither time nor folder of the build is in the wheel.
    assert variables["SOURCE_DATE_EPOCH"].isdecimal()
    assert f"--remap-path-prefix={ROOT}=/logspool" in variables["RUSTFLAGS"]
    assert f"-ffile-prefix-map={ROOT}=/logspool" in variables["CFLAGS"]
    assert "-DZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR" in variables["CFLAGS"]
    # maturin asks the first `python3` for zig.
    assert variables["PATH"].startswith("/tools/bin" + os.pathsep)


def test_rotated_files_are_compressed_with_the_one_level_that_the_wheels_have():
    source = (ROOT / "crates/logspool/src/sinks/compress/job.rs").read_text()

    assert "const ZSTD_LEVEL: i32 = 3;" in source
    assert "DFAST" not in wheel_targets.SMALL["CFLAGS"].split("_")


def test_a_wheel_for_glibc_has_the_unwinder_of_gcc_and_no_other(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(wheel_targets, "BUILD", tmp_path)
    monkeypatch.setattr(environment, "BUILD", tmp_path)

    def unpack(*given):
        asked.append(given[:3])
        given[3].mkdir(parents=True)
        return True

    monkeypatch.setattr(wheel_targets.debian, "unpack", unpack)

    named = wheel_targets.unwinder(TARGETS["aarch64-manylinux2014"])

    assert asked == [("libgcc-s1", "bookworm", "arm64")]
    link = Path(named["LOGSPOOL_UNWINDER"]) / "libgcc_s_of_target.so"
    assert os.readlink(link) == "usr/lib/aarch64-linux-gnu/libgcc_s.so.1"
    assert wheel_targets.unwinder(TARGETS["aarch64-musllinux_1_2"]) == {}


def test_a_wheel_for_this_machine_needs_no_zig(monkeypatch, tmp_path):
    command, _, _ = asked_of_maturin(monkeypatch, tmp_path, lambda: wheels.build(PYTHON, None))

    assert not {"--zig", "--target"} & set(command)
    assert command[command.index("-i") + 1] == PYTHON.executable


def test_the_wheel_of_the_service_is_a_project_of_its_own(monkeypatch, tmp_path):
    target = TARGETS["x86_64-manylinux2014"]
    command, folder, _ = asked_of_maturin(monkeypatch, tmp_path, lambda: wheels.build_service(target))

    assert "-i" not in command
    project = environment.tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "logspool-service"
    assert environment.extras("service") == ["logspool-service"]
    assert (folder / project["tool"]["maturin"]["manifest-path"]).is_file()
    assert all((folder / name).is_file() for name in project["project"]["license-files"])


def test_a_module_that_asks_for_a_newer_glibc_does_not_fit(library, tmp_path):
    glibc = "int old_one(void) { return 1; }"
    library("new", glibc.replace("old_one", "new_one"), version="GLIBC_2.34")
    library("old", glibc, version="GLIBC_2.9")
    text = "int old_one(void); int new_one(void); int both(void) { return old_one() + new_one(); }"
    both = library("both", text, f"-L{tmp_path}", "-lnew", "-lold")
    one = library("one", "int old_one(void); int one(void) { return old_one(); }", f"-L{tmp_path}", "-lold")

    assert wheel_targets.newest_glibc(both) == (2, 34)
    assert wheel_targets.faults(both, TARGETS["x86_64-manylinux2014"]) == ["it asks for GLIBC_2.34"]
    assert wheel_targets.faults(one, TARGETS["x86_64-manylinux2014"]) == []
    # A symbol that the old glibc lacks has no version.
    none = library("none", "int gettid(void); int PyLong_AsLong(void); int id(void) { return gettid(); }")
    assert wheel_targets.faults(none, TARGETS["x86_64-manylinux2014"]) == ["glibc 2.17 has no gettid"]
    # A module for musl may need musl and nothing else.
    assert wheel_targets.faults(one, TARGETS["x86_64-musllinux_1_2"]) == ["it needs libold.so"]


def test_symbols_that_neither_the_c_library_nor_python_has_are_found(library):
    c_library = library("c", "int there(void) { return 1; }")
    text = """\
int there(void); int not_there(void); int PyLong_AsLong(void); __attribute__((weak)) int maybe(void);
int all(void) { return there() + not_there() + PyLong_AsLong() + (maybe ? maybe() : 0); }"""

    assert wheel_targets.unknown_to(c_library, library("module", text)) == ["not_there"]


def wheel_of(path: Path, binary: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(binary, "logspool/_native.cpython-311-x86_64-linux-gnu.so")
        for name in names:
            archive.writestr(name, "")
    return path


def test_a_wheel_without_a_part_or_too_large_is_refused(monkeypatch, library, tmp_path, capsys):
    monkeypatch.setattr(wheel_targets, "audit", lambda wheel, target: "fit")
    target = TARGETS["x86_64-manylinux2014"]
    module = library("module", "int number(void) { return 1; }")
    licences = [f"x.dist-info/licenses/{name}" for name in ("LICENSE-MIT", "LICENSE-APACHE", wheel_contents.NOTICES)]
    licences.append("x.dist-info/sboms/x.cdx.json")
    whole = wheel_of(tmp_path / "whole.whl", module, "logspool/py.typed", "logspool/_native.pyi", *licences)
    half = wheel_of(tmp_path / "half.whl", module, "logspool/py.typed", *licences)

    assert wheel_contents.missing_parts(whole) == []
    assert wheel_contents.missing_parts(half) == ["the stubs of the native module"]
    wheels.inspect(whole, target, whole.stat().st_size)
    with pytest.raises(SystemExit):
        wheels.inspect(whole, target, whole.stat().st_size - 1)
    size = whole.stat().st_size
    assert f"whole.whl has {size} bytes; at most {size - 1} are allowed" in capsys.readouterr().err


def test_a_trial_that_cannot_be_made_says_why(monkeypatch):
    with wheel_trials.empty_debian("aarch64", "3.10") as reason:
        assert reason == "no Debian has CPython 3.10"
    with wheel_trials.empty_musl("riscv64", "3.11") as reason:
        assert reason == "no CPython for musl on riscv64 is built here"
    assert musl_python.root("3.10") == "no Debian has the sources of CPython 3.10"
    monkeypatch.setattr(wheel_trials.shutil, "which", lambda name: None)
    assert musl_python.root("3.11") == "musl-gcc is missing: apt-get install musl-tools"
    with wheel_trials.empty_debian("riscv64", "3.11") as reason:
        assert reason == "qemu-riscv64-static is missing: apt-get install qemu-user-static"
    monkeypatch.setattr(wheel_trials.os, "geteuid", lambda: 1000)
    with wheel_trials.bare_root(Path("service.whl"), TARGETS["x86_64-musllinux_1_2"]) as reason:
        assert reason == "only root can change the root folder"


def test_the_wheel_without_a_native_module_is_complete_and_twice_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(pure_wheel, "DIST", tmp_path)

    wheel = pure_wheel.build()
    first = wheel.read_bytes()
    files = {entry.filename: entry for entry in zipfile.ZipFile(wheel).infolist()}
    metadata = zipfile.ZipFile(wheel).read(next(name for name in files if name.endswith("/METADATA"))).decode()
    record = zipfile.ZipFile(wheel).read(next(name for name in files if name.endswith("/RECORD"))).decode()

    assert wheel.name.endswith("-py3-none-any.whl")
    assert pure_wheel.build().read_bytes() == first
    assert {line.split(",")[0] for line in record.splitlines()} == set(files)
    assert {"logspool/_native.py", "logspool/pure/tables.json", "logspool/py.typed"} <= set(files)
    assert not [name for name in files if name.endswith(".so")]
    assert len([name for name in files if "/licenses/LICENSE" in name]) >= 2
    assert "Requires-Dist: rich>=13 ; extra == 'top'\n" in metadata
    assert "Requires-Dist: tomli>=2 ; (python_version < '3.11') and extra == 'toml'\n" in metadata
    assert "Operating System" not in metadata


def test_the_wheel_for_any_system_is_refused_with_native_code(tmp_path, library):
    wheel = wheel_of(tmp_path / "any.whl", library("module", "int number(void) { return 1; }"))

    with pytest.raises(SystemExit):
        pure_wheel.try_out(wheel, PYTHON)


def test_a_service_that_does_not_start_is_a_failure(tmp_path, capsys):
    program = tmp_path / "logspool"
    program.write_text("#!/bin/sh\necho 'error: no store' >&2\nexit 1\n")
    program.chmod(0o755)
    place = wheel_trials.Place("here", [str(program)], tmp_path, "", {"PATH": os.environ["PATH"]})

    with pytest.raises(SystemExit):
        wheel_trials.serve_alone(place)
    assert "the service does not start here: error: no store" in capsys.readouterr().err
