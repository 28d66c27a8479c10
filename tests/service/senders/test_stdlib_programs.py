"""The handlers of the standard library, in programs of each Python at hand."""

import json
import time

import pytest

import interpreters

from . import sent
from .conftest import PROGRAMS, run

KINDS = ["socket", "datagram", "http-post", "http-get", "syslog-udp", "syslog-tcp", "syslog-unix"]


@pytest.fixture(scope="session")
def pythons():
    """Return the interpreters at hand, by their tags."""
    return {found.tag: found.executable for found in interpreters.chosen()}


@pytest.mark.parametrize("tag", interpreters.SUPPORTED)
def test_records_sent_by_each_handler_are_found(pythons, start_service, tmp_path, records_file, tag):
    if tag not in pythons:
        pytest.skip(f"there is no Python {tag} here, or LOGSPOOL_PYTHONS leaves it out")
    unix = tmp_path / "socket"
    service = start_service("--listen", f"unix://{unix}")
    records = sent.records()
    ports = service.tcp[1], service.udp[1], service.url.rsplit(":")[-1]
    began = time.time()
    printed = run(
        [pythons[tag], "-I", str(PROGRAMS / "stdlib.py"), records_file(records), *map(str, ports), str(unix)], tmp_path
    )
    made = json.loads(printed)
    # Two more: one with arguments, one with an exception.
    each = len(records) + 2

    rows = service.wait_for(len(KINDS) * each)

    assert sent.times_between(rows, began, time.time())
    for kind in ("socket", "datagram"):
        check_pickled(of_logger(rows, kind), made[kind], records)
    for kind in ("http-post", "http-get"):
        check_forms(of_logger(rows, kind), made[kind], records)
    for kind, host in (("syslog-udp", "127.0.0.1"), ("syslog-tcp", "127.0.0.1"), ("syslog-unix", "localhost")):
        check_syslog(rows, kind, host, records)


def of_logger(rows, kind):
    """Return the rows of a handler, in the order in which its records were made."""
    of_kind = [row for row in rows if row["logger"] == f"stdlib.{kind}"]
    return sorted(of_kind, key=lambda row: row["time_ns"])


def check_places(rows, made):
    """Compare the place of the call and its time, which pickles and forms both have."""
    for row, record in zip(rows, made, strict=True):
        # Times are kept in microseconds.
        assert abs(record["created"] - row["time_ns"] / 1e9) < 2e-6
        places = ["pathname", "lineno", "funcName", "process", "processName", "thread", "threadName"]
        names = ["file", "line", "function", "process", "process_name", "thread", "thread_name"]
        assert [record[place] for place in places] == [row[name] for name in names]
        assert "127.0.0.1" == row["host"]


def check_pickled(rows, made, records):
    check_places(rows, made)
    *plain, arguments, failed = rows
    assert [(record.message, record.number, record.fields) for record in records] == [
        (row["message"], row["level"], row["fields"]) for row in plain
    ]
    assert ("3 of fünf", 30, None) == (arguments["message"], arguments["level"], arguments.get("fields"))
    assert ("cannot pay", 40, {"order": 8}) == (failed["message"], failed["level"], failed["fields"])
    assert failed["exception"].startswith("Traceback (most recent call last):\n")
    assert failed["exception"].endswith("\nValueError: no such customer: Zoë")


def check_forms(rows, made, records):
    check_places(rows, made)
    *plain, arguments, failed = rows
    # A form has texts only; the handler leaves the arguments out of the message, and the traceback out altogether.
    assert [(record.message, record.number) for record in records] == [(row["message"], row["level"]) for row in plain]
    for record, row in zip(records, plain):
        assert {name: str(value) for name, value in record.fields.items()} == row["fields"]
    assert ("%d of %s", {"args": "(3, 'fünf')"}) == (arguments["message"], arguments["fields"])
    assert ("cannot pay", "8") == (failed["message"], failed["fields"]["order"])
    assert "no such customer: Zoë" in failed["fields"]["exc_info"]


def syslog_fields(record):
    """Return the fields of a syslog message: the level of critical messages has three names in syslog."""
    return {"facility": "user", **({"severity": "crit"} if record.number == 50 else {})}


def check_syslog(rows, kind, host, records):
    mine = [row for row in rows if row["message"].startswith(f"{kind}: ")]
    failed = [row for row in mine if "\nTraceback" in row["message"]]
    arguments = [row for row in mine if row["message"] == f"{kind}: 3 of fünf"]
    assert (1, 1) == (len(failed), len(arguments))
    assert failed[0]["message"].startswith(f"{kind}: cannot pay\nTraceback (most recent call last):\n")
    assert failed[0]["message"].endswith("\nValueError: no such customer: Zoë")
    plain = [row for row in mine if row not in failed + arguments]
    assert sent.in_order(
        [(f"{kind}: {record.message}", record.number, "", host, syslog_fields(record)) for record in records]
    ) == sent.found(plain, "message", "level", "logger", "host", "fields")
