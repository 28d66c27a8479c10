"""Texts of exceptions equal those of stock logging byte for byte; 2,000 exceptions (`LOGSPOOL_TRACEBACKS`)."""

import json
import os
import re
from pathlib import Path

import pytest

from suite import comparing, programs

pytestmark = pytest.mark.real

PROGRAM = Path(__file__).with_name("program.py")
CASES = int(os.environ.get("LOGSPOOL_TRACEBACKS", "2000"))
SEED = os.environ.get("LOGSPOOL_SEED", "1")
SECONDS = 60 + CASES / 20


def outputs(folder: Path, queue_dir: Path, side: str) -> dict[str, bytes]:
    """Run the program on one side; return its log files."""
    work = folder / side
    work.mkdir()
    env = programs.environment(side, queue_dir)
    outcome = programs.run([PROGRAM, CASES, SEED], env=env, folder=work, deadline_seconds=SECONDS)
    outcome.expect_success()
    found = {path.name: comparing.normalise(path.read_bytes(), work) for path in work.glob("*.*") if path.is_file()}
    return {**found, "stderr": comparing.normalise(outcome.err, work)}


@pytest.mark.timeout(2 * SECONDS)
def test_exception_texts_equal_those_of_stock_logging(tmp_path, queue_dir, record_property):
    stock, installed = (outputs(tmp_path, queue_dir, side) for side in programs.SIDES)

    logged = sum(len(re.findall(rb"^[A-Z]+ case ", text, re.MULTILINE)) for text in stock.values())
    record_property("summary", f"{logged} exceptions, seed {SEED}")
    assert logged >= CASES
    del stock["asked.json"]
    # Python makes the text only for exceptions that native code cannot show, and while a function is patched.
    assert json.loads(installed.pop("asked.json")).get("exception_text", 0) < logged / 5
    assert not comparing.differences(stock, installed)
