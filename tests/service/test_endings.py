"""However a service ends: acknowledged records are stored, and once; records sent before SIGTERM are stored."""

import contextlib
import json
import logging
import logging.handlers
import os
import random
import signal
import socket
import threading
import time

import pytest
from test_protocols import acknowledgement, numbered, send

from conftest import DEADLINE


def test_records_sent_before_sigterm_are_stored(service):
    handler = logging.handlers.SocketHandler(*service.tcp)
    frames = b"".join(
        handler.makePickle(logging.LogRecord("end", logging.INFO, "f.py", 1, f"m{number}", (), None))
        for number in range(5_000)
    )
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(frames)
        assert 0 == service.stop(), service.said

    store = f"sqlite:{service.folder / 'data'}"
    done = service.command("query", "--store", store, "| count by logger", "--format", "ndjson")
    assert [{"logger": "end", "count": 5_000}] == [json.loads(line) for line in done.stdout.splitlines()]


def test_ctrl_c_ends_the_service_too(service):
    assert 0 == service.stop(signal.SIGINT)


def test_sighup_reads_the_configuration_again(start_service, tmp_path):
    config = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
    service = start_service(config=config)
    assert 200 == service.get("/api/stats")[0]
    file = service.folder / "logspool.toml"

    def hang_up(text, word):
        file.write_text(text)
        seen = len(service.said)
        service.process.send_signal(signal.SIGHUP)
        while not any(word in line for line in service.said[seen:]):
            assert service.process.poll() is None

    secret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    hang_up(config + f'[access]\ntoken_sha256 = ["{secret}"]\n', "configuration reloaded")
    assert 401 == service.get("/api/stats")[0]
    assert 200 == service.get("/api/stats", Authorization="Bearer secret")[0]
    hang_up("nonsense = 1\n", "configuration not reloaded")
    assert 200 == service.get("/api/stats", Authorization="Bearer secret")[0]
    for _ in range(2):
        hang_up(config + "[limits]\nconnections = 7\n", "need a restart")
    assert 200 == service.get("/api/stats")[0]


@pytest.mark.parametrize("sender", ["stream", "datagrams", "answered"])
def test_records_that_no_store_accepted_in_time_are_reported(start_service, sender):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # A database that takes connections and never answers, then a database that has gone.
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        config = (
            f'store = ["{store}"]\nlisten = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
            "[limits]\nshutdown_seconds = 1\n"
        )
        service = start_service(config=config)
        if sender == "stream":
            with socket.create_connection(service.tcp) as connection:
                connection.sendall(b'{"message": "lost"}\n' * 300)
        elif sender == "datagrams":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                for _ in range(300):
                    datagrams.sendto(b'{"message": "lost"}', service.udp)
        else:
            waiting = socket.create_connection(service.tcp)
            waiting.sendall(numbered(1, 300))
        service.wait_metric("logspool_service_records_accepted_total 300")
    assert 1 == service.stop(), service.said
    if sender == "answered":
        assert b"" == waiting.recv(1)
        waiting.close()
        assert "their senders got no ack and will send them again" in service.said[-1]
    else:
        assert "300 records are lost: " in service.said[-1]


def test_a_service_whose_log_messages_are_not_read_continues(start_service, monkeypatch):
    # Most warnings that a peer can cause are left out; debug messages are not.
    monkeypatch.setenv("LOGSPOOL_LOG", "debug")
    service = start_service()
    service.heard.clear()
    until = time.monotonic() + DEADLINE
    while "\nlogspool_service_messages_dropped_total 0\n" in service.get("/metrics")[1]:
        assert time.monotonic() < until
        for _ in range(200):
            with socket.create_connection(service.tcp) as connection:
                connection.sendall(b"GET / HTTP/9\r\n\r\n")
                connection.recv(1)
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b'{"message": "goes on"}\n')
        service.wait_for(1, "goes on")
    assert 0 == service.stop()


CYCLES = {"ci": 5, "full": 50}[os.environ.get("LOGSPOOL_FAULTS", "ci")]

# Chunks in flight, as logspool's own client has them.
WINDOW = 8


class Client:
    """Sends numbered chunks; sends unacknowledged chunks again with a new connection: same bytes, same ids."""

    def __init__(self, sizes: random.Random):
        """Begin with record 1; the sizes of chunks are drawn."""
        self.sizes, self.open, self.sent, self.acknowledged = sizes, [], 0, 0

    def converse(self, address):
        """Send and read acks until the connection breaks."""
        with socket.create_connection(address) as connection, connection.makefile("rb") as answers:
            connection.settimeout(30)
            try:
                for first, last in self.open:
                    connection.sendall(numbered(first, last))
                while True:
                    while len(self.open) < WINDOW:
                        chunk = self.sent + 1, self.sent + self.sizes.randrange(1, 50)
                        self.open.append(chunk)
                        self.sent = chunk[1]
                        connection.sendall(numbered(*chunk))
                    ack = acknowledgement(*self.open[0])
                    if answers.read(len(ack)) != ack:
                        return
                    self.acknowledged = self.open.pop(0)[1]
            except OSError:
                return


@pytest.mark.timeout(600)
def test_a_killed_service_loses_and_duplicates_no_acknowledged_record(start_service, tmp_path):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    client, folder = Client(random.Random(seed)), tmp_path / "killed"
    for _ in range(CYCLES):
        service = start_service(folder=folder)
        killer = threading.Timer(moments.uniform(0.1, 1), service.process.kill)
        killer.start()
        client.converse(service.tcp)
        killer.join()
        service.process.wait(30)

    service = start_service(folder=folder)
    service.stop()
    numbers = [int(message[1:]) for message in service.stored_messages()]
    assert client.acknowledged > 0, f"seed {seed}: nothing was acknowledged at all"
    assert numbers == list(range(1, len(numbers) + 1)), f"seed {seed}: lost or doubled"
    assert client.acknowledged <= len(numbers) <= client.sent, f"seed {seed}"


def test_senders_that_keep_sending_do_not_delay_the_shutdown(service):
    ended, sent = threading.Event(), 0

    def log_on(connection):
        nonlocal sent
        with contextlib.suppress(OSError):
            while not ended.wait(0.02):
                connection.sendall(b'{"message": "m%d"}\n' % sent)
                sent += 1

    def connect_again_and_again():
        with contextlib.suppress(OSError):
            while not ended.wait(0.005):
                send(service.tcp, b'{"message": "by", "logger": "passers"}\n')

    with socket.create_connection(service.tcp) as busy, socket.create_connection(service.tcp) as half:
        half.sendall(b"POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        half.sendall(b"Content-Length: 100\r\n\r\n{")
        threads = threading.Thread(target=log_on, args=(busy,)), threading.Thread(target=connect_again_and_again)
        for thread in threads:
            thread.start()
        while sent < 5:
            assert threads[0].is_alive()
            time.sleep(0.01)
        before, began = sent, time.monotonic()
        try:
            assert 0 == service.stop(), service.said
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    # The whole of shutdown_seconds is ten.
    assert time.monotonic() - began < 7
    numbers = [int(message[1:]) for message in service.stored_messages() if message != "by"]
    assert numbers == list(range(len(numbers))) and before <= len(numbers) <= sent


def test_an_unread_answer_does_not_delay_the_shutdown(service):
    # More than sockets hold, in few records.
    lines = b'{"message": "%s"}\n' % (b"x" * 60_000) * 200
    assert 200 == service.post("/ingest", lines, "application/json")[0]
    with socket.create_connection(service.tcp) as asking:
        asking.sendall(b"GET /api/query?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = asking.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert 0 == service.stop(), service.said
        assert time.monotonic() - began < 7
        with contextlib.suppress(ConnectionResetError):
            while piece := asking.recv(1 << 20):
                answer = answer[-5:] + piece
    assert not answer.endswith(b"0\r\n\r\n"), "it looks complete"


def test_records_sent_on_connections_not_yet_accepted_are_stored_too(service):
    connections = [socket.create_connection(service.tcp) for _ in range(200)]
    for connection in connections:
        connection.sendall(b'{"message": "last words"}\n')
    assert 0 == service.stop(), service.said
    for connection in connections:
        connection.close()
    assert 200 == len(service.stored_messages())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(service.tcp)
