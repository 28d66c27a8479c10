"""A way between a client and its server that a test can move, hold and cut."""

import contextlib
import ctypes
import select
import socket
import struct
import threading

#: Not in the module `socket`. The values are of all processors but MIPS, SPARC and PA-RISC.
SO_ATTACH_FILTER = 26


def go_silent(end: socket.socket) -> None:
    """Let the kernel drop all that arrives for a socket, as if the machine had disappeared. For a listener these are
    attempts to connect.
    """
    # A program of one instruction: keep 0 bytes of the packet.
    program = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(program)))


def black_hole() -> socket.socket:
    """Return a listener that neither accepts nor refuses connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    go_silent(listener)
    return listener


class Relay:
    """A way to a server."""

    def __init__(self, port: int):
        """Listen, and forward each connection to a port."""
        self.to, self.refuses, self.pairs, self.passes = port, False, set(), threading.Event()
        self.passes.set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = None if self.refuses else self._connect()
            if far is None:
                near.close()
                continue
            threading.Thread(target=self._pass_on, args=((near, far),), daemon=True).start()

    def _connect(self) -> "socket.socket | None":
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", self.to))
        return None

    def _pass_on(self, pair: "tuple[socket.socket, socket.socket]") -> None:
        other = dict(zip(pair, reversed(pair), strict=True))
        self.pairs.add(pair)
        with pair[0], pair[1], contextlib.suppress(OSError):
            while True:
                for source in select.select(pair, [], [])[0]:
                    part = source.recv(1 << 16)
                    self.passes.wait()
                    if not part:
                        self.pairs.discard(pair)
                        return
                    other[source].sendall(part)
        self.pairs.discard(pair)

    def cut(self, number: "int | None" = None) -> None:
        """End all connections, or only one of them."""
        pairs = list(self.pairs)
        for pair in pairs if number is None else pairs[number % max(1, len(pairs)) :][:1]:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def move(self, port: int) -> None:
        """End all connections, and forward new ones to another port."""
        self.to = port
        self.cut()

    def reset(self) -> None:
        """Stop listening, and reset all connections of clients."""
        self._stop_listening()
        for near, far in list(self.pairs):
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # `_pass_on` closes both then. A shutdown of `near` would be an orderly end.
            far.shutdown(socket.SHUT_RDWR)

    def go_silent(self) -> None:
        """Drop all that arrives from clients."""
        for end in (self.listener, *(near for near, _ in list(self.pairs))):
            go_silent(end)

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self.passes.set()
        self._stop_listening()
        self.cut()

    def _stop_listening(self) -> None:
        # A thread that waits for a connection holds the socket open; only this ends its wait.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
