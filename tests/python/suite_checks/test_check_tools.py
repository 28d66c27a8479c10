"""`make` names a tool that is missing or too old, with what to install."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.65.0", b"error: Rust 1.65.0 is too old: install Rust 1.89 or later (rustup)"),
        ("1.9.0", b"error: Rust 1.9.0 is too old: install Rust 1.89 or later (rustup)"),
        ("1.89.0", b""),
        ("1.120.0-nightly", b""),
    ],
)
def test_a_rust_that_is_too_old_is_named_with_the_version_to_install(tmp_path, version, message):
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\necho 'cargo {version} (0123abc 2022-01-01)'\n")
    cargo.chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    words = ["make", "--no-print-directory", "check-tools"]

    done = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, timeout=60)

    assert (done.returncode != 0, message in done.stderr) == (bool(message), True), done
