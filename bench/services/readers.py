"""What do senders and honest readers notice of readers who scan, do not read, or follow by the hundred?

The hostile readers all come from one address, the honest one and the sender from another. In turn there are 64 scans by
a regular expression, 600 answers that are not read, and 500 live tails that match nothing.
"""

from __future__ import annotations

import contextlib
import http.client
import selectors
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator

from parts import Column, Part, Round, percentile, turns
from services import counting, processes
from services.ground import HERE, POSTGRES, SQLITE, Ground, Sender
from services.part import Wrong, wait
from services.running import Service, serving

ALONE, SCANS, UNREAD, TAILS = "alone", "64 scans", "600 unread answers", "500 live tails"
#: Addresses of this machine.
HONEST, HOSTILE = "127.0.0.1", "127.0.0.2"
#: Finds nothing, though parts of it are in every message; no index helps.
SCAN = r'message~"(sends|of|took) [a-z0-9.]+[0-9]$"'
#: One record of one trace: an index finds it.
HONEST_QUESTION = {"q": "trace_id=needle", "limit": "10"}
#: After the hostile clients have gone: far more than an honest question takes, far less than a scan.
GONE_SECONDS = 5.0


def row(kind: str, beside: str) -> str:
    """Return the name of a row."""
    return f"{kind}: {beside}"


def measure(ground: Ground) -> Round:
    """Run both stores once."""
    found: Round = {}
    for kind in turns((SQLITE, POSTGRES)):
        found |= _store(ground, kind)
    return found


def _store(ground: Ground, kind: str) -> Round:
    sizes = ground.sizes
    found: Round = {}
    kinds: dict[str, Callable[[Service], contextlib.AbstractContextManager[Hostile]]] = {
        SCANS: lambda service: _hostile(service, sizes.scans, "/api/query", reads=True, q=SCAN),
        UNREAD: lambda service: _hostile(service, sizes.unread, "/api/query", limit=str(sizes.readers_stored)),
        TAILS: lambda service: _hostile(service, sizes.followers, "/api/tail", q="level=1"),
    }
    with ground.store(kind) as store:
        sent = 0
        with serving(ground.binary, "--store", store) as service:
            ground.say(f"{kind}: storing {sizes.readers_stored:,} records")
            _store_needle(service)
            ground.blast("forward", service.tcp, "--records", sizes.readers_stored)
            service.wait_stored(sizes.readers_stored + 1)
            if kind == SQLITE:
                wait("the index", lambda: _honest(service) < 0.05, pause=0.2)
            ground.say(f"{kind}: alone")
            quiet = [_honest(service) for _ in range(sizes.honest)]
            alone, sent = _beside(ground, service, sent)
            alone["quiet_ms"] = percentile(quiet, 0.5) * 1e3
            found[row(kind, ALONE)] = alone
            for name in turns(kinds):
                ground.say(row(kind, name))
                with kinds[name](service) as hostile:
                    figures, sent = _beside(ground, service, sent)
                    figures |= hostile.figures()
                gone = _honest(service)
                if gone > GONE_SECONDS:
                    raise Wrong(f"{row(kind, name)}: {gone:.1f} s for a question when all had gone")
                ratios = {f"{figure}_ratio": figures[figure] / alone[figure] for figure in ("rate", "ack_ms", "mb")}
                ratios["honest_ratio"] = figures["honest_ms"] / alone["quiet_ms"]
                found[row(kind, name)] = {**figures, **ratios, "gone_ms": gone * 1e3}
        stored = counting.in_store(store, "logger = 'readers'").figures(sent)
        found[row(kind, ALONE)] |= stored
        native = counting.in_store(store, "logger = 'native'").figures(sizes.readers_stored)
        if native["lost"] or native["doubled"]:
            raise Wrong(f"{kind}: of the records at the beginning {native}")
    return found


def _beside(ground: Ground, service: Service, sent: int) -> tuple[dict[str, float], int]:
    """Send for some seconds while honest questions are asked; return the figures, and how many were sent in all."""
    command = [sys.executable, str(HERE / "readers_sender.py"), str(service.ports["http"]), str(sent)]
    sender = Sender([*command, str(ground.sizes.readers_seconds)])
    try:
        with service.watched() as memory, _questions(service) as times:
            sender.begin()
            result = sender.result()
    finally:
        sender.end()
    if not times:
        raise Wrong("no honest question was answered while records were sent")
    figures = {"rate": result["rate"], "ack_ms": result["p99"] * 1e3, "ack_most_ms": result["most"] * 1e3}
    figures |= {"honest_ms": percentile(times, 0.5) * 1e3, "honest_p99_ms": percentile(times, 0.99) * 1e3}
    return figures | {"mb": max(memory), "questions": len(times)}, sent + int(result["records"])


def _store_needle(service: Service) -> None:
    connection = http.client.HTTPConnection(HONEST, service.ports["http"], timeout=60)
    record = b'{"message": "the needle", "logger": "needle", "trace_id": "needle"}'
    connection.request("POST", "/ingest", record, {"Content-Type": "application/json"})
    if connection.getresponse().status != 200:
        raise Wrong("the record that is asked for was not taken")
    connection.close()


def _honest(service: Service) -> float:
    """Ask an honest question on a connection of its own; return how long it took."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(HONEST, service.ports["http"], timeout=120)
    try:
        connection.request("GET", f"/api/query?{urllib.parse.urlencode(HONEST_QUESTION)}")
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200 or body.count(b"\n") != 1:
        raise Wrong(f"an honest question: {answer.status}: {body[:200]!r}")
    return time.perf_counter() - began


@contextlib.contextmanager
def _questions(service: Service) -> Iterator[list[float]]:
    """Ask honest questions, one after the other with pauses, while the block runs; yield their times."""
    times: list[float] = []
    failures: list[Exception] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(0.05):
            try:
                times.append(_honest(service))
            except (Wrong, OSError) as error:
                failures.append(error)
                return

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield times
    finally:
        ended.set()
        thread.join()
    if failures:
        raise Wrong(str(failures[0]))


class Hostile:
    """Clients that ask again and again: at once after a complete answer, a second after a refusal.

    Some never read their answers, and so never have a complete answer.
    """

    def __init__(self, service: Service, clients: int, target: str, *, reads: bool):
        """Connect and ask."""
        self.service, self.clients, self.target, self.reads = service, clients, target, reads
        self.answered = self.refused = self.most_threads = 0
        self.failure = ""
        self.selector = selectors.DefaultSelector()
        self.connections: set[socket.socket] = set()
        self.ended = threading.Event()
        for _ in range(clients):
            self._connect()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def figures(self) -> dict[str, float]:
        """Return their counts."""
        if self.failure:
            raise Wrong(f"hostile readers: {self.failure}")
        figures = {"clients": self.clients, "answered": self.answered, "refused": self.refused}
        return {**figures, "threads": self.most_threads}

    def close(self) -> None:
        """Close all connections."""
        self.ended.set()
        self.thread.join()
        for connection in self.connections:
            connection.close()
        self.selector.close()

    def _connect(self) -> None:
        connection = socket.socket()
        # Else the kernel takes megabytes for a client that does not read.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind((HOSTILE, 0))
        connection.settimeout(60)
        connection.connect((HONEST, self.service.ports["http"]))
        connection.sendall(f"GET {self.target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        self.connections.add(connection)
        self.selector.register(connection, selectors.EVENT_READ, "asks")

    def _run(self) -> None:
        again: list[float] = []
        try:
            while not self.ended.is_set():
                for key, _ in self.selector.select(0.05):
                    wait_seconds = self._hear(key)
                    if wait_seconds is not None:
                        again.append(time.monotonic() + wait_seconds)
                due = [moment for moment in again if moment <= time.monotonic()]
                again = [moment for moment in again if moment not in due]
                for _ in due:
                    self._connect()
                self.most_threads = max(self.most_threads, processes.threads(self.service.process.pid))
        except OSError as error:
            self.failure = str(error)

    def _hear(self, key: selectors.SelectorKey) -> float | None:
        """Read of a connection; return after how many seconds another one takes its place, if it has ended."""
        connection = key.fileobj
        assert isinstance(connection, socket.socket)
        if key.data == "reads":
            if connection.recv(1 << 16):
                return None
            self.answered += 1
            return self._forget(connection, 0.0)
        status = connection.recv(12)[-3:]
        if status == b"200":
            self.selector.unregister(connection)
            if self.reads:
                self.selector.register(connection, selectors.EVENT_READ, "reads")
            return None
        if status != b"429":
            self.failure = f"answered {status!r}"
        self.refused += 1
        return self._forget(connection, 1.0)

    def _forget(self, connection: socket.socket, wait_seconds: float) -> float:
        self.selector.unregister(connection)
        self.connections.remove(connection)
        connection.close()
        return wait_seconds


@contextlib.contextmanager
def _hostile(service: Service, clients: int, path: str, *, reads: bool = False, **parameters: str) -> Iterator[Hostile]:
    """Have `clients` clients ask from one address while the block runs."""
    hostile = Hostile(service, clients, f"{path}?{urllib.parse.urlencode(parameters)}", reads=reads)
    try:
        # Their work is to be in full swing.
        time.sleep(1)
        yield hostile
    finally:
        hostile.close()


PART = Part(
    "readers",
    "A sender and an honest reader beside hostile readers",
    (
        Column("rate", "records/s", 0),
        Column("rate_ratio", "of alone", 2),
        Column("ack_ms", "ack p99, ms", 1),
        Column("ack_ms_ratio", "of alone", 1),
        Column("quiet_ms", "query while nothing is sent, ms", 1),
        Column("honest_ms", "honest query, ms", 1),
        Column("honest_ratio", "of alone", 1),
        Column("mb", "MB", 0),
        Column("mb_ratio", "of alone", 2),
        Column("threads", "threads", 0),
        Column("answered", "answered", 0),
        Column("refused", "answered 429", 0),
        Column("gone_ms", "query when they had gone, ms", 1),
    ),
    most_rounds=3,
    question="2,000,000 records are stored. One sender posts 1,000 records a request over HTTP, waits for each answer "
    "and goes on for ten seconds; beside it an honest client asks for one record by its trace, again and again. In "
    "turn 64 clients scan by a regular expression again and again, 600 ask for all records and read nothing, and 500 "
    "follow what comes by a filter that matches nothing, all from one other address; one that is answered 429 asks "
    "again after a second. An honest query alone is one while nothing is sent.",
    measure=measure,
)
