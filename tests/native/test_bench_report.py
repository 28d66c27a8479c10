"""The comparison of native loggers: the bounds that it judges, and the files that it keeps."""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"

ROW = {"wall": 1.0, "cpu_ns": 100.0, "lines": 4_000_000.0, "rss_mb": 8.0}
PEER = {**ROW, "wall": 100.0, "cpu_ns": 1000.0}
CALLS = {"p50": 30.0, "p99": 40.0, "p99.9": 50.0, "max": 60.0}
LEFT_OUT = {"event_ns": 1.0, "span_ns": 6.0}
GROUPS = {
    "burst, 1 thread": {"logspool": ROW, "logspool-pattern": ROW, "spdlog": PEER, "spdlog-async": PEER},
    "burst, 4 threads": {"logspool": ROW, "logspool-pattern": ROW, "spdlog": PEER, "spdlog-async": PEER},
    "paced, 1 thread": {"logspool": {**ROW, **CALLS}, "none": {**ROW, **CALLS}},
    "hello, Nim": {"logspool": ROW, "channel": PEER, "raw": ROW},
    "burst, Rust": {"logspool": ROW, "logspool-tracing": ROW, "tracing-appender": PEER, "spdlog-rs": PEER},
    "left out, Rust": {"logspool-tracing": LEFT_OUT, "no-subscriber": LEFT_OUT},
}


@pytest.fixture(scope="module")
def report():
    before = list(sys.path)
    sys.path[:0] = [str(BENCH)]
    import native_report

    yield native_report
    sys.path[:] = before


def changed(group, row, **figures):
    groups = json.loads(json.dumps(GROUPS))
    groups[group][row].update(figures)
    return groups


def missed(verdicts):
    return [verdict.what for verdict in verdicts if not verdict.met]


def test_a_run_within_all_bounds_misses_none(report):
    verdicts = report.judge(GROUPS, 0.5, 0)

    assert 21 == len(verdicts)
    assert [] == missed(verdicts)


@pytest.mark.parametrize(
    ("group", "row", "figures", "what"),
    [
        (
            "burst, 1 thread",
            "spdlog-async",
            {"wall": 3.9},
            "burst, 1 thread: wall time of logspool beside spdlog-async",
        ),
        ("burst, 1 thread", "logspool", {"cpu_ns": 501.0}, "burst, 1 thread: processor time of logspool beside spdlog"),
        ("burst, 4 threads", "logspool", {"rss_mb": 16.1}, "burst, 4 threads: logspool"),
        ("paced, 1 thread", "logspool", {"p99.9": 551.0}, "paced call above an empty loop, p99.9"),
        (
            "left out, Rust",
            "logspool-tracing",
            {"span_ns": 11.5},
            "span left out by the layer, above no subscriber",
        ),
        ("hello, Nim", "raw", {"wall": 0.16}, "hello, Nim: wall time of logspool beside raw"),
    ],
)
def test_one_figure_above_its_bound_is_missed(report, group, row, figures, what):
    assert [what] == missed(report.judge(changed(group, row, **figures), 0.5, 0))


def test_a_long_call_and_a_line_out_of_order_are_missed(report):
    assert 2 == len(missed(report.judge(GROUPS, 1.0, 1)))


def test_a_run_is_kept_with_its_machine_its_bounds_and_its_lines(report, tmp_path):
    report.keep(tmp_path / "native", report.facts(5, 4_000_000), GROUPS, report.judge(GROUPS, 0.5, 0))

    kept = json.loads((tmp_path / "native" / "medians.json").read_text())
    summary = (tmp_path / "native" / "summary.md").read_text()
    assert GROUPS == kept["groups"]
    assert 5 == kept["facts"]["turns"]
    assert 21 == len(kept["targets"])
    assert kept["targets"][-1]["met"]
    assert "| burst, 1 thread: logspool | <= 16 MB | 8 | met |" in summary
    assert "| logspool | 4,000,000 | 1.000 s | 100 ns | 8.0 MB |" in summary
