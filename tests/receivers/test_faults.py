"""Real receivers that come late, are killed, end in order, lose connections or are slow.

The promises of a sink depend on the protocol. A sink sends a record again until the receiver has acknowledged it: no
record is missing, and only records of requests without an answer come twice. Syslog and lines have no
acknowledgements: records that the sender's system had accepted and the receiver had not read are lost with the
connection.
"""

import signal
from collections import Counter

import pytest
from proxy import Proxy
from routes import IN_FLIGHT, ROUTES

import sender
from suite.waiting import until

pytestmark = [pytest.mark.real]

SECONDS = 120

CONFIRMED = [name for name, route in ROUTES.items() if route.confirms]
STREAMS = [name for name, route in ROUTES.items() if not route.confirms and not route.port.endswith("udp")]
#: A proxy needs a port.
PROXIED = [name for name, route in ROUTES.items() if route.port and not route.port.endswith("udp")]

#: Bytes of records per second, where a receiver has to be in the middle of its work for a while.
PACE = 1_000_000

#: The same where the system accepts megabytes that the receiver has not read.
STREAM_PACE = 300_000


def wait_for(route, server, first, count):
    """Return how often the receiver has each number, once it has all from the first one on."""
    last = {}

    def all_are_there():
        last["numbers"] = Counter(route.numbers(server))
        return last["numbers"].keys() >= set(range(first, count))

    try:
        until(all_are_there, SECONDS, f"the records from {first} on")
    except AssertionError:
        missing = sorted(set(range(first, count)) - set(last["numbers"]))
        raise AssertionError(
            f"{len(missing)} records missing, {missing[:3]} to {missing[-1]}, of {first}..{count}"
        ) from None
    return last["numbers"]


def once(count):
    """Return the expected counts if each of `count` records is there once."""
    return Counter(range(count))


def repeats(found):
    """Return the total number of repeated records."""
    return sum(times - 1 for times in found.values())


def expect_all(program, count):
    """Flush, and compare the statistics: all records are written, no record is dropped. Return the statistics."""
    assert program.ask("flush", SECONDS) is True, program.ask("stats")
    stats = program.ask("stats")
    assert {name: stats[name] for name in ("written", "dropped", "queued", "spooled")} == {
        "written": count,
        "dropped": 0,
        "queued": 0,
        "spooled": 0,
    }
    return stats


@pytest.mark.parametrize("name", CONFIRMED + STREAMS)
def test_a_receiver_that_starts_late_gets_every_record_once(name, tmp_path, queue_dir, server_of, pair):
    route = ROUTES[name]
    server = server_of(route)
    with sender.Sender(tmp_path, queue_dir, route.to(server, pair[0]), **route.options) as program:
        program.ask("log", 1000)
        assert program.ask("flush", 0.5) is False
        away = program.ask("stats")
        assert (away["written"], away["dropped"]) == (0, 0) and away["error"] and away["problems"], away
        server.start()
        program.ask("log", 1000)
        expect_all(program, 2000)
        found = wait_for(route, server, 0, 2000)

    assert found == once(2000)


def start_in_the_middle(program, count):
    """Log, and return when some records are written and most are not."""
    program.ask("log", count)
    until(lambda: program.ask("stats")["written"] > count // 20, SECONDS, "the first records are written")


def written_at_the_end(program):
    """Return how many records the sink has written over a connection that has ended."""
    until(lambda: program.ask("stats")["error"], SECONDS, "the sink has seen the end of its connection")
    return program.ask("stats")["written"]


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("name", [name for name in CONFIRMED if name in PROXIED])
def test_a_receiver_that_stops_mid_stream_misses_only_acknowledged_records(
    name, end, tmp_path, queue_dir, server_of, pair, record_property
):
    route, count = ROUTES[name], 20_000
    server = server_of(route).start()
    with (
        Proxy(server.ports[route.port], PACE) as proxy,
        sender.Sender(
            tmp_path, queue_dir, route.to(server, pair[0], proxy.port), **route.options, **route.small
        ) as program,
    ):
        start_in_the_middle(program, count)
        server.stop(getattr(signal, end))
        acknowledged = written_at_the_end(program)
        server.start()
        proxy.pace = None
        expect_all(program, count)
        found = wait_for(route, server, acknowledged + IN_FLIGHT, count)

    missing = sorted(set(range(count)) - set(found))
    twice = sorted(number for number, times in found.items() if times > 1)
    record_property(
        "summary", f"{acknowledged} of {count} acknowledged, {len(missing)} of them lost, {len(twice)} twice"
    )
    assert 0 < acknowledged < count
    assert set(found) <= set(range(count))
    # A part of a batch can be acknowledged before the batch counts as written.
    assert all(number < acknowledged + IN_FLIGHT for number in missing)
    # After a SIGKILL, the receiver itself loses records that it had acknowledged and not yet written to its files.
    if end in server.keeps:
        assert not missing
    assert all(acknowledged <= number < acknowledged + IN_FLIGHT for number in twice)
    assert not (twice and route.recognises)


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_receiver_without_acknowledgements_misses_only_records_in_transit(
    name, end, tmp_path, queue_dir, server_of, pair, record_property
):
    route, count = ROUTES[name], 60_000
    server = server_of(route).start()
    with (
        Proxy(server.ports[route.port], STREAM_PACE) as proxy,
        sender.Sender(tmp_path, queue_dir, route.to(server, pair[0], proxy.port)) as program,
    ):
        start_in_the_middle(program, count)
        until(lambda: route.numbers(server), SECONDS, "the first records arrive")
        # A proxy that takes connections for a server that is away would lose more.
        proxy.refuse()
        server.stop(getattr(signal, end))
        written = written_at_the_end(program)
        server.start()
        proxy.pace = None
        proxy.listen()
        expect_all(program, count)
        found = wait_for(route, server, written + IN_FLIGHT, count)

    missing = sorted(set(range(count)) - set(found))
    record_property("summary", f"{written} of {count} written before the end, {len(missing)} of them lost")
    assert 0 < written < count
    # The record that was being sent when the connection ended may come twice.
    assert set(found) <= set(range(count)) and repeats(found) <= 1
    assert all(number < written + IN_FLIGHT for number in missing)


@pytest.mark.parametrize("name", [name for name in CONFIRMED if name in PROXIED])
def test_cut_connections_lose_no_record(name, tmp_path, queue_dir, server_of, pair, record_property):
    route, count = ROUTES[name], 10_000
    server = server_of(route).start()
    with (
        Proxy(server.ports[route.port]) as proxy,
        sender.Sender(
            tmp_path, queue_dir, route.to(server, pair[0], proxy.port), **route.options, **route.small
        ) as program,
    ):
        # In a request, before it, or after it and before its answer.
        proxy.cuts = [
            ("request", 100_000),
            ("request", 1),
            ("answer", 20_000),
            ("request", 30_000),
            ("answer", 100_000),
        ]
        cuts = len(proxy.cuts)
        program.ask("log", count)
        expect_all(program, count)
        found = wait_for(route, server, 0, count)
        assert proxy.was_cut == cuts

    twice = repeats(found)
    record_property("summary", f"{cuts} cuts, {count} records, {twice} stored again")
    assert set(found) == set(range(count))
    assert twice <= cuts * IN_FLIGHT
    assert (twice == 0) == route.recognises


@pytest.mark.parametrize("name", STREAMS)
def test_a_cut_connection_without_acknowledgements_leaves_one_gap(
    name, tmp_path, queue_dir, server_of, pair, record_property
):
    route, count = ROUTES[name], 20_000
    server = server_of(route).start()
    with (
        Proxy(server.ports[route.port]) as proxy,
        sender.Sender(tmp_path, queue_dir, route.to(server, pair[0], proxy.port)) as program,
    ):
        proxy.cuts = [("request", 300_000)]
        program.ask("log", count)
        expect_all(program, count)
        until(lambda: count - 1 in route.numbers(server), SECONDS, "the last record")
        found = Counter(route.numbers(server))
        assert proxy.was_cut == 1

    missing = sorted(set(range(count)) - set(found))
    record_property("summary", f"1 cut, {count} records, {len(missing)} lost")
    assert not missing or missing == list(range(missing[0], missing[-1] + 1)), missing
    assert len(missing) < count - 1000
    assert repeats(found) <= 1


@pytest.mark.parametrize("name", PROXIED)
def test_no_call_waits_for_a_slow_receiver(name, tmp_path, queue_dir, server_of, pair, record_property):
    route, count = ROUTES[name], 10_000
    server = server_of(route).start()
    with (
        Proxy(server.ports[route.port], 50_000) as proxy,
        sender.Sender(
            tmp_path, queue_dir, route.to(server, pair[0], proxy.port), **route.options, **route.small
        ) as program,
    ):
        said = program.ask("log", count)
        assert program.ask("flush", 0.5) is False or not route.confirms
        slow = program.ask("stats")
        proxy.pace = None
        expect_all(program, count)
        found = wait_for(route, server, 0, count)

    seconds = said["ended"] - said["began"]
    record_property("summary", f"{count} calls in {seconds:.2f} s, the longest {said['longest'] * 1000:.0f} ms")
    # At this pace the receiver needs more than 30 s for them.
    assert seconds < 20 and said["longest"] < 0.5
    assert slow["dropped"] == 0 and (slow["written"] < count or not route.confirms)
    assert found == once(count)
