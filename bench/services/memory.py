"""Memory of the service: idle, after a load, and when a store stops under ten times its load."""

from __future__ import annotations

import contextlib
import socket
import time

from parts import Column, Part, Round
from services import counting
from services.ground import Ground, Sender
from services.part import wait
from services.running import Service, serving

IDLE, AFTER, OVERLOAD = "idle, silent connections", "after a load and silence", "PostgreSQL stopped, senders go on"

#: The service's memory beside the records that wait for the stores (limits.waiting_bytes): itself, connections, a
#: transaction on its way to the store, and the memory that the allocator keeps.
BESIDE_MB = 64
CONNECTIONS = 4


def measure(ground: Ground) -> Round:
    """Run both once."""
    return {**_idle(ground), OVERLOAD: _overload(ground)}


def _idle(ground: Ground) -> Round:
    sizes = ground.sizes
    ground.say(IDLE)
    with ground.folder() as folder:
        with serving(ground.binary, "--store", f"sqlite:{folder}/data") as service, contextlib.ExitStack() as open_ones:
            connections = [
                open_ones.enter_context(socket.create_connection(("127.0.0.1", service.ports["tcp"])))
                for _ in range(sizes.silent)
            ]
            for number, connection in enumerate(connections):
                connection.sendall(b'{"message": "connection %d", "logger": "silent"}\n' % number)
            service.wait_stored(sizes.silent)
            time.sleep(1)
            found: Round = {IDLE: {"mb": service.memory_mb(), "connections": _open(service)}}
            ground.say(AFTER)
            ground.blast("forward", service.tcp, "--records", sizes.records, "--connections", CONNECTIONS)
            # The silence is measured.
            time.sleep(sizes.silence_seconds)
            after = {"mb": service.memory_mb(), "connections": _open(service)}
        counts = counting.in_sqlite(folder / "data").figures(sizes.records + sizes.silent)
    return found | {AFTER: {**after, **counts}}


def _open(service: Service) -> int:
    """Return its connections, less the asking connection."""
    return int(service.stats()["connections"]) - 1


def _overload(ground: Ground) -> dict[str, float]:
    sizes = ground.sizes
    records = sizes.many_records
    arguments = ["--records", records, "--connections", CONNECTIONS]
    ground.say("what the senders could send")
    receiver = Sender([str(ground.programs["blast"]), "discard"])
    try:
        could = records / ground.blast("lines", f"127.0.0.1:{receiver.first}", *arguments)["sent"]
        receiver.finish()
    finally:
        receiver.end()
    ground.say(OVERLOAD)
    config = f"[limits]\nwaiting_bytes = {sizes.waiting_bytes}\n"
    with ground.server.database() as url:
        with (
            serving(ground.binary, "--store", url, config=config) as service,
            ground.blasting("lines", service.tcp, *arguments) as load,
        ):
            with service.watched() as peak:
                began = load.begin()
                wait("the first rows", lambda: service.stored() > 0)
                with ground.server.frozen():
                    time.sleep(sizes.stopped_seconds / 2)
                    waiting, accepted = service.stats()["waiting"], service.stats()["records_accepted"]
                    time.sleep(sizes.stopped_seconds / 2)
                    later = service.stats()["records_accepted"]
                service.wait_stored(records)
                seconds = time.perf_counter() - began
            load.result()
            refused = service.stats()["records_dropped"]
        counts = counting.in_postgres(url).figures(records)
    limit = sizes.waiting_bytes / (1 << 20) + BESIDE_MB
    return {
        "mb": max(peak),
        "limit_mb": limit,
        "over_mb": max(peak) - limit,
        "connections": CONNECTIONS,
        "could": could,
        "overload": could / (records / seconds),
        "waiting_percent": waiting * 100,
        # While the store is stopped and the budget is full, no sender may get rid of a record.
        "taken_when_full": later - accepted,
        "refused": refused,
        **counts,
    }


PART = Part(
    "memory",
    "Memory of the service (resident, MB)",
    (
        Column("mb", "MB", 1),
        Column("limit_mb", "allowed, MB", 0),
        Column("connections", "connections", 0),
        Column("overload", "times what is taken", 1),
        Column("waiting_percent", "budget in use, %", 0),
        Column("taken_when_full", "taken meanwhile", 0),
    ),
    most_rounds=2,
    question="Idle: each connection has sent one record and says nothing more. After a load: the same connections, "
    "after 500,000 records of four others and 10 s of silence. Overload: four senders of syslog, who could send far "
    "more than the store takes, and a PostgreSQL whose processes are stopped (SIGSTOP) for 5 s in the middle; the "
    "highest of samples every 10 ms counts. It may be limits.waiting_bytes, here 32 MiB, and 64 MB beside it; when "
    "those bytes are full, senders have to wait, and in the end every record is stored once.",
    measure=measure,
)
