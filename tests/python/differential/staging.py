"""What a scenario is, and the words a scenario may use.

A scenario is a function `(logging, folder)` that configures logging, logs, and leaves its output in `folder`
(the current folder too), on stdout and on stderr. It runs once on each side in the same kind of process.
It states which path its calls take when logspool is installed; `expect` states it for a part.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from suite import side, stats_view

NATIVE = "native"
STOCK = "stock"
# For scenarios whose calls are counted by nothing: they never reach an enabled logger, or say `expect` themselves.
UNSAID = "unsaid"

PIPE = "pipe"
TERMINAL = "terminal"

# Calls made before a change, so that whatever is cached is cached.
WARM_CALLS = 1000


@dataclass(frozen=True)
class Scenario:
    """One scenario and how it is run."""

    id: str
    run: Callable
    # Path of all calls outside `expect` blocks.
    path: str
    # What stdout and stderr are.
    streams: str = PIPE
    # A process of its own, for what cannot be undone.
    isolated: bool = False
    # Whether the driver installs before the scenario; else the scenario calls `side.install` itself.
    installed: bool = True
    # Object addresses in the output are replaced before comparing.
    addresses: bool = False
    # First Python version that has what the scenario shows.
    since: tuple[int, int] = (3, 10)
    # Why the output differs for good: documented on docs/explain/surprises.md, and red once it no longer differs.
    surprise: str = ""
    # Modules from the registry without which it is skipped.
    requires: tuple[str, ...] = ()
    # Whether the short form of the suite plays it.
    short: bool = True


@dataclass
class Phase:
    """Calls counted inside one `expect` block."""

    expected: str
    line: int
    # False where the package under test counts nothing (stock side, stand-in).
    counted: bool = False
    native: int = 0
    stock: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    nested: list["Phase"] = field(default_factory=list)

    def close(self, calls: stats_view.Paths) -> None:
        self.counted, self.native, self.stock = True, calls.native, calls.stock
        self.reasons = stats_view.reasons() if calls.stock else {}

    def own(self) -> tuple[int, int]:
        """Return (native, stock) without what nested blocks counted."""
        return (
            self.native - sum(phase.native for phase in self.nested),
            self.stock - sum(phase.stock for phase in self.nested),
        )

    def all(self) -> Iterator["Phase"]:
        yield self
        for phase in self.nested:
            yield from phase.all()

    def complaint(self) -> str:
        """Return what is wrong with the path taken, empty when it is the expected one."""
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
    """Return all scenarios by id, those of this Python version only."""
    return {name: found for name, found in _REGISTERED.items() if sys.version_info[:2] >= found.since}


@contextlib.contextmanager
def expect(path: str) -> Iterator[None]:
    """State the path of the calls in the block, whatever the scenario says of the others."""
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
    """For the driver: yield the phase of the whole scenario and the aliases it gives."""
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
    """Make `value` (a pid, an ident) read as `label` in this run's output."""
    _ALIASES[str(value)] = label


def note(text: object) -> None:
    """Put an observation of the scenario itself beside its output (file `notes`)."""
    with open("notes", "a", encoding="utf-8", errors="surrogatepass") as notes:
        notes.write(f"{text}\n")


def note_file(path: "Path | str") -> None:
    """Note how long a file is and how it ends right now: what somebody who reads it sees."""
    data = Path(path).read_bytes() if Path(path).exists() else None
    note(f"{Path(path).name}: " + ("absent" if data is None else f"{len(data)} bytes, ends {data[-80:]!r}"))


# A format with what a cache could go stale on, and no time.
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
    """Log `calls` times on the way that is expected to be cached."""
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
