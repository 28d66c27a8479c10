"""A class, an entry of dictConfig and an address for each destination."""

import contextlib
import inspect
import json
import logging
import logging.config
import queue
import socket
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import logspool
from logspool import _native
from logspool.handlers import _addresses, _destinations
from suite import pages

pytestmark = pytest.mark.real

SECONDS = 30

TABLE = {row["kind"]: row for row in _native.sink_table()}

BUILT = [kind for kind in _destinations.CLASSES if kind in TABLE]
NOT_BUILT = [kind for kind in _destinations.CLASSES if kind not in TABLE]

COUNT = 100

PROGRAM = """\
import json, logging, sys
import logspool

address, way = sys.argv[1:]
if way == "address":
    handler = logspool.handler(address)
elif way == "dict":
    import logging.config
    logging.config.dictConfig({
        "version": 1,
        "handlers": {"out": {"()": "logspool.handler", "address": address}},
        "root": {"handlers": ["out"], "level": "INFO"},
    })
    handler = logging.getLogger().handlers[0]
log = logging.getLogger()
log.setLevel(logging.INFO)
if handler not in log.handlers:
    log.addHandler(handler)
for number in range(100):
    log.info("number %d end", number)
flushed = logspool.flush(20)
sink = next(iter(logspool.stats().sinks.values()))
print(json.dumps([flushed, sink.total("written"), sink.total("dropped")]))
"""


class Datagrams:
    """Collects datagrams of UDP or of a unix socket at once, because a unix socket queues only a few of them."""

    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(str(path) if path else ("127.0.0.1", 0))
        self.socket.settimeout(SECONDS)
        self.place = f"//{path}" if path else f"//127.0.0.1:{self.socket.getsockname()[1]}"
        self.received = queue.Queue()
        self.thread = threading.Thread(target=self._collect)
        self.thread.start()

    def _collect(self):
        with self.socket, contextlib.suppress(TimeoutError):
            while datagram := self.socket.recv(1 << 16):
                self.received.put(datagram.decode())

    def texts(self, count):
        """Return the next `count` datagrams."""
        return [self.received.get(timeout=SECONDS) for _ in range(count)]


@contextlib.contextmanager
def datagrams(path=None):
    """Give a receiver of datagrams."""
    receiver = Datagrams(path)
    address = receiver.socket.getsockname()
    try:
        yield receiver
    finally:
        # An empty datagram ends the receiver.
        with socket.socket(receiver.socket.family, socket.SOCK_DGRAM) as ending:
            ending.sendto(b"", address)
        receiver.thread.join(SECONDS)


@contextlib.contextmanager
def web():
    """Give the port of a server that accepts every request, and the list of paths, authorizations and bodies."""
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            import gzip

            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            bodies.append((self.path, self.headers.get("Authorization"), body))
            answer = b'{"errors":false}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            # The thread of the connection ends with the connection.
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield server.server_address[1], bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)


def numbers(texts):
    """Return the numbers in messages of the program, in order."""
    return [int(text.split("number ")[1].split()[0]) for text in texts]


@pytest.fixture
def log_to(run_program):
    """Run the program with an address, and check the counts that it prints; return its folder."""

    def run(address, way="address"):
        outcome, folder = run_program(PROGRAM, address, way, NO_PROXY="127.0.0.1")
        assert json.loads(outcome.expect_success().out) == [True, COUNT, 0]
        return folder

    return run


@pytest.mark.parametrize("kind", BUILT)
def test_a_class_has_the_options_of_its_sink(kind):
    cls = _destinations.CLASSES[kind]
    parameters = {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    rows = {
        row["name"]: inspect.Parameter.empty if row["required"] else row["default"] for row in TABLE[kind]["options"]
    }

    assert rows == parameters
    assert getattr(logspool, cls.__name__) is cls


@pytest.mark.parametrize("kind", NOT_BUILT or [pytest.param("", marks=pytest.mark.skip("this build has all sinks"))])
def test_a_build_without_a_sink_says_so(kind):
    with pytest.raises(ValueError, match=f"has no sink '{kind}' .fix: install a build with the cargo feature"):
        _destinations.CLASSES[kind]("http://127.0.0.1:1")


@pytest.mark.parametrize("way", ["address", "dict"])
@pytest.mark.parametrize("scheme", ["udp", "syslog+udp", "gelf+udp"])
def test_datagrams_arrive(scheme, way, log_to):
    with datagrams() as receiver:
        log_to(f"{scheme}:{receiver.place}", way)
        texts = receiver.texts(COUNT)

    assert numbers(texts) == list(range(COUNT))
    if scheme != "syslog+udp":
        assert all(isinstance(json.loads(text), dict) for text in texts)


@pytest.mark.parametrize("scheme", ["unix", "syslog+unix", "gelf+unix", "journald"])
def test_datagrams_at_a_path_arrive(scheme, log_to, tmp_path):
    with datagrams(tmp_path / "in.socket") as receiver:
        log_to(f"{scheme}:{receiver.place}")
        texts = receiver.texts(COUNT)

    assert numbers(texts) == list(range(COUNT))


@pytest.mark.parametrize("scheme", ["tcp", "syslog+tcp", "gelf+tcp"])
def test_streams_arrive(scheme, log_to):
    received = []

    def serve():
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(SECONDS)
            while part := connection.recv(1 << 16):
                received.append(part)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(SECONDS)
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        log_to(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}")
        thread.join(SECONDS)
        assert not thread.is_alive()

    assert numbers(f"number {part}" for part in b"".join(received).decode().split("number ")[1:]) == list(range(COUNT))


@pytest.mark.parametrize(
    ("kind", "path"), [("loki", "/loki/api/v1/push"), ("elasticsearch", "/_bulk"), ("otlp", "/v1/logs")]
)
def test_requests_arrive_with_the_password_of_the_address(kind, path, log_to):
    if kind in NOT_BUILT:
        pytest.skip(f"this build has no sink {kind}")
    with web() as (port, bodies):
        log_to(f"{kind}+http://shop:hunter2@127.0.0.1:{port}?timeout_seconds=20")

    assert {place.split("?")[0] for place, _, _ in bodies} == {path}
    assert {authorization for _, authorization, _ in bodies} == {"Basic c2hvcDpodW50ZXIy"}
    parts = b"".join(body for _, _, body in bodies).split(b"number ")[1:]
    assert [int(part.split()[0]) for part in parts] == list(range(COUNT))


def test_a_database_gets_the_records(log_to, tmp_path):
    if "sqlite" in NOT_BUILT:
        pytest.skip("this build has no sink sqlite")
    log_to(f"sqlite://{tmp_path}/app%20log.db?synchronous=full")
    with contextlib.closing(sqlite3.connect(tmp_path / "app log.db")) as database:
        messages = [row[0] for row in database.execute("SELECT message FROM records ORDER BY id")]

    assert numbers(messages) == list(range(COUNT))


@pytest.mark.parametrize("address", ["file:{}/app.log", "file:app.log"])
def test_a_file_gets_the_lines(address, log_to, tmp_path):
    folder = log_to(address.format(f"//{tmp_path}"))
    path = (tmp_path if "{}" in address else folder) / "app.log"

    assert numbers(path.read_text().splitlines()) == list(range(COUNT))


def test_streams_and_services_have_addresses():
    assert _addresses.target("stderr:").kind == "stderr"
    found = _addresses.target("logspool+tls://logs:7514?authorities=/etc/ca.pem&server_name=logs")
    assert (found.kind, found.place) == ("service", "tls://logs:7514")
    assert found.tls == {"authorities": "/etc/ca.pem", "server_name": "logs"}
    handler = logspool.handler("forward+tcp://127.0.0.1:9?tag=shop&shared_key=hunter2")
    try:
        assert type(handler) is logspool.ForwardHandler
        assert handler._options["tag"] == "shop"
        assert "hunter2" not in repr(handler)
    finally:
        handler.close()


@pytest.mark.parametrize(
    ("address", "error", "text"),
    [
        ("sylog+udp://h:1", ValueError, "no address has the scheme 'sylog.udp'; the nearest one is 'syslog.udp'"),
        ("nothing", ValueError, "an address begins with a scheme and a colon"),
        ("udp:h:1", ValueError, "continues with //HOST:PORT"),
        ("file://host/path", ValueError, "has a path and no host"),
        ("stderr:here", ValueError, "is complete: write stderr:"),
        ("syslog+udp://h:1?facilty=user", TypeError, "has no option 'facilty'.*facility"),
        ("syslog+udp://h:1?facility", ValueError, "has NAME=VALUE after the question mark"),
        ("syslog+udp://h:1?max_bytes=many", ValueError, "max_bytes must be a whole number, not 'many'"),
        ("syslog+udp://h:1?facility=users", ValueError, 'facility has no value "users"; the nearest one is'),
        ("loki+http://u@h:1", ValueError, "user and password come together"),
        ("loki+http://u:hunter2/@h:1", ValueError, "continues with //HOST or //HOST:PORT"),
        ("forward+tcp://h:1?chunk_bytes=1", ValueError, "chunk_bytes must be"),
        ("gelf+udp://u:hunter2@h:1", ValueError, "has no user or password before its host"),
        ("udp://h:1?max_bytes=1000&max_bytes=2000", TypeError, "has the option 'max_bytes' twice"),
        (3, TypeError, "an address must be text"),
    ],
)
def test_an_invalid_address_is_refused_with_a_fix(address, error, text):
    with pytest.raises(error, match=text) as raised:
        logspool.handler(address)

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("kind", [kind for kind in ("loki", "elasticsearch", "otlp") if kind in BUILT])
def test_no_text_shows_a_secret(kind):
    address = f"{kind}+http://shop:hunter2@127.0.0.1:9?headers=X-Key:%20hunter2"
    handler = logspool.handler(address)
    try:
        assert "hunter2" not in repr(handler)
        assert "hunter2" not in _addresses.shown(address)
    finally:
        handler.close()


def test_an_unreachable_receiver_is_not_an_error(run_program):
    program = PROGRAM.replace("flushed = logspool.flush(20)", "flushed = logspool.flush(0.3)").replace(
        "print(json", "print(logspool.health().status); print(json"
    )
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{reserved.getsockname()[1]}"
        outcome, _ = run_program(program, address, "address", LOGSPOOL_SHUTDOWN_TIMEOUT="0.5")

    status, counts = outcome.expect_success().out.decode().split("\n")[:2]
    assert status in ("degraded", "failing")
    assert json.loads(counts) == [False, 0, 0]


def test_dict_config_accepts_each_class(tmp_path):
    with datagrams(tmp_path / "in.socket") as receiver:
        logging.config.dictConfig(
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {
                    "out": {"class": "logspool.GelfHandler", "address": f"unix:{receiver.place}", "chunk_bytes": 1420}
                },
                "loggers": {"destinations": {"handlers": ["out"], "level": "INFO"}},
            }
        )
        log = logging.getLogger("destinations")
        handler = log.handlers[0]
        try:
            log.info("number 7 end")
            assert logspool.flush(SECONDS)
        finally:
            log.removeHandler(handler)
            handler.close()
        assert numbers(receiver.texts(1)) == [7]


def test_the_program_of_the_page_writes_to_both(run_program):
    if "sqlite" in NOT_BUILT:
        pytest.skip("this build has no sink sqlite")
    test = "test_the_program_of_the_page_writes_to_both"
    page = pages.ROOT / "docs" / "how-to" / "choose-a-destination.md"
    (block,) = [block for block in pages.blocks(page) if test in block.marker]
    shown = "//127.0.0.1:514"
    assert block.text.count(shown) == 1
    with datagrams() as receiver:
        outcome, folder = run_program(block.text.replace(shown, receiver.place))
        outcome.expect_success()
        (text,) = receiver.texts(1)
    with contextlib.closing(sqlite3.connect(folder / "records.db")) as database:
        messages = [row[0] for row in database.execute("SELECT message FROM records")]

    assert text.startswith("<134>1 ")
    assert " shop " in text
    assert text.endswith("order 7 paid")
    assert messages == ["order 7 paid"]
