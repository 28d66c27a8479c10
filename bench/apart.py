"""A measurement in a process of its own, with no other contender's memory, threads and settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: Imports a module of this folder and calls one of its functions. It leaves at once: the end of a peer is not measured.
_PROGRAM = """
import importlib, json, os, sys
name, function, arguments = json.loads(sys.argv.pop())
result = getattr(importlib.import_module(name), function)(*arguments)
sys.stdout.write(json.dumps(result) + chr(10))
sys.stdout.flush()
os._exit(0)
"""


class Failed(Exception):
    """A process that gave no answer; the first line of the text says why."""


def ask(
    module: str,
    *arguments: object,
    function: str = "measure",
    seconds: float = 300.0,
    variables: Mapping[str, str] | None = None,
    silent: bool = False,
) -> Any:
    """Have a function of a module called in a fresh process; return its result.

    `seconds` is ten times or more what the slowest measurement needs. With `silent` words on standard error are a
    failure, whatever the exit code.
    """
    command = [sys.executable, "-c", _PROGRAM, json.dumps([module, function, arguments])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=variables, cwd=HERE)
    except subprocess.TimeoutExpired:
        raise Failed(f"hangs: ended after {seconds:.0f} s") from None
    said = done.stderr.strip()
    if done.returncode != 0 or not done.stdout.strip() or (silent and said):
        lines = said.splitlines() or ["no output"]
        raise Failed("\n".join([f"failed (exit code {done.returncode}): {lines[-1][:160]}", *lines[-20:-1]]))
    return json.loads(done.stdout.splitlines()[-1])


def variables() -> dict[str, str]:
    """Return the environment of a measured process: no settings from outside, except the folder of the files."""
    foreign, kept = ("LOGSPOOL", "OTEL_", "SENTRY_"), "LOGSPOOL_BENCH_DIR"
    return {name: value for name, value in os.environ.items() if name == kept or not name.startswith(foreign)}


def install_reasons() -> dict[str, str]:
    """Return why packages could not be installed, by name."""
    path = os.environ.get("LOGSPOOL_BENCH_REASONS", "")
    return dict(json.loads(Path(path).read_text())) if path and Path(path).exists() else {}
