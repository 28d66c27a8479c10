"""The handler for Fluent Bit and Fluentd: a `ServiceHandler` with defaults for a forwarder beside the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logspool.handlers import _handlers

if TYPE_CHECKING:
    import os
    from typing import Any


class ForwardHandler(_handlers.ServiceHandler):
    """Send records to Fluent Bit or Fluentd, by Fluent Forward v1 with acks.

    Does the same as `ServiceHandler`, with smaller chunks that gather longer. The receiver stores a record again if it
    was cut off before its ack arrived: each record arrives at least once. `docs/how-to/send-to-fluent-bit.md` has
    configurations.

    Args:
        address: "tcp://host:port", "tls://host:port" or "unix:///path"; a list as in `ServiceHandler`.
        tag: the tag by which the receiver routes the records.
        chunk_bytes: a chunk with so many bytes of records is sent at once.
        gather_seconds: the longest time that a chunk gathers records; `flush()` and the end of the program do not wait
            for it.
        rebalance_seconds: as in `ServiceHandler`.
        shared_key: the key that the receiver has in its configuration (`shared_key`); None for a receiver without one.
        authorities: for TLS, as in `ServiceHandler`.
        certificate: for TLS, as in `ServiceHandler`.
        key: for TLS, as in `ServiceHandler`.
        server_name: for TLS, as in `ServiceHandler`.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        ValueError: the address or a value is invalid, or an option is not valid for this kind of address.
        OSError: a file cannot be read.
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(
        self,
        address: str,
        *,
        tag: str = "logspool",
        chunk_bytes: int = 32768,
        gather_seconds: float = 2.0,
        rebalance_seconds: float = 600.0,
        shared_key: str | None = None,
        authorities: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        server_name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            address,
            authorities=authorities,
            certificate=certificate,
            key=key,
            server_name=server_name,
            tag=tag,
            chunk_bytes=chunk_bytes,
            gather_seconds=gather_seconds,
            rebalance_seconds=rebalance_seconds,
            shared_key=shared_key,
            **options,
        )
