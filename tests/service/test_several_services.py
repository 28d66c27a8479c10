"""Several services, and relays that send the streams of many programs: each record is stored once, in any order."""

import json
import os
import socket
import subprocess
import sys
import threading

from clients import wait_until
from relays import Relay
from test_protocols import packed
from test_store_away import DEADLINE, assert_each_once

RECORDS = 2_000

# Logs when it is told to; then says whether all was delivered, and ends.
PROGRAM = """
import logging, sys, logspool
handler = logspool.ServiceHandler(sys.argv[1])
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install(shutdown_timeout=120)
for number in range(int(sys.argv[2])):
    logging.info("c %d", number)
print(logspool.flush(120), flush=True)
"""


def of_store(service, name: str) -> int:
    """Return a count of the only store of a service."""
    return json.loads(service.get("/api/stats")[1])["stores"][0][name]


def accepted(service) -> int:
    """Return how many records a service has handed to its store."""
    return json.loads(service.get("/api/stats")[1])["records_accepted"]


def settled(service) -> int:
    """Return how many records the store of a service has decided about."""
    return sum(of_store(service, f"records_{what}") for what in ("stored", "repeated", "refused"))


def test_a_service_that_was_cut_off_stores_nothing_again(start_service, database, queue_dir, tmp_path):
    way_to_database = Relay(database.port)
    url = database.url()
    cut_off_url = url.replace(str(database.port), str(way_to_database.port))
    assert url != cut_off_url
    cut_off = start_service("--store", cut_off_url, folder=tmp_path / "cut-off")
    other = start_service("--store", url, folder=tmp_path / "other")
    balancer = Relay(cut_off.tcp[1])
    try:
        wait_until("both are ready", lambda: all(200 == service.get("/readyz")[0] for service in (cut_off, other)))
        way_to_database.passes.clear()
        command = [sys.executable, "-c", PROGRAM, f"tcp://127.0.0.1:{balancer.port}", str(RECORDS)]
        variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as program:
            wait_until("the records wait at the service without a database", lambda: RECORDS == accepted(cut_off))
            balancer.move(other.tcp[1])
            assert "True" == program.stdout.read().strip()
            assert 0 == program.wait(DEADLINE)
        wait_until("its end arrived", lambda: ["t"] == database.column("SELECT ended FROM logspool.streams"))
        assert (RECORDS, 0) == (of_store(other, "records_stored"), of_store(cut_off, "records_stored"))

        way_to_database.passes.set()
        wait_until("the service that was cut off settles its records", lambda: RECORDS == settled(cut_off))
    finally:
        balancer.close()
        way_to_database.close()

    assert_each_once({"c": RECORDS}, database.messages(), "none")


def chunk(stream: str, epoch: int, first: int, last: int) -> "tuple[bytes, str]":
    """Return a message of Forward with numbered records, and its id."""
    name = f"{stream}/{epoch}/{first}-{last}"
    entries = [packed([1763800000, {"message": f"{stream} {epoch} {number}"}]) for number in range(first, last + 1)]
    return packed(["app", b"".join(entries), {"chunk": name, "size": last + 1 - first}]), name


def received(sender: socket.socket, count: int) -> bytes:
    """Receive so many bytes, or all up to the end of the connection."""
    found = b""
    while len(found) < count and (part := sender.recv(count - len(found))):
        found += part
    return found


def receive(sender: socket.socket, answer: "dict[str, str]") -> None:
    """Receive exactly this answer."""
    expected = packed(answer)
    assert expected == received(sender, len(expected))


def test_a_chunk_of_an_older_epoch_gets_an_ack_with_the_reason_and_the_next_one_is_stored(service):
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        for epoch, first, last, why in [
            (2, 1, 3, None),
            (1, 4, 5, "the store has a newer epoch of the stream"),
            (2, 4, 4, None),
        ]:
            message, name = chunk("program", epoch, first, last)
            sender.sendall(message)
            receive(sender, {"ack": name} if why is None else {"ack": name, "dropped": why})

    assert [f"program 2 {number}" for number in range(1, 5)] == service.stored_messages()
    service.wait_metric('logspool_service_records_outdated_total{store="sqlite"} 2')


def test_a_connection_sends_ten_thousand_streams_and_no_more(service):
    streams = 10_000
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        messages = [chunk(f"program-{number}", 1, 1, 1) for number in range(streams)]
        writer = threading.Thread(target=sender.sendall, args=(b"".join(message for message, _ in messages),))
        writer.start()
        for _, name in messages:
            receive(sender, {"ack": name})
        writer.join()
        # A known stream goes on.
        message, name = chunk("program-0", 1, 2, 2)
        sender.sendall(message)
        receive(sender, {"ack": name})
        sender.sendall(chunk("one more", 1, 1, 1)[0])
        assert b"" == sender.recv(100)

    assert streams + 1 == len(service.stored_messages())


def test_a_late_chunk_is_stored_and_the_missing_records_are_shown_meanwhile(service):
    missing = 'logspool_service_records_missing{store="sqlite"} '
    for first, last, left in [(201, 300, 200), (1, 100, 100), (101, 200, 0), (1, 300, 0)]:
        message, name = chunk("program", 1, first, last)
        with socket.create_connection(service.tcp, DEADLINE) as sender:
            sender.sendall(message)
            receive(sender, {"ack": name})
        service.wait_metric(f"{missing}{left}")

    assert {f"program 1 {number}" for number in range(1, 301)} == set(service.stored_messages())
    assert 300 == len(service.stored_messages())


def test_chunks_of_one_connection_arrive_in_any_order(service):
    names = []
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        for first, last in [(1, 100), (201, 300), (101, 200), (201, 300)]:
            message, name = chunk("program", 1, first, last)
            sender.sendall(message)
            names.append(name)
        for name in names:
            receive(sender, {"ack": name})

    assert [f"program 1 {number}" for number in range(1, 301)] == sorted(service.stored_messages(), key=number_of)
    service.wait_metric('logspool_service_records_missing{store="sqlite"} 0')


def number_of(message: str) -> int:
    """Return the number of a record."""
    return int(message.split()[-1])


def test_the_gap_that_is_one_too_many_is_counted_and_reported(service):
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        for number in range(1, 67):
            message, name = chunk("program", 1, 10 * number, 10 * number)
            sender.sendall(message)
            receive(sender, {"ack": name})

    service.wait_metric('logspool_service_records_missing_expired_total{store="sqlite"} 18')
    service.wait_metric(f'logspool_service_records_missing{{store="sqlite"}} {64 * 9}')
    assert any("missing records of a stream are given up" in line for line in service.said), service.said


def test_a_stream_whose_name_is_too_long_is_reported(service):
    # A text of up to 65,535 bytes.
    name = f"{'n' * 256}/1/1-1".encode()
    option = packed("chunk") + b"\xda" + len(name).to_bytes(2, "big") + name
    message = b"\x93" + packed("app", [[1763800000, {"message": "n"}]]) + b"\x81" + option
    with socket.create_connection(service.tcp, DEADLINE) as sender:
        sender.sendall(message + message)
        ack = b"\x81" + packed("ack") + option[len(packed("chunk")) :]
        assert 2 * ack == received(sender, 2 * len(ack))

    assert ["n", "n"] == service.stored_messages()
    service.wait_said("a stream has a name of 256 bytes, more than 255", 1)


def send_streams(sender: socket.socket, name: str, count: int) -> int:
    """Send a record of each of some streams; return how many were acknowledged."""
    for number in range(count):
        message, chunk_name = chunk(f"{name}-{number}", 1, 1, 1)
        expected = packed({"ack": chunk_name})
        try:
            sender.sendall(message)
            if expected != received(sender, len(expected)):
                return number
        except ConnectionError:
            return number
    return count


def test_the_streams_of_all_connections_take_limited_memory(start_service):
    service = start_service(
        config='listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n[limits]\nwaiting_bytes = 1_048_576\n'
    )
    # An eighth of the memory is for the streams, and each takes more than 200 bytes.
    most = (1 << 20) // 8 // 200
    with (
        socket.create_connection(service.tcp, DEADLINE) as first,
        socket.create_connection(service.tcp, DEADLINE) as second,
        socket.create_connection(service.tcp, DEADLINE) as third,
    ):
        assert most // 2 == send_streams(first, "a", most // 2)
        assert 100 < send_streams(second, "b", most) < most // 2
        service.wait_metric('logspool_service_connections_closed_total{reason="too_many_streams"} 1')
        service.wait_said("it sends more than 10,000 streams", 1)
        # A connection that closed has freed its memory.
        assert 100 == send_streams(third, "c", 100)
