"""The socket sink: finished lines as datagrams and as streams, to receivers that start late, restart or read slowly."""

import json
import signal

import peers
import pytest
from peers import Receiver, Sender

from service import certificates
from suite.waiting import until

pytestmark = [pytest.mark.real]


@pytest.fixture(scope="module")
def folder_of_certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificates.authority(folder, "ca")
    other = certificates.authority(folder, "other")
    certificates.issued(folder, "server", authority)
    certificates.issued(folder, "client", authority)
    certificates.issued(folder, "foreign", other)
    return folder


@pytest.fixture
def receiver_of(tmp_path, folder_of_certificates):
    made = []

    def make(way, server="server"):
        made.append(Receiver(way, tmp_path))
        made[-1].to = made[-1].address
        if way == "tls":
            made[-1].context = context(folder_of_certificates, server)
            made[-1].to += f"?authorities={folder_of_certificates}/ca.pem"
        return made[-1]

    yield make
    for receiver in made:
        receiver.stop()


def context(folder, server, clients=None):
    return peers.server_context((folder / f"{server}.pem", folder / f"{server}.key"), clients)


def received(receiver):
    return peers.numbers(receiver.texts(b"\n"))


@pytest.mark.parametrize("way", ["udp", "tcp", "tls", "datagram", "stream"])
def test_every_line_arrives_once(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        said = sender.log(300)
        assert said["flushed"], said
        peers.wait_for_all(lambda: received(receiver), 300)

    assert (300, 0, 0, 0) == (said["written"], said["dropped"], said["cut"], said["errors"])
    assert [text.decode() for text in receiver.texts(b"\n")] == [f"number {number}" for number in range(300)]


@pytest.mark.parametrize("way", ["udp", "datagram"])
def test_a_line_that_is_too_long_for_a_datagram_is_cut_and_counted(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to, max_bytes=1000) as sender:
        said = sender.log(3, more=" " + "\u00e9" * 1000)
        assert said["flushed"], said
        said = sender.log(1)
        peers.wait_for_all(lambda: received(receiver), 4)

    assert (4, 0, 3) == (said["written"], said["dropped"], said["cut"])
    for text in receiver.datagrams[:3]:
        assert 997 < len(text) <= 1000 and text.decode().endswith("\u00e9...")


def test_lines_of_a_stream_are_never_cut(tmp_path, queue_dir, receiver_of):
    receiver = receiver_of("tcp").start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        said = sender.log(10, more=" " + "z" * 300_000)
        assert said["flushed"] and said["cut"] == 0, said
        peers.wait_for_all(lambda: received(receiver), 10)

    assert all(len(text) > 300_000 for text in receiver.texts(b"\n"))


JSON_LINES = """\
import logging, sys
import logspool

handler = logspool.SinkHandler("socket", address=sys.argv[1])
handler.setFormatter(logspool.JSONFormatter())
logging.basicConfig(handlers=[handler], level=logging.INFO)
for number in range(100):
    logging.info("two\\nlines", extra={"number": number})
assert logspool.flush(20)
"""


def test_a_json_formatter_makes_a_json_object_of_each_datagram(run_program, receiver_of):
    receiver = receiver_of("datagram").start()
    run_program(JSON_LINES, receiver.to)[0].expect_success()
    until(lambda: len(receiver.datagrams) == 100, peers.SECONDS, "100 datagrams")

    objects = [json.loads(text) for text in receiver.datagrams]
    assert [found["number"] for found in objects] == list(range(100))
    assert {"two\nlines"} == {found["message"] for found in objects}


def test_the_program_on_the_page_sends_a_json_object(run_program, receiver_of):
    receiver = receiver_of("tcp").start()
    test = "test_the_program_on_the_page_sends_a_json_object"
    program = peers.page_program("send-lines.md", test, "tcp://127.0.0.1:5170", receiver.to)
    run_program(program)[0].expect_success()
    until(lambda: receiver.texts(b"\n"), peers.SECONDS, "a line")

    (line,) = receiver.texts(b"\n")
    assert ("payment is late", 7) == (json.loads(line)["message"], json.loads(line)["order"])


@pytest.mark.parametrize("way", ["tcp", "tls", "datagram", "stream"])
def test_a_receiver_that_starts_later_gets_every_line(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way)
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        away = sender.log(100, seconds=0.5)
        assert not away["flushed"] and away["written"] == 0 and away["waiting"] == 100
        assert away["errors"] > 0 and away["error"] and away["problems"]
        receiver.start()
        said = sender.log(100)
        assert said["flushed"] and (200, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(lambda: received(receiver), 200)

    assert received(receiver) == list(range(200))


@pytest.mark.parametrize("way", ["tcp", "tls", "stream"])
def test_a_restart_under_load_loses_at_most_unread_records(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        sender.order(50_000)
        until(lambda: len(receiver.texts(b"\n")) > 1000, peers.SECONDS, "the first records")
        receiver.stop()
        receiver.start()
        said = sender.answer()
        assert said["flushed"] and (50_000, 0) == (said["written"], said["dropped"]), said
        until(lambda: 49_999 in received(receiver)[-1:], peers.SECONDS, "the last record")

    found = received(receiver)
    missing = sorted(set(range(50_000)) - set(found))
    # The system had accepted these bytes, and the receiver closed its socket before it read them: one gap, no more.
    assert not missing or missing == list(range(missing[0], missing[-1] + 1)), missing
    assert len(missing) < 50_000 - 1000
    assert found == sorted(found)


KILLED = """\
import logging, os, signal, sys
import logspool

logspool.install()
logging.getLogger().addHandler(logspool.SinkHandler(sys.argv[1], address=sys.argv[2]))
for number in range(100):
    logging.warning("number %d", number)
os.kill(os.getpid(), signal.SIGKILL)
"""

RECOVERS = """\
import os
import logspool

print(logspool.recover(os.environ["LOGSPOOL_QUEUE_DIR"]).delivered)
"""


@pytest.mark.parametrize("sink", ["socket", "gelf"])
@pytest.mark.parametrize("way", ["tls", "datagram"])
def test_the_records_of_a_killed_program_arrive_at_a_later_start(run_program, receiver_of, way, sink):
    receiver = receiver_of(way)
    assert run_program(KILLED, sink, receiver.to)[0].status == -signal.SIGKILL
    receiver.start()
    run_program(RECOVERS)[0].expect_success()

    end = b"\0" if sink == "gelf" else b"\n"
    until(lambda: len(receiver.texts(end)) >= 100, peers.SECONDS, "100 records")
    texts = [text.decode() for text in receiver.texts(end)]
    if sink == "gelf":
        texts = [json.loads(text)["short_message"] for text in texts]
    assert texts == [f"number {number}" for number in range(100)]


def test_lines_are_kept_until_a_mismatched_certificate_is_fixed(
    tmp_path, queue_dir, receiver_of, folder_of_certificates
):
    receiver = receiver_of("tls", server="foreign").start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        refused = sender.log(100, seconds=1)
        assert not refused["flushed"] and refused["written"] == 0 and refused["waiting"] == 100
        assert "was not issued by" in refused["error"] and "(fix: authorities=" in refused["error"]
        assert any("was not issued by" in problem for problem in refused["problems"])
        receiver.stop()
        receiver.context = context(folder_of_certificates, "server")
        receiver.start()
        said = sender.log(100)
        assert said["flushed"] and (200, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(lambda: received(receiver), 200)

    assert received(receiver) == list(range(200))


def test_a_server_that_requires_a_client_certificate_refuses_no_line_unnoticed(
    tmp_path, queue_dir, receiver_of, folder_of_certificates
):
    receiver = receiver_of("tls")
    receiver.context = context(folder_of_certificates, "server", folder_of_certificates / "ca.pem")
    receiver.start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        refused = sender.log(100, seconds=1)
        assert not refused["flushed"] and refused["written"] == 0 and refused["waiting"] == 100, refused
        assert "wants a certificate of this program (fix: certificate= and key=)" in refused["error"]
        receiver.stop()
        receiver.context = context(folder_of_certificates, "server")
        receiver.start()
        assert sender.log(0)["flushed"]
        peers.wait_for_all(lambda: received(receiver), 100)
    assert received(receiver) == list(range(100))

    shown = f"&certificate={folder_of_certificates}/client.pem&key={folder_of_certificates}/client.key"
    receiver.stop()
    receiver.connections.clear()
    receiver.context = context(folder_of_certificates, "server", folder_of_certificates / "ca.pem")
    receiver.start()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to + shown) as sender:
        assert sender.log(100)["flushed"]
        peers.wait_for_all(lambda: received(receiver), 100)


@pytest.mark.parametrize("way", ["tcp", "tls", "datagram"])
def test_a_slow_receiver_gets_every_line(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    receiver.reads.clear()
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        slow = sender.log(20_000, seconds=0.5, more=" " + "x" * 1000)
        assert not slow["flushed"] and slow["waiting"] > 0 and slow["dropped"] == 0, slow
        receiver.reads.set()
        said = sender.log(0)
        assert said["flushed"] and (20_000, 0) == (said["written"], said["dropped"]), said
        until(lambda: len(receiver.texts(b"\n")) == 20_000, peers.SECONDS, "all lines")

    assert received(receiver) == list(range(20_000))


def test_an_unused_udp_port_is_a_counted_error_until_a_receiver_starts(tmp_path, queue_dir, receiver_of):
    receiver = receiver_of("udp")
    with Sender(tmp_path, queue_dir, "socket", address=receiver.to) as sender:
        said = sender.log(100)
        # A port without a receiver answers every datagram. A later send fails with that answer.
        assert said["flushed"] and (100, 0) == (said["written"], said["dropped"]) and said["errors"] > 0, said
        receiver.start()
        said = sender.log(100)
        assert said["flushed"] and (200, 0) == (said["written"], said["dropped"]), said
        until(lambda: 199 in received(receiver), peers.SECONDS, "the last record")

    assert set(range(100, 200)) <= set(received(receiver))
