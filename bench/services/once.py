"""The cost of storing each record exactly once."""

from __future__ import annotations

from parts import Column, Part, Round, turns
from services import counting
from services.ground import POSTGRES, SQLITE, Ground
from services.running import serving

ONCE, ACKS, NOTHING = "ids and acks, exactly once", "acks alone, at least once", "neither, at most once"

#: The sender's names for them.
PROMISES = {ONCE: "once", ACKS: "acks", NOTHING: "nothing"}


def row(kind: str, connections: int, promise: str) -> str:
    """Return the name of a row."""
    return f"{kind}, {connections} connection{'s' if connections > 1 else ''}: {promise}"


def _reference(name: str) -> str:
    return f"{name.split(': ')[0]}: {NOTHING}"


def measure(ground: Ground) -> Round:
    """Run all of them once."""
    found: Round = {}
    records = ground.sizes.many_records
    for kind in turns((SQLITE, POSTGRES)):
        for connections in turns(ground.sizes.connections):
            for promise in turns(PROMISES):
                name = row(kind, connections, promise)
                ground.say(name)
                with ground.store(kind) as store:
                    with serving(ground.binary, "--store", store) as service:
                        sizes = ["--records", records, "--connections", connections]
                        result = ground.blast("forward", service.tcp, *sizes, "--promise", PROMISES[promise])
                    counts = counting.in_store(store).figures(records)
                    found[name] = {"rate": records / result["done"], **counts}
    return found


PART = Part(
    "once",
    "The price of exactly once: the same chunks with and without ids and acks",
    (Column("rate", "records/s", 0),),
    compared_with=_reference,
    most_rounds=3,
    question="The same sender sends the same chunks, made before the clock begins, and waits until all is committed. "
    "With ids the service writes the position of the stream into each commit; with acks the sender has at most 24 "
    "chunks on their way, and waits for the oldest.",
    work=(
        (ONCE, "each chunk has its place in a stream and is acked after the commit"),
        (ACKS, "each chunk is acked after the commit; one that came twice would be stored twice"),
        (
            NOTHING,
            "nothing is acked but the last chunk of each connection, so that the clock stops at the commit here "
            "too; what was on its way when a connection breaks is lost",
        ),
    ),
    measure=measure,
)
