"""Records as Docker's log driver `fluentd` sends them, by the client that Docker uses."""

import time

from . import sent
from .conftest import run


def test_records_sent_by_docker_are_acknowledged_and_found(service, docker, tmp_path, records_file):
    # A line of a container's output is a record; Docker cuts it off at its end.
    records = [record for record in sent.records() if "\n" not in record.message]
    began = time.time()
    # It ends when everything is acknowledged.
    run([str(docker), records_file(records), str(service.tcp[1])], tmp_path)

    rows = service.query("", "--limit", "1000")

    assert sent.times_between(rows, began - 1e-3, time.time())
    container = {"container_id": "0123456789abcdef", "container_name": "/shop"}
    assert sent.in_order(
        [
            # It knows no levels.
            (record.message, 0, "shop", {**container, "source": ["stdout", "stderr"][number % 2]})
            for number, record in enumerate(records)
        ]
    ) == sent.found(rows, "message", "level", "logger", "fields")
