"""A receiver of Fluent Forward that keeps each record once, by the rule of logspool's service."""

import contextlib
import gzip
import socket
import ssl
import struct
import threading
from pathlib import Path

import msgpack

#: Ten times the longest wait on a busy machine.
DEADLINE_SECONDS = 30.0


class Time(float):
    """An EventTime."""


def _time(code: int, data: bytes) -> Time:
    assert code == 0, f"no EventTime but an extension of type {code}"
    seconds, nanoseconds = struct.unpack(">II", data)
    return Time(seconds + nanoseconds / 1e9)


def unpacker() -> msgpack.Unpacker:
    """Return a reader of MessagePack. Maps become lists of pairs, so that a repeated name is visible."""
    return msgpack.Unpacker(object_pairs_hook=list, ext_hook=_time)


def entries_of(packed: bytes) -> list[tuple[Time, list]]:
    """Return the time and the parts of each record of a chunk."""
    unpacked = unpacker()
    unpacked.feed(packed)
    entries = [(when, parts) for when, parts in unpacked]
    assert unpacked.tell() == len(packed), "the last record is not complete"
    return entries


class Receiver:
    """Keeps (time, parts) of each record, parts as a list of pairs. Without a path it listens on TCP.

    With a `context` its next connections use TLS; `clients` are the names in the certificates of the clients.
    """

    def __init__(self, path: Path | None = None, context: "ssl.SSLContext | None" = None) -> None:
        self.path = path
        self.context = context
        self.clients: list[str] = []
        self.address = f"unix://{path}"
        self._port = 0
        self.streams: dict[str, int] = {}
        self.ended: list[str] = []
        self.entries: list[tuple[float, list]] = []
        self.mistakes: list[str] = []
        self.silent = False
        self._changed = threading.Condition()
        self._sockets: list[socket.socket] = []
        self._listener: socket.socket | None = None

    def __enter__(self) -> "Receiver":
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def listen(self) -> None:
        """Start to listen; allowed again after `stop()`."""
        if self.path is None:
            listener = socket.create_server(("127.0.0.1", self._port))
            self._port = listener.getsockname()[1]
            self.address = f"{'tls' if self.context else 'tcp'}://127.0.0.1:{self._port}"
        else:
            self.path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.path))
            listener.listen()
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """End every connection and stop listening."""
        if self._listener is None:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                # `shutdown` of a TLS socket ends TLS first; a thread that reads meanwhile would get encrypted bytes.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._sockets.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        unpacked = unpacker()
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            stack.enter_context(connection)
            context = self.context
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_side=True))
                self._sockets.append(connection)
                subject = dict(part[0] for part in (connection.getpeercert() or {}).get("subject", ()))
                self.clients.append(str(subject.get("commonName")))
            while part := connection.recv(1 << 20):
                unpacked.feed(part)
                for message in unpacked:
                    if not isinstance(message, list):
                        # No Forward message, for example the first byte of a TLS handshake.
                        return
                    chunk = self._keep(message)
                    if not self.silent:
                        connection.sendall(b"\x81\xa3ack\xd9" + bytes([len(chunk)]) + chunk.encode())

    def _keep(self, message: list) -> str:
        tag, packed, options = message[0], message[1], dict(message[2])
        stream, _, numbers = options["chunk"].split("/")
        first, last = map(int, numbers.split("-"))
        if options.get("compressed") == "gzip":
            packed = gzip.decompress(packed)
        entries = entries_of(packed)
        with self._changed:
            known = self.streams.get(stream, 0)
            if tag != "logspool" or len(entries) != options["size"] or options["size"] != last + 1 - first:
                self.mistakes.append(f"{options} with {len(entries)} entries")
            if options.get("end"):
                self.ended.append(stream)
            elif last > known:
                if first > known + 1:
                    self.mistakes.append(f"{options['chunk']} follows {known}")
                self.entries += entries[known + 1 - first :]
                self.streams[stream] = last
            self._changed.notify_all()
        return str(options["chunk"])

    def records(self, count: int) -> list[dict]:
        """Wait for `count` records and return the parts of each; more records or a mistake fail the test."""
        self.wait(f"{count} records", lambda: len(self.entries) >= count)
        assert not self.mistakes
        assert len(self.entries) == count
        return [dict(parts) for _, parts in self.entries]

    def wait(self, what: str, is_so) -> None:
        """Wait until `is_so()` is true; a failure names `what`."""
        with self._changed:
            assert self._changed.wait_for(is_so, DEADLINE_SECONDS), f"{what}: there are {len(self.entries)} records"
