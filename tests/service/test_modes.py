"""Checks `docs/explain/guarantees-in-detail.md` for records sent to a service, in each mode.

Each test has a client in every mode at once, beside one service.
"""

import os
import random
import shutil
import signal
import threading

import clients
import pytest
from clients import MODES

import ports
from suite import queue_folder

CYCLES = {"ci": 2, "full": 30}[os.environ.get("LOGSPOOL_FAULTS", "ci")]

#: Modes in which a kill of the process costs nothing.
LASTING = [mode for mode in MODES if mode != "memory"]
#: A call in these modes waits for the service, each time or now and then.
RECORDS_OF = {"sync": 8, "checkpoint": 120}

#: Ends of a program, and its exit code.
ENDS = {
    "pass": 0,
    "sys.exit(3)": 3,
    "raise RuntimeError": 1,
    "os._exit(4)": 4,
    "signal.raise_signal(signal.SIGINT)": -signal.SIGINT,
    "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)": -signal.SIGTERM,
    "os.kill(os.getpid(), signal.SIGHUP); time.sleep(60)": -signal.SIGHUP,
}


def records_of(mode: str) -> int:
    return RECORDS_OF.get(mode, 1000)


def expected(accepted: "dict[str, int]") -> "dict[str, list[int]]":
    return {name: list(range(count)) for name, count in accepted.items()}


def stored(service) -> "dict[str, list[int]]":
    """End a service and return the numbers that it has."""
    assert 0 == service.stop(), service.said
    return clients.numbers(service.stored_messages())


def check_a_kill(found: "dict[str, list[int]]", accepted: "dict[str, int]") -> None:
    """Nothing is missing but the newest records of the client in the mode "memory", and nothing is there twice."""
    for mode, count in accepted.items():
        # The record whose call a kill cuts may be there too.
        assert found[mode] == list(range(len(found[mode]))), f"{mode}: one missing, twice, or in another order"
        assert mode == "memory" or len(found[mode]) >= count, f"{mode}: {len(found[mode])} of {count}"


@pytest.fixture
def address() -> str:
    """An address at which a service can be started again."""
    return f"tcp://127.0.0.1:{ports.free_port()}"


@pytest.mark.parametrize("end", ENDS)
def test_each_record_of_a_program_that_ends_by_itself_is_stored_once(start_service, address, queue_dir, end):
    service = start_service("--listen", address)
    with clients.in_each_mode(address, queue_dir, count=records_of, end=end) as started:
        codes = {client.name: client.ended() for client in started}

    assert dict.fromkeys(MODES, ENDS[end]) == codes, [client.said for client in started]
    assert expected({mode: records_of(mode) for mode in MODES}) == stored(service)
    assert [] == queue_folder.left_in(queue_dir)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_kill_loses_the_newest_records_in_memory_mode_and_nothing_in_other_modes(
    start_service, address, queue_dir, number
):
    service = start_service("--listen", address)
    with clients.in_each_mode(address, queue_dir, pause=0.001) as started:
        for client in started:
            client.wait_accepted(8)
        # Records logged from here on are not acknowledged before the kill.
        service.process.send_signal(signal.SIGSTOP)
        before = {client.name: client.accepted for client in started}
        for client in started[:3]:
            client.wait_accepted(before[client.name] + 100)
        codes = {client.name: client.kill(number) for client in started}
        service.process.send_signal(signal.SIGCONT)
    assert dict.fromkeys(MODES, -number) == codes
    assert [] != queue_folder.left_in(queue_dir)
    clients.run(clients.RECOVERY, queue_dir=queue_dir)

    check_a_kill(stored(service), {client.name: client.accepted for client in started})
    assert [] == queue_folder.left_in(queue_dir)


def test_the_service_delivers_records_of_killed_programs_without_another_start(
    start_service, address, queue_dir, tmp_path
):
    service = start_service("--listen", address, "--adopt", str(queue_dir))
    with clients.in_each_mode(address, queue_dir, clients.with_a_spool(tmp_path / "spools"), pause=0.001) as started:
        for client in started:
            client.wait_accepted(8)
        service.process.send_signal(signal.SIGSTOP)
        # The calls of these modes return when their records are in the spool.
        before = [client.accepted for client in started]
        for client, count in zip(started, before):
            client.wait_accepted(count + (3 if client.name == "sync" else 60))
        for client in started:
            client.kill()
        service.process.send_signal(signal.SIGCONT)
    clients.wait_until("something stays", lambda: not queue_dir.exists() or not list(queue_dir.iterdir()))

    check_a_kill(stored(service), {client.name: client.accepted for client in started})


@pytest.mark.parametrize("trouble", ["away", "silent"])
def test_no_call_waits_for_an_unreachable_service_and_each_record_arrives(
    start_service, address, queue_dir, tmp_path, trouble
):
    if trouble == "silent":
        service = start_service("--listen", address)
        service.process.send_signal(signal.SIGSTOP)
    with clients.in_each_mode(address, queue_dir, clients.with_a_spool(tmp_path), count=records_of) as started:
        for client in started:
            client.wait_accepted(records_of(client.name))
        if trouble == "silent":
            service.process.send_signal(signal.SIGCONT)
        else:
            service = start_service("--listen", address)
        codes = [client.tell() for client in started]

    assert [0] * len(MODES) == codes, [client.said for client in started]
    assert expected({mode: records_of(mode) for mode in MODES}) == stored(service)
    assert [] == queue_folder.left_in(queue_dir)


@pytest.mark.timeout(900)
def test_each_record_is_stored_once_although_the_service_is_killed(start_service, address, queue_dir, tmp_path):
    seed = int(os.environ.get("LOGSPOOL_SEED", random.SystemRandom().randrange(1 << 32)))
    moments = random.Random(seed)
    service = start_service("--listen", address)
    with clients.in_each_mode(address, queue_dir, pause=0.001) as started:
        for _ in range(CYCLES):
            before = [client.accepted for client in started]
            for client, count in zip(started, before):
                client.wait_accepted(count + 5)
            threading.Event().wait(moments.uniform(0, 0.5))
            service.stop(signal.SIGKILL)
            service = start_service("--listen", address)
        codes = [client.tell() for client in started]

    assert [0] * len(MODES) == codes, (seed, [client.said for client in started])
    assert expected({client.name: client.accepted for client in started}) == stored(service), seed


#: Says so when all records are in the spool, and waits for the kill.
SPOOLED = """
while sum(sink.total("spooled") for sink in logspool.stats().sinks.values()) < number:
    time.sleep(0.01)
os.write(1, b"spooled\\n")
time.sleep(60)
"""


def test_a_sender_killed_with_its_memory_loses_only_what_its_mode_allows(start_service, address, tmp_path):
    # A container that is removed, or a machine that restarts: the queue is gone, and the disk is there.
    bounded = {"process": 200, "interval": 200}
    spools = tmp_path / "spools"
    with queue_folder.private() as queue_dir:
        options = {"count": lambda mode: bounded.get(mode, 10**9), "pause": 0.001, "end": SPOOLED}
        with clients.in_each_mode(address, queue_dir, clients.with_a_spool(spools), **options) as started:
            for client in started:
                client.wait_accepted(bounded.get(client.name, RECORDS_OF.get(client.name, 500) - 1) + 1)
            for client in started:
                client.kill()
        shutil.rmtree(queue_dir)
    service = start_service("--listen", address)
    with queue_folder.private() as queue_dir:
        for mode in LASTING:
            clients.run(clients.RECOVERY, spools / mode, queue_dir=queue_dir)
            assert [] == list((spools / mode).iterdir())

    found = stored(service)
    accepted = {client.name: client.accepted for client in started}
    for mode in MODES:
        assert found[mode] == list(range(len(found[mode]))), f"{mode}: one missing, twice, or in another order"
    assert [0, 200, 200] == [len(found[mode]) for mode in ("memory", "process", "interval")]
    assert len(found["checkpoint"]) > accepted["checkpoint"] - 50
    assert len(found["sync"]) >= accepted["sync"]
