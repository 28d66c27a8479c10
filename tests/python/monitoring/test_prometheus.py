"""`logspool.prometheus.Collector`: the metrics of one process, and of all workers of a server."""

import importlib.util
import json

import pytest

from monitoring import workers_program

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("prometheus_client") is None, reason="needs prometheus_client"),
]

ALONE = """\
import logging
import logspool
import prometheus_client
from prometheus_client.openmetrics import exposition
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
import logspool.prometheus

registry = prometheus_client.CollectorRegistry(auto_describe=True)
registry.register(logspool.prometheus.Collector())
assert "logspool_records" not in prometheus_client.generate_latest(registry).decode()
logging.basicConfig(filename='a "b".log', level=logging.INFO)
logspool.install()
for _ in range(7):
    logging.info("one")
logspool.flush()
plain = prometheus_client.generate_latest(registry).decode()
assert 'logspool_records_total{level="INFO"} 7.0' in plain, plain
assert "# TYPE logspool_write_duration_seconds histogram" in plain

def samples(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }

given = samples(exposition.generate_latest(registry).decode())
own = samples(logspool.metrics_text())
assert given.keys() == own.keys() and len(own) > 100
assert all(given[name] == own[name] for name in own if name[0].endswith("_total"))
try:
    logspool.prometheus.Collector(workers="yes")
except TypeError as error:
    assert "workers takes True, False or None" in str(error)
else:
    raise AssertionError
print("done")
"""


def test_a_process_alone_gives_all_its_metrics(run_program):
    outcome, _ = run_program(ALONE)

    assert outcome.expect_success().out == b"done\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_any_worker_gives_the_counters_of_all_workers(run_program, method, tmp_path):
    (tmp_path / "prometheus").mkdir()
    outcome, _ = run_program(
        "import sys\nfrom monitoring import workers_program\n"
        "if __name__ == '__main__':\n    workers_program.main(sys.argv[1])\n",
        method,
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path / "prometheus"),
        deadline_seconds=120,
    )

    seen = json.loads(outcome.expect_success().out)
    assert len({(name, *sorted(labels.items())) for name, labels, _ in seen["samples"]}) == len(seen["samples"])
    total = {
        labels["pid"]: value
        for name, labels, value in seen["samples"]
        if name == "logspool_records_total" and labels["level"] == "INFO"
    }
    expected = dict(zip(map(str, seen["pids"]), workers_program.RECORDS))
    assert total == {**expected, str(seen["parent"]): 1}
    written = [(labels, value) for name, labels, value in seen["samples"] if name == "logspool_records_written_total"]
    assert sorted(value for _, value in written) == sorted([1, *workers_program.RECORDS])
    assert all(labels["sink"].endswith("/app.log") for labels, _ in written)
    assert all(value == 0 for name, _, value in seen["samples"] if "dropped" in name or "queue" in name)


def test_without_the_package_the_import_says_what_to_install(run_program):
    outcome, _ = run_program("import sys\nsys.modules['prometheus_client'] = None\nimport logspool.prometheus\n")

    assert outcome.status == 1
    assert b"fix: pip install 'logspool[prometheus]'" in outcome.err
