"""`logspool.prometheus.Collector`: the metrics of one process, and of all workers of a server."""

import importlib.util
import json
import os
import signal
import socket
import urllib.request

import pytest

from monitoring import workers_program
from suite import pages, programs
from suite.waiting import until

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


def test_a_single_process_exports_all_its_metrics(run_program):
    outcome, _ = run_program(ALONE)

    assert outcome.expect_success().out == b"done\n"


def test_the_program_on_the_page_prints_the_output_on_the_page(run_program):
    name = "test_the_program_on_the_page_prints_the_output_on_the_page"
    page = pages.ROOT / "docs" / "how-to" / "monitor.md"
    (block,) = [block for block in pages.blocks(page) if (block.value("run by") or "").endswith(name)]
    outcome, _ = run_program(block.text)

    assert block.output
    block.check(outcome.expect_success().out.decode())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_any_worker_exports_the_counters_of_all_workers(run_program, method, tmp_path):
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


#: An application for both servers: `/` logs a record, `/metrics` gives the counters of all workers.
SHOP = """\
import logging
import logspool, logspool.prometheus
import prometheus_client
from prometheus_client import multiprocess

logging.basicConfig(filename="shop.log", level=logging.INFO)
logspool.install()

def answer(path):
    if path != "/metrics":
        logging.getLogger("shop").info("asked")
        logspool.flush()
        return b"hello"
    registry = prometheus_client.CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    registry.register(logspool.prometheus.Collector())
    return prometheus_client.generate_latest(registry)

def wsgi(environ, start_response):
    start_response("200 OK", [("Connection", "close")])
    return [answer(environ["PATH_INFO"])]

async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": answer(scope["path"])})
"""

SERVERS = {
    "gunicorn": ["-m", "gunicorn", "--workers=3", "--no-control-socket", "--bind=127.0.0.1:{port}", "shop:wsgi"],
    "uvicorn": [
        "-m",
        "uvicorn",
        "--workers=3",
        "--lifespan=off",
        "--no-access-log",
        "--host=127.0.0.1",
        "--port={port}",
        "shop:asgi",
    ],
}


@pytest.mark.parametrize("server", SERVERS)
def test_each_scrape_of_a_server_with_workers_counts_all_requests(server, tmp_path, queue_dir):
    if importlib.util.find_spec(server) is None:
        pytest.skip(f"needs {server}")
    (tmp_path / "prometheus").mkdir()
    (tmp_path / "shop.py").write_text(SHOP)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    variables = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "prometheus")}
    environment = programs.environment(programs.INSTALLED, queue_dir, **variables)
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    with open(tmp_path / "server.txt", "wb") as output:
        child = programs.start(
            [word.format(port=port) for word in SERVERS[server]],
            env=environment,
            folder=tmp_path,
            stdout=output,
            stderr=output,
        )

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
            return reply.read().decode()

    def is_served():
        try:
            return bool(get("/metrics"))
        except OSError:
            return False

    def counts():
        """Return how many lines of shop.log each worker has written, by process id."""
        lines = [line for line in get("/metrics").splitlines() if line.startswith("logspool_records_written_total")]
        shop = [line for line in lines if "/shop.log" in line]
        return {line.partition('pid="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in shop}

    try:
        until(is_served, 60, "the server answers")
        asked = 0
        while len(counts()) < 3 and asked < 1000:
            get("/")
            asked += 1
        answers = [counts() for _ in range(10)]
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(60)
        programs_output = (tmp_path / "server.txt").read_text()
    own = [line for line in (tmp_path / "shop.log").read_text().splitlines() if line.startswith("INFO:shop:")]
    assert len(own) == asked, programs_output
    assert all(answer == answers[0] for answer in answers), answers
    assert len(answers[0]) == 3 and sum(answers[0].values()) == asked, (answers[0], asked)


def test_without_the_package_the_import_names_the_package_to_install(run_program):
    outcome, _ = run_program("import sys\nsys.modules['prometheus_client'] = None\nimport logspool.prometheus\n")

    assert outcome.status == 1
    assert b"fix: pip install 'logspool[prometheus]'" in outcome.err
