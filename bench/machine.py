"""The facts about a run: its machine, its Python and its commit."""

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, object]:
    """Return the facts that a number needs beside it; no host name."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "gil": getattr(__import__("sys"), "_is_gil_enabled", lambda: True)(),
        "commit": _commit(),
        "packages": {item.metadata["Name"]: item.version for item in metadata.distributions()},
    }


def folder_name(facts: dict[str, object]) -> str:
    """Return the name of the folder of a run: its date and its machine."""
    processor = re.sub(r"\(r\)|\(tm\)|cpu|processor|@.*", "", str(facts["processor"]).lower())
    slug = re.sub(r"[^a-z0-9]+", "-", processor).strip("-") or "unknown"
    return f"{str(facts['date'])[:10]}-{slug}-{facts['cores']}-cores"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def _commit() -> str:
    git = ["git", "-C", str(ROOT)]
    done = subprocess.run([*git, "describe", "--always", "--abbrev=10"], capture_output=True, text=True)
    if done.returncode:
        return "unknown"
    # The benchmarks' own output, records and pages, changes no measurement.
    measured = [".", ":(exclude)bench/runs", ":(exclude)*.md"]
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *measured]).returncode
    return done.stdout.strip() + ("-dirty" if changed else "")
