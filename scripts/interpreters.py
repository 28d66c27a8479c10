"""Find the CPython interpreters that the project is built for and tested on.

`LOGSPOOL_PYTHONS` (separated by spaces or commas; paths, commands or versions such as `3.13t`) rules the list.
Without it every CPython 3.10 to 3.15, free-threaded builds included, is taken from the PATH, from pyenv's folder
of versions and from the folders in `LOGSPOOL_PYTHON_DIR` (separated by colons).
`LOGSPOOL_REQUIRED_PYTHONS` names versions without which the search is a failure, `LOGSPOOL_LEFT_OUT_PYTHONS` versions
that the search leaves out.
"""

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import terminal

SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t")

_PROBE = """
import json, platform, sys, sysconfig
print(json.dumps({
    "implementation": platform.python_implementation(),
    "version": platform.python_version(),
    "short": "%d.%d" % sys.version_info[:2],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "executable": getattr(sys, "_base_executable", sys.executable) or sys.executable,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One CPython on this machine."""

    executable: str
    version: str
    tag: str

    @property
    def free_threaded(self) -> bool:
        """Return whether it was built without the GIL."""
        return self.tag.endswith("t")


@functools.cache
def probe(executable: str) -> Interpreter | None:
    """Ask a program which Python it is; None if it is not a supported Python."""
    try:
        answer = subprocess.run([executable, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=30)
        facts = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    tag = facts["short"] + ("t" if facts["free_threaded"] else "")
    if facts["implementation"] != "CPython" or tag not in SUPPORTED:
        return None
    return Interpreter(facts["executable"], facts["version"], tag)


def discover() -> list[Interpreter]:
    """Return one interpreter for each supported version found, oldest first."""
    found: dict[str, Interpreter] = {}
    for candidate in _candidates():
        interpreter = probe(candidate)
        if interpreter and interpreter.tag not in found:
            found[interpreter.tag] = interpreter
    return [found[tag] for tag in SUPPORTED if tag in found]


def resolve(word: str) -> Interpreter | None:
    """Find the interpreter that a path, a command or a version names."""
    path = shutil.which(word)
    interpreter = probe(path) if path else None
    if interpreter:
        return interpreter
    wanted = word.removeprefix("python")
    return next((found for found in discover() if found.tag == wanted), None)


def running() -> Interpreter:
    """Return the interpreter that runs the script, or end the script where the project does not support it."""
    interpreter = probe(sys.executable)
    if interpreter is None:
        raise terminal.fail(f"{sys.executable} is no CPython 3.10 or later; set PYTHON=/path/to/python3")
    return interpreter


def are_asked_for() -> bool:
    """Return whether `LOGSPOOL_PYTHONS` sets the list."""
    return bool(_words("LOGSPOOL_PYTHONS"))


def chosen() -> list[Interpreter]:
    """Return the interpreters that the environment variables name, or end the script with the reason why not."""
    words = _words("LOGSPOOL_PYTHONS")
    if are_asked_for():
        result: dict[str, Interpreter] = {}
        for word in words:
            interpreter = resolve(word)
            if interpreter is None:
                raise terminal.fail(f"LOGSPOOL_PYTHONS names {word!r}, which is no CPython 3.10 or later here")
            result.setdefault(interpreter.tag, interpreter)
        interpreters = list(result.values())
    else:
        left_out = {word.removeprefix("python") for word in _words("LOGSPOOL_LEFT_OUT_PYTHONS")}
        interpreters = [interpreter for interpreter in discover() if interpreter.tag not in left_out]
    tags = {interpreter.tag for interpreter in interpreters}
    missing = [word for word in _words("LOGSPOOL_REQUIRED_PYTHONS") if word.removeprefix("python") not in tags]
    if missing:
        found = ", ".join(sorted(tags))
        raise terminal.fail(f"required interpreters are missing: {', '.join(missing)} (found: {found})")
    if not interpreters:
        raise terminal.fail("no CPython 3.10 or later found")
    return interpreters


def show(interpreters: list[Interpreter]) -> None:
    """Print the list, with the supported versions that are missing."""
    by_tag = {interpreter.tag: interpreter for interpreter in interpreters}
    for tag in SUPPORTED:
        if tag in by_tag:
            print(f"    {terminal.paint(f'{tag:6}', 'green')} {by_tag[tag].version:10} {by_tag[tag].executable}")
        else:
            print(terminal.paint(f"    {tag:6} not used or not found", "dim"))
    sys.stdout.flush()


def _words(variable: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", os.environ.get(variable, "")) if word]


def _candidates() -> list[str]:
    """Return programs worth a probe, the preferred ones first."""
    names = [f"python{tag}" for tag in SUPPORTED]
    # The interpreter of the scripts comes first, so that its environment serves the other commands too.
    candidates = [sys.executable]
    candidates += [path for name in names if (path := shutil.which(name))]
    candidates += [path for name in ("python3", "python") if (path := shutil.which(name))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = sorted(pyenv.glob("3.1*"), key=_version_key, reverse=True)
    for folder in filter(None, os.environ.get("LOGSPOOL_PYTHON_DIR", "").split(":")):
        folders += [Path(folder), *sorted(Path(folder).glob("*"))]
    for folder in folders:
        candidates += [str(path) for name in names for path in (folder / name, folder / "bin" / name) if path.is_file()]
    return [path for path in candidates if os.access(path, os.X_OK)]


def _version_key(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def main() -> None:
    """Print the interpreters, or with `--prefer` the path of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefer", metavar="VERSION", help="print this version's path, else the running one's")
    options = parser.parse_args()
    if options.prefer:
        interpreter = resolve(options.prefer) or probe(sys.executable)
        print(interpreter.executable if interpreter else sys.executable)
    else:
        show(chosen())


if __name__ == "__main__":
    main()
