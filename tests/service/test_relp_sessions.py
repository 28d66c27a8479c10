"""Sessions of RELP as a sender sees them: the answers, and when they come."""

import socket

import pytest

OPEN = b"relp_version=0\nrelp_software=test\ncommands=syslog"


def frame(number: int, command: str, data: bytes = b"") -> bytes:
    """Return a frame."""
    return b"%d %s %d" % (number, command.encode(), len(data)) + (b" " + data if data else b"") + b"\n"


def answers(connection) -> bytes:
    """Return all that comes until the service closes the connection."""
    return b"".join(iter(lambda: connection.recv(4096), b""))


def test_a_message_is_answered_when_it_is_stored(service):
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(frame(1, "open", OPEN))
        offers = connection.recv(4096)
        assert (
            offers.startswith(b"1 rsp ") and b"200 OK\nrelp_version=0\n" in offers and b"\ncommands=syslog\n" in offers
        )
        connection.sendall(frame(2, "syslog", b"<14>one") + frame(3, "syslog", b"no syslog \xff") + frame(4, "syslog"))
        answered = b""
        while b"4 rsp" not in answered:
            answered += connection.recv(4096)
        assert b"".join(b"%d rsp 6 200 OK\n" % number for number in (2, 3, 4)) == answered
        # Acknowledged records are there at once.
        assert "one" in [row["message"] for row in service.query()]
        connection.sendall(frame(5, "close"))
        assert b"5 rsp 6 200 OK\n0 serverclose 0\n" == answers(connection)

    assert 2 == service.count()


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (frame(2, "open", OPEN), b"2 rsp 23 500 the session is open\n"),
        (frame(2, "starttls"), b"2 rsp 28 500 the command is not known\n"),
        (b"2 syslog 99999999 ", b""),
        (b"2 sys\0", b""),
    ],
)
def test_a_refused_message_ends_the_session(service, sent, answered):
    with socket.create_connection(service.tcp) as connection:
        connection.sendall(frame(1, "open", OPEN))
        connection.recv(4096)
        connection.sendall(sent)
        assert answered + b"0 serverclose 0\n" == answers(connection)


def test_a_session_must_begin_with_open(start_service):
    service = start_service("--listen", "tcp://127.0.0.1:0?protocol=relp")
    with socket.create_connection(service.address("tcp", "relp")) as connection:
        connection.sendall(frame(1, "syslog", b"<14>too early"))
        assert b"1 rsp 36 500 the first command has to be open\n0 serverclose 0\n" == answers(connection)
    assert 0 == service.count()
