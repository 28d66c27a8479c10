"""Each option of the configuration does what the reference says. Options tested in other files are named here.

`connections`, `frame_seconds`, `header_seconds`: test_limits.py. `shutdown_seconds`: test_endings.py. `token_sha256`:
test_access.py. `[tls]`: test_tls.py. `[retention]`: crates/logspool-server/tests/sqlite_retention.rs.
"""

import hashlib
import json
import random
import socket
import time

import pytest
from test_limits import closed
from test_protocols import packed, send

from service.receiver import unpacker

DEADLINE = 30

BASE = 'listen = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'


def test_idle_seconds_close_a_connection_that_has_gone_silent(start_service):
    service = start_service(config=BASE + "[limits]\nidle_seconds = 1\n")
    with socket.create_connection(service.tcp) as idle, socket.create_connection(service.tcp) as chunks:
        idle.sendall(b'{"message": "then silent"}\n')
        chunks.sendall(packed(["app", packed([1, {"message": "by Forward"}]), {"chunk": "c"}]))
        service.wait_for(2)
        assert closed(idle)
        assert packed({"ack": "c"}) == chunks.recv(len(packed({"ack": "c"})))
        assert closed(chunks)
    service.wait_metric('logspool_service_connections_closed_total{reason="slow"} 2')
    service.wait_said("longer than limits.idle_seconds", 1)


def test_frame_bytes_bound_one_record(start_service):
    service = start_service(config=BASE + "[limits]\nframe_bytes = 2000\n")
    send(service.tcp, json.dumps({"message": "x" * 1900}).encode() + b"\n")
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(json.dumps({"message": "y" * 2100}).encode() + b"\n")
        assert closed(connection)

    refused, taken = sorted(service.wait_for(2), key=lambda row: row["level"], reverse=True)
    assert ("x" * 1900, "logspool.undecoded") == (taken["message"], refused["logger"])
    assert "longer than 2000 bytes (limits.frame_bytes)" in refused["message"]


def test_query_seconds_bound_a_query(start_service):
    service = start_service(config=BASE + "[limits]\nquery_seconds = 1\n")
    # Text that this pattern has to look at for long.
    text = random.Random(7).randbytes(6_000_000).translate(b"ab" * 128)
    lines = b"".join(b'{"message": "%s"}\n' % text[at : at + 300] for at in range(0, len(text), 300))
    assert 200 == service.post("/ingest", lines, "application/x-ndjson")[0]
    status, said = service.get("/api/query?q=message~%22a%5Bab%5D%7B100%7Dy%22")

    assert status >= 400 and "long" in said, (status, said)


def test_beyond_waiting_bytes_streams_pause_and_datagrams_are_dropped(start_service):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = f"postgres://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        service = start_service(
            config=BASE + f'store = ["{store}"]\n[limits]\nwaiting_bytes = 1_048_576\nshutdown_seconds = 0\n'
        )
        with socket.create_connection(service.tcp) as connection:
            connection.settimeout(3)
            # The kernel's buffers hold far less than this.
            with pytest.raises(TimeoutError):
                connection.sendall((json.dumps({"message": "x" * 100_000}).encode() + b"\n") * 1000)
            assert "limits.waiting_bytes" in service.get("/readyz")[1]
            until = time.monotonic() + DEADLINE
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                while json.loads(service.get("/api/stats")[1])["records_dropped"] == 0:
                    assert time.monotonic() < until
                    datagrams.sendto(b'{"message": "' + b"x" * 60_000 + b'"}', service.udp)
        assert json.loads(service.get("/api/stats")[1])["records_accepted"] < 30
        service.process.kill()
        service.process.wait(DEADLINE)


def test_requests_may_use_the_configured_hosts_as_names(start_service):
    service = start_service(config=BASE + '[access]\nhosts = ["logs.example"]\n')

    assert 200 == service.get("/api/stats", Host="logs.example:9080")[0]
    assert 403 == service.get("/api/stats", Host="other.example")[0]


def test_a_file_store_also_gets_a_line_for_each_record(start_service, tmp_path):
    path = tmp_path / "all.log"
    service = start_service(config=BASE.replace("listen", f'file = "{path}"\nlisten', 1))
    send(service.tcp, b'{"message": "one"}\n{"message": "two"}\n')
    service.wait_for(2)
    service.stop()

    lines = path.read_text().splitlines()
    assert 2 == len(lines) and "one" in lines[0] and "two" in lines[1]


def test_http_can_be_switched_off(start_service):
    service = start_service(config=BASE.replace('"127.0.0.1:0"\n', '"off"\n'))

    assert not any("protocol=http" in line for line in service.said)
    send(service.tcp, b'{"message": "stored all the same"}\n')
    service.stop()
    assert ["stored all the same"] == service.stored_messages()


def test_insecure_allows_access_from_other_machines(start_service):
    config = 'listen = ["tcp://0.0.0.0:0"]\nhttp = "127.0.0.1:0"\ninsecure = true\n'
    service = start_service(config=config)
    send(("127.0.0.1", service.tcp[1]), b'{"message": "from anywhere"}\n')

    service.wait_for(1)


def received(connection: socket.socket) -> list:
    """A message in MessagePack."""
    unpacked = unpacker()
    while True:
        for message in unpacked:
            return message
        part = connection.recv(1000)
        assert part, "the connection ended"
        unpacked.feed(part)


def raw(value) -> bytes:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("key", ["the key", "another"])
def test_only_senders_with_the_shared_key_can_send(start_service, tmp_path, key):
    (tmp_path / "key").write_text("the key\n")
    service = start_service(
        config=BASE.replace("tcp://127.0.0.1:0", "tcp://127.0.0.1:0?protocol=forward", 1)
        + f'[forward]\nkey_file = "{tmp_path / "key"}"\nhostname = "called-so"\n'
    )
    with socket.create_connection(service.address("tcp", "forward"), timeout=DEADLINE) as connection:
        greeting, options = received(connection)
        nonce, salt = raw(dict(options)["nonce"]), b"0123456789abcdef"
        digest = hashlib.sha512(salt + b"client" + nonce + key.encode()).hexdigest()
        connection.sendall(packed(["PING", "client", salt, digest, "", ""]))
        answer, is_known, why, hostname, proof = received(connection)

        assert ("HELO", "PONG") == (greeting, answer)
        assert (key == "the key") == is_known, why
        if is_known:
            expected = hashlib.sha512(salt + b"called-so" + nonce + key.encode()).hexdigest()
            assert ("called-so", expected) == (hostname, proof)
            connection.sendall(packed(["app", packed([1, {"message": "by one who knows"}]), {"chunk": "c"}]))
            assert packed({"ack": "c"}) == connection.recv(100)
        else:
            assert closed(connection)
    assert (["by one who knows"] if is_known else []) == [row["message"] for row in service.query()]
