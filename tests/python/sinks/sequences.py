"""Random sequences: a handler, the files in its folder at the beginning, and the steps that follow."""

import random
import time
from dataclasses import dataclass, field

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo"]

# Moments at which a zone changes its clocks, forward and back, in seconds since the epoch, UTC.
CHANGES = {
    "Europe/Berlin": [1711846800, 1729990800],
    "America/New_York": [1710054000, 1730613600],
    "Australia/Lord_Howe": [1728142200, 1712415600],
    "America/Sao_Paulo": [1541300400, 1550368800],
}
# The moments above, the leap day of 2024, and an ordinary day.
MOMENTS = [moment for moments in CHANGES.values() for moment in moments] + [1709164800, 1718409600]

WORDS = ["a", "short line", "größe", "世界 und mehr", "tab\tin it", "two\nlines", "😀" * 4, "x" * 70, "é" * 30]
TERMINATORS = ["\n"] * 6 + ["", "\r\n", " end\n", "…\n"]
UNITS = {"S": 1, "M": 60, "H": 3600, "D": 86400, "MIDNIGHT": 86400}


@dataclass
class Sequence:
    """The steps of both sides; all names are relative to the folder of a side.

    Attributes:
        kind: `rotating`, `timed` or `watched`.
        options: Keyword arguments of the handler.
        zone: Value of TZ.
        start: Last change of the base file and creation of the handler, seconds since the epoch.
        before: Name and content of the files that exist at the beginning.
        terminator: Ends the lines.
        steps: `("line", seconds, text)`, `("chunk",)`, and changes of the files by other processes.
    """

    kind: str
    options: dict
    zone: str = "UTC"
    start: int = 0
    before: dict = field(default_factory=dict)
    terminator: str = "\n"
    steps: list = field(default_factory=list)


def make(kind: str, seed: int) -> Sequence:
    """Make the sequence for a seed."""
    chance = random.Random(f"{kind} {seed}")
    return {"rotating": _rotating, "timed": _timed, "watched": _watched}[kind](chance)


def _text(chance, number):
    return f"{number} {chance.choice(WORDS) * chance.choice([1, 1, 1, 2])}"


def _rotating(chance):
    base = chance.choice(["app.log", "app.log", "log", "größe.log"])
    sequence = Sequence("rotating", {"filename": base}, terminator=chance.choice(TERMINATORS))
    sequence.options["maxBytes"] = chance.choice([0, 1, 20, 40, 41, 64, 100, 150, 300, 1000])
    sequence.options["backupCount"] = chance.choice([0, 1, 1, 2, 3, 5, 12])
    names = [f"{base}.{number}" for number in (1, 2, 3, 6)] + [f"{base}.x", "other"]
    for name in [base, *names]:
        if chance.random() < 0.3:
            sequence.before[name] = _text(chance, "old") * chance.choice([0, 1, 3])
    for number in range(chance.randrange(1, 60)):
        sequence.steps.append(("line", 0, _text(chance, number)))
        if chance.random() < 0.15:
            sequence.steps.append(("chunk",))
            if chance.random() < 0.25:
                sequence.steps.append(_interference(chance, base, [base, base, *names]))
    return sequence


def _watched(chance):
    base = "app.log"
    sequence = Sequence("watched", {"filename": base}, terminator=chance.choice(TERMINATORS))
    if chance.random() < 0.5:
        sequence.before[base] = "old\n"
    for number in range(chance.randrange(1, 60)):
        sequence.steps.append(("line", 0, _text(chance, number)))
        if chance.random() < 0.3:
            sequence.steps.append(("chunk",))
            if chance.random() < 0.6:
                sequence.steps.append(_interference(chance, base, [base]))
    return sequence


def _interference(chance, base, names):
    """Return a change by another process; both sides skip a rename or removal of a file that does not exist."""
    name = chance.choice(names)
    return chance.choice(
        [
            ("rename", name, chance.choice(["moved", "moved.1", f"{base}.2"])),
            ("remove", name),
            ("append", name, "of another process\n" * chance.choice([1, 3])),
            ("append", base, "of another process\n"),
        ]
    )


def _timed(chance):
    base = chance.choice(["app.log", "app.log", "app", "a.b.log", ".hidden"])
    when = chance.choice(["S", "M", "H", "D", "midnight", "MIDNIGHT", *(f"w{day}" for day in range(7))])
    interval = chance.choice([1, 1, 1, 2, 3, 7])
    sequence = Sequence("timed", {"filename": base, "when": when, "interval": interval}, chance.choice(ZONES))
    sequence.options["backupCount"] = chance.choice([0, 0, 1, 2, 3])
    sequence.options["utc"] = chance.random() < 0.25
    if chance.random() < 0.4:
        times = [0, 1, 3600, 7200, 9000, 10800, 43200, 86399, chance.randrange(86400)]
        sequence.options["atTime"] = chance.choice(times)
    unit = UNITS.get(when.upper(), 7 * 86400)
    sequence.start = chance.choice(MOMENTS) + chance.choice([0, 0, -1, 1, -3600, chance.randrange(-14, 14) * 86400])
    sequence.start += chance.choice([0, chance.randrange(-90_000, 90_000)])
    if chance.random() < 0.3:
        change = _approach_a_change(chance, sequence)
        moments = sorted(change + 900 * chance.randrange(-12, 20) for _ in range(chance.randrange(3, 30)))
        steps = [("line", moment, _text(chance, number)) for number, moment in enumerate(moments)]
        sequence.steps = [("line", sequence.start, "begin"), *steps]
        return sequence
    if chance.random() < 0.5:
        sequence.before[base] = chance.choice(["", "old\n"])
    sequence.before |= _backups(chance, base, unit * interval, sequence.start)
    now = sequence.start
    for number in range(chance.randrange(1, 40)):
        now = _later(chance, now, unit * interval)
        sequence.steps.append(("line", now, _text(chance, number)))
        if chance.random() < 0.2:
            sequence.steps.append(("chunk",))
            if chance.random() < 0.1:
                names = [name for name in sequence.before if name.isprintable()]
                sequence.steps.append(_interference(chance, base, [base, *names]))
    return sequence


def _approach_a_change(chance, sequence):
    """Begin the sequence up to 26 hours before a zone changes its clocks; return the moment of the change.

    The handler rotates at a time of day.
    """
    sequence.zone = chance.choice(list(CHANGES))
    change = chance.choice(CHANGES[sequence.zone])
    sequence.start = change - chance.randrange(26 * 3600)
    # The base file exists, so that the sink computes the first rollover.
    sequence.before.setdefault(sequence.options["filename"], "old\n")
    day = time.gmtime(change + 3600).tm_wday
    sequence.options |= {"when": chance.choice(["midnight", "midnight", f"w{day}", f"w{(day - 1) % 7}"]), "utc": False}
    sequence.options["atTime"] = chance.choice([0, 1800, 3600, 5400, 7199, 7200, 8000, 9000, 10799, 10800])
    if chance.random() < 0.3:
        del sequence.options["atTime"]
    return change


def _later(chance, now, period):
    step = chance.choice(["same", "same", "little", "period", "hour", "hour", "half", "long", "back"])
    return {
        "same": now,
        "little": now + chance.randrange(1, 4),
        "period": now + chance.choice([period - 1, period, period + 1]),
        "hour": now - now % 3600 + 3600 * chance.choice([1, 1, 5]),
        "half": now - now % 1800 + 1800 * chance.choice([1, 3, 12, 48]),
        "long": now + chance.randrange(3 * period),
        "back": now - chance.choice([1, 1, 60, 3700]),
    }[step]


def _backups(chance, base, period, start):
    """Return existing backups, with names that rotation will use and names that only resemble these."""
    root = base.rsplit(".", 1)[0] or base
    files = {}
    for age in range(-2, 5):
        for form in ("%Y-%m-%d_%H-%M-%S", "%Y-%m-%d_%H-%M", "%Y-%m-%d_%H", "%Y-%m-%d"):
            stamp = time.strftime(form, time.gmtime(start - age * period))
            looks = [f"{base}.{stamp}"] * 2 + [f"{base}.{stamp}.gz", f"{base}2.{stamp}", f"{root}.{stamp}"]
            looks += [f"{base}.{stamp}x", f"{base}.1{stamp}", f"{base}.{stamp}\n"]
            looks += [f"{base}.keep.{stamp}", f"x{base}.{stamp}"]
            if chance.random() < 0.12:
                files[chance.choice(looks)] = f"backup {age}\n"
    return files
