"""`python -m logspool`: run a program with logspool installed, deliver leftovers, or look what would hurt."""

from __future__ import annotations

import os
import sys

# `typing` is slow to import; checkers know this name by its spelling.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = """\
usage: python -m logspool run [-m MODULE | SCRIPT] [ARGS...]
       python -m logspool recover [DIR]
       python -m logspool doctor [DIR]
       python -m logspool COMMAND --help

  run      become that program with logspool installed, in its Python children too
  recover  write what killed processes left in shared memory to its files
  doctor   say what on this machine would hurt: tmpfs, leftovers of dead processes

The commands of the service (serve, query, tail, stats, check-config) are handed over to the program logspool.
"""

_HELP = {
    "run": """\
usage: python -m logspool run [-m MODULE | SCRIPT] [ARGS...]

Become `python SCRIPT ARGS...` or `python -m MODULE ARGS...`, the same process, with logspool installed before its
first line. Options of the interpreter go before: `python -X dev -m logspool run SCRIPT`.

Children get logspool too, also through multiprocessing and subprocess: LOGSPOOL_INSTALL=1 and a folder at the front
of PYTHONPATH are set in the environment. A program that calls logspool.install() itself gets its own options.

environment:
  LOGSPOOL=off             become the program as it is
  LOGSPOOL_QUEUE_DIR=DIR   folder of the queue, by default one of this user in /dev/shm
""",
    "recover": """\
usage: python -m logspool recover [DIR]

Write what killed processes of this user left in the queue folder DIR to the files it was meant for, and remove it
there. Without DIR: LOGSPOOL_QUEUE_DIR, or this user's folder in /dev/shm. Records of processes that live are left
alone; records for terminals and pipes that ended with their process are dropped and counted.

exit status: 0 all delivered, 1 something stays (stderr says what and why), 2 usage
""",
    "doctor": """\
usage: python -m logspool doctor [DIR]

Look, changing nothing, what would hurt programs with logspool on this machine: shared memory that is missing or
small, and what killed processes left in the queue folder DIR, by default LOGSPOOL_QUEUE_DIR or this user's folder in
/dev/shm. Each finding comes with its mend.

exit status: 0 nothing found, 1 something found, 2 usage
""",
}

#: Words of the program `logspool`, which another package brings.
_SERVICE = ("serve", "query", "tail", "stats", "check-config")


def _find_program() -> str | None:
    """Return the path of the program `logspool`: first from this environment, then from the PATH."""
    import shutil

    beside = os.path.dirname(sys.executable)
    return shutil.which("logspool", path=beside) or shutil.which("logspool")


def main(arguments: Sequence[str]) -> int:
    """Run one command. Returns the exit code: 0 done, 1 failed, 2 usage."""
    if not arguments:
        sys.stderr.write(_USAGE)
        return 2
    command, rest = arguments[0], list(arguments[1:])
    if command in ("-h", "--help", "help"):
        sys.stdout.write(_HELP.get(rest[0], _USAGE) if rest else _USAGE)
        return 0
    if command in _HELP and rest and rest[0] in ("-h", "--help"):
        sys.stdout.write(_HELP[command])
        return 0
    if command == "run":
        from logspool import _run

        return _run.main(rest)
    if command == "doctor":
        from logspool import _doctor

        return _doctor.main(rest)
    if command == "recover":
        from logspool import _recover

        return _recover.main(rest)
    from logspool import _messages

    if command in _SERVICE:
        program = _find_program()
        if program is None:
            return _messages.usage(
                command,
                "that command belongs to the service, the program logspool of the package logspool-server, which is"
                " neither beside this Python nor on the PATH (mend: cargo install --path crates/logspool-server)",
            )
        os.execv(program, [program, command, *rest])
    from logspool._options import meant

    known = meant(command, [*_HELP, *_SERVICE])
    return _messages.usage("", f"no command is named {command!r}; {known} (mend: --help)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
