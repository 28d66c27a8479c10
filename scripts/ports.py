"""Ports of this machine."""

import socket


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return int(reserved.getsockname()[1])
