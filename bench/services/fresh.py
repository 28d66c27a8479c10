"""How soon can a record be found while half as many come as the store takes?"""

from __future__ import annotations

import sys

from parts import Column, Part, Round, percentile, turns
from services import counting
from services.ground import HERE, POSTGRES, SQLITE, Ground, Sender
from services.part import Wrong, wait
from services.running import serving

TRACE, WORD = "by its trace id", "by a word, last 5 s"


def row(kind: str, question: str) -> str:
    """Return the name of a row."""
    return f"{kind}: found {question}"


def measure(ground: Ground) -> Round:
    """Run both stores once."""
    found: Round = {}
    for kind in turns((SQLITE, POSTGRES)):
        ground.say(f"{kind}: the most that it takes")
        records = ground.sizes.records
        with ground.store(kind) as store, serving(ground.binary, "--store", store) as service:
            most = records / ground.blast("forward", service.tcp, "--records", records)["done"]
        ground.say(f"{kind}: probes at half of {most:,.0f} records a second")
        found |= _probed(ground, kind, most / 2)
    return found


def _probed(ground: Ground, kind: str, rate: float) -> Round:
    probes = ground.sizes.probes
    with ground.store(kind) as store:
        with (
            serving(ground.binary, "--store", store) as service,
            ground.blasting("forward", service.tcp, "--rate", rate) as load,
        ):
            script = str(HERE / "probe.py")
            probe = Sender([sys.executable, script, str(service.ports["tcp"]), str(service.ports["http"]), str(probes)])
            try:
                load.begin()
                # The pace is steady after a second.
                wait("the first records", lambda: service.stored() > rate, pause=0.05)
                probe.begin()
                times = probe.result()
            finally:
                probe.end()
            sent = load.finish()
        counts = counting.in_store(store, "logger = 'native'").figures(int(sent["records"]))
        there = counting.in_store(store, "logger = 'probe'")
    asked = sum(map(len, times.values()))
    if there.distinct != asked:
        raise Wrong(f"{kind}: {there.distinct} of {asked} probes are stored")
    offered = {"offered": sent["records"] / sent["sent"], "late_ms": sent["latest"] * 1e3, **counts}
    return {row(kind, name): {**_points(times[key]), **offered} for key, name in (("trace", TRACE), ("word", WORD))}


def _points(times: list[float]) -> dict[str, float]:
    points = {"p50_ms": 0.5, "p99_ms": 0.99}
    return {name: percentile(times, part) for name, part in points.items()} | {"most_ms": max(times)}


PART = Part(
    "fresh",
    "From a logging call until a query finds it, at half load",
    (
        Column("p99_ms", "p99, ms", 1),
        Column("p50_ms", "p50, ms", 1),
        Column("most_ms", "longest, ms", 1),
        Column("offered", "load, records/s", 0),
        Column("late_ms", "load late by, ms", 1),
    ),
    most_rounds=2,
    question="A sender of chunks first measures what the service takes with this store, then sends half of that at a "
    "steady pace. Meanwhile a program logs a marker by SocketHandler, asks for it over HTTP every 2 ms until it is "
    "found, and goes on after a moment; the time of the last question counts. First come those by trace ids, then "
    "those by words, for 20 s at most. `load late` is by how much the sender fell behind its pace at worst.",
    work=(
        (TRACE, "both stores have an index of traces; that of SQLite lags, and the service knows the traces it lacks"),
        (WORD, "SQLite has an index of words, PostgreSQL none: it reads what came in the last 5 s"),
    ),
    measure=measure,
)
