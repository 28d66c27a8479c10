"""@fluent-org/logger for Node.js: Forward with acks."""

import os
import signal
import subprocess
import time
from collections import Counter

from . import sent
from .conftest import DEADLINE, PROGRAMS, run

MODES = ["Message", "Forward", "PackedForward", "CompressedPackedForward"]


def test_records_sent_in_each_mode_are_acknowledged_and_stored_once(service, node, tmp_path, records_file):
    program, variables = node
    # A number beyond 2**53 is no number of JavaScript.
    fields = {**sent.FIELDS, "cents": 2**40 + 1}
    records = sent.records(fields)
    began = time.time()
    printed = run(
        [program, str(PROGRAMS / "forward.cjs"), "modes", records_file(records), str(service.tcp[1])],
        tmp_path,
        **variables,
    )

    # Acknowledged records are there at once.
    rows = service.query("", "--limit", "1000")

    assert "".join(f"{mode} {len(records)}\n" for mode in MODES) == printed
    assert sent.times_between(rows, began - 1e-3, time.time())
    assert sent.in_order(
        [
            (record.message, record.number, "shop.cart", "web-1", {**fields, "tag": f"app.{mode}"})
            for record in records
            for mode in MODES
        ]
    ) == sent.found(rows, "message", "level", "logger", "host", "fields")


COUNT = {"ci": 400, "full": 20_000}[os.environ.get("LOGSPOOL_FAULTS", "ci")]


def test_no_acknowledged_record_is_lost_although_the_service_is_killed(start_service, node, tmp_path):
    program, variables = node
    folder = tmp_path / "service"
    service = start_service(folder=folder)
    port = service.tcp[1]
    config = f'listen = ["tcp://127.0.0.1:{port}"]\nhttp = "127.0.0.1:0"\n'
    command = [program, str(PROGRAMS / "forward.cjs"), "stream", str(COUNT), str(port)]
    sender = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **variables})
    try:
        for line in sender.stdout:
            if int(line) in (COUNT // 4, COUNT // 2, COUNT * 3 // 4):
                service.stop(signal.SIGKILL)
                service = start_service(config=config, folder=folder)
        assert 0 == sender.wait(DEADLINE)
    finally:
        sender.kill()
        sender.stdout.close()
        sender.wait()

    stored = Counter(service.stored_messages())

    assert {f"r{number}" for number in range(COUNT)} == set(stored)
    # The protocol delivers at least once: a record that was stored while its ack was lost comes again.
    twice = sum(stored.values()) - COUNT
    print(f"{COUNT} records, 3 kills, {twice} stored again")
    assert twice <= 3 * 8 * 2
