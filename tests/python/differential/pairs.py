"""Runs scenarios on both sides, many in one pair of processes, and splits the outputs by scenario."""

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from differential import staging
from suite import comparing, programs, queue_folder

DRIVER = Path(__file__).with_name("driver.py")
# Ten times the duration of a group of scenarios on a busy machine.
GROUP_SECONDS = 240
# A pair of processes plays at most this many scenarios. A scenario can spoil its process for the native path; then the
# scenarios after it do not show that path. Half costs a second per hundred scenarios; double once hid the native path
# from two thirds of a group.
GROUP_SCENARIOS = 24

_MARK = re.compile(rb"\x1e(begin|end) ([^\x1e]*)\x1e\r?\n")


@dataclass
class Played:
    """One scenario on one side."""

    outputs: dict[str, bytes] = field(default_factory=dict)
    value: object = None
    error: str | None = None
    complaints: list[str] = field(default_factory=list)
    calls: tuple[int, int] = (0, 0)
    left_changed: list[str] = field(default_factory=list)


def _parts(stream: bytes) -> dict[str, bytes]:
    """Return the bytes between the begin mark and the end mark of each scenario."""
    found: dict[str, bytes] = {}
    marks = list(_MARK.finditer(stream))
    for mark, following in zip(marks, [*marks[1:], None]):
        kind, name = mark[1], mark[2].decode()
        if kind == b"begin":
            found[name] = stream[mark.end() : following.start() if following else len(stream)]
    return found


def _play_once(names: list[str], side: str, folder: Path, package: str | None) -> dict[str, Played]:
    """Run the driver once; a scenario that ends the process is the last key of the result."""
    table = staging.registered()
    first = table[names[0]]
    folder.mkdir(parents=True)
    (folder / "elsewhere").mkdir()
    report, crash = folder / "report", folder / "crash"
    report.touch()
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps({"scenarios": names, "folder": str(folder / "out"), "report": str(report), "crash": str(crash)})
    )
    with queue_folder.private() as queue_dir:
        env = programs.environment(side, queue_dir, package)
        try:
            outcome = programs.run(
                [DRIVER, plan],
                env=env,
                folder=folder / "elsewhere",
                deadline_seconds=GROUP_SECONDS,
                terminal=first.streams == staging.TERMINAL,
            )
            ending = f"the process ended with status {outcome.status}"
            out, err, status = _parts(outcome.out), _parts(outcome.err), outcome.status
            tail = outcome.err[-3000:].decode(errors="replace")
        except programs.DeadlinePassed as passed:
            ending, out, err, status, tail = str(passed), {}, {}, None, ""
    played: dict[str, Played] = {}
    for line in map(json.loads, report.read_text().splitlines()):
        if "begin" in line:
            stacks = crash.read_text(errors="replace") if crash.exists() else ""
            played[line["begin"]] = Played(error=f"{ending} in this scenario\n{stacks}{tail}")
            continue
        name = line["end"]
        aliases = line["aliases"]
        found, own = table[name], folder / "out" / name
        outputs = {"stdout": out.get(name, b""), "stderr": err.get(name, b""), **comparing.files(own)}
        played[name] = Played(
            {output: comparing.normalise(data, own, aliases, found.addresses) for output, data in outputs.items()},
            line["value"],
            line["error"],
            line["complaints"],
            tuple(line["calls"]),
            line["left_changed"],
        )
    if not played:
        played[names[0]] = Played(error=f"{ending} before the first scenario\n{tail}")
    elif status != 0 and len(played) == len(names) and played[names[-1]].error is None:
        played[names[-1]].error = f"{ending} after the last scenario of its group\n{tail}"
    return played


def _play(names: list[str], side: str, folder: Path, package: str | None) -> dict[str, Played]:
    """Run scenarios of one group; if one ends the process, the remaining ones run in a new process."""
    played: dict[str, Played] = {}
    turn = 0
    while left := [name for name in names if name not in played]:
        played.update(_play_once(left, side, folder / str(turn), package))
        turn += 1
    return played


def group_of(found: staging.Scenario) -> str:
    """Return the name of the group of scenarios that share a pair of processes."""
    if found.isolated:
        return found.id
    theme = found.id.rpartition(".")[0]
    return f"{theme}-{found.streams}-{'installed' if found.installed else 'installing'}"


class Pairs:
    """Runs a group when a scenario of it is first needed, and keeps the results of all its scenarios."""

    def __init__(self, wanted: Iterable[staging.Scenario], package: str | None = None) -> None:
        self._groups: dict[str, list[str]] = {}
        for found in wanted:
            self._groups.setdefault(group_of(found), []).append(found.id)
        self._package = package
        self._played: dict[str, tuple[Played, Played]] = {}

    def of(self, found: staging.Scenario) -> tuple[Played, Played]:
        """Return (stock, installed) of one scenario."""
        if found.id not in self._played:
            group = self._groups[group_of(found)]
            at = group.index(found.id) // GROUP_SCENARIOS * GROUP_SCENARIOS
            names = group[at : at + GROUP_SCENARIOS]
            with tempfile.TemporaryDirectory(prefix="pair-") as folder:
                stock, installed = (
                    _play(names, side, Path(os.path.realpath(folder)) / side, self._package) for side in programs.SIDES
                )
            for name in names:
                self._played[name] = stock[name], installed[name]
        return self._played[found.id]


def complaint(stock: Played, installed: Played) -> str:
    """Return how the two sides differ, empty when they are equal."""
    if stock.error:
        return f"the scenario itself is broken, stock logging raised:\n{stock.error}"
    if stock.left_changed:
        return f"the scenario itself is broken, it left changed: {', '.join(stock.left_changed)}"
    if installed.error:
        return f"raised only with logspool installed:\n{installed.error}"
    found = comparing.differences(stock.outputs, installed.outputs)
    if stock.value != installed.value:
        found += f"returned {stock.value!r} (stock), {installed.value!r} (installed)\n"
    if installed.left_changed:
        found += f"left changed with logspool installed: {', '.join(installed.left_changed)}\n"
    return found
