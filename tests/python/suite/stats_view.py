"""The only module of the suite that depends on the form of `logspool.stats()`.

It assumes of `logspool.stats()`:

- `.paths`: mapping with the integers `native`, `by_record` and `stock`, calls since the process began.
- `.levels[levelname]`: `.offered`, `.accepted`, `.refused` (mapping reason -> count).
- `.sinks[name][levelname]`: `.accepted_for_sink`, `.written`, `.queued`, `.spooled`,
  `.dropped` (mapping reason -> count), `.uncertain`.

Fields may be attributes or mapping keys. A rename is one line here.
"""

from collections.abc import Mapping
from dataclasses import dataclass


def _stats():
    import logspool

    return logspool.stats()


def _field(holder, name):
    return holder[name] if isinstance(holder, Mapping) else getattr(holder, name)


def _reasons(holder) -> dict[str, int]:
    return {str(reason): int(count) for reason, count in dict(holder).items() if count}


@dataclass(frozen=True)
class Paths:
    """The number of calls on each path since the process began."""

    native: int
    stock: int

    def since(self, earlier: "Paths") -> "Paths":
        return Paths(self.native - earlier.native, self.stock - earlier.stock)


@dataclass(frozen=True)
class LevelCount:
    """One level of `offered = accepted + refused{reason}`."""

    offered: int
    accepted: int
    refused: dict[str, int]

    def adds_up(self) -> bool:
        return self.offered == self.accepted + sum(self.refused.values())


@dataclass(frozen=True)
class SinkCount:
    """One sink and level of `accepted_for_sink = written + queued + spooled + dropped{reason} + uncertain`."""

    accepted_for_sink: int
    written: int
    queued: int
    spooled: int
    dropped: dict[str, int]
    uncertain: int

    def adds_up(self) -> bool:
        there = self.written + self.queued + self.spooled + sum(self.dropped.values()) + self.uncertain
        return self.accepted_for_sink == there


@dataclass(frozen=True)
class Snapshot:
    """One consistent answer of `stats()`."""

    levels: dict[str, LevelCount]
    sinks: dict[str, dict[str, SinkCount]]

    def broken_identities(self) -> list[str]:
        """Return the identities of `docs/reference/python.md` that do not hold, as text; empty when all do."""
        broken = [f"level {name}: {count}" for name, count in self.levels.items() if not count.adds_up()]
        for sink, levels in self.sinks.items():
            broken += [f"sink {sink}, level {name}: {count}" for name, count in levels.items() if not count.adds_up()]
        return broken

    def refused(self) -> int:
        return sum(sum(count.refused.values()) for count in self.levels.values())

    def dropped(self) -> int:
        return sum(sum(count.dropped.values()) for levels in self.sinks.values() for count in levels.values())

    def offered(self) -> int:
        return sum(count.offered for count in self.levels.values())

    def written(self) -> int:
        return sum(count.written for levels in self.sinks.values() for count in levels.values())

    def waiting(self) -> int:
        """Return the number of records that are queued, spooled or uncertain."""
        return sum(
            count.queued + count.spooled + count.uncertain
            for levels in self.sinks.values()
            for count in levels.values()
        )


def paths() -> Paths | None:
    """Return the calls by path, or None if the package has no paths (the stand-in)."""
    found = _field(_stats(), "paths")
    if found is None:
        return None
    stock = int(_field(found, "stock")) + int(_field(found, "by_record"))
    return Paths(int(_field(found, "native")), stock)


def reasons() -> dict[str, str]:
    """Return, by logger, why it takes the stock path now; empty if the package does not say."""
    loggers = getattr(_stats(), "loggers", None) or {}
    return {str(name): why for name, row in loggers.items() if (why := str(getattr(row, "reason", "")))}


def snapshot() -> Snapshot:
    """Return levels and sinks of one call of `stats()`."""
    stats = _stats()
    levels = {
        str(name): LevelCount(
            int(_field(row, "offered")), int(_field(row, "accepted")), _reasons(_field(row, "refused"))
        )
        for name, row in dict(_field(stats, "levels")).items()
    }
    sinks = {
        str(name): {
            str(level): SinkCount(
                int(_field(row, "accepted_for_sink")),
                int(_field(row, "written")),
                int(_field(row, "queued")),
                int(_field(row, "spooled")),
                _reasons(_field(row, "dropped")),
                int(_field(row, "uncertain")),
            )
            for level, row in dict(rows).items()
        }
        for name, rows in dict(_field(stats, "sinks")).items()
    }
    return Snapshot(levels, sinks)
