"""The comparison of native loggers: the bounds that it judges, and the files that it keeps."""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"

ROW = {"wall": 1.0, "cpu_ns": 100.0, "lines": 4_000_000.0, "rss_mb": 8.0}
PEER = {**ROW, "wall": 100.0, "cpu_ns": 1000.0}
LEFT_OUT = {"event_ns": 1.0, "span_ns": 6.0}
CALLS = {"p50": 30.0, "p99": 40.0, "p99.9": 50.0, "max": 60.0}
GROUPS = {
    "burst, 1 thread": {"logspool": ROW, "logspool-pattern": ROW, "spdlog": PEER, "spdlog-async": PEER},
    "burst, 4 threads": {"logspool": ROW, "logspool-pattern": ROW, "spdlog": PEER, "spdlog-async": PEER},
    "paced, 1 thread": {"logspool": {**ROW, **CALLS}, "none": {**ROW, **CALLS}},
    "hello, Nim": {"logspool": ROW, "channel": PEER, "raw": ROW},
    "burst, Rust": {"logspool": ROW, "logspool-tracing": ROW, "tracing-appender": PEER, "spdlog-rs": PEER},
    "left out, Rust": {"logspool-tracing": LEFT_OUT, "no-subscriber": LEFT_OUT},
}


@pytest.fixture(scope="module")
def native():
    before = list(sys.path)
    sys.path[:0] = [str(BENCH), str(BENCH.parent / "scripts")]
    import native

    yield native
    sys.path[:] = before


def results_of(native, *, above_ms=0.5, of_thread=0, uncounted=0, changed=()):
    results = native.Results(
        {"date": "2026-01-01", "processor": "none", "cores": 2, "python": "3.12", "commit": "none"}
    )
    for group, rows in GROUPS.items():
        for row, figures in rows.items():
            results.add(row, group, 0, dict(figures))
    for group, row, figures in changed:
        results.rounds(row, group)[0].update(figures)
    results.add("logspool", "stalled pipe", 0, {"above_ms": above_ms, "max_ms": above_ms})
    results.add("logspool", "order, 4 threads", 0, {"of_thread": of_thread, "late": 1, "uncounted": uncounted})
    native.Native().add_differences(results)
    return results


def missed(native, results):
    return [verdict.what for verdict in native.Native().judge(results) if not verdict.met]


def test_a_run_within_all_bounds_misses_none(native):
    results = results_of(native)

    # One verdict more says that nothing failed.
    assert 23 == len(native.Native().judge(results))
    assert [] == missed(native, results)


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
        ("left out, Rust", "logspool-tracing", {"span_ns": 11.5}, "span left out by the layer, above no subscriber"),
        ("hello, Nim", "raw", {"wall": 0.16}, "hello, Nim: wall time of logspool beside raw"),
    ],
)
def test_one_figure_above_its_bound_is_a_miss(native, group, row, figures, what):
    assert [what] == missed(native, results_of(native, changed=[(group, row, figures)]))


def test_a_long_call_or_a_line_out_of_order_is_a_miss(native):
    assert 3 == len(missed(native, results_of(native, above_ms=1.1, of_thread=1, uncounted=1)))


def test_order_is_counted_for_each_thread_and_for_all(native, tmp_path):
    path = tmp_path / "a.log"
    times = [f"2026-01-01 00:00:00.00000000{digit}" for digit in range(6)]
    rows = [(0, "0 0"), (2, "1 0"), (1, "0 1"), (3, "the queue is full by 50 %"), (4, "1 2"), (5, "1 1")]
    path.write_text("".join(f"{times[at]} {text}\n" for at, text in rows))

    # Thread 1 has its line 2 before its line 1; a line of thread 0 has an earlier time than one of thread 1 before it.
    assert (2, 1) == native.count_inversions(path)


def test_a_run_is_kept_with_its_machine_its_bounds_and_its_lines(native, tmp_path):
    results = results_of(native)
    native.Native().keep(tmp_path, results)

    summary = (tmp_path / "summary.md").read_text()
    assert results.to_json() == json.loads((tmp_path / "raw.json").read_text())
    assert "| burst, 1 thread: logspool | <= 16 MB | 8 | met |" in summary
    assert "| logspool | 1.000 | 4,000,000 | 100 | 8.0 |" in summary
