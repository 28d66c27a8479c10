"""Unchanged handlers of the standard library: their records are found again, with all their parts."""

import logging
import logging.handlers
import socket
import threading

import pytest


@pytest.fixture
def logger():
    """A logger that goes to the handler of the test alone."""
    logger = logging.getLogger("shop.cart")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def test_a_record_of_socket_handler_arrives_with_all_its_parts(service, logger):
    logger.addHandler(logging.handlers.SocketHandler(*service.tcp))
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        logger.exception("pay %s failed: %d", "ü", 3, extra={"order": 7, "tags": ["a", None], "trace_id": "t1"})

    (row,) = service.wait_for(1)

    assert ("pay ü failed: 3", "shop.cart", 40, "t1") == tuple(
        row[key] for key in ("message", "logger", "level", "trace_id")
    )
    assert row["exception"].startswith("Traceback") and row["exception"].endswith("ZeroDivisionError: division by zero")
    assert {"order": 7, "tags": ["a", None]} == row["fields"]
    assert __file__ == row["file"] and "test_a_record_of_socket_handler_arrives_with_all_its_parts" == row["function"]
    assert (threading.get_ident(), "MainThread", "127.0.0.1") == (row["thread"], row["thread_name"], row["host"])


def test_records_of_socket_handler_keep_their_order(service, logger):
    logger.addHandler(logging.handlers.SocketHandler(*service.tcp))
    for number in range(2_000):
        logger.info("number %d", number)

    rows = service.wait_for(2_000)

    assert [f"number {number}" for number in reversed(range(2_000))] == [row["message"] for row in rows]


def test_a_record_of_datagram_handler_arrives(service, logger):
    logger.addHandler(logging.handlers.DatagramHandler(*service.udp))
    logger.warning("by datagram", extra={"a": 1})

    (row,) = service.wait_for(1)

    assert ("by datagram", 30, {"a": 1}) == (row["message"], row["level"], row["fields"])


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_record_of_http_handler_arrives(service, run_python, method):
    program = (
        "import logging, logging.handlers, sys\n"
        "logger = logging.getLogger('shop.cart')\n"
        "logger.addHandler(logging.handlers.HTTPHandler(sys.argv[1], '/any/path', method=sys.argv[2]))\n"
        "logger.error('by %s & more', sys.argv[2])\n"
    )
    assert 0 == run_python(program, service.url.removeprefix("http://"), method).returncode

    (row,) = service.wait_for(1)

    # This handler does not put the arguments into the message.
    assert ("by %s & more", "shop.cart", 40) == (row["message"], row["logger"], row["level"])
    assert f"('{method}',)" == row["fields"]["args"]


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_records_of_syslog_handler_arrive(service, logger, kind):
    address = service.udp if kind == socket.SOCK_DGRAM else service.tcp
    logger.addHandler(logging.handlers.SysLogHandler(address, socktype=kind))
    logger.critical("first\nof two lines")
    logger.info("second")

    rows = service.wait_for(2)

    assert {("first\nof two lines", 50), ("second", 20)} == {(row["message"], row["level"]) for row in rows}


def test_unreadable_input_is_stored_with_its_reason_and_the_connection_continues(service):
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(b"\0\0\0\x05hello")
        connection.sendall(b"\0\0\0\x02N.")
        handler = logging.handlers.SocketHandler(*service.tcp)
        record = logging.LogRecord("after", logging.INFO, "f.py", 1, "still read", (), None)
        connection.sendall(handler.makePickle(record))

    rows = service.wait_for(3)

    undecoded = [row for row in rows if row["logger"] == "logspool.undecoded"]
    assert ["still read"] == [row["message"] for row in rows if row["logger"] == "after"]
    assert 2 == len(undecoded) and all(
        "cannot read a pickle frame from 127.0.0.1:" in row["message"] for row in undecoded
    )
    assert {"hello", "N."} == {row["fields"]["frame"] for row in undecoded}


def test_a_pickle_cannot_run_code(service, tmp_path):
    trap = tmp_path / "trap"
    pickle = b"cposix\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR."
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(len(pickle).to_bytes(4, "big") + pickle)

    (row,) = service.wait_for(1)

    assert "logspool.undecoded" == row["logger"]
    assert not trap.exists()
