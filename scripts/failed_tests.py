"""Name the tests that failed in the last runs, each with the end of what it said.

A long run ends with tables and summaries. Who sees only its last lines still learns here what to mend.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import environment

REPORTS = environment.BUILD / "reports"
#: Tests that are shown, and characters of each one's text. A bad build fails them all.
SHOWN = 6
CHARACTERS = 700


def failures(report: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each failed test of a JUnit report."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        for result in case:
            if result.tag in ("failure", "error"):
                yield f"{case.get('classname')}::{case.get('name')}", result.text or result.get("message") or ""


def summary(reports: list[Path]) -> str:
    """Return the text to show for these reports, which may be empty."""
    found = [
        (report.stem, name, text) for report in reports for name, text in failures(report.read_text(errors="replace"))
    ]
    lines = []
    for run, name, text in found[:SHOWN]:
        lines += [f"failed in {run}: {name}", *(f"    {line}" for line in _end(text).splitlines())]
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more: see {REPORTS.relative_to(environment.ROOT)}")
    return "\n".join(lines)


def _end(text: str) -> str:
    """Return the lines in which pytest shows what differed, or else the last ones."""
    errors = re.findall(r"^E .*$", text, flags=re.MULTILINE)
    shown = "\n".join(errors) if errors else text.strip()
    return shown if len(shown) <= CHARACTERS else f"{shown[: CHARACTERS // 2]}\n...\n{shown[-CHARACTERS // 2 :]}"


if __name__ == "__main__":
    shown = summary(sorted(REPORTS.glob("*.xml"), key=lambda report: report.stat().st_mtime))
    if shown:
        print(shown, file=sys.stderr)
