"""A client with a list of addresses: it leaves a service that fails, and each record is stored once."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import clients
import pytest
from relays import Relay, black_hole
from test_several_services import of_store
from test_store_away import DEADLINE, Client, assert_each_once

from ports import free_port

#: Ten times the seconds within which the next address is used, and the record is stored, on a slow machine.
AT_ONCE = 30.0
#: A silent machine is left after 5 s. Without that, the client would wait 30 s for an answer.
AFTER_SILENCE = 25.0


def address_of(*ports: int) -> str:
    """Return an address with a list of ports of this machine."""
    return "tcp://" + ",".join(f"127.0.0.1:{port}" for port in ports)


@pytest.fixture
def two_services(start_service, database, tmp_path):
    """Two services with one store."""
    return [start_service("--store", database.url(), folder=tmp_path / name) for name in ("first", "second")]


def wait_stored(service, count: int, seconds: float) -> None:
    """Wait until a service has stored `count` records."""
    until = time.monotonic() + seconds
    while of_store(service, "records_stored") < count:
        assert time.monotonic() < until, f"less than {count} records after {seconds} s"
        time.sleep(0.02)


@pytest.mark.parametrize("end, seconds", [("close", AT_ONCE), ("reset", AT_ONCE), ("go_silent", AFTER_SILENCE)])
def test_a_client_goes_on_at_the_other_service(two_services, database, queue_dir, end, seconds):
    ways = [Relay(service.tcp[1]) for service in two_services]
    with contextlib.ExitStack() as ends:
        for way in ways:
            ends.callback(way.close)
        client = Client(address_of(*(way.port for way in ways)), "c", 500, queue_dir)
        ends.callback(client.process.kill)
        clients.wait_until("it is connected", lambda: any(way.pairs for way in ways))
        used = 0 if ways[0].pairs else 1
        wait_stored(two_services[used], 1, DEADLINE)
        assert not ways[1 - used].pairs

        getattr(ways[used], end)()
        wait_stored(two_services[1 - used], 1, seconds)
        logged = client.end()

    assert_each_once({"c": logged}, database.messages(), "none")


# Logs some records, and prints the result of flush(), the reasons of health(), and the records in the spool. `kills` is
# for an end without any.
SOME = """
import json, logging, os, sys, time, logspool
address, name, options = sys.argv[1:]
options = json.loads(options)
flush, kills, until_spooled = (options.pop(key, None) for key in ("flush", "kills", "until_spooled"))
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(address)])
logspool.install(**options)
for number in range(100):
    logging.info("%s %d", name, number)
def spooled():
    return sum(sink.total("spooled") for sink in logspool.stats().sinks.values())
while until_spooled and not spooled():
    time.sleep(0.05)
print(json.dumps([logspool.flush(flush or 0), logspool.health().reasons, list(logspool.stats().sinks)]), flush=True)
if kills:
    os.kill(os.getpid(), 9)
"""


# Logs to many handlers of one address, until the input ends; then prints how many records each one got.
MANY = """
import logging, sys, threading, logspool
loggers = [logging.getLogger(f"l{number}") for number in range(int(sys.argv[2]))]
for number, logger in enumerate(loggers):
    logger.addHandler(logspool.ServiceHandler(sys.argv[1], tag=f"t{number}", rebalance_seconds=1.0))
logspool.install(shutdown_timeout=60)
done, turn = threading.Event(), 0
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
while not done.wait(0.1):
    for number, logger in enumerate(loggers):
        logger.warning("%s %d", logger.name, turn)
    turn += 1
print(turn, logspool.flush(60), flush=True)
"""


def test_a_service_that_joins_gets_its_share_of_the_clients(service, queue_dir):
    count = 60
    ways = [Relay(service.tcp[1]) for _ in range(3)]
    joins = ways[2]
    joins.refuses = True
    with contextlib.ExitStack() as ends:
        for way in ways:
            ends.callback(way.close)
        command = [sys.executable, "-c", MANY, address_of(*(way.port for way in ways)), str(count)]
        variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        program = ends.enter_context(subprocess.Popen(command, env=variables, **pipes))
        ends.callback(program.kill)
        clients.wait_until("all are connected", lambda: count == sum(len(way.pairs) for way in ways[:2]))

        joins.refuses = False
        # Within two seconds each has chosen again.
        until = time.monotonic() + 10 * 2
        while not count * 0.20 <= len(joins.pairs) <= count * 0.45:
            assert time.monotonic() < until, [len(way.pairs) for way in ways]
            time.sleep(0.02)
        program.stdin.close()
        turns, flushed = program.stdout.read().split()
        assert "True" == flushed

    assert_each_once({f"l{number}": int(turns) for number in range(count)}, service.stored_messages(), "none")


def some(address: str, name: str, queue_dir, **options: object) -> "tuple[list, str]":
    """Run a program that logs 100 records; return its output, and its standard error."""
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    command = [sys.executable, "-c", SOME, address, name, json.dumps(options)]
    done = subprocess.run(command, env=variables, timeout=2 * DEADLINE, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if "kills" in options else 0), done.stderr
    return json.loads(done.stdout), done.stderr


def test_addresses_that_do_not_answer_do_not_hide_the_one_that_does(service, queue_dir):
    with contextlib.ExitStack() as ends:
        holes = [ends.enter_context(black_hole()).getsockname()[1] for _ in range(3)]
        # Each program begins at a random address.
        names = [f"p{number}" for number in range(4)]
        with ThreadPoolExecutor(len(names)) as threads:
            address = address_of(*holes, service.tcp[1])
            for (flushed, _, _), _ in threads.map(
                lambda name: some(address, name, queue_dir, flush=DEADLINE, shutdown_timeout=DEADLINE), names
            ):
                assert flushed

    assert_each_once(dict.fromkeys(names, 100), service.stored_messages(), "none")


def test_a_name_that_does_not_resolve_is_reported_once_and_its_records_are_spooled(service, queue_dir, tmp_path):
    address = "tcp://nowhere.invalid:9020"
    options = {"spool_dir": str(tmp_path / "spool"), "shutdown_timeout": 1, "until_spooled": True}
    (flushed, (reason,), _), said = some(address, "c", queue_dir, **options)

    assert not flushed
    assert reason.startswith(f'{address} takes no records: cannot find the host "nowhere.invalid": ')
    assert "; 100 records wait" in reason and 1 == reason.count("(fix: ")
    assert ["100 records were not written"] == [line[10:38] for line in said.splitlines()]

    # In a list the name is no obstacle for the other addresses.
    (flushed, _, _), said = some(f"{address},127.0.0.1:{service.tcp[1]}", "d", queue_dir, flush=DEADLINE)
    assert (True, "") == (flushed, said)
    assert_each_once({"d": 100}, service.stored_messages(), "none")


def test_the_order_of_a_list_makes_no_other_destination(start_service, queue_dir):
    ports = free_port(), free_port()
    (_, _, names), said = some(address_of(*ports), "c", queue_dir, shutdown_timeout=0.1)
    assert "100 records were not written" in said
    service = start_service("--listen", f"tcp://127.0.0.1:{ports[1]}")
    (flushed, _, other_names), said = some(address_of(*reversed(ports)), "d", queue_dir, flush=DEADLINE)

    assert (True, "") == (flushed, said)
    assert names == other_names == [address_of(*sorted(ports))]
    clients.wait_until("all are stored", lambda: 200 == len(service.stored_messages()))
    assert_each_once({"c": 100, "d": 100}, service.stored_messages(), "none")


def test_a_list_that_became_shorter_loses_nothing(start_service, queue_dir):
    gone, stays = free_port(), free_port()
    _, said = some(address_of(gone, stays), "c", queue_dir, shutdown_timeout=0.1)
    assert "`python -m logspool recover` or the next start writes them" in said
    service = start_service("--listen", f"tcp://127.0.0.1:{stays}")
    (flushed, _, names), said = some(address_of(stays), "d", queue_dir, flush=DEADLINE)
    assert (True, [address_of(stays)], "") == (flushed, names, said)
    clients.run(clients.RECOVERY, queue_dir=queue_dir)

    assert_each_once({"c": 100, "d": 100}, service.stored_messages(), "none")


def test_the_records_of_a_killed_client_are_sent_to_the_service_that_answers(start_service, queue_dir):
    ports = free_port(), free_port()
    some(address_of(*ports), "c", queue_dir, kills=True)
    service = start_service("--listen", f"tcp://127.0.0.1:{ports[1]}")
    clients.run(clients.RECOVERY, queue_dir=queue_dir)

    assert_each_once({"c": 100}, service.stored_messages(), "none")
