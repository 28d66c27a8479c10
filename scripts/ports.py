"""Ports of this machine."""

import contextlib
import itertools
import os
import socket

#: The system gives higher ports to connections, so that no connection takes the port of a server that is away. Each
#: worker of the tests has a thousand of its own, because a server binds its ports later than they are chosen.
_FIRST_PORT = 20_000 + 1000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 12)
_PORTS = itertools.cycle(range(_FIRST_PORT, _FIRST_PORT + 1000))


def free_port() -> int:
    """Return a port of loopback that is free for connections and for datagrams."""
    while True:
        port = next(_PORTS)
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            with contextlib.suppress(OSError):
                stream.bind(("127.0.0.1", port))
                datagrams.bind(("127.0.0.1", port))
                return port
