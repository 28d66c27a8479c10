"""The pool's comparison runs at a small size, and its counts are correct."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.one_interpreter]

pytest.importorskip("logspool.pool")

BENCH = Path(__file__).resolve().parents[3] / "bench" / "pool.py"


def test_a_quick_comparison_counts_right_and_leaves_results_picture_and_summary(tmp_path):
    command = [sys.executable, str(BENCH), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)

    assert 0 == done.returncode, done.stdout + done.stderr
    raw = next(tmp_path.glob("*.json"))
    results = json.loads(raw.read_text())
    assert {} == results["failed"]
    assert {"commit", "python", "sizes"} <= set(results["facts"])
    assert raw.with_suffix(".svg").exists()
    assert "### Targets" in (tmp_path / "summary.md").read_text()
