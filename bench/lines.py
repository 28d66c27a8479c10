"""The contents of a log file at the end: lines found, lost, doubled, out of order; do they name the true caller?"""

import re
from collections.abc import Mapping
from pathlib import Path

# Calls before the measurement carry this thread name; their lines are not counted.
WARM_UP = "warm"


def check(path: Path, layout: re.Pattern[str], expected: Mapping[str, int], true_lines: set[int]) -> dict[str, object]:
    """Compare a file with the calls made: `expected` is the number of calls per thread name."""
    seen: dict[str, list[int]] = {name: [] for name in expected}
    damaged, callers = 0, set()
    # Bytes that are no text at all stay visible as damaged lines.
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        match = layout.fullmatch(line)
        if match is None:
            damaged += 1
            continue
        if match["thread"] == WARM_UP:
            continue
        if match["thread"] not in seen:
            damaged += 1
            continue
        seen[match["thread"]].append(int(match["index"]))
        if "line" in layout.groupindex:
            callers.add(int(match["line"]))
    return {
        "lines": sum(len(indexes) for indexes in seen.values()),
        "lost": sum(count - len(set(seen[name])) for name, count in expected.items()),
        "doubled": sum(len(indexes) - len(set(indexes)) for indexes in seen.values()),
        "order": "yes" if all(indexes == sorted(indexes) for indexes in seen.values()) else "no",
        "damaged": damaged,
        "caller_line": _caller_line(layout, callers, true_lines),
    }


def _caller_line(layout: re.Pattern[str], callers: set[int], true_lines: set[int]) -> str:
    if "line" not in layout.groupindex:
        return "none"
    return "yes" if callers and callers <= true_lines else "no"
