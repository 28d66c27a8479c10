"""TLS: every protocol of the plain port, known clients only where configured, new certificates on SIGHUP.

logspool's own client shows a certificate and believes only the service that it means.
"""

import contextlib
import json
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ports
from service import certificates as made

DEADLINE = 30

CYCLES = {"ci": 3, "full": 50}[os.environ.get("LOGSPOOL_FAULTS", "ci")]


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


def test_every_protocol_works_over_tls(start_service, certificates):
    service = start_service(config=config(certificates))
    with connected(service, context(certificates)) as connection:
        connection.sendall(b'{"message": "json"}\n')
    with connected(service, context(certificates)) as connection:
        connection.sendall(b"<14>syslog\0")
    with connected(service, context(certificates)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")

    assert {"json", "syslog"} == {row["message"] for row in service.wait_for(2)}


def test_the_last_lines_are_kept_although_the_tls_close_alert_is_missing(start_service, certificates):
    service = start_service(config=config(certificates))
    # `close()` of Python says nothing to the peer.
    for last in (b"<14>last words\n", b'{"message": "no line end"}'):
        with connected(service, context(certificates)) as connection:
            connection.sendall(last)

    assert {"last words", "no line end"} == {row["message"] for row in service.wait_for(2)}


def test_only_known_clients_can_send(start_service, certificates):
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


def test_a_new_certificate_is_used_after_sighup(start_service, certificates, tmp_path):
    service = start_service(config=config(certificates))
    before = ssl.get_server_certificate(service.address("tls"))
    make(tmp_path, "server")
    service.process.send_signal(signal.SIGHUP)
    until = time.monotonic() + DEADLINE
    while ssl.get_server_certificate(service.address("tls")) == before:
        assert time.monotonic() < until


@pytest.mark.parametrize("guard", ["tokens", "certificates"])
def test_sighup_removes_no_access_check_from_a_running_listener(start_service, certificates, guard):
    secret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    local = config(certificates)
    if guard == "tokens":
        tokens = f'[access]\ntoken_sha256 = ["{secret}"]\n'
        public = local.replace("tls://127.0.0.1:0", "tls://0.0.0.0:0?protocol=http") + tokens
    else:
        public = config(certificates, asks=True).replace("tls://127.0.0.1:0", "tls://0.0.0.0:0")
    service = start_service(config=public)
    (service.folder / "logspool.toml").write_text(local)
    service.process.send_signal(signal.SIGHUP)
    service.wait_said("configuration not reloaded", 1)

    if guard == "tokens":
        assert 401 == service.get("/api/stats")[0]
    else:
        with contextlib.suppress(OSError), connected(service, context(certificates)) as connection:
            connection.sendall(b'{"message": "stranger"}\n')
            assert b"" == connection.recv(10)
        assert [] == service.query()


def test_a_key_that_does_not_match_is_named(logspool_binary, certificates, tmp_path):
    mixed = {**certificates, "server": (certificates["server"][0], certificates["client"][1])}
    (tmp_path / "mixed.toml").write_text(config(mixed))
    command = [logspool_binary, "serve", "--config", tmp_path / "mixed.toml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert 1 == done.returncode and "client.key" in done.stderr


@pytest.fixture
def mutual(tmp_path):
    """A configuration of a service that asks for certificates of its authority, and options of a handler with one."""
    folder = tmp_path / "authority"
    folder.mkdir()
    authority = made.authority(folder, "authority")
    server, client = (made.issued(folder, name, authority) for name in ("server", "client"))
    secured = (
        f'[tls]\ncertificate = "{server.certificate}"\nkey = "{server.key}"\n'
        f'client_authorities = "{authority.certificate}"\n'
    )
    options = {"authorities": authority.certificate, "certificate": client.certificate, "key": client.key}
    return secured, {name: str(path) for name, path in options.items()}


# argv: address, options of the handler as JSON. Each line of its input is an order to log 200 records, or to print its
# health.
SENDER = """
import json, logging, sys, logspool
handler = logspool.ServiceHandler(sys.argv[1], shutdown_timeout=60, **json.loads(sys.argv[2]))
logging.basicConfig(level=logging.INFO, handlers=[handler])
logspool.install(shutdown_timeout=60)
number = 0
for line in sys.stdin:
    if line == "health\\n":
        print(json.dumps(logspool.health().reasons), flush=True)
        continue
    for _ in range(200):
        logging.info("r%d", number)
        number += 1
print(number, logspool.flush(60), flush=True)
"""


@contextlib.contextmanager
def sender(address, options, queue_dir):
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    command = [sys.executable, "-c", SENDER, address, json.dumps(options)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen(command, env=variables, **pipes) as process:
        yield process


def until_told(process, part):
    """Ask for its health until the answer has the part."""
    until = time.monotonic() + DEADLINE
    while True:
        process.stdin.write("health\n")
        told = process.stdout.readline()
        if part in told:
            return
        assert time.monotonic() < until, told


def test_the_client_sends_with_its_certificate_and_each_mismatch_is_reported(start_service, mutual, queue_dir):
    secured, options = mutual
    listen = 'listen = ["tls://127.0.0.1:0", "tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
    service = start_service(config=listen + secured)
    plain, tls = (f"{service.address(scheme)[0]}:{service.address(scheme)[1]}" for scheme in ("tcp", "tls"))
    bare = {"authorities": options["authorities"]}
    for address, given, part in [
        (f"tls://{tls}", bare, "the service wants a certificate of this program"),
        (f"tcp://{tls}", {}, "the service wants TLS (fix: tls:// in the address)"),
        (f"tls://{plain}", options, "TLS handshake"),
        (f"tls://{tls}", {**options, "server_name": "logs"}, "not for logs"),
    ]:
        with sender(address, given, queue_dir) as process:
            process.stdin.write("go\n")
            until_told(process, part)
            process.kill()
            process.stdin.close()
        # No other process is to find its remaining queue.
        for left in queue_dir.iterdir():
            left.unlink()
    assert [] == [row for row in service.query() if row["logger"] != "logspool.undecoded"]

    with sender(f"tls://{tls}", options, queue_dir) as process:
        process.stdin.write("go\n")
        process.stdin.close()
        assert "200 True\n" == process.stdout.read()
    assert [f"r{number}" for number in range(200)] == [row["message"] for row in reversed(service.wait_for(200))]


@pytest.mark.timeout(900)
def test_each_record_arrives_once_over_tls_although_the_service_is_killed_repeatedly(
    start_service, mutual, queue_dir, tmp_path
):
    secured, options = mutual
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    address = f"tls://127.0.0.1:{ports.free_port()}"
    config = f'listen = ["{address}"]\nhttp = "127.0.0.1:0"\n{secured}'
    with sender(address, options, queue_dir) as client:
        done = threading.Event()

        def feed():
            while not done.wait(0.005):
                client.stdin.write("go\n")
            client.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            for _ in range(CYCLES):
                service = start_service(config=config, folder=tmp_path / "killed")
                threading.Event().wait(moments.uniform(0.1, 1.5))
                service.process.kill()
                service.process.wait(DEADLINE)
            service = start_service(config=config, folder=tmp_path / "killed")
        finally:
            done.set()
            feeder.join()
        logged, flushed = client.stdout.read().split()
        assert 0 == client.wait(120)

    assert "True" == flushed, f"seed {seed}"
    stats = json.loads(service.get("/api/stats")[1])
    service.stop()
    numbers = [int(message[1:]) for message in service.stored_messages()]
    assert 0 == stats["stores"][0]["records_missing"], f"seed {seed}"
    assert numbers == list(range(int(logged))), f"seed {seed}: {len(numbers)} rows of {logged}, or in another order"


def test_the_steps_on_the_page_store_a_record(start_service, tmp_path, queue_dir):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-tls.md").read_text()

    def block(language):
        return re.search(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)[1]

    subprocess.run(["sh", "-ec", block("sh")], check=True, capture_output=True, cwd=tmp_path)
    port = ports.free_port()
    config = block("toml").replace("9443", str(port)).replace("[tls]", 'http = "127.0.0.1:0"\n[tls]')
    service = start_service(config=config, folder=tmp_path)
    program = block("python").replace("9443", str(port))
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=variables
    )

    assert (0, "True\n") == (done.returncode, done.stdout), done.stderr
    assert ["order 7 paid"] == [row["message"] for row in service.wait_for(1)]
