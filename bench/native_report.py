"""The targets of a run of `bench/native.py`, and how the run is shown and kept."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import machine
import report
from tables import Table
from targets import Verdict

#: The medians of the rows of each group, by figure.
Groups = dict[str, dict[str, dict[str, float]]]

#: Largest ratios that are asked: group, row, row that it is compared with, largest ratio of the wall times.
WALL_BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool-pattern", "spdlog", 0.4),
    ("burst, 1 thread", "logspool", "spdlog-async", 0.25),
    ("burst, 4 threads", "logspool", "spdlog", 0.5),
    ("burst, 4 threads", "logspool", "spdlog-async", 1 / 15),
    ("hello, Nim", "logspool", "channel", 0.33),
    ("hello, Nim", "logspool", "raw", 6.0),
    ("burst, Rust", "logspool", "tracing-appender", 1 / 5),
    ("burst, Rust", "logspool-tracing", "tracing-appender", 1 / 3),
    ("burst, Rust", "logspool", "spdlog-rs", 1 / 2),
)
#: The same for the processor time per line.
CPU_BOUNDS = (
    ("burst, 1 thread", "logspool", "spdlog", 0.5),
    ("burst, 1 thread", "logspool-pattern", "spdlog", 0.5),
)
#: Most memory of a row, in MB: group, row, bound.
MEMORY_BOUNDS = (("burst, 1 thread", "logspool", 16.0), ("burst, 4 threads", "logspool", 16.0))
#: Most nanoseconds by which a paced call may exceed a call of the empty loop.
CALL_NS = {"p50": 20, "p99": 100, "p99.9": 500}
#: Most nanoseconds of an event or a span that the layer leaves out, above those without a subscriber.
LEFT_OUT_NS = 5.0
#: Most milliseconds by which a call may exceed an empty call, in the best run of a stalled pipe.
STALLED_CALL_MS = 1.0

#: Columns of a row: title, figure, and how it is written.
_COLUMNS = (
    ("lines", "lines", "{:,.0f}"),
    ("wall", "wall", "{:.3f} s"),
    ("CPU a line", "cpu_ns", "{:,.0f} ns"),
    ("peak memory", "rss_mb", "{:.1f} MB"),
    ("an event", "event_ns", "{:,.1f} ns"),
    ("a span", "span_ns", "{:,.1f} ns"),
    *((name, name, "{:,.0f} ns") for name in ("p50", "p99", "p99.9", "max")),
)


def judge(groups: Groups, stalled_ms: float, inversions: int) -> list[Verdict]:
    """Compare the figures of a run with the bounds. `stalled_ms`: how far the longest call exceeds an empty call."""
    verdicts = []
    for what, figure, bounds in (("wall time", "wall", WALL_BOUNDS), ("processor time", "cpu_ns", CPU_BOUNDS)):
        for group, row, other, bound in bounds:
            ratio = groups[group][row][figure] / groups[group][other][figure]
            verdicts.append(_verdict(f"{group}: {what} of {row} beside {other}", f"<= {bound:.3g}", ratio, bound))
    for group, row, bound in MEMORY_BOUNDS:
        verdicts.append(_verdict(f"{group}: {row}", f"<= {bound:g} MB", groups[group][row]["rss_mb"], bound))
    paced = groups["paced, 1 thread"]
    for name, bound in CALL_NS.items():
        above = paced["logspool"][name] - paced["none"][name]
        verdicts.append(_verdict(f"paced call above an empty loop, {name}", f"<= {bound} ns", above, bound))
    left_out = groups["left out, Rust"]
    for figure, what in (("event_ns", "event"), ("span_ns", "span")):
        above = left_out["logspool-tracing"][figure] - left_out["no-subscriber"][figure]
        verdicts.append(_verdict(f"{what} left out by the layer, above no subscriber", "<= 5 ns", above, LEFT_OUT_NS))
    what = "stalled pipe: longest call above an empty one, in the best run"
    verdicts.append(Verdict(what, f"< {STALLED_CALL_MS:g} ms", stalled_ms, stalled_ms < STALLED_CALL_MS))
    return [*verdicts, _verdict("lines before an earlier one, 4 threads", "0", inversions, 0)]


def _verdict(what: str, bound: str, value: float, largest: float) -> Verdict:
    return Verdict(what, bound, value, value <= largest)


def table(title: str, rows: dict[str, dict[str, float]]) -> Table:
    """Return the medians of a group as a table."""
    columns = [column for column in _COLUMNS if any(row.get(column[1]) for row in rows.values())]
    lines = [
        [name, *(shown.format(row[figure]) if row.get(figure) else "" for _, figure, shown in columns)]
        for name, row in rows.items()
    ]
    return Table(title, ["", *(column for column, _, _ in columns)], lines)


def keep(folder: Path, facts: dict[str, Any], groups: Groups, verdicts: list[Verdict]) -> None:
    """Write a run into its folder: all medians and the results of the targets as JSON, and a summary."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"facts": facts, "groups": groups, "targets": [asdict(verdict) for verdict in verdicts]}
    (folder / "medians.json").write_text(json.dumps(kept, indent=1) + "\n")
    where = f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, commit {facts['commit']}"
    parts = ["# C++, Nim and Rust beside other loggers", "", f"{where}, medians of {facts['turns']} runs in turns."]
    parts += ["All loggers are lossless here; the lines of each file were counted.", ""]
    parts += ["## Targets", "", *report.verdict_lines(verdicts)]
    for title, rows in groups.items():
        parts += ["", f"## {title}", "", *report.markdown(table(title, rows))]
    (folder / "summary.md").write_text("\n".join(parts) + "\n")


def facts(turns: int, lines: int) -> dict[str, Any]:
    """Return the date, the machine and the commit of a run, and its size."""
    found = machine.describe()
    shown = {name: found[name] for name in ("date", "processor", "cores", "kernel", "commit")}
    return {**shown, "turns": turns, "lines": lines}
