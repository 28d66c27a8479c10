"""The tables of the comparison of loggers."""

from case import BURST, DISABLED, LATENCY, PACED, THREADS, THROUGHPUT, Case
from cases import CASES
from report import Table
from results import Results
from targets import NOT_CHOSEN


def all_tables(results: Results) -> list[Table]:
    """Return every table of the run."""
    return [
        _calls(results, THROUGHPUT, "One thread, back to back (ns per record)"),
        _latencies(results),
        _calls(results, THREADS, "Four threads, back to back (ns per record, all threads together)"),
        _calls(results, BURST, "A burst of 100,000 records"),
        _disabled(results),
    ]


def _calls(results: Results, mode: str, title: str) -> Table:
    head = ["case", "caller wall", "caller CPU", "x stdlib", "end to end", "x stdlib", "total CPU"]
    head += ["memory MB", "lines", "lost", "refused", "order", "caller's line"]
    rows, marks = [], []
    for case in _cases(results, mode):
        missing = _missing(results, case, mode)
        if case.name.startswith("logspool"):
            marks.append(len(rows))
        if missing:
            rows.append([case.title, missing] + [""] * (len(head) - 2))
            continue
        rows.append(
            [
                case.title,
                _figure(results, case, mode, "caller_wall_ns"),
                _figure(results, case, mode, "caller_cpu_ns"),
                _times(results, case, mode, "caller_cpu_ns"),
                _figure(results, case, mode, "end_to_end_ns"),
                _times(results, case, mode, "end_to_end_ns"),
                _figure(results, case, mode, "total_cpu_ns"),
                f"{results.median(case.name, mode, 'memory_mb') or 0:.1f}",
                f"{int(results.median(case.name, mode, 'lines') or 0):,}"
                f" of {int(results.median(case.name, mode, 'records') or 0):,}",
                f"{int(results.worst(case.name, mode, 'lost')):,}",
                f"{int(results.worst(case.name, mode, 'refused')):,}",
                str(results.worst(case.name, mode, "order")),
                str(results.worst(case.name, mode, "caller_line")),
            ]
        )
    return Table(title, head, rows, frozenset(marks))


def _latencies(results: Results) -> Table:
    head = ["case", "back to back: p50", "p99", "p99.9", "max", "paced: p50", "p99", "p99.9", "max"]
    head += ["paced: CPU of all threads", "lines", "lost"]
    points = ("p50_ns", "p99_ns", "p999_ns", "max_ns")
    rows: list[list[str]] = []
    marks = []
    own = "logspool" if results.rounds("logspool", LATENCY) else "stdlib-file"
    empty = [_plain(results, own, mode, f"empty_{point}") for mode in (LATENCY, PACED) for point in points]
    rows.append([f"an empty call, beside {own}", *empty, "", "", ""])
    for case in _cases(results, LATENCY):
        missing = _missing(results, case, LATENCY)
        if case.name.startswith("logspool"):
            marks.append(len(rows))
        if missing:
            rows.append([case.title, missing] + [""] * (len(head) - 2))
            continue
        figures = [_plain(results, case.name, mode, point) for mode in (LATENCY, PACED) for point in points]
        figures.append(_plain(results, case.name, PACED, "total_cpu_net_ns"))
        found = results.median(case.name, LATENCY, "lines") or 0
        rows.append([case.title, *figures, f"{int(found):,}", f"{int(results.worst(case.name, LATENCY, 'lost')):,}"])
    return Table("Time of single calls (ns)", head, rows, frozenset(marks))


def _disabled(results: Results) -> Table:
    rows = []
    for case in _cases(results, DISABLED):
        missing = _missing(results, case, DISABLED)
        row = [case.title, missing or _figure(results, case, DISABLED, "disabled_ns")]
        ratio = results.ratio((case.name, DISABLED, "disabled_ns"), ("stdlib-file", DISABLED, "disabled_ns"))
        rows.append([*row, "" if missing or ratio is None else f"{ratio:.2f}"])
    for what, name, unit in (
        ("idle, installed", "idle_percent", "% of a core"),
        ("import", "import_ms", "ms"),
        ("longest call while a stalled pipe is read again", "thaw_ms", "ms"),
        ("longest empty call beside it", "thaw_empty_ms", "ms"),
    ):
        value = results.process.get(name)
        rows.append([f"logspool, {what}", "not measured" if value is None else f"{value:.2f} {unit}", ""])
    return Table("Calls below the level (ns, loop subtracted), idle and import", ["case", "cost", "of stdlib"], rows)


def _cases(results: Results, mode: str) -> list[Case]:
    """Return the rows of a table: measured cases, and chosen cases that could not be measured."""
    cases = (case for case in CASES.values() if mode in case.modes)
    return [case for case in cases if _missing(results, case, mode) != NOT_CHOSEN]


def _missing(results: Results, case: Case, mode: str) -> str:
    """Return why a row has no figures, or nothing."""
    if case.name in results.skipped:
        return f"skipped: {results.skipped[case.name]}"
    if f"{case.name} {mode}" in results.failed:
        return results.failed[f"{case.name} {mode}"].splitlines()[0]
    return "" if results.rounds(case.name, mode) else NOT_CHOSEN


def _figure(results: Results, case: Case, mode: str, name: str) -> str:
    value, spread = results.median(case.name, mode, name), results.spread(case.name, mode, name)
    if value is None:
        return ""
    return f"{value:,.0f} ±{(spread or 0) * 100:.0f}%"


def _plain(results: Results, case: str, mode: str, name: str) -> str:
    value = results.median(case, mode, name)
    return "" if value is None else f"{value:,.0f}"


def _times(results: Results, case: Case, mode: str, name: str) -> str:
    ratio = results.ratio(("stdlib-file", mode, name), (case.name, mode, name))
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"
