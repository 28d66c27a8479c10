"""A strict receiver of Fluent Forward v1, like Fluent Bit and Fluentd, and a program that sends to it."""

import contextlib
import gzip
import hashlib
import secrets
import socket
import threading
import time
from collections import Counter

from http_receivers import program as told_program

from service import receiver as by_hand

SECONDS = 60.0


def program(folder, queue_dir, address, **options):
    """Give a program that logs through a `ForwardHandler` on command."""
    return told_program(folder, queue_dir, "ForwardHandler", {"address": address, **options})


class ForwardReceiver:
    """Counts the numbers of the records that it stores.

    Without `shared_key` it takes chunks at once. `cut_every` cuts the connection of each n-th chunk after it was stored
    and before its ack. `ack_delay` is the time in seconds before an ack. `mistakes` keeps everything that the
    specification does not allow in a chunk.
    """

    def __init__(self, context=None, shared_key=None, cut_every=0, ack_delay=0.0, tag="logspool"):
        self.context, self.shared_key, self.tag = context, shared_key, tag
        self.cut_every, self.ack_delay = cut_every, ack_delay
        self.numbers = Counter()
        self.sizes = []
        self.mistakes = []
        self.refused = 0
        self._chunks = 0
        self._lock = threading.Lock()
        self._sockets = []
        self._listener = None
        self._port = 0

    @property
    def address(self):
        return f"{'tls' if self.context else 'tcp'}://127.0.0.1:{self._port}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Listen; after a stop, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self):
        """End every connection and stop listening."""
        if self._listener is None:
            return
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        self._listener.close()
        self._listener, self._sockets = None, []

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._sockets.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            stack.enter_context(connection)
            if self.context is not None:
                connection = stack.enter_context(self.context.wrap_socket(connection, server_side=True))
            messages = self._messages(connection)
            if self.shared_key is not None and not self._greet(connection, messages):
                return
            for message in messages:
                chunk, is_cut = self._keep(message)
                if is_cut:
                    return
                if self.ack_delay:
                    time.sleep(self.ack_delay)
                connection.sendall(b"\x81" + text("ack") + text(chunk))

    @staticmethod
    def _messages(connection):
        unpacked = by_hand.unpacker()
        while part := connection.recv(1 << 20):
            unpacked.feed(part)
            yield from unpacked

    def _greet(self, connection, messages):
        """Perform the receiver's side of the handshake."""
        nonce, name = secrets.token_bytes(16), "receiver"
        helo = b"\x83" + text("nonce") + b"\xc4\x10" + nonce + text("auth") + text("") + text("keepalive") + b"\xc3"
        connection.sendall(b"\x92" + text("HELO") + helo)
        ping = next(messages, None)
        if ping is None:
            return False
        if ping[0] != "PING":
            # A client without a key. Its records are not stored.
            self.refused += 1
            return False
        _, client, salt, proof, user, password = ping
        if (user, password) != ("", ""):
            self.mistakes.append(f"a user that nobody asked for: {ping}")
        key = self.shared_key.encode()
        if hashlib.sha512(salt.encode() + client.encode() + nonce + key).hexdigest() != proof:
            self.refused += 1
            connection.sendall(b"\x95" + text("PONG") + b"\xc2" + text("shared_key mismatch") + text("") + text(""))
            return False
        own = hashlib.sha512(salt.encode() + name.encode() + nonce + key).hexdigest()
        connection.sendall(b"\x95" + text("PONG") + b"\xc3" + text("") + text(name) + text(own))
        return True

    def _keep(self, message):
        """Store a chunk. Returns its id, and whether the connection ends before the ack."""
        tag, packed, options = message[0], message[1], dict(message[2])
        if options.get("compressed") == "gzip":
            packed = gzip.decompress(packed)
        numbers = []
        for when, parts in by_hand.entries_of(packed):
            if not isinstance(when, by_hand.Time):
                self.mistakes.append(f"no EventTime: {when!r}")
            numbers.append(dict(parts)["order"])
        with self._lock:
            if tag != self.tag or options["size"] != len(numbers) or not isinstance(options["chunk"], str):
                self.mistakes.append(f"{tag} {options} with {len(numbers)} entries")
            self.numbers.update(numbers)
            if numbers:
                self.sizes.append(len(packed))
                self._chunks += 1
            is_cut = bool(numbers and self.cut_every and self._chunks % self.cut_every == 0)
        return options["chunk"], is_cut


def text(value):
    """Return a text of MessagePack."""
    data = value.encode()
    return b"\xd9" + bytes([len(data)]) + data
