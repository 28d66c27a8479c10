"""`stats()`, `health()` and `metrics_text()`, each in a program of its own."""

import json

import pytest

pytestmark = pytest.mark.real

_PRELUDE = """\
import json, logging, logspool, time
logging.basicConfig(filename="app.log", level=logging.INFO, format="%(message)s")
log = logging.getLogger("app")
def tell(**values):
    print(json.dumps(values))
"""


def _told(run_program, body, **variables):
    outcome, folder = run_program(_PRELUDE + body, **variables)
    outcome.expect_success()
    return json.loads(outcome.out.splitlines()[-1]), folder


def test_all_counters_exist_and_are_zero_before_the_first_record(run_program):
    body = """
stats = logspool.stats()
tell(installed=stats.installed, levels=list(stats.levels), sinks=len(stats.sinks), health=logspool.health().status,
     offered=sum(level.offered for level in stats.levels.values()))
"""
    told, _ = _told(run_program, body)

    levels = ["NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    assert {"installed": False, "levels": levels, "sinks": 0, "health": "ok", "offered": 0} == told


def test_both_accounting_equations_hold_while_records_are_in_flight(run_program):
    body = """
logspool.install()
broken = []
for number in range(20_000):
    log.info("%d", number)
    if number % 500 == 0:
        stats = logspool.stats()
        broken += [str(level) for level in stats.levels.values()
                   if level.offered != level.accepted + sum(level.refused.values())]
        broken += [str(count) for sink in stats.sinks.values() for count in sink.values()
                   if count.accepted_for_sink != count.written + count.queued + count.spooled
                   + sum(count.dropped.values()) + count.uncertain]
logspool.flush()
sink = logspool.stats().sinks[logging.root.handlers[0].baseFilename]
tell(broken=broken, written=sink["INFO"].written, queued=sink.total("queued"), bytes=sink.bytes_written,
     native=logspool.stats().loggers["app"].native)
"""
    told, folder = _told(run_program, body)

    size = (folder / "app.log").stat().st_size
    assert {"broken": [], "written": 20_000, "queued": 0, "bytes": size, "native": 20_000} == told


def test_two_handlers_on_one_file_are_one_sink(run_program):
    body = """
logging.root.addHandler(logging.FileHandler("app.log"))
logspool.install()
log.info("twice")
logspool.flush()
tell(written=[sink["INFO"].written for sink in logspool.stats().sinks.values()])
"""
    told, _ = _told(run_program, body)

    assert {"written": [2]} == told


def test_stats_print_as_a_table(run_program):
    body = """
logspool.install()
log.warning("once")
logspool.flush()
tell(text=str(logspool.stats()))
"""
    told, folder = _told(run_program, body)

    assert "level WARNING: 1 accepted of 1" in told["text"]
    assert f"sink {folder / 'app.log'}: 1 written of 1, 0 queued, 5 bytes" in told["text"]


def test_stats_show_the_reason_for_the_by_record_path(run_program):
    body = """
logspool.install()
logging.setLogRecordFactory(lambda *args, **kwargs: logging.LogRecord(*args, **kwargs))
log.info("once")
path = logspool.stats().loggers["app"]
tell(by_record=path.by_record, stock=path.stock, reason=path.reason)
"""
    told, _ = _told(run_program, body)

    assert {"by_record": 1, "stock": 0, "reason": "logging.setLogRecordFactory was called"} == told


def test_health_fails_while_a_file_accepts_nothing(run_program):
    body = """
handler = logging.FileHandler("/dev/full")
logging.root.addHandler(handler)
logspool.install()
for number in range(100):
    log.info("no room %d", number)
deadline = time.monotonic() + 20
while logspool.health().status == "ok" and time.monotonic() < deadline:
    time.sleep(0.01)
health = logspool.health()
handler.close()
tell(status=health.status, truth=bool(health), reasons=health.reasons)
"""
    told, _ = _told(run_program, body, LOGSPOOL_SHUTDOWN_TIMEOUT="0.5")

    assert "failing" == told["status"] or "degraded" == told["status"]
    assert told["truth"] is False
    assert any("fix: " in reason for reason in told["reasons"])


def test_metrics_are_open_metrics_before_and_after_the_first_record(run_program):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    body = """
before = logspool.metrics_text()
logging.root.addHandler(logging.FileHandler("app.log"))
logspool.install()
log.info("once")
logspool.flush()
tell(before=before, after=logspool.metrics_text())
"""
    told, folder = _told(run_program, body)
    before = {family.name: family for family in parser.text_string_to_metric_families(told["before"])}
    after = {family.name: family for family in parser.text_string_to_metric_families(told["after"])}
    written = {sample.labels["sink"]: sample.value for sample in after["logspool_records_written"].samples}

    assert ["logspool_build"] == list(before)
    assert before["logspool_build"].samples == after["logspool_build"].samples
    assert {str(folder / "app.log"): 2.0} == written


def test_install_suggests_the_nearest_option(run_program):
    body = """
try:
    logspool.install(que_bytes=1)
except TypeError as error:
    tell(error=str(error))
"""
    told, _ = _told(run_program, body)

    assert {"error": "install() has no option 'que_bytes'; the nearest one is 'queue_bytes'"} == told
