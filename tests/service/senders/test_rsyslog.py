"""rsyslog: a private instance with a socket of its own forwards the messages that it gets."""

import contextlib
import datetime
import re
import signal
import socket
import subprocess
import time
from collections import Counter

import pytest

import service_tools

from . import sent
from .conftest import DEADLINE, tool
from .page import addressed, sample

SEVERITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
LOCAL0 = 16 << 3

# Its usual setting makes `#011` of a tab; then no message has a line end in it.
AS_THEY_ARE = "off"
ESCAPED = "on"


class Rsyslog:
    """A running rsyslogd that takes messages from a socket."""

    def __init__(self, program, folder, action, escapes=AS_THEY_ARE, inputs=""):
        """Start it and wait until it takes connections."""
        self.socket = folder / "rsyslog.socket"
        (folder / "rsyslog.conf").write_text(
            f'global(workDirectory="{folder}" maxMessageSize="64k"\n'
            f'       parser.escapeControlCharactersOnReceive="{escapes}")\n'
            'module(load="imptcp")\n'
            f'input(type="imptcp" path="{self.socket}" ruleset="onward")\n'
            f"{inputs}\n"
            # What rsyslog says about itself is not sent on.
            f'ruleset(name="onward") {{\n{action}\n}}\n'
        )
        command = [program, "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "rsyslog.pid")]
        self.log = (folder / "rsyslog.log").open("w+")
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log)
        until = time.monotonic() + DEADLINE
        while not self.takes_connections():
            assert self.process.poll() is None and time.monotonic() < until, self.said()
            time.sleep(0.01)

    def takes_connections(self) -> bool:
        """True if rsyslog listens at its socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(self.socket)) == 0

    def said(self) -> str:
        """Return rsyslog's messages about itself."""
        self.log.seek(0)
        return self.log.read()

    def send(self, messages: "list[str]"):
        """Hand it messages in syslog's form."""
        encoded = [message.encode() for message in messages]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(b"".join(b"%d %s" % (len(message), message) for message in encoded))

    def stop(self):
        """End it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


@pytest.fixture
def start_rsyslog(tmp_path):
    """Start rsyslog; it is stopped at the end of the test."""
    program = tool(service_tools.rsyslogd)
    with contextlib.ExitStack() as started:

        def start(action, **options):
            rsyslog = Rsyslog(program, tmp_path, action, **options)
            started.callback(rsyslog.stop)
            return rsyslog

        yield start


def header(record, time_text) -> str:
    """Return a record in the newer form of syslog."""
    data = '[order@32473 id="7" who="Zoë \\"Z\\""]'
    return f"<{LOCAL0 | SEVERITIES[record.level]}>1 {time_text} web-1 shop 42 ID7 {data} {record.message}"


def action(service, protocol, framing, template):
    host, port = service.udp if protocol == "udp" else service.tcp
    framing = f' tcp_framing="{framing}"' if protocol == "tcp" else ""
    return f'action(type="omfwd" target="{host}" port="{port}" protocol="{protocol}"{framing} template="{template}")'


@pytest.mark.parametrize(
    ("protocol", "framing", "template", "escapes"),
    [
        ("tcp", "traditional", "RSYSLOG_TraditionalForwardFormat", ESCAPED),
        ("tcp", "traditional", "RSYSLOG_ForwardFormat", AS_THEY_ARE),
        ("tcp", "traditional", "RSYSLOG_SyslogProtocol23Format", AS_THEY_ARE),
        ("tcp", "octet-counted", "RSYSLOG_ForwardFormat", AS_THEY_ARE),
        ("tcp", "octet-counted", "RSYSLOG_SyslogProtocol23Format", ESCAPED),
        ("udp", "", "RSYSLOG_ForwardFormat", AS_THEY_ARE),
        ("udp", "", "RSYSLOG_SyslogProtocol23Format", AS_THEY_ARE),
    ],
)
def test_records_forwarded_by_rsyslog_are_found(service, start_rsyslog, protocol, framing, template, escapes):
    rsyslog = start_rsyslog(action(service, protocol, framing, template), escapes=escapes)
    records = sent.records({})
    now = datetime.datetime.now(datetime.timezone.utc)
    rsyslog.send([header(record, now.isoformat()) for record in records])

    rows = service.wait_for(len(records))

    assert sent.in_order(
        [(shown(record.message, escapes), record.number, "web-1", "shop", 42) for record in records]
    ) == sent.found(rows, "message", "level", "host", "logger", "process")
    exactly = template != "RSYSLOG_TraditionalForwardFormat"
    expected = now if exactly else now.replace(microsecond=0)
    assert {round(expected.timestamp() * 1e6)} == {row["time_ns"] // 1000 for row in rows}
    # The older forms have no place for structured data.
    data = {"msgid": "ID7", "order@32473": {"id": "7", "who": 'Zoë "Z"'}} if "23" in template else {}
    names = [{"severity": "crit"} if row["level"] == 50 else {} for row in rows]
    assert [{"facility": "local0", **data, **name} for name in names] == [row["fields"] for row in rows]


def shown(message, escapes):
    """Return a message as rsyslog hands it on."""
    if escapes == AS_THEY_ARE:
        return message
    return re.sub(r"[\x00-\x1f]", lambda found: f"#{ord(found[0]):03o}", message)


def test_the_sample_on_the_page_sends_everything(service, start_rsyslog):
    rsyslog = start_rsyslog(addressed(sample("rsyslog"), service))
    records = sent.records({})
    rsyslog.send([header(record, "2026-11-22T10:00:00.5Z") for record in records])

    rows = service.wait_for(len(records))

    assert sent.in_order(
        [(record.message, record.number, "shop", "2026-11-22T10:00:00.500000000Z") for record in records]
    ) == sent.found(rows, "message", "level", "logger", "time")


def keeping(port) -> str:
    """Return an action that keeps the messages that it cannot send."""
    return (
        f'action(type="omfwd" target="127.0.0.1" port="{port}" protocol="tcp" tcp_framing="octet-counted"\n'
        '       template="RSYSLOG_SyslogProtocol23Format"\n'
        '       action.resumeRetryCount="-1" action.resumeInterval="1" queue.type="linkedList")'
    )


def at_port(port) -> str:
    return f'listen = ["tcp://127.0.0.1:{port}"]\nhttp = "127.0.0.1:0"\n'


def test_records_queued_by_rsyslog_arrive_once_when_the_service_is_back(start_service, start_rsyslog, tmp_path):
    folder = tmp_path / "service"
    service = start_service(folder=folder)
    port = service.tcp[1]
    rsyslog = start_rsyslog(keeping(port))
    before, meanwhile, after = range(100), range(100, 300), range(300, 400)
    send_numbers(rsyslog, before)
    service.wait_for(len(before))
    assert 0 == service.stop()
    send_numbers(rsyslog, meanwhile)
    service = start_service(config=at_port(port), folder=folder)
    send_numbers(rsyslog, after)
    wait_for_message(service, "number 399")

    # rsyslog was silent when the connection was closed, and so it saw that in time.
    assert sorted(f"number {number}" for number in range(400)) == sorted(service.stored_messages())


def test_records_in_transit_when_the_service_is_killed_can_be_missing(start_service, start_rsyslog, tmp_path):
    folder = tmp_path / "service"
    service = start_service(folder=folder)
    port = service.tcp[1]
    rsyslog = start_rsyslog(keeping(port))
    before, after = range(10_000), range(10_000, 10_100)
    send_numbers(rsyslog, before)
    until = time.monotonic() + DEADLINE
    while not service.stored_messages():
        assert time.monotonic() < until
    service.stop(signal.SIGKILL)
    service = start_service(config=at_port(port), folder=folder)
    send_numbers(rsyslog, after)
    wait_for_message(service, "number 10099")

    stored = Counter(service.stored_messages())
    missing = [number for number in [*before, *after] if f"number {number}" not in stored]
    print(f"{len(missing)} of {len(before)} records are missing: {missing[:1]} to {missing[-1:]}")
    # The service does not answer rsyslog. rsyslog does not know whether sent messages arrived, and does not send them
    # again.
    assert {1} == set(stored.values())
    assert set(missing) <= set(before)
    # One gap: the messages in the buffers of the connection and of the service.
    assert not missing or len(missing) == missing[-1] - missing[0] + 1


def send_numbers(rsyslog, numbers):
    rsyslog.send([header(sent.Sent(f"number {number}", "INFO"), "2026-11-22T10:00:00Z") for number in numbers])


def wait_for_message(service, message):
    until = time.monotonic() + DEADLINE
    while not service.query(f'"{message}"'):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_rsyslog_sends_the_lines_of_a_file(service, start_rsyslog, tmp_path):
    file = tmp_path / "shop.log"
    file.write_text("")
    rsyslog = start_rsyslog(
        action(service, "tcp", "octet-counted", "RSYSLOG_SyslogProtocol23Format"),
        inputs='module(load="imfile")\n'
        f'input(type="imfile" file="{file}" tag="shop:" severity="warning" ruleset="onward")',
    )
    assert rsyslog.process.poll() is None
    lines = [f"line {number} of Zoë" for number in range(200)]
    with file.open("a") as log:
        log.writelines(f"{line}\n" for line in lines)

    rows = service.wait_for(len(lines))

    assert sorted(lines) == sorted(row["message"] for row in rows)
    assert {("shop", 30)} == {(row["logger"], row["level"]) for row in rows}
