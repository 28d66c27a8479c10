"""Unchanged `DatagramHandler`s of many processes: how many records are lost, and are all of them counted?"""

from __future__ import annotations

import time

from parts import Column, Part, Round, turns
from services import counting, senders
from services.ground import Ground
from services.running import Service, serving

#: Chosen: a datagram is stored within 100 ms; after this time no datagram is on its way.
QUIET_SECONDS = 1.0


def row(clients: int) -> str:
    """Return the name of a row."""
    return f"{clients} processes: logspool serve"


def measure(ground: Ground) -> Round:
    """Run all of them once."""
    found: Round = {}
    for clients in turns(ground.sizes.clients):
        records = ground.sizes.datagrams // clients * clients
        ground.say(row(clients))
        with ground.folder() as folder:
            with serving(ground.binary, "--store", f"sqlite:{folder}/data") as service:
                began = senders.crowd("datagram", "127.0.0.1", service.ports["udp"], clients, records)
                seconds = time.perf_counter() - began
                counted_lost = _settled(service, records)
            there = counting.in_sqlite(folder / "data")
        found[row(clients)] = {
            "rate": records / seconds,
            "lost_percent": (1 - there.distinct / records) * 100,
            "counted_lost": counted_lost,
            "uncounted": records - there.distinct - counted_lost,
            "doubled": there.found - there.distinct,
        }
    return found


def _settled(service: Service, records: int) -> int:
    """Wait until each record is stored or counted as lost, or nothing moves any more; return how many are lost."""
    moved, before = time.monotonic(), -1
    while True:
        stats = service.stats()
        lost = stats["records_dropped"] + stats["datagrams_lost"]
        settled = lost + stats["stores"][0]["records_stored"]
        if settled != before:
            moved, before = time.monotonic(), settled
        if settled >= records or time.monotonic() - moved > QUIET_SECONDS:
            return lost
        time.sleep(0.02)


PART = Part(
    "datagram",
    "Unchanged DatagramHandlers of many processes, into SQLite",
    (
        Column("rate", "sent, records/s", 0),
        Column("lost_percent", "lost, %", 2),
        Column("counted_lost", "counted as lost", 0),
        Column("uncounted", "lost uncounted", 0),
    ),
    most_rounds=3,
    question="Nobody can make a sender of datagrams wait. What finds no room in the kernel or in the service is lost; "
    "`logspool stats` has to say how many that are.",
    work=(("logspool serve", "all columns, exactly what was received; nothing that these senders could do again"),),
    measure=measure,
)
