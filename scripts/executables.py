"""Build programs of the checkout, and return their paths."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: All packages except the Python bindings, which cannot be linked into a program. pytest tests them.
WORKSPACE = ["--workspace", "--exclude", "logspool-python"]


def cargo_build(package: str, *options: str) -> list[str]:
    """Return the command that builds the targets of a package that the options choose.

    cargo builds a library again if another choice of packages asks for other features of it. The Rust tests build the
    whole workspace: LOGSPOOL_CARGO_SCOPE=workspace makes their choice here, and cargo finds all libraries built.
    """
    is_built = not {"--release", "--profile", "--target"} & set(options)
    is_wide = is_built and os.environ.get("LOGSPOOL_CARGO_SCOPE") == "workspace"
    chosen = [*WORKSPACE, "--tests"] if is_wide else ["--package", package]
    return ["cargo", "build", "--quiet", *chosen, *options]


def build_all(package: str, *options: str) -> dict[str, Path]:
    """Build the programs that the options choose, by cargo; return the path of each by the name of its target.

    Callers at the same time wait for each other in cargo.

    Raises:
        subprocess.CalledProcessError: One cannot be built; cargo has said why.
    """
    command = [*cargo_build(package, *options), "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    programs = [message for message in messages if message.get("executable")]
    return {
        message["target"]["name"]: Path(message["executable"])
        for message in programs
        if message["target"]["name"] in options and not message["profile"]["test"]
    }


def build(package: str, *options: str) -> Path:
    """Build the one program that the options choose, by cargo; return its path."""
    (found,) = build_all(package, *options).values()
    return found
