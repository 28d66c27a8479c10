"""Receivers for sinks that send over sockets, and a program that logs numbered records on command."""

import json
import select
import socket
import ssl
import subprocess
import sys
import threading

from suite import pages, programs
from suite.waiting import until

SECONDS = 60

PROGRAM = """\
import json, logging, sys
import logspool

handler = logspool.SinkHandler(sys.argv[1], **json.loads(sys.argv[2]))
logging.basicConfig(handlers=[handler], level=logging.INFO, format="%(message)s")
number = 0
for line in sys.stdin:
    order = json.loads(line)
    for _ in range(order["count"]):
        logging.info("number %d%s", number, order["more"], extra={"number": number})
        number += 1
    flushed = logspool.flush(order["seconds"])
    sink = next(iter(logspool.stats().sinks.values()))
    print(json.dumps({
        "flushed": flushed,
        "written": sink.total("written"),
        "dropped": sink.total("dropped"),
        "waiting": sink.total("queued") + sink.total("spooled"),
        "cut": sink.cut,
        "errors": sink.errors,
        "error": sink.error,
        "problems": logspool.health().reasons,
    }), flush=True)
"""


class Sender:
    """The program that logs. It is another process, and ends with the block."""

    def __init__(self, folder, queue_dir, sink, **options):
        script = folder / "program.py"
        script.write_text(PROGRAM)
        self.errors = (folder / "program.err").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(script), sink, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=programs.environment(programs.INSTALLED, queue_dir),
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if error[0] is not None:
            self.process.kill()
        self.process.communicate(timeout=SECONDS)
        self.errors.close()
        if error[0] is None:
            assert self.process.returncode == 0

    def order(self, count, *, seconds=SECONDS, more=""):
        """Order it to log `count` records and to flush; do not wait for its answer."""
        self.process.stdin.write(json.dumps({"count": count, "seconds": seconds, "more": more}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        """Return its answer to the oldest unanswered order."""
        line = self.process.stdout.readline()
        assert line, self.warnings()
        return json.loads(line)

    def log(self, count, **options):
        """Log `count` records, flush, and return the statistics."""
        self.order(count, **options)
        return self.answer()

    def warnings(self) -> str:
        """Return its output on stderr."""
        self.errors.flush()
        with open(self.errors.name, encoding="utf-8") as text:
            return text.read()


class Receiver:
    """Collects what arrives at one address: datagrams, or the bytes of each connection."""

    def __init__(self, way, folder, context=None):
        self.way = way
        self.context = context
        self.path = folder / f"{way}.socket"
        self.port = 0
        if way in ("udp", "tcp", "tls"):
            with self._socket() as reserved:
                reserved.bind(("127.0.0.1", 0))
                self.port = reserved.getsockname()[1]
        self.datagrams = []
        self.connections = []
        self.reads = threading.Event()
        self.reads.set()
        self._ends = None
        self._thread = None

    @property
    def address(self) -> str:
        """Return the address on which it listens."""
        return f"{self.way}://127.0.0.1:{self.port}" if self.port else f"unix://{self.path}"

    def _socket(self):
        family = socket.AF_INET if self.way in ("udp", "tcp", "tls") else socket.AF_UNIX
        kind = socket.SOCK_DGRAM if self.way in ("udp", "datagram") else socket.SOCK_STREAM
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return made

    def start(self):
        """Listen."""
        listening = self._socket()
        # Datagrams that do not fit into the buffer would be lost.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.path.unlink(missing_ok=True)
        listening.bind(("127.0.0.1", self.port) if self.port else str(self.path))
        if listening.type == socket.SOCK_STREAM:
            listening.listen()
        self._ends, ending = socket.socketpair()
        serve = self._serve_stream if listening.type == socket.SOCK_STREAM else self._serve_datagrams
        self._thread = threading.Thread(target=serve, args=(listening, ending))
        self._thread.start()
        return self

    def stop(self):
        """Read the data that has arrived, and close the socket and all connections."""
        if self._thread is not None:
            self.reads.set()
            self._ends.close()
            self._thread.join(SECONDS)
            assert not self._thread.is_alive()
            self._thread = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _serve_datagrams(self, listening, ending):
        with listening, ending:
            while True:
                self.reads.wait()
                ready, _, _ = select.select([listening, ending], [], [])
                if listening in ready:
                    self.datagrams.append(listening.recv(1 << 20))
                elif ending in ready:
                    return

    def _serve_stream(self, listening, ending):
        took = {}
        with listening, ending:
            while True:
                ready, _, _ = select.select([listening, ending, *took], [], [])
                if ending in ready and len(ready) == 1:
                    break
                if listening in ready:
                    connection, _ = listening.accept()
                    if self.context is not None:
                        connection.settimeout(SECONDS)
                        try:
                            connection = self.context.wrap_socket(connection, server_side=True)
                        except OSError:
                            connection.close()
                            continue
                    took[connection] = bytearray()
                    self.connections.append(took[connection])
                for connection in [one for one in ready if one in took]:
                    self.reads.wait()
                    if not self._read(connection, took[connection]):
                        connection.close()
                        del took[connection]
        for connection in took:
            connection.close()

    @staticmethod
    def _read(connection, into) -> bool:
        """Read once, and all that TLS has decrypted; return False at the end."""
        try:
            while True:
                part = connection.recv(1 << 16)
                into += part
                if not part or not getattr(connection, "pending", int)():
                    return bool(part)
        except OSError:
            return False

    def texts(self, end: bytes):
        """Return whole messages: datagrams, or the parts of a stream that end with the terminator."""
        found = list(self.datagrams)
        for connection in list(self.connections):
            found += bytes(connection).split(end)[:-1]
        return found


def page_program(page, test, shown, used):
    """Return the program of a how-to that this test runs, with the address of the test."""
    found = [block for block in pages.blocks(pages.ROOT / "docs" / "how-to" / page) if test in block.marker]
    assert len(found) == 1 and found[0].text.count(shown) == 1
    return found[0].text.replace(shown, used)


def numbers(texts):
    """Return the numbers of records whose text begins with `number N`."""
    return [int(text.split()[1]) for text in texts]


def wait_for_all(received, count):
    """Wait until the numbers 0 to `count` have all arrived; return them."""
    until(lambda: set(received()) >= set(range(count)), SECONDS, f"all of {count} records")
    return received()


def server_context(pair, clients=None):
    """Return the TLS settings of a receiver with this certificate; it can require certificates of its clients."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*pair)
    if clients is not None:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(clients)
    return made
