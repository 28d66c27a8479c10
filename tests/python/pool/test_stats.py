"""The counts of a pool: `stats()` and its part of `logspool.metrics_text()`."""

import re
import threading
import time

import pytest

pytestmark = pytest.mark.real

pool_module = pytest.importorskip("logspool.pool")
Pool = pool_module.Pool

from pool.held import Held, until  # noqa: E402


def within(histogram, seconds):
    """Return the number of durations up to the first bound >= `seconds`."""
    return next(count for bound, count in histogram.buckets if bound >= seconds)


def test_each_job_is_in_both_histograms():
    with Pool(2) as pool:
        for _ in range(1000):
            pool.push(int)
        pool.map(int, range(10), chunksize=1)
        pool.options(done_callback=int).push(int)
    stats = pool.stats()

    assert stats.submitted == stats.wait_seconds.count == stats.run_seconds.count == 1011
    assert 0 < stats.run_seconds.sum < stats.wait_seconds.sum + 60
    assert stats.run_seconds.buckets == tuple(sorted(stats.run_seconds.buckets))


def test_waiting_and_running_times_are_separate():
    held = Held()
    held.pool.push(int)
    time.sleep(0.1)
    held.end()
    stats = held.pool.stats()

    # The first job ran for as long as the second one waited.
    assert within(stats.wait_seconds, 0.05) == 1
    assert within(stats.run_seconds, 0.05) == 1
    assert 0.05 <= stats.wait_seconds.sum < 60
    assert 0.05 <= stats.run_seconds.sum < 60


def test_the_delay_of_a_timer_does_not_count_as_waiting():
    with Pool(1) as pool:
        pool.submit_later(0.2, int)
    assert pool.stats().wait_seconds.sum < 0.2


def test_histograms_outlive_their_threads():
    with Pool(1, idle_timeout=0.01) as pool:
        for count in range(1, 4):
            pool.submit(int).result(60)
            until(lambda: pool.stats().workers == 0)
            assert pool.stats().run_seconds.count == count


def test_the_age_of_the_oldest_job_is_measured_until_it_starts():
    held = Held()
    assert held.pool.stats().oldest_age == 0
    held.pool.push(int)
    time.sleep(0.05)

    assert 0.04 < held.pool.stats().oldest_age < 60
    held.end()
    assert held.pool.stats().oldest_age == 0


def samples(text):
    return dict(re.findall(r"^(\w+\{[^}]*\}) (\S+)$", text, flags=re.MULTILINE))


def test_the_metrics_page_has_every_pool():
    import logspool

    held = Held(thread_name_prefix='a "b"', queue_size=5)
    other = Pool(1, thread_name_prefix='a "b"')
    held.pool.push(int)
    held.pool.submit_later(1000, int)
    page = logspool.metrics_text()
    found = samples(page)
    first, second = r'pool="a \"b\""', r'pool="a \"b\"#2"'

    assert found[f"logspool_pool_queue_jobs{{{first}}}"] == "1"
    assert found[f"logspool_pool_queue_capacity_jobs{{{first}}}"] == "5"
    assert found[f"logspool_pool_delayed_jobs{{{first}}}"] == "1"
    assert found[f"logspool_pool_busy_workers{{{first}}}"] == "1"
    assert found[f"logspool_pool_jobs_total{{{first}}}"] == "2"
    assert found[f"logspool_pool_jobs_total{{{second}}}"] == "0"
    assert page.endswith("# EOF\n")
    held.pool.clear()
    held.end()
    found = samples(logspool.metrics_text())
    assert found[f'logspool_pool_run_seconds_bucket{{{first},le="+Inf"}}'] == "1"
    assert found[f"logspool_pool_run_seconds_count{{{first}}}"] == "1"
    assert other.stats().workers == 0


def test_a_scraper_can_read_the_metrics_page():
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    import logspool

    ready = threading.Event()
    with Pool(2, thread_name_prefix="scraped") as pool:
        pool.push(ready.wait, 60)
        ready.set()
        pool.wait_idle(60)
        families = {family.name: family for family in parser.text_string_to_metric_families(logspool.metrics_text())}

    assert families["logspool_pool_jobs"].type == "counter"
    assert families["logspool_pool_run_seconds"].type == "histogram"
    assert "logspool_pool_workers" in families
