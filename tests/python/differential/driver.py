"""Child process: runs the scenarios named in a plan, one after another, and reports each as a line of JSON.

Usage: driver.py PLAN.json. The plan names scenarios, folder and report. Standard output and error carry the
scenarios' own output between marks, so that the parent can split it by scenario.
"""

import faulthandler
import json
import logging
import os
import sys
import traceback
from pathlib import Path

from differential import fresh, scenarios, staging
from suite import side

# Ten times the slowest scenario on a busy machine; the watchdog then prints all stacks and exits.
SCENARIO_SECONDS = 60


def mark(text: str) -> None:
    """Put a mark into both streams, after everything that was already logged or printed."""
    for stream, descriptor in ((sys.__stdout__, 1), (sys.__stderr__, 2)):
        stream.flush()
        os.write(descriptor, f"\x1e{text}\x1e\n".encode())


def play(found: staging.Scenario, folder: Path) -> dict[str, object]:
    """Run one scenario in its folder and return its line of the report, without its id."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    surroundings = fresh.Surroundings()
    error = None
    value = None
    with staging.watched(found) as (phase, aliases):
        try:
            value = found.run(logging, folder)
        except BaseException:
            error = traceback.format_exc()
    side.settle()
    fresh.reset()
    side.settle()
    return {
        "value": value,
        "error": error,
        "aliases": dict(aliases),
        "complaints": [each.complaint() for each in phase.all() if each.complaint()],
        "calls": [phase.native, phase.stock],
        "left_changed": surroundings.changed() if found.installed and not found.isolated else [],
    }


def main(plan_path: str) -> None:
    plan = json.loads(Path(plan_path).read_text())
    table = scenarios.all_scenarios()
    folder = Path(plan["folder"])
    isolated = len(plan["scenarios"]) == 1
    with open(plan["report"], "a", encoding="utf-8", buffering=1) as report, open(plan["crash"], "ab") as crash:
        if any(table[name].installed for name in plan["scenarios"]):
            side.install()
        for name in plan["scenarios"]:
            print(json.dumps({"begin": name}), file=report)
            mark(f"begin {name}")
            if not isolated:
                faulthandler.dump_traceback_later(SCENARIO_SECONDS, exit=True, file=crash)
            line = play(table[name], folder / name)
            faulthandler.cancel_dump_traceback_later()
            mark(f"end {name}")
            print(json.dumps({"end": name, **line}), file=report)


if __name__ == "__main__":
    main(sys.argv[1])
