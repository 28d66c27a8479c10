"""logspool's own handlers, which work in `dictConfig` and without `install()`."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from logspool import _native
from logspool.adoption import _own_classes
from logspool.base import _interpreter, _stock_classes
from logspool.handlers import _pretty, _service, _sinks
from logspool.process import _install


class StreamHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """A `logging.StreamHandler` whose lines go through the queue.

    Works with and without `logspool.install()`. Lines for a stream without a file descriptor are written at once,
    without the queue. Without a formatter, the handler shows time, level, logger and message on a terminal, in colours
    unless `NO_COLOR` is set. On other streams it writes the same as `logging.StreamHandler`.

    Args:
        stream: as in `logging.StreamHandler`; None is `sys.stderr`.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(self, stream: Any = None, **options: Any) -> None:
        _install.stand_alone(StreamHandler, options, has_stock=True)
        super().__init__(stream)

    @staticmethod
    def _formatter_without_one(stream: Any) -> Any:
        return _pretty.formatter_for(stream)

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, without its terminator."""
        pretty = None if self.formatter else _pretty.formatter_for(self.stream)
        return super().format(record) if pretty is None else pretty.format(record)


class FileHandler(logging.FileHandler):
    """A `logging.FileHandler` whose lines go through the queue.

    Works with and without `logspool.install()`. The collector formats and writes the records in the order of the calls.
    `flush()` and `close()` wait until all earlier records are in the file.

    Args:
        filename: as in `logging.FileHandler`.
        mode: as in `logging.FileHandler`.
        encoding: as in `logging.FileHandler`.
        delay: as in `logging.FileHandler`.
        errors: as in `logging.FileHandler`.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(
        self,
        filename: Any,
        mode: str = "a",
        encoding: str | None = None,
        delay: bool = False,
        errors: str | None = None,
        **options: Any,
    ) -> None:
        _install.stand_alone(FileHandler, options, has_stock=True)
        super().__init__(filename, mode, encoding, delay, errors)


class SinkHandler(logging.Handler):
    """Write records to a sink of logspool's table of sinks, which is selected by name.

    Works with and without `logspool.install()`. A sink receives the lines that the formatter makes, or entries if it
    needs all parts of a record. For an entry, a formatter makes only the texts of tracebacks and stacks. No call waits
    for the destination: while the destination is away, records wait in the queue. `docs/reference/sinks.md` lists the
    sinks and their options.

    Args:
        sink: the name of the sink.
        options: the options of the sink and of `logspool.install()`. A process has one queue; the options of its first
            handler apply.

    Raises:
        TypeError, ValueError: the sink or an option does not exist, or a value is invalid; or as `logspool.install()`.
        RuntimeError: as `logspool.install()`.
    """

    #: Ends each line, if the sink receives lines.
    terminator = "\n"

    @staticmethod
    def _described(handler: Any, known: type) -> Any:
        return _sinks.describe(handler, known)

    @staticmethod
    def _described_format(handler: Any, known: type) -> Any:
        return _sinks.describe_format(handler, known)

    def __init__(self, sink: str, **options: Any) -> None:
        row, own, of_queue = _sinks.split(type(self).__name__, sink, options)
        self._kind = sink
        self._takes = row["takes"]
        self._options = own
        self._destination = _native.check_sink(sink, own)
        _install.stand_alone(type(self), of_queue)
        super().__init__()
        self._sender = _sinks.sender(own)

    @property
    def sink(self) -> str:
        """The name of the sink."""
        return self._kind

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record that cannot be queued. Records that can be queued natively never reach this method."""
        try:
            entry = self._entry(record) if self._takes == "entries" else self.format(record)
            if self._sender is not None:
                self._sender.put(record, entry)
                return
            raise RuntimeError(f"cannot queue the record for {self._destination}")
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Do nothing where the native method has already waited. Without it, wait for the service."""
        if self._sender is not None:
            self._sender.flush(self._sender.shutdown_timeout)

    def close(self) -> None:
        """Send the waiting records within `shutdown_timeout`, and close the handler. Native code replaces this."""
        if self._sender is not None:
            self._sender.close()
        super().close()

    def _entry(self, record: logging.LogRecord) -> bytes:
        return _service.entry(record, self.formatter)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown()} ({logging.getLevelName(self.level)})>"

    def _shown(self) -> str:
        return self._destination if self._destination == self._kind else f"{self._kind} {self._destination}"


class ServiceHandler(SinkHandler):
    """Send records to a logspool service, or to another receiver of Fluent Forward v1.

    Works with and without `logspool.install()`. A record is sent with all its parts: level, logger, message, source
    location, process, thread, task, traceback, stack and every extra field. Lists and dicts in extra fields keep their
    structure. No call waits for the network: records wait in the queue, also while the service is away. A record counts
    as written after the service has acknowledged it. A formatter makes only the texts of tracebacks and stacks.

    Args:
        address: "tcp://host:port", "tls://host:port" or "unix:///path". For several services with one store it is a
            list, "tcp://a:9020,b:9020": the handler begins at a random one, and tries the next after an error.
            The order of the list does not matter.
        authorities: for TLS, a file (PEM) with the certificates of the authorities that are trusted to sign the
            service's certificate; None uses the system's authorities.
        certificate: for TLS, a file (PEM) with the certificate that this program presents; None presents none.
        key: for TLS, a file (PEM) with the private key of `certificate`.
        server_name: for TLS, the name that the service's certificate must contain; None uses the host of the address.
        tag: the tag of the records, by which other receivers route them.
        chunk_bytes: a chunk with so many bytes of records is sent at once.
        gather_seconds: the longest time that a chunk gathers records; `flush()` and the end of the program do not wait
            for it.
        rebalance_seconds: time until the handler chooses again among several services, 50 % more or less. It moves when
            all records are acknowledged.
        shared_key: the key that the receiver knows too, for the handshake of Fluent Forward; None for a receiver
            without one.
        options: the options of `logspool.install()`. A process has one queue; the options of its first handler apply.

    Raises:
        ValueError: the address is invalid, or an option is not valid for this kind of address.
        OSError: a file cannot be read.
        TypeError, ValueError, RuntimeError: as `logspool.install()`.
    """

    def __init__(
        self,
        address: str,
        *,
        authorities: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        server_name: str | None = None,
        tag: str = "logspool",
        chunk_bytes: int = 262144,
        gather_seconds: float = 0.05,
        rebalance_seconds: float = 600.0,
        shared_key: str | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(address, str):
            raise TypeError(f"address must be text, as 'tcp://host:port', not {address!r}")
        if not isinstance(shared_key, (str, type(None))):
            raise TypeError(f"shared_key must be text, not {type(shared_key).__name__}")
        # The address includes everything that a later program needs to send the records that this program leaves.
        _, place = _native.service_address(
            address,
            _service.file("authorities", authorities),
            _service.file("certificate", certificate),
            _service.file("key", key),
            server_name,
        )
        _install.check_names(type(self), options)
        super().__init__(
            "service",
            address=place,
            tag=tag,
            chunk_bytes=chunk_bytes,
            gather_seconds=gather_seconds,
            rebalance_seconds=rebalance_seconds,
            shared_key=shared_key,
            **options,
        )

    @property
    def address(self) -> str:
        """The address on which the service listens."""
        return self._destination

    def _shown(self) -> str:
        return self._destination


def make_native(cls: type, owners: dict[str, str]) -> None:
    """Give a class its own native methods, so that it uses the queue even if `logging` itself is not patched."""
    if _interpreter.without_core:
        return
    handlers = sys.modules.get("logging.handlers")
    for name, owner in owners.items():
        defining: Any = getattr(logging, owner, None) or getattr(handlers, owner, cls)
        stock = _stock(defining, name)
        native = _native.native_method(cls, owner, name, stock)
        _stock_classes.own_methods[cls, name] = (native, stock)
        setattr(cls, name, native)
    for name, delete in (("__setattr__", False), ("__delattr__", True)):
        hook = _native.attribute_hook(cls, delete)
        _stock_classes.own_methods[cls, name] = (hook, None)
        setattr(cls, name, hook)
    _own_classes.own_handlers.append(cls)


def _stock(cls: type, name: str) -> Any:
    value = cls.__dict__[name]
    made = _stock_classes.native_methods.get((cls, name))
    return made[1] if made is not None and value is made[0] else value


STREAM_METHODS = {
    "handle": "Handler",
    "emit": "StreamHandler",
    "flush": "StreamHandler",
    "setStream": "StreamHandler",
    "handleError": "Handler",
}

# For a comparison with stock logging these two are their stock classes. The others do what no stock class does.
if not _install.is_off():
    make_native(FileHandler, {**STREAM_METHODS, "emit": "FileHandler", "close": "FileHandler"})
    make_native(StreamHandler, {**STREAM_METHODS, "close": "Handler"})
make_native(
    SinkHandler,
    {"emit": "SinkHandler", "flush": "SinkHandler", "close": "Handler", "handleError": "Handler"},
)
_native.set_own_classes((StreamHandler, FileHandler, SinkHandler, _own_classes.SharedRotation))
