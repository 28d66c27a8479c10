"""logger(1) of util-linux."""

import socket
import time

import pytest

from . import sent
from .conftest import run

PRIORITIES = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "ERROR": "err", "CRITICAL": "crit"}

RFC5424 = ["--rfc5424", "--msgid", "ID7", "--sd-id", "order@32473", "--sd-param", 'id="7"', "--sd-param", 'who="Zoë"']

#: How it sends, the options for that, and whether its header is the newer one.
WAYS = {
    "udp": (["--udp"], True),
    "udp-3164": (["--udp", "--rfc3164"], False),
    "tcp": (["--tcp"], True),
    "tcp-octets": (["--tcp", "--octet-count"], True),
    "tcp-3164": (["--tcp", "--rfc3164"], False),
    "tcp-3164-octets": (["--tcp", "--rfc3164", "--octet-count"], False),
    "unix": ([], False),
    "tcp-5424": (["--tcp", *RFC5424], True),
    "unix-5424": (RFC5424, True),
}


@pytest.mark.parametrize("way", WAYS)
def test_records_sent_by_logger_are_found(start_service, logger, tmp_path, way):
    unix = tmp_path / "socket"
    service = start_service("--listen", f"unix://{unix}")
    options, newer = WAYS[way]
    host, port = service.udp if way.startswith("udp") else service.tcp
    where = ["--socket", str(unix)] if way.startswith("unix") else ["--server", host, "--port", str(port)]
    records = sent.records({})
    began = time.time()
    for record in records:
        priority = f"local0.{PRIORITIES[record.level]}"
        words = [*where, *options, "--size", "32KiB", "--tag", "shop", "--id=42", "--priority", priority]
        run([logger, *words, "--", record.message], tmp_path)

    rows = service.wait_for(len(records))

    # Times of the older header are whole seconds.
    assert sent.times_between(rows, began if newer else int(began), time.time())
    assert sent.in_order(
        [(expected_message(record.message), record.number, "shop", 42) for record in records]
    ) == sent.found(rows, "message", "level", "logger", "process")
    # From a socket of this machine the older header has no host.
    own = "localhost" if way == "unix" else socket.gethostname()
    assert {own} == {row["host"] for row in rows}
    for row in rows:
        # Whether the clock is synchronised is the machine's business.
        row["fields"].pop("timeQuality", None)
        more = {"msgid": "ID7", "order@32473": {"id": "7", "who": "Zoë"}} if way.endswith("5424") else {}
        # The level of critical messages has three names in syslog.
        more.update({"severity": "crit"} if row["level"] == 50 else {})
        assert {"facility": "local0", **more} == row["fields"]


def expected_message(message):
    """Return the message without the white space around it, which is not kept."""
    return message.strip()


@pytest.mark.parametrize("options", [["--tcp"], ["--tcp", "--octet-count"], ["--udp"]], ids=["lines", "octets", "udp"])
def test_each_line_of_a_file_becomes_a_record(service, logger, tmp_path, options):
    lines = [f"line {number} of Zoë" for number in range(200)]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    host, port = service.udp if "--udp" in options else service.tcp
    run([logger, "--server", host, "--port", str(port), *options, "--file", str(tmp_path / "lines")], tmp_path)

    rows = service.wait_for(len(lines))

    assert sorted(lines) == sorted(row["message"] for row in rows)


def test_times_of_the_older_header_are_read_in_the_zone_of_this_machine(start_service, logger, tmp_path, monkeypatch):
    # They say neither year nor zone.
    monkeypatch.setenv("TZ", "IST-5:30")
    unix = tmp_path / "socket"
    service = start_service("--listen", f"unix://{unix}")
    began = int(time.time())
    run([logger, "--socket", str(unix), "--tag", "shop", "paid"], tmp_path)

    (row,) = service.wait_for(1)

    assert sent.times_between([row], began, time.time())
    assert ("shop", "paid", "localhost") == (row["logger"], row["message"], row["host"])
