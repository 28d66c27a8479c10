"""A receiver of Fluent Forward that keeps what it gets, once, by the rule of logspool's service."""

import contextlib
import gzip
import socket
import ssl
import struct
import threading
from pathlib import Path

#: Ten times what a busy machine needs.
DEADLINE_SECONDS = 30.0


class Incomplete(Exception):
    """Bytes are still to come."""


class Time(float):
    """An EventTime."""


class _Unpacked:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise Incomplete
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]

    def value(self):
        mark = self.number("B")
        if mark <= 0x7F:
            return mark
        if mark >= 0xE0:
            return mark - 0x100
        if mark <= 0x8F:
            return self._map(mark & 0x0F)
        if mark <= 0x9F:
            return self._array(mark & 0x0F)
        if mark <= 0xBF:
            return self.take(mark & 0x1F).decode()
        simple = {0xC0: None, 0xC2: False, 0xC3: True}
        if mark in simple:
            return simple[mark]
        numbers = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q"}
        numbers.update({0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"})
        if mark in numbers:
            return self.number(numbers[mark])
        lengths = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I"}
        if mark in lengths:
            data = self.take(self.number(lengths[mark]))
            return data if mark <= 0xC6 else data.decode()
        if mark == 0xD7:
            assert self.number("b") == 0
            seconds, nanoseconds = self.number("I"), self.number("I")
            return Time(seconds + nanoseconds / 1e9)
        return {0xDC: self._array, 0xDD: self._array, 0xDE: self._map, 0xDF: self._map}[mark](
            self.number("H" if mark in (0xDC, 0xDE) else "I")
        )

    def _array(self, count: int):
        return [self.value() for _ in range(count)]

    def _map(self, count: int):
        # Pairs, so that a name that comes twice shows.
        return [(self.value(), self.value()) for _ in range(count)]


class Receiver:
    """See the module. Keeps (time, parts) of each record, parts as a list of pairs. Without a path it is on TCP.

    With a `context` its next connections speak TLS; `clients` are the names in the certificates that they showed.
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
        """Listen, also again after `stop()`."""
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
        """End every connection and listen no more."""
        if self._listener is None:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                # A TLS socket's own shutdown ends TLS first: who reads from it meanwhile is given what is encrypted.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._sockets.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            stack.enter_context(connection)
            context = self.context
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_side=True))
                self._sockets.append(connection)
                subject = dict(part[0] for part in (connection.getpeercert() or {}).get("subject", ()))
                self.clients.append(str(subject.get("commonName")))
            while part := connection.recv(1 << 20):
                data += part
                while True:
                    unpacked = _Unpacked(data)
                    try:
                        message = unpacked.value()
                    except Incomplete:
                        break
                    if not isinstance(message, list):
                        # What begins a handshake of TLS, say.
                        return
                    data = data[unpacked.at :]
                    chunk = self._keep(message)
                    if not self.silent:
                        connection.sendall(b"\x81\xa3ack\xd9" + bytes([len(chunk)]) + chunk.encode())

    def _keep(self, message: list) -> str:
        tag, packed, options = message[0], message[1], dict(message[2])
        stream, _, numbers = options["chunk"].split("/")
        first, last = map(int, numbers.split("-"))
        if options.get("compressed") == "gzip":
            packed = gzip.decompress(packed)
        unpacked, entries = _Unpacked(packed), []
        while unpacked.at < len(packed):
            when, parts = unpacked.value()
            entries.append((when, parts))
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
        """Wait for so many records and return the parts of all; no more may have come, and nothing been wrong."""
        self.wait(f"{count} records", lambda: len(self.entries) >= count)
        assert not self.mistakes
        assert len(self.entries) == count
        return [dict(parts) for _, parts in self.entries]

    def wait(self, what: str, is_so) -> None:
        """Wait until that is so."""
        with self._changed:
            assert self._changed.wait_for(is_so, DEADLINE_SECONDS), f"{what}: there are {len(self.entries)} records"
