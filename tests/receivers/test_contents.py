"""Ten thousand records over each way to a real receiver: each is there once, with all its parts."""

from pathlib import Path

import pytest
from routes import ROUTES

import sender
from suite.waiting import until

pytestmark = [pytest.mark.real]

COUNT = 10_000

#: A group of datagrams fits into the buffer of a socket: no datagram is lost before it is read.
GROUP = 100

TRACEBACK = "Traceback (most recent call last):\n"


@pytest.mark.parametrize("name", ROUTES)
def test_every_record_arrives_once_with_all_its_parts(name, tmp_path, queue_dir, server_of, pair, record_property):
    route = ROUTES[name]
    server = server_of(route)
    is_udp = route.port.endswith("udp")
    with sender.Sender(tmp_path, queue_dir, route.to(server, pair[0]), **route.options) as program:
        server.start()
        began = program.ask("log", 0)["began"]
        for count in [GROUP] * (COUNT // GROUP) if is_udp else [COUNT]:
            said = program.ask("log", count)
            assert program.ask("flush", 60) is True
            if is_udp:
                until(lambda: server.unread(route.port) == 0, 60, "all datagrams are read")
        stats = program.ask("stats")
        until(lambda: len(route.numbers(server)) >= COUNT, 60, f"{COUNT} records")
    records = route.seen(server)

    assert [seen["order"] for seen in records] == list(range(COUNT))
    assert route.splits or len(server.records()) == COUNT
    assert (stats["written"], stats["dropped"], stats["cut"], stats["errors"]) == (COUNT, 0, 0, 0), stats
    for number, seen in enumerate(records):
        check(route, number, seen)
    times = [seen["time"] for seen in records]
    # The program says its times in floats, and records have microseconds.
    assert began * 1e9 - 2000 <= times[0] and times == sorted(times) and times[-1] <= said["ended"] * 1e9 + 2000
    assert any(time // 1000 % 1000 for time in times)
    record_property("summary", f"{COUNT} records, each once and whole")


def check(route, number, seen):
    """Compare the parts of a record that the receiver shows with the logged parts."""
    expected = {"order": number, "message": sender.message(number), "level": sender.level(number)}
    expected |= {"logger": "shop.cart", "function": "emit", **sender.FIELDS}
    raised = f"ValueError: broken {number}" if number % 100 == 99 else None
    if route.splits:
        expected["message"], raised = expected["message"].partition("\n")[0], None
    if raised and "exception" not in route.names:
        seen["message"], _, rest = seen["message"].partition("\n")
        seen["exception"] = rest

    assert {part: expected[part] for part in expected if part in route.names} == {
        part: seen[part] for part in expected if part in route.names
    }
    if raised:
        assert seen["exception"].startswith(TRACEBACK) and seen["exception"].endswith(raised)
    else:
        assert not seen.get("exception")
    if "line" in route.names:
        assert int(seen["line"]) in sender.LINES
    if "file" in route.names:
        assert Path(seen["file"]).name == "program.py" and Path(seen["file"]).is_absolute()
