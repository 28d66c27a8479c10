"""Addresses of IPv6, and errors that no program reads."""

import contextlib
import http.client
import json
import logging
import logging.handlers
import os
import socket
import subprocess
import sys

import pytest

DEADLINE = 60


def has_six() -> bool:
    """Tell whether this machine has a loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
        return True
    except OSError:
        return False


SENDER = """
import logging, sys, logspool
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(sys.argv[1])])
logspool.install()
logging.info("from the client")
assert logspool.flush(60)
"""


@pytest.mark.skipif(not has_six(), reason="this machine has no ::1")
def test_all_listeners_and_clients_accept_ipv6_addresses(start_service, queue_dir):
    listen = ["tcp://[::1]:0", "udp://[::1]:0"]
    service = start_service(config=f'listen = {json.dumps(listen)}\nhttp = "[::1]:0"\n')
    (host, port), (_, http_port) = service.tcp, service.address("tcp", "http")
    assert "[::1]" == host

    handler = logging.handlers.SocketHandler("::1", port)
    handler.handle(logging.LogRecord("six", logging.INFO, "f.py", 1, "from the library", (), None))
    handler.close()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b'{"message": "in a datagram"}', ("::1", service.udp[1]))
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    done = subprocess.run(
        [sys.executable, "-c", SENDER, f"tcp://[::1]:{port}"], env=variables, timeout=DEADLINE, capture_output=True
    )
    assert 0 == done.returncode, done.stderr

    # The command asks by `http://[::1]:PORT`.
    found = {row["message"] for row in service.wait_for(3)}
    assert {"from the library", "in a datagram", "from the client"} == found
    connection = http.client.HTTPConnection("::1", http_port, timeout=DEADLINE)
    connection.request("GET", "/")
    assert 200 == connection.getresponse().status
    connection.close()


@pytest.mark.parametrize("arguments", [["serve", "--listen", "tcp://0.0.0.0:0"], ["serve", "--listen", "tcp://none"]])
def test_an_error_at_the_start_does_not_wait_for_an_unread_pipe(logspool_binary, tmp_path, arguments):
    unread, full = os.pipe()
    os.set_blocking(full, False)
    for size in (1 << 16, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(full, b"x" * size)
    os.set_blocking(full, True)
    try:
        with subprocess.Popen([logspool_binary, *arguments], stderr=full, cwd=tmp_path) as service:
            code = service.wait(DEADLINE)
    finally:
        os.close(full)
        os.close(unread)
    assert code == (1 if arguments[-1].endswith(":0") else 2)
    # A pipe that is closed is no reason for another exit code.
    unread, gone = os.pipe()
    os.close(unread)
    done = subprocess.run([logspool_binary, *arguments], stderr=gone, cwd=tmp_path, timeout=DEADLINE)
    os.close(gone)
    assert code == done.returncode
