"""A proxy between a sink and a server that cuts connections and slows them down."""

import contextlib
import socket
import threading
import time

#: Bytes per read, and the size of a connection's receive buffer.
PIECE = 16 * 1024


class Proxy:
    """Forwards connections to its `port` to another port of loopback.

    `cuts` holds the fates of the next connections, in their order: ("request", COUNT) ends a connection after COUNT
    bytes from the sink. ("answer", COUNT) ends it at the server's answer after COUNT bytes: the answer is lost.
    `pace` is the number of bytes per second that it passes on from the sink; None is no limit.
    """

    def __init__(self, target, pace=None):
        self.target, self.pace = target, pace
        self.cuts = []
        self.was_cut = 0
        self.port = 0
        self._open = []
        self.listen()

    def listen(self):
        """Accept connections; after `refuse`, on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        # Connections inherit it.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def refuse(self):
        """Accept no more connections; open connections stay."""
        _close(self._listener)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in (self._listener, *self._open):
            _close(each)

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                sink, _ = listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    _close(sink)
                    continue
                self._open += [sink, server]
                Connection(self, sink, server, self.cuts.pop(0) if self.cuts else None)


class Connection:
    """A connection from a sink and its connection to the server."""

    def __init__(self, proxy, sink, server, cut):
        self.proxy, self.sink, self.server = proxy, sink, server
        self.where, self.count = cut or (None, 0)
        self.passed = 0
        for way in (self._requests, self._answers):
            threading.Thread(target=way, daemon=True).start()

    def _requests(self):
        with contextlib.suppress(OSError):
            while piece := self.sink.recv(PIECE):
                left = self.count - self.passed
                if self.where == "request" and len(piece) >= left:
                    self.server.sendall(piece[:left])
                    self.proxy.was_cut += 1
                    break
                self.server.sendall(piece)
                self.passed += len(piece)
                if self.proxy.pace:
                    time.sleep(len(piece) / self.proxy.pace)
        self._end()

    def _answers(self):
        with contextlib.suppress(OSError):
            while piece := self.server.recv(PIECE):
                if self.where == "answer" and self.passed >= self.count:
                    self.proxy.was_cut += 1
                    break
                self.sink.sendall(piece)
        self._end()

    def _end(self):
        _close(self.sink)
        _close(self.server)


def _close(end):
    # `shutdown` ends what other threads wait for; `close` alone does not.
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
