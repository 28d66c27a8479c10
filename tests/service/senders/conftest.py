"""Programs that send, made ready on first use; a test whose program cannot be had says why it is skipped."""

import os
import subprocess
from pathlib import Path

import pytest
from tools import tool

import service_tools

from . import sent

PROGRAMS = Path(__file__).parent / "programs"

# Ten times the time that a slow machine needed.
DEADLINE = 60.0


def run(command: "list[str]", folder: Path, **variables: str) -> str:
    """Run a program that has to succeed; return its output."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=DEADLINE)
    assert 0 == done.returncode, f"{command[:3]}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def records_file(tmp_path):
    """Write records where a program reads them."""
    return lambda records: str(sent.write(tmp_path / "records.json", records))


@pytest.fixture
def run_sender(tmp_path):
    """Run a program of the folder `programs` with the Python packages that send; return its output."""
    python = tool(service_tools.python)
    return lambda name, *arguments: run([str(python), str(PROGRAMS / name), *map(str, arguments)], tmp_path)


@pytest.fixture
def node():
    """Return the command that runs a program in Node.js, and the variables that let it find its packages."""
    program, modules = tool(service_tools.node)
    return program, {"NODE_PATH": str(modules)}


@pytest.fixture
def logger():
    """Return the program `logger`."""
    return tool(service_tools.logger)


@pytest.fixture
def curl():
    """Return the program `curl`."""
    return tool(service_tools.curl)


@pytest.fixture
def docker():
    """Return the program that sends as Docker does."""
    return tool(service_tools.docker)
