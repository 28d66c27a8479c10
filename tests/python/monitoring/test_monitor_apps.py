"""The monitor apps say what state logspool is in: ready or not, alive or not, and why."""

import json

import pytest

from suite import mounts

pytestmark = pytest.mark.real

#: Sends every request to both apps; their answers must be equal.
PROGRAM = """\
import asyncio, json, logging, os, sys, threading, time
import logspool, logspool.asgi, logspool.wsgi

OPTIONS = {}

def by_asgi(app, path, method="GET"):
    sent = []
    async def send(message):
        sent.append(message)
    asyncio.run(app({"type": "http", "method": method, "path": path, "headers": []}, None, send))
    return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"].decode(), sent[1]["body"].decode()

def by_wsgi(app, path, method="GET"):
    started = []
    body = b"".join(app({"REQUEST_METHOD": method, "PATH_INFO": path}, lambda *given: started.extend(given)))
    return int(started[0][:3]), dict(started[1])["Content-Type"], body.decode()

def apps(**options):
    return [(by_asgi, logspool.asgi.monitor_app(**options)), (by_wsgi, logspool.wsgi.monitor_app(**options))]

def asked(path, pair, method="GET"):
    status, kind, body = pair[0](pair[1], path, method)
    return status, json.loads(body) if kind == "application/json" and body else body

def metrics():
    lines = [line.rpartition(" ") for line in logspool.metrics_text().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}

def of_fifo(found, name):
    return next(value for key, value in found.items() if key.startswith(name + "{") and key.endswith('/fifo"}'))

def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)
"""

ROUTES = (
    PROGRAM
    + """
logging.basicConfig(filename="app.log", level=logging.INFO)
logspool.install()
for pair in apps():
    assert asked("/livez", pair) == (200, {"status": "ok", "reasons": []})
logging.info("one")
logspool.flush()
for pair in apps():
    status, kind, body = pair[0](pair[1], "/anywhere/metrics")
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert 'logspool_records_total{level="INFO"} 1' in body and body.endswith("# EOF\\n")
    assert pair[0](pair[1], "/metrics", "HEAD")[2] == ""
    ready = {"ready": True, "status": "ok", "reasons": []}
    status, answer = asked("/readyz", pair)
    assert status == 200 and ready.items() <= answer.items(), answer
    assert asked("/livez/", pair)[0] == 200
    assert asked("/", pair)[0] == asked("/secrets", pair)[0] == 404
    assert asked("/livez", pair, "POST")[0] == 405
for options, text in (
    ({"stalled_seconds": 0}, "stalled_seconds: 0"), ({"full_percent": 101}, "at most 100"),
    ({"stalled_seconds": "1"}, "takes a number"), ({"full_percent": True}, "takes a number"),
):
    for make in (logspool.asgi.monitor_app, logspool.wsgi.monitor_app):
        try:
            make(**options)
        except (TypeError, ValueError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(options)

messages, sent = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []
async def receive():
    return messages.pop(0)
async def send(message):
    sent.append(message["type"])
asyncio.run(logspool.asgi.monitor_app()({"type": "lifespan"}, receive, send))
assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
print("done")
"""
)

# A disk without room.
FULL = (
    PROGRAM
    + """
handler = logging.FileHandler("/dev/full")
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install(shutdown_timeout=0.1)
logging.info("one")
until(lambda: logspool.health().status == "failing", "the disk is not full")
for pair in apps(stalled_seconds=0.01):
    status, answer = asked("/readyz", pair)
    assert status == 503 and "/dev/full cannot be written: No space left" in answer["reasons"][0], answer
    asked("/livez", pair)
    time.sleep(0.05)
    assert asked("/livez", pair) == (200, {"status": "ok", "reasons": []})
errors = metrics()['logspool_sink_errors_total{sink="/dev/full",reason="enospc"}']
assert errors > 0 and metrics()['logspool_sink_errors_total{sink="/dev/full",reason="other"}'] == 0
print("done", flush=True)
"""
)

# The reader of a FIFO first reads nothing, then everything.
FROZEN = (
    PROGRAM
    + """
os.mkfifo("fifo")
opened = []
reader = threading.Thread(target=lambda: opened.append(os.open("fifo", os.O_RDONLY)))
reader.start()
handler = logging.FileHandler("fifo", "w")
reader.join()
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install()
logging.info("begins")
LIMIT = logspool.stats().queue.overflow_limit_bytes
assert LIMIT <= 8 * 1024 * 1024
alive, patient, ready = apps(stalled_seconds=0.2), apps(stalled_seconds=1000), apps(full_percent=50)
for number in range(300):
    logging.info("%04d %s", number, "x" * 1000)
until(lambda: logspool.health().status == "failing", "the output is not stuck")
frozen = metrics()
assert frozen['logspool_queue_records{queue="sinks"}'] > 0
assert frozen['logspool_oldest_record_age_seconds{queue="sinks"}'] > 0
assert of_fifo(frozen, "logspool_sink_up") == 0 and of_fifo(frozen, "logspool_sink_queue_records") > 0
for pair in apps():
    status, answer = asked("/readyz", pair)
    assert status == 503 and not answer["ready"] and "is stuck in a write" in answer["reasons"][0], answer
for pair, other in zip(alive, patient):
    assert asked("/livez", pair)[0] == 200, "the first look cannot know"
    until(lambda: asked("/livez", pair)[0] == 503, "never stalled")
    status, answer = asked("/livez", pair)
    assert "the writer of" in answer["reasons"][0] and "(fix: " in answer["reasons"][0], answer
    assert asked("/livez", other)[0] == 200
size = 0
before = metrics()['logspool_queue_bytes{queue="overflow"}']
while logspool.stats().queue.overflow_bytes < LIMIT * 3 // 4:
    logging.info("%04d %s", size, "x" * 1000)
    size += 1
assert metrics()['logspool_queue_bytes{queue="overflow"}'] > before
full = [asked("/readyz", pair)[1]["reasons"][0] for pair in ready]
assert all(reason.startswith("the queue is 7") or reason.startswith("the queue is 8") for reason in full), full

lines = bytearray()
def read():
    while chunk := os.read(opened[0], 1 << 16):
        lines.extend(chunk)
thawed = threading.Thread(target=read)
thawed.start()
logspool.flush()
for pair in apps() + alive + ready:
    assert asked("/readyz", pair)[0] == 200, asked("/readyz", pair)
    assert asked("/livez", pair)[0] == 200
thawed_metrics = metrics()
assert of_fifo(thawed_metrics, "logspool_sink_up") == 1 and of_fifo(thawed_metrics, "logspool_sink_queue_records") == 0
for queue in ("lanes", "sinks"):
    assert thawed_metrics[f'logspool_queue_records{{queue="{queue}"}}'] == 0
    assert thawed_metrics[f'logspool_oldest_record_age_seconds{{queue="{queue}"}}'] == 0
logspool.uninstall()
logging.shutdown()
thawed.join(60)
told = [line for line in lines.decode().splitlines() if "the queue is" in line]
assert len(lines.decode().splitlines()) == 301 + size + len(told)
print(json.dumps(told))
"""
)


def test_routes_have_the_documented_methods_and_options(run_program):
    outcome, _ = run_program(ROUTES)

    assert outcome.expect_success().out == b"done\n"


def test_a_full_disk_ends_readiness_but_not_liveness(run_program):
    outcome, _ = run_program(FULL, deadline_seconds=60)

    assert outcome.out == b"done\n", outcome.err.decode()


def test_a_frozen_output_ends_readiness_first_and_then_restores_it(run_program, tmp_path):
    with mounts.small(tmp_path / "shm", "32m") as shm:
        outcome, _ = run_program(FROZEN, deadline_seconds=120, LOGSPOOL_QUEUE_DIR=str(shm / "queue"))

    told = json.loads(outcome.expect_success().out.splitlines()[-1])
    # The request for readiness came while 70 to 85 % of the overflow were in use.
    assert len(told) in (1, 2) and "the queue is 50 % full" in told[0] and "(fix: " in told[0], told
