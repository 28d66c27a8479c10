"""Connections are shared fairly: no address keeps others out, and health checks are answered whatever senders do."""

import contextlib
import http.client
import logging
import logging.handlers
import os
import re
import resource
import signal
import socket
import subprocess
import urllib.parse
from pathlib import Path

import clients
import pytest
from test_limits import closed
from test_protocols import packed
from test_tls import make

DEADLINE = 30.0

#: A health check that takes longer counts as failed by most systems that ask for one.
HEALTH_DEADLINE = 10.0

#: Asks for metrics: it has slots of its own, so asking does not change what senders get.
WATCHER = "127.0.0.250"

LISTEN = 'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'


#: A record in Forward, which is acknowledged when it is stored.
RECORD = packed(["app", packed([1, {"message": "x"}]), {"chunk": "c"}])


class Senders:
    """Connections that have sent one record each, and are silent since."""

    def __init__(self):
        """Begin without any."""
        self.open, self.new = [], []

    def connect(self, address: "tuple[str, int] | str", count: int, source: str = "127.0.0.1") -> None:
        """Connect `count` times from that address, and send a record each time."""
        for _ in range(count):
            if isinstance(address, str):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(address)
            else:
                connection = socket.create_connection(address, timeout=DEADLINE, source_address=(source, 0))
            self.new.append(connection)
            # The service may have closed it already.
            with contextlib.suppress(ConnectionError):
                connection.sendall(RECORD)

    def admitted(self) -> int:
        """Wait for the answers to all new connections; return how many got an ack. The others are closed."""
        for connection in self.new:
            connection.settimeout(DEADLINE)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                answer = connection.recv(100)
            if answer:
                self.open.append(connection)
            else:
                connection.close()
        count, self.new = sum(connection.fileno() >= 0 for connection in self.new), []
        return count

    def close(self) -> None:
        """Close all."""
        for connection in [*self.open, *self.new]:
            connection.close()


@pytest.fixture
def senders():
    """Senders that are closed at the end."""
    made = Senders()
    yield made
    made.close()


def ask(address: "tuple[str, int]", path: str, source: str = WATCHER) -> "tuple[int, str]":
    """Return status and body of a request from that address."""
    connection = http.client.HTTPConnection(*address, timeout=HEALTH_DEADLINE, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def http_address(service) -> "tuple[str, int]":
    url = urllib.parse.urlsplit(service.url)
    return url.hostname, url.port


def number(service, name: str) -> int:
    """Return a number of the metrics; 0 if the metrics do not have it yet."""
    found = re.search(rf"^logspool_service_{re.escape(name)} (\d+)$", ask(http_address(service), "/metrics")[1], re.M)
    return int(found[1]) if found else 0


def refused(service) -> int:
    reasons = ("too_many", "too_many_of_peer")
    return sum(number(service, f'connections_closed_total{{reason="{reason}"}}') for reason in reasons)


def wait_for_refusals(service, count: int) -> None:
    """Wait until `count` refused connections are counted, which happens after they are closed."""
    clients.wait_until(f"{count} refused connections", lambda: count == refused(service))


def wait_said(service, part: str) -> None:
    clients.wait_until(part, lambda: any(part in line for line in service.said))


def test_silent_senders_of_one_address_leave_room_for_others_and_for_health_checks(start_service, senders):
    service = start_service(config=LISTEN + "[limits]\nconnections = 60\n")
    senders.connect(service.tcp, 60)
    # A third of the slots is theirs.
    assert 20 == senders.admitted()

    for source in (WATCHER, "127.0.0.1"):
        assert (200, "ok\n") == ask(http_address(service), "/readyz", source)
        assert (200, "ok\n") == ask(service.tcp, "/readyz", source)
    senders.connect(service.tcp, 5, "127.0.0.2")
    assert 5 == senders.admitted()
    wait_for_refusals(service, 40)
    assert 40 == number(service, 'connections_closed_total{reason="too_many_of_peer"}')
    wait_said(service, "this peer already has its share, 20 of 60")


def test_http_is_answered_when_every_slot_is_taken(start_service, senders):
    service = start_service(config=LISTEN + "[limits]\nconnections = 20\n")
    for last in range(1, 60):
        senders.connect(service.tcp, 1, f"127.0.0.{last}")
    assert 20 == senders.admitted()

    for _ in range(3):
        for path in ("/livez", "/readyz", "/metrics"):
            assert 200 == ask(http_address(service), path)[0]
            assert 200 == ask(service.tcp, path)[0]
    # A record comes in by HTTP too.
    assert 200 == service.post("/ingest", b'{"message": "y"}', "application/json")[0]
    service.wait_for(1, "y")


def test_one_address_cannot_fill_the_reserve_of_http(start_service, senders):
    service = start_service(config=LISTEN + "[limits]\nconnections = 9\nheader_seconds = 2\n")
    for last in range(1, 20):
        senders.connect(service.tcp, 1, f"127.0.0.{last}")
    assert 9 == senders.admitted()
    silent = [socket.create_connection(http_address(service)) for _ in range(100)]
    tail = socket.create_connection(http_address(service), source_address=("127.0.0.50", 0))
    try:
        tail.sendall(b"GET /api/tail HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for last in range(2, 40):
            assert (200, "ok\n") == ask(http_address(service), "/readyz", f"127.0.0.{last}")
        # The admitted connections are closed soon, too; a live tail does not keep its place either.
        assert all(closed(connection) for connection in [*silent, tail])
        assert (200, "ok\n") == ask(http_address(service), "/readyz", "127.0.0.1")
    finally:
        for connection in [*silent, tail]:
            connection.close()


def test_users_share_the_connections_of_a_unix_socket(start_service, senders, tmp_path):
    path = tmp_path / "s"
    config = f'listen = ["tcp://127.0.0.1:0", "unix://{path}"]\nhttp = "127.0.0.1:0"\n'
    service = start_service(config=config + "[limits]\nconnections = 30\n")
    senders.connect(str(path), 30)
    assert 10 == senders.admitted()

    senders.connect(service.tcp, 1)
    assert 1 == senders.admitted()
    wait_said(service, "this peer already has its share, 10 of 30")


def test_connections_per_peer_bounds_each_peer(start_service, senders):
    service = start_service(config=LISTEN + "[limits]\nconnections = 15\nconnections_per_peer = 9\n")
    senders.connect(service.tcp, 10)
    assert 9 == senders.admitted()

    senders.connect(service.tcp, 1, "127.0.0.2")
    assert 1 == senders.admitted()


def test_many_stdlib_clients_of_one_host_can_connect(service):
    handlers = [logging.handlers.SocketHandler(*service.tcp) for _ in range(200)]
    record = logging.makeLogRecord({"msg": "hello", "levelno": logging.INFO, "levelname": "INFO"})
    for _ in range(2):
        for handler in handlers:
            handler.emit(record)

    clients.wait_until("all records", lambda: 400 == service.count())
    assert 0 == refused(service)
    for handler in handlers:
        handler.close()


def test_senders_can_connect_while_the_service_is_busy(service, senders):
    if int(Path("/proc/sys/net/core/somaxconn").read_text()) < 1000:
        pytest.skip("the kernel keeps too few connections (net.core.somaxconn)")
    # Busy for as long as this takes: nothing is accepted.
    service.process.send_signal(signal.SIGSTOP)
    try:
        senders.connect(service.tcp, 400)
    finally:
        service.process.send_signal(signal.SIGCONT)

    assert 400 == senders.admitted()


def test_http_and_the_stores_keep_their_share_of_few_descriptors(start_service, senders):
    service = start_service(config=LISTEN, open_files=256)
    wait_said(service, "raise the limit to ")
    for last in range(1, 31):
        senders.connect(service.tcp, 10, f"127.0.0.{last}")
    assert 50 < senders.admitted() < 256

    assert (200, "ok\n") == ask(http_address(service), "/readyz")
    assert (200, "ok\n") == ask(service.tcp, "/readyz")
    assert 200 == service.post("/ingest", b'{"message": "by HTTP"}', "application/json")[0]
    (row,) = service.query('message="by HTTP"')
    assert "by HTTP" == row["message"]
    assert 0 == number(service, 'connections_closed_total{reason="accept"}')
    assert not any("cannot" in line for line in service.said)


def test_too_few_descriptors_are_reported_at_the_start(logspool_binary, tmp_path):
    command = [logspool_binary, "serve", "--listen", "tcp://127.0.0.1:0", "--http", "off"]
    command = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", *command, "--store", f"sqlite:{tmp_path / 'data'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)

    assert 1 == done.returncode
    assert "this process may open 64 files (RLIMIT_NOFILE)" in done.stderr and "LimitNOFILE" in done.stderr


def test_the_soft_limit_of_open_files_is_raised(start_service):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        service = start_service(config=LISTEN)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert 4096 < resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[0]
    assert not any("limits.connections" in line for line in service.said)


def test_accepting_continues_after_running_out_of_descriptors(start_service, senders):
    service = start_service(config=LISTEN)
    pid, (_, hard) = service.process.pid, resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
    in_use = len(os.listdir(f"/proc/{pid}/fd"))
    soft, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + 3, hard))
    senders.connect(service.tcp, 10)
    wait_said(service, "cannot accept a connection")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))

    assert 10 == senders.admitted()
    assert (200, "ok\n") == ask(http_address(service), "/readyz")


def test_a_peer_cannot_repeat_warnings_at_will(service):
    for _ in range(100):
        with socket.create_connection(service.tcp) as connection:
            connection.sendall(b"\x93garbage")
            connection.shutdown(socket.SHUT_WR)
            assert closed(connection)
    wait_said(service, "connection closed")

    # On a slow machine this takes longer than the pause between two.
    assert len([line for line in service.said if "connection closed" in line]) < 20


def test_a_silent_connection_that_is_kept_alive_is_closed_in_time(start_service):
    service = start_service(config=LISTEN + "[limits]\nheader_seconds = 1\n")
    with socket.create_connection(http_address(service)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.settimeout(DEADLINE)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
        assert closed(connection)


def test_handshakes_of_tls_take_slots_and_end_in_time(start_service, senders, tmp_path):
    certificate, key = make(tmp_path, "server")
    config = LISTEN.replace("[", '["tls://127.0.0.1:0", ') + f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    service = start_service(config=config + "[limits]\nheader_seconds = 1\nconnections = 30\n")
    silent = [socket.create_connection(service.address("tls")) for _ in range(30)]
    try:
        clients.wait_until("a refused connection", lambda: 0 < refused(service))
        assert all(closed(connection) for connection in silent)
    finally:
        for connection in silent:
            connection.close()
    senders.connect(service.tcp, 1)
    assert 1 == senders.admitted()


@pytest.fixture
def open_files():
    """Let this process have thousands of files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("addresses", [1, 8, 250])
def test_health_checks_are_answered_beside_4096_silent_senders(open_files, start_service, senders, addresses):
    service = start_service()
    for last in range(1, addresses + 1):
        senders.connect(service.tcp, 4096 // addresses + 1, f"127.0.0.{last}")
    # Each of eight wants 513: the first six get them.
    assert {1: 1366, 8: 3600, 250: 4000}[addresses] <= senders.admitted()

    for path in ("/livez", "/readyz", "/metrics"):
        assert 200 == ask(http_address(service), path)[0]
    # A few addresses leave room for another one.
    senders.connect(service.tcp, 10, "127.0.1.1")
    assert addresses > 8 or 10 == senders.admitted()
