"""Compare the rotating and watching sinks with the handlers of the standard library, file by file.

Both sides take the same random sequences; the set of files and every byte in them must be the same.

    cargo build -p logspool --example rotate_lines
    python tests/python/sinks/compare.py --example target/debug/examples/rotate_lines [--python PATH]...
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sequences
import stock


def definition(sequence, handler, folder: Path) -> str:
    """Write the first line of the example's orders."""
    options = sequence.options
    path = str(folder / options["filename"])
    if sequence.kind == "watched":
        return f"watched\t{path}"
    rules = stock.rules()[sequence.kind]
    if sequence.kind == "rotating":
        fields = [options["maxBytes"], options["backupCount"], len(sequence.terminator), rules]
        return "\t".join(["rotating", path, *map(str, fields)])
    zone = "utc" if options["utc"] else "local"
    # If the file already exists, the sink computes the first rollover from its age, as stock logging did.
    first = "-" if options["filename"] in sequence.before else handler.rolloverAt
    at_time = options.get("atTime", "-")
    fields = [options["when"], options["interval"], options["backupCount"], zone, at_time, first, rules]
    return "\t".join(["timed", path, *map(str, fields)])


def orders(sequence, effects, folder: Path) -> list:
    """Write the steps as orders; steps of other processes only if they had an effect on the stock side."""
    lines = []
    for step, effect in zip(sequence.steps, effects):
        if step[0] == "line":
            lines.append(f"line\t{step[1]}\t{(step[2] + sequence.terminator).encode().hex()}")
        elif step[0] == "chunk":
            lines.append("chunk")
        elif not effect:
            continue
        elif step[0] == "append":
            lines.append(f"append\t{folder / step[1]}\t{step[2].encode().hex()}")
        else:
            lines.append("\t".join([step[0], *(str(folder / name) for name in step[1:])]))
    return [*lines, "chunk"]


def compare(sequence, example: str, folder: Path) -> tuple:
    """Run both sides. Returns the differences (empty if there are none), and the number of new files of the sink."""
    theirs, ours = folder / "stock", folder / "native"
    stock.prepare(sequence, theirs)
    stock.prepare(sequence, ours)
    os.environ["TZ"] = sequence.zone
    time.tzset()
    handler = stock.make_handler(sequence, theirs)
    first_line = definition(sequence, handler, ours)
    effects = stock.run(sequence, handler, theirs)
    text = "\n".join([first_line, *orders(sequence, effects, ours)]) + "\n"
    result = subprocess.run([example], input=text.encode(), capture_output=True, check=False)
    if result.returncode:
        return f"the example failed: {result.stderr.decode()}", 0
    expected, found = stock.contents(theirs), stock.contents(ours)
    names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    form = "  {!r}:\n    stock  {!r:.300}\n    native {!r:.300}"
    pairs = [form.format(name, expected.get(name), found.get(name)) for name in names]
    return "\n".join(pairs), int(result.stdout)


def run(options) -> int:
    """Compare in this interpreter. Returns the number of sequences with a difference."""
    passed = failed = unusable = 0
    turns = dict.fromkeys(stock.CLASSES, 0)
    for kind in options.kind or stock.CLASSES:
        seed, done = options.seed, 0
        while done < options.sequences:
            sequence = sequences.make(kind, seed)
            seed += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    difference, count = compare(sequence, options.example, Path(folder))
                except stock.StockFailed:
                    unusable += 1
                    continue
            turns[kind] += count
            done += 1
            passed += not difference
            failed += bool(difference)
            if difference and failed <= options.show:
                print(f"{kind} {seed - 1}: {sequence.options} {sequence.zone}\n{difference}", flush=True)
    version = ".".join(map(str, sys.version_info[:3]))
    many = ", ".join(f"{kind} {count}" for kind, count in turns.items())
    print(f"{version}: {passed} passed, {failed} failed (in {unusable} more stock itself failed; new files: {many})")
    sys.stdout.flush()
    return failed


def main() -> int:
    """Read the command line and compare in each interpreter. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", required=True, help="the program rotate_lines")
    parser.add_argument("--sequences", type=int, default=300, help="per handler")
    parser.add_argument("--kind", action="append", choices=stock.CLASSES, help="handlers, instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the first sequence")
    parser.add_argument("--show", type=int, default=3, help="differences to show")
    parser.add_argument("--python", action="append", default=[], help="interpreters to run under, instead of this one")
    options = parser.parse_args()
    if not options.python:
        return 1 if run(options) else 0
    common = [__file__, f"--example={options.example}", f"--sequences={options.sequences}"]
    common += [f"--seed={options.seed}", f"--show={options.show}", *(f"--kind={kind}" for kind in options.kind or [])]
    failures = [python for python in options.python if subprocess.run([python, *common], check=False).returncode]
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
