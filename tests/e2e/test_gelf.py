"""The GELF sink against receivers that read the format as Graylog does: chunks, compression, messages with a NUL."""

import gzip
import json
import socket
import zlib

import peers
import pytest
from peers import Receiver, Sender

from service import certificates
from suite.waiting import until

pytestmark = [pytest.mark.real]

WAYS = ("udp", "tcp", "tls", "datagram", "stream")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return certificates.server(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def receiver_of(tmp_path, pair):
    made = []

    def make(way):
        made.append(Receiver(way, tmp_path, peers.server_context(pair[1]) if way == "tls" else None))
        made[-1].to = made[-1].address + (f"?authorities={pair[0]}" if way == "tls" else "")
        return made[-1]

    yield make
    for receiver in made:
        receiver.stop()


def joined(texts):
    """Join the chunks of messages and decompress them; check the rules of the format."""
    chunks = {}
    for text in texts:
        if text[:2] != b"\x1e\x0f":
            yield text
            continue
        index, count = text[10], text[11]
        assert index < count <= 128
        parts = chunks.setdefault(text[2:10], {})
        parts[index] = text[12:]
        if len(parts) == count:
            yield b"".join(parts[index] for index in range(count))
            del chunks[text[2:10]]


def messages(receiver):
    """Return the messages of a receiver."""
    found = []
    for text in joined(receiver.texts(b"\0")):
        if text[:2] == b"\x1f\x8b":
            text = gzip.decompress(text)
        elif text[:1] == b"\x78":
            text = zlib.decompress(text)
        found.append(json.loads(text))
    return found


def received(receiver):
    return [message["_number"] for message in messages(receiver)]


@pytest.mark.parametrize("way", WAYS)
def test_every_record_arrives_once(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    with Sender(tmp_path, queue_dir, "gelf", address=receiver.to) as sender:
        said = sender.log(300)
        assert said["flushed"], said
        peers.wait_for_all(lambda: received(receiver), 300)

    assert (300, 0, 0, 0) == (said["written"], said["dropped"], said["cut"], said["errors"])
    assert received(receiver) == list(range(300))
    message = messages(receiver)[7]
    assert message["version"] == "1.1" and message["short_message"] == "number 7" and message["level"] == 6
    assert message["host"] == socket.gethostname() and message["_logger"] == "root"
    assert message["_thread_name"] == "MainThread" and message["_file"].endswith("program.py")


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_long_records_are_chunked_and_too_long_ones_are_cut(tmp_path, queue_dir, receiver_of, compression):
    receiver = receiver_of("udp").start()
    options = {"address": receiver.to, "chunk_bytes": 1420, "compression": compression, "max_bytes": 300_000}
    with Sender(tmp_path, queue_dir, "gelf", **options) as sender:
        sender.log(1, more="x" * 100_000)
        said = sender.log(1, more="y" * 1_000_000)
        assert said["flushed"], said
        peers.wait_for_all(lambda: received(receiver), 2)

    assert (2, 0, 1) == (said["written"], said["dropped"], said["cut"])
    first, second = messages(receiver)
    assert first["short_message"] == "number 0" + "x" * 100_000
    assert second["short_message"].startswith("number 1yyy") and second["short_message"].endswith("yyy...")
    assert all(len(datagram) <= 1420 for datagram in receiver.datagrams)


@pytest.mark.parametrize("way", ["tcp", "tls", "datagram"])
def test_a_receiver_that_starts_later_gets_every_record(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way)
    with Sender(tmp_path, queue_dir, "gelf", address=receiver.to) as sender:
        away = sender.log(100, seconds=0.5)
        assert not away["flushed"] and away["written"] == 0 and away["waiting"] == 100
        assert away["errors"] > 0 and away["error"] and away["problems"]
        receiver.start()
        said = sender.log(100)
        assert said["flushed"] and (200, 0, 0) == (said["written"], said["dropped"], said["waiting"]), said
        assert said["error"] == ""
        peers.wait_for_all(lambda: received(receiver), 200)

    assert received(receiver) == list(range(200))


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_a_receiver_that_restarts_gets_every_record_once(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    with Sender(tmp_path, queue_dir, "gelf", address=receiver.to) as sender:
        assert sender.log(100)["flushed"]
        peers.wait_for_all(lambda: received(receiver), 100)
        receiver.stop()
        assert not sender.log(100, seconds=0.5)["flushed"]
        receiver.start()
        said = sender.log(100)
        assert said["flushed"] and (300, 0) == (said["written"], said["dropped"]), said
        peers.wait_for_all(lambda: received(receiver), 300)

    assert received(receiver) == list(range(300))


@pytest.mark.parametrize("way", ["tcp", "tls", "datagram"])
def test_a_slow_receiver_gets_every_record(tmp_path, queue_dir, receiver_of, way):
    receiver = receiver_of(way).start()
    receiver.reads.clear()
    with Sender(tmp_path, queue_dir, "gelf", address=receiver.to) as sender:
        slow = sender.log(20_000, seconds=0.5, more=" " + "x" * 1000)
        assert not slow["flushed"] and slow["waiting"] > 0 and slow["dropped"] == 0, slow
        receiver.reads.set()
        said = sender.log(0)
        assert said["flushed"] and (20_000, 0) == (said["written"], said["dropped"]), said
        until(lambda: len(receiver.texts(b"\0")) == 20_000, peers.SECONDS, "all records")

    assert received(receiver) == list(range(20_000))
