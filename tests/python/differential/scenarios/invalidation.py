"""Every change that must take effect at the next call, after 1,000 cached calls.

The table is in `differential/table/`: each row is one change, tried on each kind of handler. The loggers are `app.db`
(with the handler of the kind), its parent `app` and the root. The parent and the root each have a file of their own for
ERROR and above. Each row runs with `install()` before any configuration. On a file and a terminal it also runs with
`install()` over a running configuration; there the change stays in force through `uninstall()`.

The same code makes the plan for every kind of handler. So in the short form a row runs on a plain file and on one other
kind, which changes from row to row.
"""

import sys

from differential.staging import STOCK, UNSAID, Scenario, expect, register, speak
from differential.table import handlers, loggers, methods, surroundings
from differential.table.cases import KINDS, ROWS, Case, Kind, Row
from suite import side

# Importing a module of rows puts them into the table.
assert all((handlers, loggers, methods, surroundings))


def _path_after(found: Row, kind: Kind) -> str:
    """Return the path after the change; `UNSAID` if it may have removed a handler that is never native."""
    return found.path if kind.native or found.path == STOCK else UNSAID


def _played_before(found: Row, kind: Kind):
    def run(logging, folder):
        case = Case(logging, folder, kind)
        if found.prepare:
            found.prepare(case)
        with expect(found.warm_path if kind.native else STOCK):
            case.warm()
        with found.applied(case):
            with expect(_path_after(found, kind)):
                speak(case.log)
        speak(case.log)
        case.keep_memory()

    return run


def _played_through_uninstall(found: Row, kind: Kind):
    def run(logging, folder):
        case = Case(logging, folder, kind)
        if found.prepare:
            found.prepare(case)
        case.warm(10)
        side.install()
        with expect(found.warm_path if kind.native else STOCK):
            case.warm()
        with found.applied(case):
            with expect(_path_after(found, kind)):
                speak(case.log)
            side.uninstall()
            speak(case.log)
        speak(case.log)
        case.keep_memory()

    return run


# Rows that replace methods and class attributes come last: if the native path does not come back after such a row, the
# following rows fail.
_IN_ORDER = sorted(ROWS, key=lambda found: "class" in found.name or "patched" in found.name)


def _kinds_in_short(number: int, found: Row) -> set[str]:
    """Return the kinds of handler on which the row with this number runs in the short form."""
    # `suite_checks/` plants differences on a plain file.
    others = [name for name in found.kinds if name != "file"]
    turn = {others[number % len(others)]} if others else set()
    return ({"file"} & set(found.kinds)) | turn


_SHORT = {found.name: _kinds_in_short(number, found) for number, found in enumerate(_IN_ORDER)}

for _kind in KINDS:
    for _row in _IN_ORDER:
        if _kind.name not in _row.kinds or sys.version_info[:2] >= _row.until:
            continue
        register(
            Scenario(
                id=f"invalidation.{_kind.name}.{_row.name}",
                run=_played_before(_row, _kind),
                path=UNSAID,
                streams=_kind.streams,
                since=_row.since,
                short=_kind.name in _SHORT[_row.name],
            )
        )
        if _kind.name in ("file", "terminal"):
            register(
                Scenario(
                    id=f"invalidation_through_uninstall.{_kind.name}.{_row.name}",
                    run=_played_through_uninstall(_row, _kind),
                    path=UNSAID,
                    streams=_kind.streams,
                    installed=False,
                    since=_row.since,
                    short=_kind.name in _SHORT[_row.name],
                )
            )
