"""TLS: every protocol of the plain port, known clients only where that is asked for, new certificates on SIGHUP."""

import contextlib
import signal
import socket
import ssl
import subprocess
import time

import pytest

DEADLINE = 30


def make(folder, name, *options):
    """A key and a certificate by the command openssl."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subject = ["-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *subject, *options], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def certificates(tmp_path):
    """A server's, a client's, and a stranger's."""
    no_authority = ("-addext", "basicConstraints=critical,CA:FALSE")
    clients = {name: make(tmp_path, name, *no_authority) for name in ("client", "stranger")}
    return {"server": make(tmp_path, "server"), **clients}


def config(certificates, *, asks=False):
    certificate, key = certificates["server"]
    authorities = f'client_authorities = "{certificates["client"][0]}"\n' if asks else ""
    return (
        'listen = ["tls://127.0.0.1:0", "tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
        f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n{authorities}'
    )


def context(certificates, name=None):
    made = ssl.create_default_context(cafile=certificates["server"][0])
    if name:
        made.load_cert_chain(*certificates[name])
    return made


@contextlib.contextmanager
def connected(service, made):
    with socket.create_connection(service.address("tls"), timeout=DEADLINE) as plain:
        with made.wrap_socket(plain, server_hostname="localhost") as connection:
            yield connection


def test_every_protocol_comes_through_tls(start_service, certificates):
    service = start_service(config=config(certificates))
    with connected(service, context(certificates)) as connection:
        connection.sendall(b'{"message": "json"}\n')
    with connected(service, context(certificates)) as connection:
        connection.sendall(b"<14>syslog\0")
    with connected(service, context(certificates)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")

    assert {"json", "syslog"} == {row["message"] for row in service.wait_for(2)}


def test_only_known_clients_may_send(start_service, certificates):
    service = start_service(config=config(certificates, asks=True))
    for name in (None, "stranger"):
        with contextlib.suppress(OSError), connected(service, context(certificates, name)) as connection:
            connection.sendall(b'{"message": "stranger"}\n')
            # The refusal comes after the handshake of TLS 1.3.
            assert b"" == connection.recv(10)
    with connected(service, context(certificates, "client")) as connection:
        connection.sendall(b'{"message": "known"}\n')

    assert ["known"] == [row["message"] for row in service.wait_for(1)]


def test_a_plain_peer_at_a_tls_port_is_closed(start_service, certificates):
    service = start_service(config=config(certificates))
    with socket.create_connection(service.address("tls"), timeout=DEADLINE) as connection:
        connection.sendall(b'{"message": "plain"}\n')
        with contextlib.suppress(OSError):
            while connection.recv(100):
                pass
    assert [] == service.query()


def test_a_new_certificate_holds_after_sighup(start_service, certificates, tmp_path):
    service = start_service(config=config(certificates))
    before = ssl.get_server_certificate(service.address("tls"))
    make(tmp_path, "server")
    service.process.send_signal(signal.SIGHUP)
    until = time.monotonic() + DEADLINE
    while ssl.get_server_certificate(service.address("tls")) == before:
        assert time.monotonic() < until


def test_a_key_that_does_not_fit_is_named(logspool_binary, certificates, tmp_path):
    mixed = {**certificates, "server": (certificates["server"][0], certificates["client"][1])}
    (tmp_path / "mixed.toml").write_text(config(mixed))
    command = [logspool_binary, "serve", "--config", tmp_path / "mixed.toml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert 1 == done.returncode and "client.key" in done.stderr
