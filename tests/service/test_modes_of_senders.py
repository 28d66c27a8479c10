"""A service in trouble, with a client in each mode: no record is lost and no record is stored twice."""

import struct
import sys
from pathlib import Path

import clients
import pytest
from clients import MODES

from suite import mounts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import postgres
import preloaded

import ports

HOUR = 3600


@pytest.fixture
def address() -> str:
    """An address that the clients know before the service is there."""
    return f"tcp://127.0.0.1:{ports.free_port()}"


def get_on(started: "list[clients.Client]", records: int = 5) -> None:
    """Wait until each client has logged some more."""
    before = [client.accepted for client in started]
    for client, count in zip(started, before):
        client.wait_accepted(count + records)


def check(started: "list[clients.Client]", service, order=list, messages=None) -> None:
    """Let the clients end; everything that they logged is stored once, in its order.

    If records are in the files of several days, `order` is `sorted`: the files are not read in the order of arrival.
    """
    codes = [client.tell() for client in started]
    assert [0] * len(MODES) == codes, [client.said for client in started]
    stored = clients.numbers(messages() if messages else service.stored_messages())
    expected = {client.name: list(range(client.accepted)) for client in started}
    assert expected == {name: order(numbers) for name, numbers in stored.items()}


def test_each_record_is_stored_once_although_the_service_has_a_full_disk_for_a_while(
    start_service, address, queue_dir, tmp_path
):
    with mounts.small(tmp_path / "disk", "64m") as disk:
        service = start_service("--listen", address, "--store", f"sqlite:{disk / 'data'}", folder=disk)
        # Clients of the modes that wait would stop while the disk is full: with a spool they continue.
        spools = tmp_path / "spools"
        with clients.in_each_mode(address, queue_dir, clients.with_a_spool(spools), pause=0.005) as started:
            get_on(started)
            mounts.fill(disk / "filler")
            clients.wait_until("the disk is full", lambda: any("full" in line for line in service.said))
            get_on(started)
            (disk / "filler").unlink()
            get_on(started)
            check(started, service)
        assert 0 == service.stop(), service.said


def test_each_record_is_stored_once_although_the_clock_of_the_service_is_set(
    start_service, address, queue_dir, tmp_path, monkeypatch
):
    step = tmp_path / "step"
    step.write_bytes(struct.pack("q", 0))
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(preloaded.build(tmp_path, "clock")))
        patch.setenv("CLOCK_STEP", str(step))
        service = start_service("--listen", address)
    with clients.in_each_mode(address, queue_dir, pause=0.001) as started:
        # An hour on and two back, then two days on and back: another file of the store.
        for hours in (0, 1, -1, 48, 0):
            with step.open("r+b") as file:
                file.write(struct.pack("q", hours * HOUR))
            get_on(started)
        check(started, service, sorted)
    assert len(list((service.folder / "data").glob("????-??-??*.sqlite"))) > 1, "no other day has begun"


@pytest.mark.timeout(600)
def test_each_record_is_stored_once_although_postgresql_is_killed(start_service, address, queue_dir, tmp_path):
    programs = postgres.programs()
    if programs is None:
        pytest.skip("LOGSPOOL_WITHOUT_POSTGRES is set")
    server = postgres.Postgres(programs, ports.free_port())
    try:
        service = start_service("--listen", address, "--store", server.url())
        with clients.in_each_mode(address, queue_dir, pause=0.005) as started:
            for _ in range(2):
                get_on(started)
                server.kill()
                server.start()
            get_on(started)
            # So long an answer comes in several pieces.
            check(started, service, sorted, lambda: [row["message"] for row in service.query("", "--limit", "100000")])
        assert 0 == service.stop(), service.said
    finally:
        server.close()


def test_a_full_queue_folder_loses_no_record_for_a_service(service, tmp_path):
    address = f"tcp://{service.tcp[0]}:{service.tcp[1]}"
    with mounts.small(tmp_path / "shm", "4m") as shm:
        queue_dir = shm / "queue"
        queue_dir.mkdir(0o700)
        mounts.fill(shm / "filler")
        with clients.in_each_mode(address, queue_dir, pause=0.001) as started:
            get_on(started)
            check(started, service)
        # A keeper holds their queues, so there is nothing to warn of.
        warned = {client.name: sum(b"it is in memory now" in line for line in client.said) for client in started}
        assert dict.fromkeys(MODES, 0) == warned
