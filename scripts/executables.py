"""Build a program of the checkout, and say where it lies."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(package: str, *options: str) -> Path:
    """Build the one program that the options choose, by cargo; return its path.

    Callers at the same time wait for each other in cargo.

    Raises:
        subprocess.CalledProcessError: It cannot be built; cargo has said why.
    """
    command = ["cargo", "build", "--quiet", "--package", package, "--message-format=json", *options]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    (found,) = [message["executable"] for message in messages if message.get("executable")]
    return Path(found)
