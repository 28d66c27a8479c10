"""fluent-logger for Python: its sender and its handler."""

import time

from . import sent


def test_records_sent_by_fluent_logger_are_found(service, run_sender, records_file):
    records = sent.records()
    began = time.time()
    run_sender("fluent_logger.py", records_file(records), service.tcp[1])

    rows = service.wait_for(5 * len(records) + 6)

    # Without nanosecond precision its times are whole seconds.
    assert sent.times_between(rows, int(began), time.time())
    for tag in ("seconds", "precise"):
        of_tag = [row for row in rows if row["logger"] == f"app.{tag}"]
        assert sent.in_order(
            [(record.message, record.number, "127.0.0.1", record.fields) for record in records]
        ) == sent.found(of_tag, "message", "level", "host", "fields")
        assert (tag == "precise") == any(row["time_ns"] % 1_000_000_000 for row in of_tag)
    # As it comes the handler says no level.
    check_handler(rows, "default", [(record.message, 0) for record in records])
    check_handler(rows, "named", [(record.message, record.number) for record in records])
    everything, failed = check_handler(rows, "everything", [(record.message, record.number) for record in records])
    for row in [*everything, failed]:
        assert row["file"].endswith("fluent_logger.py") and row["line"] > 0 and row["process"] > 0
        assert ("<module>", "MainThread") == (row["function"], row["thread_name"])
    assert all(sent.FIELDS.items() <= row["fields"].items() for row in everything)
    assert failed["exception"].endswith("\nValueError: no such customer: Zoë")


def check_handler(rows, tag, expected):
    """Compare the records of a handler; return the records of the messages and the record of an exception."""
    of_tag = [row for row in rows if row["logger"] == f"shop.{tag}"]
    (with_fields,) = [row for row in of_tag if row["message"] == "with fields"]
    (failed,) = [
        row for row in of_tag if row["message"].startswith("cannot pay 8\nTraceback (most recent call last):\n")
    ]
    plain = [row for row in of_tag if row not in (with_fields, failed)]
    assert sent.in_order(expected) == sent.found(plain, "message", "level")
    assert {("web-1", f"handler.{tag}")} == {(row["host"], row["fields"]["tag"]) for row in of_tag}
    assert sent.FIELDS.items() <= with_fields["fields"].items()
    return plain, failed
