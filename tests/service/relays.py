"""A way between a client and its server that a test can move, hold and cut."""

import contextlib
import random
import select
import socket
import threading


class Relay:
    """A way to one of several servers."""

    def __init__(self, *ports: int):
        """Listen, and forward each connection to one of `ports`."""
        self.to, self.refuses, self.pairs, self.passes = ports, False, set(), threading.Event()
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
        for port in random.sample(self.to, len(self.to)):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port))
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
        self.to = (port,)
        self.cut()

    def close(self) -> None:
        """Stop listening."""
        self.passes.set()
        # A thread that waits for a connection holds the socket open; only this ends its wait.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
