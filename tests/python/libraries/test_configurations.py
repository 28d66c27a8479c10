"""The comparison of configurations: every row writes the lines of stock logging, and a difference fails the run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"


@pytest.fixture(scope="module")
def bench():
    """Return the script and the functions with which it compares and judges."""
    before = list(sys.path)
    sys.path[:0] = [str(BENCH), str(BENCH.parent / "scripts")]
    import apart
    import configurations
    from configured import CONFIGURATIONS, masked, targets
    from results import Results

    def results(**figures):
        """Make a run with the given rows; each has the CPU time of stock logging and of logspool."""
        facts = {"date": "2026-01-01", "processor": "none", "cores": 2, "python": "3.12", "commit": "none"}
        found = Results({**facts, "records": 10, "turns": 2})
        for name, (stock, own) in figures.items():
            row = name.replace("_", "-")
            for turn in (0, 1):
                for variant, value in (("stock", stock), ("logspool", own)):
                    costs = dict.fromkeys(("caller_ns", "end_to_end_ns", "total_cpu_ns"), value * (1 + turn))
                    paths = {"native": 3, "by_record": 1, "stock": 0}
                    found.add(row, variant, turn, {**costs, "paths": paths, "reasons": {}})
        return found

    modules = {"script": configurations, "masked": masked, "targets": targets, "failed": apart.Failed}
    shown = configurations.Configurations()
    yield {**modules, "bench": shown, "rows": set(CONFIGURATIONS), "results": results}
    sys.path[:] = before


@pytest.mark.real
def test_a_quick_run_finds_equal_lines_in_every_row_and_leaves_results(bench, tmp_path):
    command = [sys.executable, str(BENCH / "configurations.py"), "--quick", "--records", "100", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)

    assert 0 == done.returncode, done.stdout + done.stderr
    results = json.loads((tmp_path / "raw.json").read_text())
    assert {} == results["failed"]
    assert bench["rows"] == set(results["cells"]) | set(results["skipped"])
    assert {"plain", "queue", "exception", "dict-config"} <= set(results["cells"])
    assert {"native"} == {name for name, count in results["cells"]["plain"]["logspool"][0]["paths"].items() if count}
    assert "| FileHandler |" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-25 23:12:46,%d INFO text",
        b'{"@timestamp":"2026-11-25T23:12:46.%dZ"}',
        b"[25/Nov/2026 23:12:46,%d] text",
        b'{"pid":%d}',
        b'{"thread":{"id":%d,"name":"MainThread"}}',
        b"process %d",
    ],
)
def test_the_comparison_ignores_times_and_process_ids_and_nothing_else(bench, line):
    difference, moving = bench["masked"].difference, (re.compile(rb"(?<=process )\d+"),)

    assert difference(line % 123, line % 456, moving) is None
    assert "differ from stock logging: 1" in difference(line % 123, line % 123 + b" ", moving)


def test_a_time_in_another_format_is_a_difference(bench):
    assert bench["masked"].difference(b"2026-11-25 23:12:46,123 x\n", b"2026-11-25 23:12:46.123 x\n")
    assert bench["masked"].difference(b"2026-11-25 23:12:46,123 x\n", b"2026-11-25 23:12:46,12 x\n")


def _measured(lines):
    """Return a replacement for the measurement; it writes the lines of each variant."""

    def measure_apart(configuration, variant, records, folder):
        (folder / f"{variant}.log").write_bytes(lines[variant])
        return {"caller_ns": 1.0, "paths": {"native": records}, "reasons": {}}

    return measure_apart


@pytest.mark.parametrize(
    ("own", "count"), [(b"one\ntwo\n", 0), (b"one\ntwO\n", 1), (b"one\n", 1), (b"one\ntwo\ntwo\n", 1), (b"", 2)]
)
def test_a_row_with_a_difference_fails_the_run(bench, monkeypatch, own, count):
    script = bench["script"]
    monkeypatch.setattr(script, "measure_apart", _measured({"stock": b"one\ntwo\n", "logspool": own}))
    results = bench["results"]()
    script.run(["plain"], 1, 2, results)
    (verdict,) = bench["bench"].judge_counts(results)

    assert (count == 0) == verdict.met
    assert (["plain"] if count else []) == list(results.failed)
    assert not count or f"differ from stock logging: {count}\n" in results.failed["plain"]


def test_a_measurement_that_fails_is_named_and_not_repeated(bench, monkeypatch):
    script, asked = bench["script"], []

    def measure_apart(configuration, variant, records, folder):
        asked.append(variant)
        if variant == "logspool":
            raise bench["failed"]("1 lines of 2")
        return {"caller_ns": 1.0}

    monkeypatch.setattr(script, "measure_apart", measure_apart)
    results = bench["results"]()
    script.run(["plain"], 3, 2, results)

    assert {"plain": "logspool 1 lines of 2"} == results.failed
    assert ["stock", "logspool"] == asked


def test_the_best_rounds_are_compared_with_the_stated_ratios(bench):
    results = bench["results"](plain=(1000.0, 10.0), context_filter=(1000.0, 900.0), queue=(1.0, 9.0))
    verdicts = bench["targets"].judge(results, ["plain", "context-filter", "queue"])

    assert [100.0, pytest.approx(1000 / 900), *["queue 0.11"] * 3] == [verdict.value for verdict in verdicts]
    assert [True, False, False, False, False] == [verdict.met for verdict in verdicts]


def test_a_row_that_cannot_run_says_why_and_one_that_failed_misses_its_ratio(bench):
    results = bench["results"]()
    results.skipped["plain"], results.failed["name-filter"] = "there is no file", "differ from stock logging: 1"
    verdicts = bench["targets"].judge(results, ["plain", "name-filter"])

    found = [(verdict.met, verdict.value) for verdict in verdicts]
    assert [(None, "there is no file"), (False, "differ from stock logging: 1"), *[(True, "none")] * 3] == found


def test_the_table_ends_with_the_medians_and_the_ratios_below_one(bench, tmp_path):
    results = bench["results"](plain=(1000.0, 10.0), json=(100.0, 50.0), queue=(1.0, 2.0))
    results.skipped["colorlog"] = "colorlog is not installed"
    results.failed["ecs"] = "lines that differ from stock logging: 1\nline 1: stock b'a', logspool b'b'"
    bench["bench"].keep(tmp_path, results)
    text = (tmp_path / "summary.md").read_text()

    assert "| FileHandler | 1,000 | 10 | 100.00 |" in text
    assert "| native 75%, by record 25% |" in text
    assert "| colorlog | skipped: colorlog is not installed |" in text
    assert "| ecs-logging | failed: lines that differ from stock logging: 1 |" in text
    assert "line 1: stock b'a', logspool b'b'" in text
    assert "| median ratio |  |  | 2.00 |  |  | 2.00 |  |  | 2.00 |  |" in text
    assert "| ratios below 1.0 |  |  | 1 |  |  | 1 |  |  | 1 |  |" in text
    assert "| measurements that failed | none | ecs: lines that differ from stock logging: 1 | **missed** |" in text
