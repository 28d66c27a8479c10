"""Without native code, a thread sends the records of a `ServiceHandler`: each of them once, counted, and in time."""

import contextlib
import hashlib
import socket
import threading

import pytest

from service.receiver import DEADLINE_SECONDS, Receiver, unpacker

pytestmark = pytest.mark.real

BEGIN = """\
import logging, os, sys
import logspool
handler = logspool.ServiceHandler(sys.argv[1], OPTIONS)
log = logging.getLogger("shop")
log.setLevel(1)
log.addHandler(handler)
"""


def begin(options: str = "") -> str:
    """Return the beginning of a program with these options of the handler."""
    return BEGIN.replace("OPTIONS", options)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_list_of_addresses_is_tried_until_one_answers(run_pure):
    with Receiver() as receiver:
        places = ",".join([f"127.0.0.1:{free_port()}", receiver.address.removeprefix("tcp://"), f"[::1]:{free_port()}"])
        program = begin() + "for number in range(100):\n    log.info('%d', number)\nassert logspool.flush(60)"
        run_pure(program, f"tcp://{places}").expect_success()

        assert [record["message"] for record in receiver.records(100)] == [str(number) for number in range(100)]


def test_a_chunk_without_an_ack_is_sent_again_with_the_same_numbers(run_pure, receiver):
    program = (
        begin("chunk_bytes=1024, gather_seconds=0")
        + """\
for number in range(300):
    log.info("%d", number)
    if number % 100 == 50:
        print("cut", flush=True)
assert logspool.flush(60), logspool.stats()
sink = logspool.stats().sinks[handler.address]
assert (sink.total("written"), sink.total("queued"), sink.error) == (300, 0, ""), sink
"""
    )
    receiver.silent = True

    def answer_again():
        receiver.wait("a chunk", lambda: bool(receiver.entries))
        receiver.stop()
        receiver.silent = False
        receiver.listen()

    changing = threading.Thread(target=answer_again)
    changing.start()
    run_pure(program, receiver.address).expect_success()
    changing.join()

    assert [record["message"] for record in receiver.records(300)] == [str(number) for number in range(300)]
    assert len(receiver.streams) == 1


def test_a_forked_child_has_a_stream_and_counters_of_its_own(run_pure, receiver):
    program = (
        begin()
        + """\
log.info("before")
assert logspool.flush(60)
child = os.fork()
log.info("child" if child == 0 else "parent")
assert logspool.flush(60)
assert logspool.stats().sinks[handler.address].total("written") == (1 if child == 0 else 2)
logging.shutdown()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    )
    run_pure(program, receiver.address).expect_success()

    assert sorted(record["message"] for record in receiver.records(3)) == ["before", "child", "parent"]
    assert len(receiver.streams) == 2


def test_a_full_queue_refuses_and_counts_records_and_lets_an_error_wait(run_pure):
    program = (
        begin("queue_bytes=32768, queue_total_bytes=32768, blocking_timeout=0.05, shutdown_timeout=0.2")
        + """\
for number in range(400):
    log.info("%d %s", number, "x" * 200)
log.error("no room %s", "x" * 1000)
level = logspool.stats().levels["INFO"]
assert level.offered == 400 and level.accepted + level.refused["queue_full"] == 400, level
assert level.refused["queue_full"] > 100, level
assert logspool.stats().levels["ERROR"].refused == {"queue_full": 1}
assert logspool.health().status == "failing"
"""
    )
    outcome = run_pure(program, f"tcp://127.0.0.1:{free_port()}").expect_success()

    # The fallback has the error; the other records are reported as dropped.
    assert "ERROR:shop:no room xx" in outcome.err.decode()
    assert "records within 0.2 s; they are dropped: " in outcome.err.decode()


def text(value: str) -> bytes:
    return b"\xd9" + bytes([len(value.encode())]) + value.encode()


@contextlib.contextmanager
def receiver_with_key(key: str):
    """Yield the address of a receiver with a shared key, and the messages that it gets."""
    got: list = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                greet(connection)

    def greet(connection):
        nonce, unpacked = b"\x80" + b"n" * 15, unpacker()
        connection.sendall(
            b"\x92" + text("HELO") + b"\x82" + text("nonce") + b"\xc4\x10" + nonce + text("auth") + text("")
        )
        while part := connection.recv(1 << 20):
            unpacked.feed(part)
            for message in unpacked:
                got.append(message)
                if message[0] == "PING":
                    _, host, salt, proof, *_ = message
                    expected = hashlib.sha512(salt.encode() + host.encode() + nonce + key.encode()).hexdigest()
                    mine = hashlib.sha512(salt.encode() + b"me" + nonce + key.encode()).hexdigest()
                    accepts = b"\xc3" if proof == expected else b"\xc2"
                    connection.sendall(b"\x95" + text("PONG") + accepts + text("") + text("me") + text(mine))
                else:
                    connection.sendall(b"\x81" + text("ack") + text(dict(message[2])["chunk"]))

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}", got
        # Linux does not end `accept` when another thread closes the listener.
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("key", "arrives"), [("hunter2", True), ("another", False)])
def test_both_sides_prove_that_they_know_a_shared_key(run_pure, key, arrives):
    program = (
        begin(f"shared_key={key!r}, shutdown_timeout={DEADLINE_SECONDS if arrives else 0.5}")
        + """\
log.info("hello")
print(logspool.flush(30 if sys.argv[2] == "True" else 0.5), logspool.health().reasons)
"""
    )
    with receiver_with_key("hunter2") as (address, got):
        outcome = run_pure(program, address, str(arrives)).expect_success()

    shown = outcome.out.decode()
    assert shown.startswith("True []" if arrives else "False ")
    assert ("does not know the shared key (fix: the same shared_key as there)" in shown) is not arrives
    assert any(message[0] == "logspool" for message in got) is arrives
    assert key not in shown + outcome.err.decode()
