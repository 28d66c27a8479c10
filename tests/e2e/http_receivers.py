"""HTTP receivers that answer as a test says, and a program that logs through an HTTP sink."""

import contextlib
import gzip
import json
import re
import socket
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ports import free_port
from suite import programs

SECONDS = 60

#: Each record of the program has this in its message.
NUMBER = re.compile(rb"number (\d+) end")

PROGRAM = """\
import json, logging, sys
import logspool

kind, options, queue = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
given = {**options, **queue}
handler = getattr(logspool, kind)(**given) if kind[0].isupper() else logspool.SinkHandler(kind, **given)
log = logging.getLogger("app")
log.addHandler(handler)
log.setLevel(logging.DEBUG)
place = getattr(handler, "address", None) or options.get("address") or options["path"]
number = 0
for line in sys.stdin:
    word, value = line.split()
    if word == "log":
        for _ in range(int(value)):
            log.info("number %d end", number, extra={"order": number})
            number += 1
        answer = number
    elif word == "flush":
        answer = logspool.flush(float(value))
    else:
        stats = logspool.stats()
        sink = stats.sinks[place]
        answer = {name: sink.total(name) for name in ("accepted_for_sink", "written", "queued", "dropped")}
        answer["shown"] = "\\n".join([str(stats), str(logspool.health()), repr(handler), logspool.metrics_text()])
    print(json.dumps(answer), flush=True)
"""


class Program:
    """A program that logs through a sink, or through a class of logspool, on command."""

    text = PROGRAM

    def __init__(self, folder, queue_dir, kind, options, **queue):
        script = folder / "program.py"
        script.write_text(self.text, encoding="utf-8")
        self.child = programs.start(
            [script, kind, json.dumps(options), json.dumps(queue)],
            env=programs.environment(programs.INSTALLED, queue_dir, NO_PROXY="127.0.0.1"),
            folder=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, word, value=0):
        """Send a command to the program and return its answer."""
        self.child.stdin.write(f"{word} {value}\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def end(self):
        """Let it end by itself."""
        self.child.stdin.close()
        assert self.child.wait(SECONDS) == 0


@contextlib.contextmanager
def program(folder, queue_dir, kind, options, **queue):
    """Give a program; kill it if the test has not ended it."""
    made = Program(folder, queue_dir, kind, options, **queue)
    with programs.ended(made.child):
        yield made


class Receiver:
    """Counts the numbers of the records in the requests that it accepts.

    `replies` is called with the number of earlier requests and the body, and returns (status, headers, body), or None
    where the connection ends in the middle of the answer.
    """

    def __init__(self, replies=None, port=None):
        self.port = port or free_port()
        self.replies = replies or (lambda count, body: (200, {}, b'{"errors":false}'))
        self.accepted = Counter()
        self.ids = set()
        self.connections = set()
        self.requests = 0
        self.lock = threading.Lock()
        self.server = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Start it, on the port of an earlier start."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver.answer(self)

            def log_message(self, *_):
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            # Closing the server waits for the threads of its connections, which close their sockets.
            daemon_threads = False
            allow_reuse_address = True

            def process_request(self, request, client_address):
                receiver.connections.add(request)
                super().process_request(request, client_address)

        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def stop(self):
        """End it and its connections."""
        if self.server is not None:
            self.server.shutdown()
            for connection in self.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self.connections.clear()
            self.server.server_close()
            self.server = None

    def answer(self, request):
        """Count the records of a request if its status says that they are accepted, and answer."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with self.lock:
            count, self.requests = self.requests, self.requests + 1
            reply = self.replies(count, body)
            if reply is None or reply[0] < 300:
                self.take(body, reply)
        if reply is None:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            request.close_connection = True
            return
        status, headers, text = reply
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(text)

    def take(self, body, reply):
        """Count the accepted records. Records with ids are stored once, as Elasticsearch does."""
        if not body.startswith(b'{"create"'):
            self.accepted.update(int(number) for number in NUMBER.findall(body))
            return
        lines = body.splitlines()
        answers = json.loads(reply[2]).get("items") if reply else None
        for index, (head, document) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            identity = json.loads(head)["create"]["_id"]
            status = answers[index]["create"]["status"] if answers else 201
            if identity not in self.ids and status < 300:
                self.ids.add(identity)
                self.accepted.update(int(number) for number in NUMBER.findall(document))


@contextlib.contextmanager
def receiver(replies=None, *, runs=True):
    """Give a receiver."""
    made = Receiver(replies)
    try:
        yield made.start() if runs else made
    finally:
        made.stop()
