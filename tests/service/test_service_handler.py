"""logspool's own client against the service: complete, in order, and once, also when the service is killed."""

import json
import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ports

CYCLES = {"ci": 3, "full": 50}[os.environ.get("LOGSPOOL_FAULTS", "ci")]

PARTS = """
import logging, sys, logspool
logging.basicConfig(level=logging.DEBUG, handlers=[logspool.ServiceHandler(sys.argv[1])])
if sys.argv[2] == "installed":
    logspool.install()
logger = logging.getLogger("shop.cart")
with logspool.bind(request="r1"):
    logger.warning("paid %s in %.1f ms", "\\u00fc\\0", 2.5, extra={"order": 7, "tags": ["a", None]})
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("failed")
for number in range(1000):
    logger.info("number %d", number)
"""

UNDER_KILLS = """
import logging, sys, time, logspool
handler = logspool.ServiceHandler(sys.argv[1], shutdown_timeout=60)
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install(shutdown_timeout=60)
number = 0
for line in sys.stdin:
    for _ in range(200):
        logging.info("r%d", number)
        number += 1
print(number, logspool.flush(60), flush=True)
"""


def run(program: str, *arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], text=True, **options)


@pytest.mark.parametrize("way", ["installed", "alone"])
def test_records_arrive_with_all_their_parts_and_in_order(service, queue_dir, way):
    address = f"tcp://{service.tcp[0]}:{service.tcp[1]}"
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    with run(PARTS, address, way, env=variables) as client:
        assert 0 == client.wait(60)

    *numbers, failed, paid = service.wait_for(1002)

    assert ("paid ü\0 in 2.5 ms", "shop.cart", 30) == (paid["message"], paid["logger"], paid["level"])
    assert {"order": 7, "tags": ["a", None], "request": "r1"} == paid["fields"]
    assert (client.pid, "MainThread", socket.gethostname()) == (paid["process"], paid["thread_name"], paid["host"])
    assert ("<string>", "<module>", 8) == (Path(paid["file"]).name, paid["function"], paid["line"])
    assert failed["exception"].endswith("ZeroDivisionError: division by zero")
    assert [f"number {number}" for number in reversed(range(1000))] == [row["message"] for row in numbers]


@pytest.mark.timeout(900)
def test_each_record_is_stored_once_although_the_service_is_killed_repeatedly(start_service, queue_dir, tmp_path):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    listen = f"tcp://127.0.0.1:{ports.free_port()}"
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    with run(UNDER_KILLS, listen, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        done = threading.Event()

        def feed():
            while not done.wait(0.005):
                client.stdin.write("go\n")
                client.stdin.flush()
            client.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            for _ in range(CYCLES):
                service = start_service("--listen", listen, folder=tmp_path / "killed")
                threading.Event().wait(moments.uniform(0.1, 1.5))
                service.process.kill()
                service.process.wait(30)
            service = start_service("--listen", listen, folder=tmp_path / "killed")
        finally:
            done.set()
            feeder.join()
        logged, flushed = client.stdout.read().split()
        assert 0 == client.wait(120)

    assert "True" == flushed, f"seed {seed}"
    stats = json.loads(service.get("/api/stats")[1])
    service.stop()
    numbers = [int(message[1:]) for message in service.stored_messages()]
    assert 0 == stats["stores"][0]["records_missing"], f"seed {seed}"
    assert numbers == list(range(int(logged))), f"seed {seed}: {len(numbers)} rows of {logged}, or in another order"
