"""rsyslog's `omrelp`: messages are acknowledged when they are stored, and sent again after a kill."""

import datetime
import signal
import time

import pytest
from tools import tool

import service_tools

from . import sent
from .conftest import DEADLINE
from .page import addressed, sample
from .test_rsyslog import at_port, header, send_numbers, start_rsyslog, wait_for_message  # noqa: F401

LOAD = 'module(load="omrelp")'

# Messages of a connection that omrelp has on their way without an answer.
WINDOW = 128


@pytest.fixture(autouse=True)
def omrelp():
    """Return the module of rsyslog."""
    return tool(service_tools.omrelp)


def relp(port) -> str:
    """Return an action that sends with acknowledgements, and sends unacknowledged messages again."""
    return (
        f'action(type="omrelp" target="127.0.0.1" port="{port}" template="RSYSLOG_SyslogProtocol23Format"\n'
        f'       windowSize="{WINDOW}" action.resumeRetryCount="-1" action.resumeInterval="1" queue.type="linkedList")'
    )


def test_records_sent_by_omrelp_are_found(service, start_rsyslog):  # noqa: F811
    rsyslog = start_rsyslog(relp(service.tcp[1]), inputs=LOAD)
    records = sent.records({})
    now = datetime.datetime.now(datetime.timezone.utc)
    rsyslog.send([header(record, now.isoformat()) for record in records])

    rows = service.wait_for(len(records))

    assert sent.in_order([(record.message, record.number, "web-1", "shop", 42) for record in records]) == sent.found(
        rows, "message", "level", "host", "logger", "process"
    )
    service.wait_metric(f'logspool_service_frames_total{{protocol="relp"}} {len(records)}')


def test_the_sample_on_the_page_sends_everything(service, start_rsyslog):  # noqa: F811
    load, action = addressed(sample("rsyslog with acknowledgements"), service).split("\n", 1)
    rsyslog = start_rsyslog(action, inputs=load)
    send_numbers(rsyslog, range(100))

    assert {f"number {number}" for number in range(100)} == {row["message"] for row in service.wait_for(100)}


def test_each_message_is_stored_although_the_service_is_killed_meanwhile(
    start_service,
    start_rsyslog,  # noqa: F811
    tmp_path,
):
    folder = tmp_path / "service"
    service = start_service(folder=folder)
    port = service.tcp[1]
    rsyslog = start_rsyslog(relp(port), inputs=LOAD)
    send_numbers(rsyslog, range(10_000))
    until = time.monotonic() + DEADLINE
    while not service.stored_messages():
        assert time.monotonic() < until
    service.stop(signal.SIGKILL)
    killed_at = len(service.stored_messages())
    service = start_service(config=at_port(port), folder=folder)
    wait_for_message(service, "number 9999")
    expected = {f"number {number}" for number in range(10_000)}
    while not expected <= set(found := service.stored_messages()):
        assert time.monotonic() < until + DEADLINE, f"{len(expected - set(found))} of 10000 are missing"
        time.sleep(0.05)

    assert 0 < killed_at < len(expected)
    # The number of a message is valid for its connection only: stored messages without an acknowledgement come again.
    assert len(found) - len(expected) <= WINDOW
    assert expected == set(found)
