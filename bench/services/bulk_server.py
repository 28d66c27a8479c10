"""The plain Python server that the service is compared with: one thread, epoll, pickles, bulk inserts of 1,000.

    python bulk_server.py FILE URL

Prints its port, takes records of `SocketHandler` until stdin ends and every connection is closed, appends a line for
each to the file, and inserts them into the table `plain`.
"""

import logging
import pickle
import selectors
import socket
import struct
import sys

import psycopg2
import psycopg2.extras

BULK = 1000
INSERT = "INSERT INTO plain (time, level, logger, message, file, line, function, process, thread) VALUES %s"


class Server:
    """Connections, and the bytes that have come by them."""

    def __init__(self, file, connection):
        self.file, self.connection, self.rows = file, connection, []
        self.cursor = connection.cursor()
        self.formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.selector = selectors.EpollSelector()
        self.buffers = {}

    def run(self, listener):
        """Serve until stdin has ended and all connections are closed."""
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ)
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        ends = False
        while not ends or self.buffers:
            for key, _ in self.selector.select():
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    self.buffers[connection] = bytearray()
                    self.selector.register(connection, selectors.EVENT_READ)
                elif key.fileobj is sys.stdin:
                    ends = True
                    self.selector.unregister(sys.stdin)
                else:
                    self.read(key.fileobj)
        self.insert()

    def read(self, connection):
        """Take the bytes that have come."""
        piece = connection.recv(65536)
        if not piece:
            self.selector.unregister(connection)
            connection.close()
            del self.buffers[connection]
            return
        buffer = self.buffers[connection]
        buffer += piece
        at = 0
        while len(buffer) >= at + 4:
            (length,) = struct.unpack_from(">L", buffer, at)
            if len(buffer) < at + 4 + length:
                break
            self.take(logging.makeLogRecord(pickle.loads(memoryview(buffer)[at + 4 : at + 4 + length])))
            at += 4 + length
        del buffer[:at]

    def take(self, record):
        """Write a line, keep a row."""
        self.file.write(self.formatter.format(record) + "\n")
        self.rows.append(
            (
                record.created,
                record.levelno,
                record.name,
                record.getMessage(),
                record.pathname,
                record.lineno,
                record.funcName,
                record.process,
                record.thread,
            )
        )
        if len(self.rows) == BULK:
            self.insert()

    def insert(self):
        """Insert the rows, and commit."""
        if self.rows:
            psycopg2.extras.execute_values(self.cursor, INSERT, self.rows, page_size=BULK)
            self.connection.commit()
            self.rows.clear()
        self.file.flush()


def main():
    """Serve."""
    connection = psycopg2.connect(sys.argv[2])
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE plain (time double precision, level int, logger text, message text, file text, line int,"
            " function text, process bigint, thread bigint)"
        )
    connection.commit()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener, open(sys.argv[1], "w") as file:
        print(listener.getsockname()[1], flush=True)
        Server(file, connection).run(listener)


if __name__ == "__main__":
    main()
