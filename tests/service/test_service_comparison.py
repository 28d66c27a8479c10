"""The service's comparison judges its figures: counts, ratios, parts that failed or could not be measured."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def judged():
    """Return what judges a run and what shows it, without anything that measures."""
    before = list(sys.path)
    sys.path[:0] = [str(BENCH), str(BENCH.parent / "scripts")]
    from results import Results
    from services import native
    from services.ground import POSTGRES

    # By its path: in a run of all tests, `service` is the folder of these.
    spec = importlib.util.spec_from_file_location("bench_service", BENCH / "service.py")
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)

    def results(**lost):
        """Make a run in which the client reaches two thirds of the raw writer."""
        facts = {"date": "2026-01-01", "processor": "none", "cores": 2, "python": "3.12", "commit": "none"}
        found = Results({**facts, "postgres": "15", "rsyslog": "none"})
        for number, rate in enumerate((300.0, 600.0)):
            counts = {"records": 10, "lost": 0, "doubled": 0}
            found.add(native.client(POSTGRES, 1), "native", number, {"rate": rate * 2, **counts, **lost})
            found.add(native.RAW[POSTGRES], "native", number, {"rate": rate * 3, **counts})
        return found

    yield {"results": results, "native": native, "bench": service.ServiceBench()}
    sys.path[:] = before


def verdict(verdicts, words):
    """Return the one verdict whose text holds these words."""
    (found,) = [verdict for verdict in verdicts if words in verdict.what]
    return found


def test_ratios_are_computed_inside_each_round_and_their_median_is_judged(judged):
    found = verdict(judged["bench"].judge(judged["results"]()), "native client into PostgreSQL")

    assert (pytest.approx(2 / 3), True) == (found.value, found.met)


def test_a_round_with_only_one_side_gives_no_ratio(judged):
    results = judged["results"]()
    for number, rate in ((2, 9000.0), (4, 300.0)):
        results.add(judged["native"].client(judged["native"].POSTGRES, 1), "native", number, {"rate": rate, "lost": 0})
    results.add(judged["native"].RAW[judged["native"].POSTGRES], "native", 4, {"rate": 300.0})
    found = verdict(judged["bench"].judge(results), "native client into PostgreSQL")

    assert pytest.approx(2 / 3) == found.value


@pytest.mark.parametrize("wrong", [{"lost": 1}, {"doubled": 1}])
def test_a_lost_or_duplicated_record_misses_a_target(judged, wrong):
    good = verdict(judged["bench"].judge_counts(judged["results"]()), "records counted")
    bad = verdict(judged["bench"].judge_counts(judged["results"](**wrong)), "records counted")

    assert (True, False) == (good.met, bad.met)
    assert "native, PostgreSQL: native client, 1 process" in bad.value


def test_a_lost_datagram_must_be_counted(judged):
    results = judged["results"]()
    results.add("20 processes: logspool serve", "datagram", 0, {"lost_percent": 5, "uncounted": 0, "doubled": 0})
    counted = verdict(judged["bench"].judge_counts(results), "datagrams lost uncounted")
    results.add("20 processes: logspool serve", "datagram", 1, {"lost_percent": 5, "uncounted": 1, "doubled": 0})
    uncounted = verdict(judged["bench"].judge_counts(results), "datagrams lost uncounted")

    assert (True, False) == (counted.met, uncounted.met)


def test_a_part_that_failed_misses_its_targets_and_one_that_cannot_be_measured_says_why(judged):
    results = judged["results"]()
    results.failed["stdlib"] = "the service ended with 1"
    results.skipped["syslog"] = "there is no rsyslog"
    verdicts = judged["bench"].judge(results)

    assert False is verdict(verdicts, "200 processes with SocketHandler").met
    assert False is verdict(verdicts, "measurements that failed").met
    skipped = verdict(verdicts, "syslog to file against rsyslog, 1 connection")
    assert (None, "there is no rsyslog") == (skipped.met, skipped.value)
    assert None is verdict(verdicts, "time of exactly once against no acks, PostgreSQL, 4").met


def test_the_summary_names_rows_ratios_and_reasons(judged, tmp_path):
    results = judged["results"]()
    results.skipped["syslog"] = "there is no rsyslog"
    judged["bench"].keep(tmp_path, results)
    text = (tmp_path / "summary.md").read_text()

    assert "| PostgreSQL: native client, 1 process | 900 |" in text
    assert "0.67" in text and "there is no rsyslog" in text
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    assert {"raw": results} == judged["bench"].again(tmp_path)


def test_the_processor_time_of_two_builds_is_compared(logspool_binary):
    script = BENCH / "service_builds.py"
    sizes = ["--rounds", "1", "--records", "20"]
    words = [sys.executable, script, f"one={logspool_binary}", f"two={logspool_binary}", *sizes]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert re.search(r"^two: median [\d.]+ s, [\d.]+ of one ", done.stdout, re.MULTILINE), done.stdout
