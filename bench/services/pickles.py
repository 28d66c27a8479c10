"""How fast is a pickled log record read, beside CPython?"""

from __future__ import annotations

import logging
import pickle
import statistics
import time
from pathlib import Path

from parts import Column, Part, Round
from services.ground import Ground
from services.part import Wrong

CORPUS = Path(__file__).resolve().parents[2] / "crates/logspool-server/tests/corpus/pickles-3.11.txt"

OURS, CPYTHON = "logspool's decoder", "CPython, pickle.loads and makeLogRecord"

#: As the bench has.
TURNS = 7


def measure(ground: Ground) -> Round:
    """Read one record again and again."""
    # The same record that the bench reads: the first of the corpus.
    frame = bytes.fromhex(CORPUS.read_text().splitlines()[0].split("\t")[1])
    ground.say(CPYTHON)
    rates = [_cpython(frame, ground.sizes.pickles) for _ in range(TURNS)]
    ground.say(OURS)
    ours = ground.bench("pickle")["records"]
    if ours["bytes"] != len(frame):
        raise Wrong(f"the bench reads a record of {ours['bytes']} bytes, not of {len(frame)}")
    return {OURS: {"rate": ours["rate"]}, CPYTHON: {"rate": statistics.median(rates)}}


def _cpython(frame: bytes, records: int) -> float:
    began = time.perf_counter()
    for _ in range(records):
        record = logging.makeLogRecord(pickle.loads(frame))
        if record.msg != "hello world":
            raise Wrong(f"CPython reads {record.msg!r}")
    return records / (time.perf_counter() - began)


PART = Part(
    "pickles",
    "Pickled log records, one core (records a second)",
    (Column("rate", "records/s", 0),),
    compared_with=lambda row: CPYTHON,
    most_rounds=3,
    question="What SocketHandler sends for one call, read into a record whose message is checked each time.",
    work=(
        (OURS, "all attributes, into a record with borrowed texts; nothing of the pickle is executed"),
        (CPYTHON, "all attributes, into a LogRecord"),
    ),
    measure=measure,
)
