"""Sends the records of a `ServiceHandler` by Fluent Forward where there is no native core.

A thread sends chunks and waits for the ack of each. After an error it sends the same chunk, with the same numbers, to
the next address, so a service that knows the stream stores each record once. A kill loses the waiting records.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import random
import socket
import sys
import threading
import time
from collections import deque
from typing import Any

from logspool import _forks
from logspool.base import _locks
from logspool.pure import _answers, _formats, _options, _unpacked

#: Bytes of entries that wait, if `queue_total_bytes` sets no other limit. Chosen: as the queue of the core.
_MOST_BYTES = 64 * 1024 * 1024

#: Seconds to wait for a connection or an answer. Chosen: a busy service answers within a second.
_ANSWER_SECONDS = 5.0

#: Seconds of the first pause after every address has failed, and of the longest; each is twice the one before.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0

#: Seconds between two looks of a caller that waits for room or for a flush.
_LOOK_SECONDS = 0.01

_LEVELS = ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Sender:
    """The queue of one handler, and the thread that empties it.

    Args:
        own: the options of the sink "service".
        queue: the options of the queue, as `install()` or the handler has them.
    """

    def __init__(self, own: dict[str, Any], queue: dict[str, Any]) -> None:
        self._scheme, self._hosts, self._identity = _options.parts_of(own["address"])
        self._name = _options.service_address(own["address"], None, None, None, None)[0]
        self._tag = own.get("tag", "logspool")
        self._chunk_bytes = own.get("chunk_bytes", 262_144)
        self._gather = own.get("gather_seconds", 0.05)
        self._key: str | None = own.get("shared_key")
        self._most = queue.get("queue_total_bytes") or _MOST_BYTES
        self._patience = queue.get("blocking_timeout", 0.1)
        self._blocking = queue.get("blocking_levels")
        self._has_fallback = queue.get("fallback", "stderr") is not None
        self.shutdown_timeout: float = queue.get("shutdown_timeout", 5.0)
        self._lock = _locks.guard()
        self._pending = 0
        self._next = random.randrange(len(self._hosts))
        self._begin()
        _answers.senders.add(self)

    def _begin(self) -> None:
        """Begin with an empty queue and a stream of its own, also in a forked child."""
        self._renew_stream()
        #: Number of records that are acknowledged or dropped.
        self._settled = 0
        #: Entries with their level, and the text for the fallback, in order. The thread removes the entries of a chunk
        #: after its ack.
        self._waiting: deque[tuple[int, bytes, str]] = deque()
        self._bytes = 0
        self._is_pushed = self._is_closed = False
        self._thread: threading.Thread | None = None
        self._bell = _locks.flag()
        self._socket: socket.socket | None = None
        self._unread = b""
        self._pause = 0.0
        self._error = ""
        self._errors = self._bytes_written = 0
        self._last_write = 0.0
        self._accepted = dict.fromkeys(_LEVELS, 0)
        self._written = dict.fromkeys(_LEVELS, 0)
        self._refused: dict[str, dict[str, int]] = {}
        self._dropped: dict[str, dict[str, int]] = {}

    # -- callers ---------------------------------------------------------------------------

    def put(self, record: logging.LogRecord, entry: bytes) -> None:
        """Queue an entry. A record of a blocking level waits for room; another one is refused and counted."""
        level = record.levelno
        text = ""
        if level >= logging.ERROR and self._has_fallback:
            text = f"{record.levelname}:{record.name}:{record.getMessage()}\n{record.exc_text or ''}".rstrip("\n")
        waits = level >= logging.ERROR if self._blocking is None else level in self._blocking
        # A signal handler that interrupts this thread in a change cannot wait for the thread that sends.
        waits = waits and not self._lock.is_held()  # type: ignore[attr-defined]
        deadline = time.monotonic() + (self._patience if waits else 0.0)
        while not self._add(level, entry, text):
            if time.monotonic() >= deadline or threading.current_thread() is self._thread:
                with self._lock:
                    _count(self._refused, "queue_full", _level_name(level))
                if text:
                    _write(text)
                return
            time.sleep(_LOOK_SECONDS)

    def _add(self, level: int, entry: bytes, text: str) -> bool:
        with self._lock:
            if self._waiting and self._bytes + len(entry) > self._most:
                return False
            self._waiting.append((level, entry, text))
            self._bytes += len(entry)
            self._accepted[_level_name(level)] += 1
            is_due = len(self._waiting) == 1 or self._bytes >= self._chunk_bytes
        if is_due:
            self._wake()
        return True

    def flush(self, timeout: float | None) -> bool:
        """Wait until the service has acknowledged all records logged before. False if `timeout` seconds pass first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            target = self._settled + len(self._waiting)
        while self._settled < target:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._is_pushed = True
            self._wake()
            if self._thread is threading.current_thread():
                return False
            if self._thread is None:
                self._turn()  # no thread can be started any more
            else:
                time.sleep(_LOOK_SECONDS)
        return True

    def close(self) -> None:
        """Send the waiting records within `shutdown_timeout`, and end the stream. Later records begin a new one."""
        if self._is_closed:
            return
        if not self.flush(self.shutdown_timeout):
            with self._lock:
                count = len(self._waiting)
                texts = [text for _, _, text in self._waiting if text]
                for level, _, _ in self._waiting:
                    _count(self._dropped, "deadline", _level_name(level))
                self._settled += count
                self._waiting.clear()
                self._bytes = 0
                self._renew_stream()
            for text in texts:
                _write(text)
            why = f": {self._error}" if self._error else ""
            limit = f"{self.shutdown_timeout:g} s"
            _write(f"logspool: {self._name} did not confirm {count} records within {limit}; they are dropped{why}")
        self._is_closed = True
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._wake()
            thread.join(_ANSWER_SECONDS)

    def waiting(self) -> int:
        """Return the number of records that the service has not acknowledged."""
        return len(self._waiting)

    def counts(self, zero: dict[str, int]) -> dict[str, Any]:
        """Return the counters, as `_native.snapshot()` has them for a sink. `zero` has no records of any level."""
        with self._lock:
            queued = dict(zero)
            for level, _, _ in self._waiting:
                queued[_level_name(level)] += 1
            return {
                "name": self._name,
                "accepted": dict(self._accepted),
                "written": dict(self._written),
                "queued": queued,
                "spooled": zero,
                "not_durable": zero,
                "refused": {reason: dict(levels) for reason, levels in self._refused.items()},
                "dropped": {reason: {**zero, **levels} for reason, levels in self._dropped.items()},
                "bytes_written": self._bytes_written,
                "errors": self._errors,
                "error": self._error,
                "sync_error": "",
                "stuck": False,
                "closed": self._is_closed,
                "syncs": 0,
                "cut": 0,
                "overflow_bytes": 0,
                "spool_bytes": 0,
                "spool_error": "",
                "oldest_age_seconds": 0.0,
                "last_write_seconds": self._last_write,
            }

    def _wake(self) -> None:
        if self._thread is None:
            self._is_closed = False
            thread = threading.Thread(target=self._run, name="logspool-send", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:
                self._thread = None  # the interpreter ends: `flush` sends
                return
        if self._bell.locked():
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another caller has rung it

    # -- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        me = self._thread
        while me is self._thread and not self._is_closed:
            if self._waiting:
                self._gather_more()
                self._turn()
            else:
                self._is_pushed = False
                self._bell.acquire(True, 1.0)
        if me is self._thread:
            self._end_stream()
            self._thread = None

    def _gather_more(self) -> None:
        deadline = time.monotonic() + self._gather
        while not (self._is_pushed or self._is_closed) and self._bytes < self._chunk_bytes:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._bell.acquire(True, left)

    def _turn(self) -> None:
        """Send one chunk and wait for its ack. After an error wait a while; a later turn sends it again."""
        with self._lock:
            entries: list[tuple[int, bytes]] = []
            size = 0
            for level, entry, _ in self._waiting:
                is_large = bool(entries) and size + len(entry) > self._chunk_bytes
                if len(entries) == self._pending if self._pending else is_large:
                    break
                entries.append((level, entry))
                size += len(entry)
            stream, first = self._stream, self._number
            self._pending = len(entries)
        if not entries:
            return
        chunk = f"{stream}/1/{first}-{first + len(entries) - 1}"
        try:
            self._deliver(chunk, b"".join(entry for _, entry in entries), len(entries))
        except (OSError, ValueError) as error:
            self._failed(error)
            return
        with self._lock:
            if stream != self._stream:
                return  # this is a forked child, or `close` has dropped the records
            for level, entry in entries:
                self._waiting.popleft()
                self._bytes -= len(entry)
                self._written[_level_name(level)] += 1
                self._bytes_written += len(entry)
            self._number += len(entries)
            self._settled += len(entries)
            self._pending = 0
            self._error, self._pause, self._last_write = "", 0.0, time.time()

    def _failed(self, error: Exception) -> None:
        self._drop_connection()
        self._errors += 1
        self._error = str(error) or type(error).__name__
        self._next = (self._next + 1) % len(self._hosts)
        if self._next == 0 or len(self._hosts) == 1:
            self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            deadline = time.monotonic() + self._pause
            while not self._is_closed and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(left, 10 * _LOOK_SECONDS))

    def _deliver(self, chunk: str, packed: bytes, records: int) -> None:
        options = _pairs(chunk=_formats.text(chunk), size=_formats.integer(records))
        message = b"\x93" + _formats.text(self._tag) + _formats.binary(packed) + options
        connection = self._connected()
        connection.sendall(message)
        while True:
            answer = self._answer(connection)
            if isinstance(answer, dict) and answer.get("ack") == chunk:
                if "dropped" in answer:
                    _write(f"logspool: {self._name} drops {records} records for ever: {answer['dropped']}")
                return

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._unread = b""
            connection = self._connect()
            try:
                if self._key is not None:
                    self._prove(connection, self._key)
            except BaseException:
                connection.close()
                raise
            # Nothing is sent on a connection whose receiver has not proved that it knows the key.
            self._socket = connection
        return self._socket

    def _connect(self) -> socket.socket:
        host, port = self._hosts[self._next]
        if self._scheme == "unix":
            if not hasattr(socket, "AF_UNIX"):
                raise ValueError("this system has no unix sockets (fix: tcp://HOST:PORT)")
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(host)
            return connection
        connection = socket.create_connection((host, port), _ANSWER_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._scheme == "tcp":
            return connection
        import ssl

        context = ssl.create_default_context(cafile=self._identity.get("authorities"))
        if "certificate" in self._identity:
            context.load_cert_chain(self._identity["certificate"], self._identity["key"])
        return context.wrap_socket(connection, server_hostname=self._identity.get("server_name", host))

    def _prove(self, connection: socket.socket, key: str) -> None:
        """Prove to the receiver that this side knows the shared key, and let it prove the same."""
        helo = self._answer(connection)
        if not (isinstance(helo, list) and len(helo) == 2 and helo[0] == "HELO" and isinstance(helo[1], dict)):
            raise ValueError("what answers there begins no handshake with a shared key (fix: no shared_key here)")
        if helo[1].get("auth"):
            raise ValueError("the receiver wants a user name and a password (fix: a receiver with the key alone)")
        nonce = _as_bytes(helo[1].get("nonce", b""))
        salt, host = os.urandom(16).hex(), platform.node()
        parts = ("PING", host, salt, _proof(salt, host.encode(), nonce, key), "", "")
        connection.sendall(b"\x96" + b"".join(map(_formats.text, parts)))
        pong = self._answer(connection)
        if not (isinstance(pong, list) and len(pong) == 5 and pong[0] == "PONG"):
            raise ValueError("what answers there speaks no Fluent Forward")
        if not pong[1] or _proof(salt, _as_bytes(pong[3]), nonce, key) != pong[4]:
            raise ValueError("the receiver does not know the shared key (fix: the same shared_key as there)")

    def _answer(self, connection: socket.socket) -> Any:
        while True:
            found = _unpacked.first(self._unread)
            if found is not None:
                value, size = found
                self._unread = self._unread[size:]
                return value
            part = connection.recv(65536)
            if not part:
                raise ConnectionError("the service closed the connection")
            self._unread += part

    def _end_stream(self) -> None:
        """Report the end of the stream to the service, if it is connected, so that it may forget the stream."""
        if self._socket is not None:
            chunk = f"{self._stream}/1/{self._number}-{self._number - 1}"
            options = _pairs(chunk=_formats.text(chunk), size=b"\x00", end=b"\xc3")
            try:
                self._socket.sendall(b"\x93" + _formats.text(self._tag) + _formats.binary(b"") + options)
                self._answer(self._socket)
            except (OSError, ValueError):
                pass
            self._drop_connection()
        self._renew_stream()

    def _renew_stream(self) -> None:
        self._stream, self._number = os.urandom(16).hex(), 1
        #: Number of records of the chunk that was sent and has no ack yet; the next try sends the same ones.
        self._pending = 0

    def _drop_connection(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


def _after_fork_in_child() -> None:
    for sender in list(_answers.senders):
        connection = sender._socket
        sender._begin()
        if connection is not None:
            # The connection stays open in the parent. A TLS session is not ended by this.
            socket.socket.close(connection)


_forks.register(after_in_child=_after_fork_in_child)


def _pairs(**values: bytes) -> bytes:
    return bytes([0x80 | len(values)]) + b"".join(_formats.text(name) + value for name, value in values.items())


def _proof(salt: str, host: bytes, nonce: bytes, key: str) -> str:
    return hashlib.sha512(salt.encode() + host + nonce + key.encode()).hexdigest()


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _level_name(level: int) -> str:
    return _LEVELS[min(max(level // 10, 0), 5)]


def _count(reasons: dict[str, dict[str, int]], reason: str, level: str) -> None:
    levels = reasons.setdefault(reason, {})
    levels[level] = levels.get(level, 0) + 1


def _write(text: str) -> None:
    """Write a line to standard error."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")
    except (OSError, ValueError):
        pass  # without a standard error the program runs on
