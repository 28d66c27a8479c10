"""How fast does a store of SQLite with millions of records answer?"""

from __future__ import annotations

from parts import Column, Part, Round
from services.ground import Ground

#: Rows of the bench that are shown, in its words.
ERRORS, ERRORS_HOUR = "newest 100 errors of a logger", "newest 100 errors of a logger, last hour"
TRACE, WORD, HISTOGRAM = "a trace", "a rare word", "histogram of 24 h"
SHOWN = [
    *(ERRORS, ERRORS_HOUR, "newest 100", "newest 100 of a frequent word", TRACE, WORD, "count of two words"),
    *(HISTOGRAM, "histogram of 24 h, errors of a logger", "histogram of 24 h from within a minute"),
]


def measure(ground: Ground) -> Round:
    """Store, index and ask."""
    ground.say(f"storing and indexing {ground.sizes.stored:,} records")
    found = ground.bench("sqlite", "asking", LOGSPOOL_BENCH_ROWS=str(ground.sizes.stored))
    return {name: found[name] for name in SHOWN}


PART = Part(
    "questions",
    "Questions to SQLite",
    (Column("ms", "warm, ms", 2), Column("first_ms", "first time, ms", 2), Column("rows", "rows found", 0)),
    most_rounds=1,
    question="A day of 5,000,000 records of 20 loggers, one in a hundred an error, stored and indexed by the service's "
    "own store, asked in one process: the first time, and the median of five. The files were just written, so most of "
    "them lie in the memory of the system.",
    measure=measure,
)
