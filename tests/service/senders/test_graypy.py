"""graypy: GELF in datagrams, compressed and in chunks, and on a connection."""

import time

from . import sent


def test_records_sent_by_graypy_are_found(service, run_sender, records_file):
    records = [*sent.records(), sent.Sent("x" + sent.LONG * 2, "INFO", {"order": 9})]
    began = time.time()
    run_sender("graypy_handlers.py", records_file(records), service.tcp[1], service.udp[1])

    rows = service.wait_for(4 * (len(records) + 1))

    assert sent.times_between(rows, began - 1e-3, time.time())
    assert {"web-1"} == {row["host"] for row in rows}
    for name in ("compressed", "plain", "tcp"):
        of_name = [row for row in rows if row["logger"] == f"graypy.{name}"]
        check(of_name, records, {})
        assert all(row["file"].endswith("graypy_handlers.py") and row["line"] > 0 for row in of_name)
    # Where a facility is given the logger is a field of its own.
    of_facility = [row for row in rows if row["logger"] == "shop"]
    check(of_facility, records, {"logger": "graypy.facility"})


def check(rows, records, more):
    plain = [row for row in rows if row["message"] != "cannot pay"]
    assert sent.in_order([(record.message, record.number) for record in records]) == sent.found(
        plain, "message", "level"
    )
    fields = {record.message: {**record.fields, **more} for record in records}
    assert all(fields[row["message"]].items() <= row["fields"].items() for row in plain)
    (failed,) = [row for row in rows if row["message"] == "cannot pay"]
    assert 40 == failed["level"]
    assert failed["exception"].startswith("Traceback (most recent call last):\n")
    assert failed["exception"].rstrip().endswith("\nValueError: no such customer: Zoë")
