"""Defines a scenario and the functions that scenarios use.

A scenario is a function `(logging, folder)` that configures logging, logs, and leaves its output in `folder`
(the current folder too), on stdout and on stderr. It runs once on each side in the same kind of process.
It states which path its calls take when logspool is installed; `expect` states the path for a part of the calls.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from suite import side, stats_view

NATIVE = "native"
STOCK = "stock"
# The path of these calls is not checked, for example of scenarios that log nothing or use `expect` for each call.
UNSAID = "unsaid"

PIPE = "pipe"
TERMINAL = "terminal"

# Calls made before a change, so that every cache is filled.
WARM_CALLS = 1000


@dataclass(frozen=True)
class Scenario:
    """One scenario and how it is run."""

    id: str
    run: Callable
    # Path of all calls outside `expect` blocks.
    path: str
    # Whether stdout and stderr are pipes or terminals.
    streams: str = PIPE
    # Runs in a process of its own, because its effects cannot be undone.
    isolated: bool = False
    # Whether the driver installs before the scenario; else the scenario calls `side.install` itself.
    installed: bool = True
    # Object addresses in the output are replaced before comparing.
    addresses: bool = False
    # First Python version that has the feature which the scenario tests.
    since: tuple[int, int] = (3, 10)
    # Why the output differs permanently. It is documented in docs/explain/surprises.md; the test fails once the output
    # no longer differs.
    surprise: str = ""
    # Modules from the registry; the scenario is skipped without them.
    requires: tuple[str, ...] = ()
    # Whether the short form of the suite plays it.
    short: bool = True


@dataclass
class Phase:
    """Calls counted inside one `expect` block."""

    expected: str
    line: int
    # False if the package under test counts nothing (stock side, stand-in).
    counted: bool = False
    native: int = 0
    stock: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    nested: list["Phase"] = field(default_factory=list)

    def close(self, calls: stats_view.Paths) -> None:
        self.counted, self.native, self.stock = True, calls.native, calls.stock
        self.reasons = stats_view.reasons() if calls.stock else {}

    def own(self) -> tuple[int, int]:
        """Return (native, stock) without the calls of nested blocks."""
        return (
            self.native - sum(phase.native for phase in self.nested),
            self.stock - sum(phase.stock for phase in self.nested),
        )

    def all(self) -> Iterator["Phase"]:
        yield self
        for phase in self.nested:
            yield from phase.all()

    def complaint(self) -> str:
        """Return how the path taken differs from the expected one, empty if it does not."""
        native, stock = self.own()
        if not self.counted:
            return ""
        if self.expected == NATIVE and (stock or not native):
            why = f" {self.reasons}" if self.reasons else ""
            return f"line {self.line}: expected native, {native} calls were native and {stock} stock{why}"
        if self.expected == STOCK and native:
            return f"line {self.line}: expected stock, {native} calls were native and {stock} stock"
        return ""


_REGISTERED: dict[str, Scenario] = {}
_OPEN_PHASES: list[Phase] = []
_ALIASES: dict[str, str] = {}


def register(scenario: Scenario) -> None:
    """Add a scenario to the table; its id must be new."""
    if scenario.id in _REGISTERED:
        raise ValueError(f"two scenarios are called {scenario.id!r}")
    _REGISTERED[scenario.id] = scenario


def scenario(path: str, **options: object) -> Callable:
    """Register the decorated function `(logging, folder)` under its module's and its own name."""

    def add(function: Callable) -> Callable:
        theme = function.__module__.rpartition(".")[2]
        register(Scenario(id=f"{theme}.{function.__name__}", run=function, path=path, **options))
        return function

    return add


def registered() -> dict[str, Scenario]:
    """Return the scenarios that this Python version can run, by id."""
    return {name: found for name, found in _REGISTERED.items() if sys.version_info[:2] >= found.since}


@contextlib.contextmanager
def expect(path: str) -> Iterator[None]:
    """State the path of the calls in the block; it overrides the path of the scenario."""
    phase = Phase(path, sys._getframe(2).f_lineno)
    if _OPEN_PHASES:
        _OPEN_PHASES[-1].nested.append(phase)
    _OPEN_PHASES.append(phase)
    before = stats_view.paths() if side.INSTALLED else None
    try:
        yield
    finally:
        if before is not None:
            phase.close(stats_view.paths().since(before))
        _OPEN_PHASES.pop()


@contextlib.contextmanager
def watched(found: Scenario) -> Iterator[tuple[Phase, dict[str, str]]]:
    """For the driver: yield the phase of the whole scenario and the aliases that the scenario registers."""
    _ALIASES.clear()
    whole = Phase(found.path, found.run.__code__.co_firstlineno)
    _OPEN_PHASES[:] = [whole]
    before = stats_view.paths() if side.INSTALLED else None
    try:
        yield whole, _ALIASES
    finally:
        if before is not None:
            whole.close(stats_view.paths().since(before))
        _OPEN_PHASES.clear()


def alias(value: object, label: str) -> None:
    """Replace `value` (a pid, an ident) by `label` in this run's output."""
    _ALIASES[str(value)] = label


def note(text: object) -> None:
    """Add an observation of the scenario to its output (file `notes`)."""
    with open("notes", "a", encoding="utf-8", errors="surrogatepass") as notes:
        notes.write(f"{text}\n")


def note_file(path: "Path | str") -> None:
    """Note the length and the last bytes of a file, as a reader would see them now."""
    data = Path(path).read_bytes() if Path(path).exists() else None
    note(f"{Path(path).name}: " + ("absent" if data is None else f"{len(data)} bytes, ends {data[-80:]!r}"))


# A format with all fields that a cache could keep out of date, and without the time.
FULL = (
    "%(levelname)s|%(levelno)s|%(name)s|%(filename)s:%(lineno)d|%(funcName)s|%(threadName)s|%(processName)s|%(message)s"
)
PLAIN = "%(levelname)s %(name)s %(message)s"


def to_file(logging, folder, name="app", fmt=PLAIN, level=10, file="app.log", **options):
    """Return (logger, its FileHandler with a Formatter of `fmt`)."""
    handler = logging.FileHandler(Path(folder) / file, **options)
    handler.setFormatter(logging.Formatter(fmt))
    log = logging.getLogger(name)
    log.setLevel(level)
    log.addHandler(handler)
    return log, handler


def warm(log, calls=WARM_CALLS) -> None:
    """Log `calls` times, so that the path of the call is cached."""
    for number in range(calls):
        log.info("warm n%d of %s", number, "many")


def speak(log) -> None:
    """Log once at each level, with arguments of the common kinds."""
    log.debug("debug %d", 1)
    log.info("info %s %d %.2f", "text", -5, 2.5)
    log.warning("warning without arguments")
    log.log(25, "between %r", "é")
    log.error("error %(key)s", {"key": "value"})
    log.critical("critical %s", None)
