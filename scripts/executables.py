"""Build programs of the checkout, and say where they lie."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build_all(package: str, *options: str) -> dict[str, Path]:
    """Build the programs that the options choose, by cargo; return the path of each by the name of its target.

    Callers at the same time wait for each other in cargo.

    Raises:
        subprocess.CalledProcessError: One cannot be built; cargo has said why.
    """
    command = ["cargo", "build", "--quiet", "--package", package, "--message-format=json", *options]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return {message["target"]["name"]: Path(message["executable"]) for message in messages if message.get("executable")}


def build(package: str, *options: str) -> Path:
    """Build the one program that the options choose, by cargo; return its path."""
    (found,) = build_all(package, *options).values()
    return found
