"""A Rust program for musl: one static file, with fat LTO, panics that abort, and levels left out at compile time."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from suite.fixtures import faults_full

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).parent / "rust"
MUSL = "x86_64-unknown-linux-musl"

#: Lines after those of the thread, and the arguments that were evaluated.
LEVEL_LINES = ["INFO log info", "WARN tracing warn", "DEBUG own debug"]
EVALUATED = ["log info", "warn span", "tracing warn", "own debug"]


@pytest.fixture(scope="module")
def static_program():
    """Return the program. Its dependencies are kept built."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    if not (Path(sysroot) / "lib/rustlib" / MUSL / "lib").is_dir():
        pytest.skip(f"Rust has no standard library for musl: rustup target add {MUSL}")
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is missing: apt-get install musl-tools")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "build/target-static-rust"))
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", PROGRAM / "Cargo.toml", "--target", MUSL]
    done = subprocess.run([*command, "--target-dir", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder / MUSL / "release/logspool-static-program"


@pytest.mark.skipif(not faults_full(), reason="linking takes more than a minute: make faults")
@pytest.mark.xdist_group("static_rust")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("return", 0),
        ("exit", 3),
        ("panic", -signal.SIGABRT),
        ("term", -signal.SIGTERM),
        ("segv", -signal.SIGSEGV),
        ("kill", -signal.SIGKILL),
    ],
)
def test_a_static_program_with_fat_lto_loses_nothing(static_program, tmp_path, end, code):
    headers = subprocess.run(["readelf", "-ld", static_program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers
    assert "NEEDED" not in headers
    path = tmp_path / "a.log"
    done = subprocess.run([static_program, path, end, "1000"], capture_output=True, text=True, check=False)

    assert (code, EVALUATED) == (done.returncode, done.stdout.splitlines())
    if end == "kill":
        # The next start delivers the rest.
        subprocess.run([static_program, path, "return", "0"], check=True)
    assert [*(f"INFO line {number}" for number in range(1000)), *LEVEL_LINES] == path.read_text().splitlines()
