"""Over TLS: every record reaches the intended service once, and no other service gets any."""

import collections
import json
import queue
import re
import signal
import socket
import threading

import pytest

from service import certificates
from service.receiver import Receiver

pytestmark = pytest.mark.real

# argv: address, "installed" or "alone", options of the handler
BEGIN = """\
import json, logging, os, sys, threading, time
import logspool
if sys.argv[2] == "installed":
    logspool.install()
handler = logspool.ServiceHandler(sys.argv[1], **json.loads(sys.argv[3]))
log = logging.getLogger("shop")
log.setLevel(1)
log.addHandler(handler)
"""


class Secured:
    """Two authorities, and a receiver with a certificate of the first; their files are in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = certificates.authority(folder, "authority")
        self.stranger = certificates.authority(folder, "stranger")
        self.shown = certificates.issued(folder, "server", self.authority)
        self.receiver = Receiver(context=certificates.context(self.shown))

    def options(self, **options) -> str:
        """Return options of the handler as JSON."""
        return json.dumps({"authorities": str(self.authority.certificate), **options})


@pytest.fixture
def secured(tmp_path):
    """Give a listening receiver with TLS."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    secured = Secured(folder)
    with secured.receiver:
        yield secured


@pytest.fixture
def at_signal():
    """Give a function that sets the action for a SIGUSR1 of the program."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda action: signal.signal(signal.SIGUSR1, lambda *_: action())
    signal.signal(signal.SIGUSR1, before)


def numbers(receiver, count):
    return [int(record["message"].removeprefix("number ")) for record in receiver.records(count)]


def test_each_host_of_a_list_has_a_session_of_its_own(run_program, secured):
    program = """
for number in range(100):
    log.info("number %d", number)
assert logspool.flush(30)
"""
    place = secured.receiver.address.removeprefix("tls://")
    # Nothing listens at the first port. The certificate has the name of the second host.
    run, _ = run_program(BEGIN + program, f"tls://127.0.0.2:1,{place}", "alone", secured.options())

    run.expect_success()
    assert numbers(secured.receiver, 100) == list(range(100))


@pytest.mark.parametrize("way", ["installed", "alone"])
def test_records_arrive_and_the_stream_ends(run_program, secured, way):
    program = """
for number in range(20_000):
    log.info("number %d", number)
log.info("number %d", 20_000, extra={"list": [1]})
assert logspool.flush(30)
print(list(logspool.stats().sinks), repr(handler), handler.address)
"""
    receiver = secured.receiver
    outcome, _ = run_program(BEGIN + program, receiver.address, way, secured.options())
    shown = f"['{receiver.address}'] <ServiceHandler {receiver.address} (NOTSET)> {receiver.address}\n"

    assert shown == outcome.expect_success().out.decode()
    assert outcome.err == b""
    assert list(range(20_001)) == numbers(receiver, 20_001)
    receiver.wait("the end", lambda: receiver.ended)
    assert receiver.ended == list(receiver.streams)


# argv[4]: text in a reason of health()
UNTIL_MENDED = """
for number in range(100):
    log.info("number %d", number)
until = time.monotonic() + 60
while sys.argv[4] not in " ".join(logspool.health().reasons):
    assert time.monotonic() < until, logspool.health()
    time.sleep(0.001)
reason = logspool.health().reasons[0]
sink = logspool.stats().sinks[handler.address]
print(reason, sink.total("queued"), sink.total("written"), flush=True)
os.kill(os.getppid(), __import__("signal").SIGUSR1)
assert logspool.flush(60) is True
assert logspool.health(), logspool.health()
"""


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("authorities", "the certificate of the service was not issued by "),
        ("name", "the certificate of the service is for other.example, not for 127.0.0.1 (fix: server_name="),
        ("plain", "ended the connection in the TLS handshake"),
        ("client", "the service wants a certificate of this program (fix: certificate= and key=)"),
        ("refused", "the service refuses the certificate of this program: UnknownCA"),
    ],
)
def test_tls_errors_are_reported_and_the_records_are_sent_once_they_are_fixed(
    run_program, secured, at_signal, wrong, why
):
    receiver, folder, options = secured.receiver, secured.folder, {}
    good, trusted = receiver.context, folder / "trusted.pem"
    trusted.write_bytes(secured.authority.certificate.read_bytes())
    options["authorities"] = str(trusted)
    fix = [lambda: setattr(receiver, "context", good)]
    if wrong == "authorities":
        trusted.write_bytes(secured.stranger.certificate.read_bytes())
        fix = [lambda: trusted.write_bytes(secured.authority.certificate.read_bytes())]
    elif wrong == "name":
        other = certificates.issued(folder, "other", secured.authority, "DNS:other.example")
        receiver.context = certificates.context(other)
    elif wrong == "plain":
        receiver.context = None
    else:
        receiver.context = certificates.context(secured.shown, clients=secured.authority)
        if wrong == "refused":
            client = certificates.issued(folder, "client", secured.stranger)
            options |= {"certificate": str(client.certificate), "key": str(client.key)}
    at_signal(lambda: [step() for step in fix])
    outcome, _ = run_program(BEGIN + UNTIL_MENDED, receiver.address, "installed", secured.options(**options), why)

    told = outcome.expect_success().out.decode()
    assert told.startswith(f"{receiver.address} takes no records: "), told
    assert told.endswith("; 100 records wait 100 0\n"), told
    assert 1 == told.count("(fix: ")
    assert list(range(100)) == numbers(receiver, 100)


def test_a_tls_service_at_a_plain_address_is_reported_and_the_records_are_kept(run_program, secured, at_signal):
    receiver = secured.receiver
    address = receiver.address.replace("tls://", "tcp://")
    at_signal(lambda: setattr(receiver, "context", None))
    # Versions of the receiver's TLS library send different bytes, or none, before they end the connection.
    why = "tls:// "
    outcome, _ = run_program(BEGIN + UNTIL_MENDED, address, "alone", "{}", why)

    assert outcome.expect_success().out.decode().endswith("; 100 records wait 100 0\n")
    assert list(range(100)) == numbers(receiver, 100)


def test_a_client_presents_its_configured_certificate(run_program, secured):
    receiver = secured.receiver
    client = certificates.issued(secured.folder, "client-7", secured.authority, "DNS:client")
    receiver.context = certificates.context(secured.shown, clients=secured.authority)
    options = secured.options(certificate=str(client.certificate), key=str(client.key), server_name="localhost")
    run_program(BEGIN + 'log.info("number 1")', receiver.address, "installed", options)[0].expect_success()

    assert [1] == numbers(receiver, 1)
    assert ["client-7"] == receiver.clients


def test_a_service_that_restarts_repeatedly_gets_every_record_once(run_program, secured, at_signal):
    receiver, turns = secured.receiver, queue.SimpleQueue()

    def turn():
        while turns.get():
            receiver.stop()
            receiver.listen()

    program = """
import signal
for number in range(30_000):
    log.info("number %d", number)
    if number % 5000 == 2500:
        os.kill(os.getppid(), signal.SIGUSR1)
assert logspool.flush(30)
"""
    turner = threading.Thread(target=turn)
    turner.start()
    at_signal(lambda: turns.put(True))
    try:
        outcome, _ = run_program(BEGIN + program, receiver.address, "installed", secured.options(), deadline_seconds=90)
    finally:
        turns.put(False)
        turner.join()

    outcome.expect_success()
    assert list(range(30_000)) == numbers(receiver, 30_000)


def test_a_forked_child_has_its_own_connection_and_stream(run_program, secured):
    program = """
log.info("before")
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        for number in range(100):
            log.info("child %d", number)
        sys.exit()
    children.append(pid)
    log.info("parent")
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
log.info("after")
"""
    receiver = secured.receiver
    run_program(BEGIN + program, receiver.address, "installed", secured.options())[0].expect_success()
    counts = collections.Counter(record["message"].split()[0] for record in receiver.records(305))

    assert {"before": 1, "parent": 3, "child": 300, "after": 1} == counts
    assert 4 == len(receiver.streams)


KILLED = """
for number in range(5000):
    log.info("number %d", number)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("by", ["the next start", "recover"])
def test_records_of_a_killed_program_are_sent_with_its_certificates(run_program, secured, by):
    receiver = secured.receiver
    client = certificates.issued(secured.folder, "client", secured.authority)
    receiver.context = certificates.context(secured.shown, clients=secured.authority)
    # Relative paths: another program may run in another folder.
    options = secured.options(certificate="client.pem", key="client.key")
    here = f"import os\nos.chdir({str(client.key.parent)!r})\n"
    receiver.stop()
    assert -9 == run_program(here + BEGIN + KILLED, receiver.address, "installed", options)[0].status
    receiver.listen()
    if by == "recover":
        outcome, _ = run_program("import logspool\nprint(logspool.recover())")
        assert receiver.address in outcome.expect_success().out.decode()
    else:
        run_program(here + BEGIN + "log.info('number 5000')", receiver.address, "alone", options)[0].expect_success()

    found = numbers(receiver, 5000 if by == "recover" else 5001)
    assert list(range(5000)) == [number for number in found if number != 5000]
    assert set(receiver.clients) == {"client"}


def test_a_program_ends_in_time_if_the_handshake_gets_no_answer(run_program, secured):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        options = secured.options(shutdown_timeout=0.5)
        outcome, _ = run_program(BEGIN + 'log.info("a")\nlog.error("b")\n', address, "alone", options)

    assert outcome.expect_success().seconds < 15
    assert b"ERROR:shop:b\n" in outcome.err
    assert b"2 records were not written within 0.5 s; they are kept" in outcome.err


def test_contradicting_options_are_errors_with_a_fix(run_program, secured):
    program = """\
import logspool, os, sys
ca = sys.argv[1]
for address, options in [
    ("tcp://host:1", {"authorities": ca}),
    ("unix:///s", {"server_name": "x"}),
    ("tls://host:1", {"certificate": ca}),
    ("tls://host:1", {"authorities": "/nowhere/ca.pem"}),
    ("tls://host:1", {"authorities": 7}),
    ("tls://host:1", {"server_name": ""}),
    ("tls://host:1", {"authority": ca}),
    ("tls://host:1", {"cert": ca}),
    ("tls://host:1?authorities=" + ca, {"authorities": ca}),
    ("tls://host", {}),
]:
    try:
        logspool.ServiceHandler(address, **options)
    except (OSError, TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""
    told = run_program(program, str(secured.authority.certificate))[0].expect_success().out.decode().splitlines()
    for line, expected in zip(
        told,
        [
            "ValueError .* are for tls://HOST:PORT",
            "ValueError .* are for tls://HOST:PORT",
            "ValueError .* a certificate and its key come together",
            "FileNotFoundError .*/nowhere/ca.pem",
            "TypeError authorities must be a path, not 7",
            "ValueError .* server_name is the name of a host",
            "TypeError ServiceHandler has no option 'authority'; the nearest one is 'authorities'",
            "TypeError ServiceHandler has no option 'cert'; the nearest one is 'certificate'",
            "ValueError .* give them in one place",
            "ValueError .* tls://HOST:PORT",
        ],
        strict=True,
    ):
        assert re.match(expected, line), line


def test_missing_system_authorities_are_reported_and_existing_ones_are_used(run_program, secured, tmp_path):
    receiver = secured.receiver
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    program = BEGIN + 'log.info("number 1")\nassert logspool.flush(30)\n'
    known = str(secured.authority.certificate)
    run_program(program, receiver.address, "alone", "{}", SSL_CERT_FILE=known, SSL_CERT_DIR="")[0].expect_success()
    assert [1] == numbers(receiver, 1)
    waits = (
        BEGIN.replace("(sys.argv[1],", "(sys.argv[1], shutdown_timeout=0.1,")
        + """
log.info("kept")
until = time.monotonic() + 60
while "no certificates of authorities" not in " ".join(logspool.health().reasons):
    assert time.monotonic() < until, logspool.health()
    time.sleep(0.001)
"""
    )
    run_program(waits, receiver.address, "alone", "{}", SSL_CERT_FILE=str(empty), SSL_CERT_DIR="")[0].expect_success()


def test_a_handler_connects_and_reads_its_files_at_its_first_record(run_program, secured, tmp_path):
    program = """
import logging, logspool, os, sys
handler = logspool.ServiceHandler(sys.argv[1], authorities=sys.argv[2])
print(len(os.listdir("/proc/self/task")))
os.replace(sys.argv[3], sys.argv[2])
logging.getLogger().addHandler(handler)
logging.warning("number 1")
"""
    late, path = tmp_path / "late.pem", tmp_path / "ca.pem"
    late.write_bytes(secured.authority.certificate.read_bytes())
    path.write_text("not yet")
    outcome, _ = run_program(program, secured.receiver.address, str(path), str(late))

    assert b"1\n" == outcome.expect_success().out
    assert [1] == numbers(secured.receiver, 1)
