"""OpenTelemetry's SDK for Python with its exporter by HTTP."""

import json
import time

import pytest

from . import sent


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_sent_by_opentelemetry_are_found(service, run_sender, records_file, compression):
    records = sent.records()
    began = time.time()
    printed = run_sender("opentelemetry_sdk.py", records_file(records), f"{service.url}/v1/logs", compression)
    span = json.loads(printed)

    # The exporter has been answered: all is stored.
    rows = service.query("", "--limit", "1000")

    assert len(records) + 2 == len(rows)
    assert sent.times_between(rows, began, time.time())
    assert {("shop.cart", "web-1")} == {(row["logger"], row["host"]) for row in rows}
    in_span = service.query(f"trace_id={span['trace']} span_id={span['span']}")
    plain = [row for row in rows if row not in in_span]
    assert not any("trace_id" in row for row in plain)
    assert sent.in_order([(record.message, record.number) for record in records]) == sent.found(
        plain, "message", "level"
    )
    for row in plain:
        assert {"service.name": "shop", **sent.FIELDS}.items() <= row["fields"].items()
        assert row["file"].endswith("opentelemetry_sdk.py") and row["line"] > 0 and row["function"] == "<module>"
    (failed,) = [row for row in in_span if row["message"] == "cannot pay"]
    assert failed["exception"].startswith("Traceback (most recent call last):\n")
    assert failed["exception"].rstrip().endswith("\nValueError: no such customer: Zoë")
    assert ["in a span of Zoë"] == [row["message"] for row in in_span if row is not failed]
