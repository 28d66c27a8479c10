"""Compare the instructions that a logged record costs in this checkout and in another commit.

`python bench/instructions.py COMMIT` runs each case of the comparison that uses logspool under valgrind's cachegrind,
with two numbers of records. The difference of the two counts, divided by the difference of the numbers, is the cost of
one record in user space, in all threads. Unlike times, these counts hardly depend on the machine's load. They contain
neither the kernel nor waits: `bench/against.py` measures those. The exit code is 1 where a ratio is above the limit.
Both environments have to exist: run `bench/against.py COMMIT --scripts bench --turns 1` first.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from against import LIMIT, ROOT, check_out, logspool_cases
from terminal import fail, paint, step

#: Numbers of records of the two runs of a cell.
FEW, MANY = 5_000, 45_000

#: The modes whose calls are counted. The other modes differ in pauses, not in work.
MODES = ("throughput", "latency", "threads")

#: Runs a cell as `compare.py` does, without reading the file afterwards: that costs more than the calls.
PROGRAM = """
import os, sys
sys.path.insert(0, {bench!r})
import lines
lines.check = lambda *_: {{}}
import worker
worker.measure(worker.CASES[{case!r}], {mode!r}, {records})
os._exit(0)
"""


def count(checkout: Path, environment: str, case: str, mode: str, records: int) -> int:
    """Return the instructions of one run."""
    program = PROGRAM.format(bench=str(checkout / "bench"), case=case, mode=mode, records=records)
    python = checkout / environment / "bin" / "python"
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    variables = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run([*command, str(python), "-c", program], capture_output=True, text=True, env=variables)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise fail(f"{case} {mode} failed in {checkout}: {done.stderr.strip()[-300:]}")
    return int(found[1].replace(",", ""))


def per_record(checkout: Path, environment: str, case: str, mode: str) -> float:
    """Return the instructions that one more record costs."""
    few, many = (count(checkout, environment, case, mode, records) for records in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main() -> None:
    """Count, print the ratios, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--cases", default=logspool_cases(), help="default: all that use logspool")
    parser.add_argument("--environment", default=".venv-3.11-bench", help="folder of the benchmark's environment")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise fail("valgrind is missing: apt-get install valgrind")
    before = check_out(options.commit)
    if missing := [root for root in (before, ROOT) if not (root / options.environment / "bin" / "python").exists()]:
        raise fail(f"{missing[0]} has no {options.environment}: run bench/against.py {options.commit} first", 2)
    more = []
    for case in options.cases.split(","):
        for mode in MODES:
            old, new = (per_record(checkout, options.environment, case, mode) for checkout in (before, ROOT))
            line = f"{new / old:.3f}  {case} {mode}: {old:,.0f} -> {new:,.0f} instructions for a record"
            step(paint(line, "red") if new / old > LIMIT else line)
            if new / old > LIMIT:
                more.append(f"{case} {mode}")
    if more:
        raise fail(f"{len(more)} rows need more than {LIMIT} of the instructions: {', '.join(more)}")


if __name__ == "__main__":
    main()
