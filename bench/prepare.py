"""Make the environment of the comparison, then run a script of this folder in it.

`python bench/prepare.py --python 3.12 -- bench/compare.py --quick`

Each peer is installed alone. If a peer could not be installed, the script gets the reason and its table shows it. With
`--set NAME` the peers are the packages in `bench/NAME/requirements.txt`, in an environment of their own.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import environment
import interpreters
import terminal

ROOT = environment.ROOT
REASONS = environment.BUILD / "bench" / "not-installable.json"


def install_peers(prepared: environment.Environment, requirements: Path) -> None:
    """Install what can be installed, each peer alone, and note the reasons for the rest."""
    reasons: dict[str, str] = {}
    # The set-up of fastthreadpool imports Cython without saying so.
    prepared.install_what_can_be("build-tools", ["Cython==3.0.12", "setuptools", "wheel"])
    for requirement in environment.read_requirements(requirements):
        name = re.split("[=;]", requirement)[0].strip()
        build_here = name == "fastthreadpool"
        for reason in prepared.install_what_can_be(f"peer-{name}", [requirement], build_here=build_here).values():
            reasons[name] = f"{requirement}: not installable on this Python: {reason}"
            terminal.note(f"{reasons[name]} ({prepared.interpreter.tag})")
    REASONS.parent.mkdir(parents=True, exist_ok=True)
    REASONS.write_text(json.dumps(reasons, indent=2))


def main() -> None:
    """Prepare, then become the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter: path, command or version")
    parser.add_argument("--set", default="", metavar="NAME", help="install bench/NAME/requirements.txt instead")
    parser.add_argument("--without-logspool", action="store_true", help="do not build it: its rows are skipped")
    parser.add_argument("command", nargs="+", help="script and its arguments, after `--`")
    options = parser.parse_args()
    interpreter = interpreters.resolve(options.python)
    if interpreter is None:
        raise terminal.fail(f"{options.python} is no CPython 3.10 or later")
    requirements = ROOT / "bench" / options.set / "requirements.txt"
    if not requirements.is_file():
        raise terminal.fail(f"--set {options.set}: no file bench/{options.set}/requirements.txt", 2)
    purpose = f"bench-{options.set}" if options.set else "bench"
    with environment.locked(f"venv-{interpreter.tag}-{purpose}"):
        prepared = environment.Environment(interpreter, purpose).ensure()
        install_peers(prepared, requirements)
        if not options.without_logspool:
            prepared.build_extension()
    variables = {**os.environ, "LOGSPOOL_BENCH_REASONS": str(REASONS)}
    os.chdir(ROOT)
    os.execve(prepared.python, [prepared.python, *options.command], variables)


if __name__ == "__main__":
    main()
