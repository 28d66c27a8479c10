"""The targets of a run of the service's comparison, as data: each line is one promise, judged within the run."""

from __future__ import annotations

from results import Results
from services import bombs, fresh, memory, native, once, pickles, questions, readers, stdlib, syslog
from services.ground import POSTGRES, SQLITE
from services.part import Sizes
from targets import Target, Verdict, beside, count, unmeasured

SIZES = Sizes()


def _at_most(what: str, part: str, row: str, figure: str, bound: float, unit: str) -> Target:
    return Target(what, (row, part, figure), at_most=bound, unit=unit)


def _native(kind: str, raw: str) -> Target:
    row = native.client(kind, 1)
    return beside(f"native client into {kind} against {raw}", row, native.RAW[kind], "native", "rate", at_least=0.6)


def _once(kind: str, connections: int) -> Target:
    rows = [once.row(kind, connections, promise) for promise in (once.NOTHING, once.ONCE)]
    many = f"{connections} connection{'s' if connections > 1 else ''}"
    return beside(f"time of exactly once against no acks, {kind}, {many}", *rows, "once", "rate", at_most=1.15)


def _syslog(to: str, connections: int, at_least: float) -> Target:
    rows = [syslog.row(to, connections, contender) for contender in (syslog.OURS, syslog.THEIRS)]
    many = f"{connections} connection{'s' if connections > 1 else ''}"
    return beside(f"syslog to {to} against rsyslog, {many}", *rows, "syslog", "rate", at_least=at_least)


def _readers(kind: str, trouble: str) -> list[Target]:
    """Beside hostile readers, compared with the same alone in the same round."""
    row = readers.row(kind, trouble)
    words = f"{kind} beside {trouble}"
    return [
        Target(f"ingestion into {words}", (row, "readers", "rate_ratio"), at_least=0.5, unit="of alone"),
        Target(f"ack of a sender, p99, {words}", (row, "readers", "ack_ms_ratio"), at_most=5, unit="times"),
        Target(f"honest query, {words}", (row, "readers", "honest_ratio"), at_most=10, unit="times"),
        Target(f"memory, {words}", (row, "readers", "mb_ratio"), at_most=2, unit="times"),
    ]


TARGETS = [
    _native(POSTGRES, "raw COPY BINARY"),
    _native(SQLITE, "raw inserts"),
    *(_once(kind, connections) for kind in (POSTGRES, SQLITE) for connections in SIZES.connections),
    *(
        beside(
            f"{clients} processes with SocketHandler against the Python server",
            *(stdlib.row(clients, contender) for contender in (stdlib.OURS, stdlib.PYTHON)),
            *("stdlib", "rate"),
            at_least=3,
        )
        for clients in SIZES.clients
    ),
    beside("pickled records against CPython", pickles.OURS, pickles.CPYTHON, "pickles", "rate", at_least=7),
    *(_syslog(syslog.FILE, connections, 1) for connections in SIZES.connections),
    *(_syslog(syslog.ROWS, connections, 6) for connections in SIZES.connections),
    *(
        _at_most(f"until found at half load, {kind}, p99", "fresh", fresh.row(kind, fresh.TRACE), "p99_ms", bound, "ms")
        for kind, bound in ((SQLITE, 250), (POSTGRES, 500))
    ),
    _at_most("newest 100 errors of a logger, last hour", "questions", questions.ERRORS_HOUR, "ms", 20, "ms"),
    _at_most("newest 100 errors of a logger", "questions", questions.ERRORS, "ms", 20, "ms"),
    _at_most("records of a trace", "questions", questions.TRACE, "ms", 20, "ms"),
    _at_most("a rare word", "questions", questions.WORD, "ms", 20, "ms"),
    _at_most("histogram of 24 h", "questions", questions.HISTOGRAM, "ms", 100, "ms"),
    *(
        target
        for kind in (SQLITE, POSTGRES)
        for trouble in (readers.SCANS, readers.UNREAD, readers.TAILS)
        for target in _readers(kind, trouble)
    ),
    _at_most("memory, idle with 200 connections", "memory", memory.IDLE, "mb", 40, "MB"),
    _at_most("memory under overload, beyond what is allowed", "memory", memory.OVERLOAD, "over_mb", 0, "MB"),
    *(_at_most(f"{bomb}, memory beyond what is allowed", "bombs", bomb, "over_mb", 0, "MB") for bomb in bombs.BOMBS),
    *(
        Target(
            f"{bomb}, ack p99 of an honest sender, of that alone", (bomb, "bombs", "times"), at_most=bombs.TIMES_ALONE
        )
        for bomb in bombs.BOMBS
    ),
    Target("senders could send, of what is taken under overload", (memory.OVERLOAD, "memory", "overload"), at_least=10),
]


COUNTS = [
    count("records refused to senders who can wait", memory.OVERLOAD, "memory", "refused"),
    count("records taken while no more may wait", memory.OVERLOAD, "memory", "taken_when_full"),
]


def judge_records(results: Results) -> list[Verdict]:
    """Judge the targets of every row."""
    return [_judge_datagrams(results), _judge_records(results)]


def _judge_datagrams(results: Results) -> Verdict:
    what, bound = "datagrams lost uncounted, or counted and not lost", "<= 0"
    rows = [row for row, parts in results.cells.items() if "datagram" in parts]
    if not rows:
        return unmeasured(results, what, bound, [("", "datagram")])
    value = max(abs(found) for row in rows for found in results.values(row, "datagram", "uncounted"))
    return Verdict(what, bound, value, value <= 0)


def _judge_records(results: Results) -> Verdict:
    """A contender that loses or doubles a record did other work: this holds for all, as ratios to it mean nothing."""
    wrong, rounds = [], 0
    for row, parts in results.cells.items():
        for part, found in parts.items():
            for figures in found:
                # Datagrams may be lost, and are counted by themselves.
                lost, doubled = (0 if part == "datagram" else figures.get("lost", 0)), figures.get("doubled", 0)
                rounds += "records" in figures
                if lost or doubled:
                    wrong.append(f"{part}, {row}: {lost:.0f} lost, {doubled:.0f} doubled")
    what = f"records counted in the stores and files, in {rounds} runs"
    return Verdict(what, "0 lost, 0 doubled", "; ".join(wrong) or "all there, each once", not wrong)
