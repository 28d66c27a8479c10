"""`python -m logspool`: run a program with logspool installed, deliver leftovers, or find problems."""

from __future__ import annotations

import os
import sys

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = """\
usage: python -m logspool run [--report] [-m MODULE | SCRIPT | -- COMMAND] [ARGS...]
       python -m logspool config show | check [FILE]
       python -m logspool preset [NAME]
       python -m logspool recover [DIR]
       python -m logspool doctor [DIR]
       python -m logspool top [--pid PID | --name TEXT] [--once]
       python -m logspool COMMAND --help

  run      run a program with logspool installed, in its Python children too
  config   show the options that variables and files set, or check them
  preset   print the configuration of a framework: uvicorn, gunicorn, vllm, sglang, ray, django, celery
  recover  write the records of killed processes from shared memory to their files
  doctor   list problems of this machine: tmpfs, leftovers of dead processes
  top      show the queues, outputs and rates of running processes

The commands of the service (serve, query, tail, stats, check-config) run the program logspool.
"""

_HELP = {
    "run": """\
usage: python -m logspool run [--report] [-m MODULE | SCRIPT | -- COMMAND] [ARGS...]

Run `python SCRIPT ARGS...`, `python -m MODULE ARGS...` or any command in this process, with logspool installed before
the first line of Python. Options of the interpreter come first: `python -X dev -m logspool run SCRIPT`.

Children get logspool too, also through multiprocessing and subprocess: LOGSPOOL_INSTALL=1 and a folder at the front
of PYTHONPATH are set in the environment. A program that calls logspool.install() itself gets its own options.

  --report                 at the end of the program, list on stderr which of its filters, formatters and handlers ran
                           in the calling thread, how often, and what would make these calls cost less

environment:
  LOGSPOOL=off             run the program without logspool
  LOGSPOOL_QUEUE_DIR=DIR   folder of the queue, by default one of this user in /dev/shm
  LOGSPOOL_...             any other option of install(): see `python -m logspool config --help`
""",
    "config": """\
usage: python -m logspool config show
       python -m logspool config check [FILE]

show   list each option of logspool.install() with its value for a program that starts here, and where it is set
check  list each fault of the variables and the file, or of FILE, with its repair

An option is a variable, as LOGSPOOL_QUEUE_BYTES=65536, or a key in the TOML file that LOGSPOOL_CONFIG names. Without
that variable the file is pyproject.toml in the current folder, with the table [tool.logspool], unless another user can
have written it. An argument of install() comes first, then the variable, then the file.

exit status: 0 no fault, 1 faults (on stderr), 2 usage
""",
    "preset": """\
usage: python -m logspool preset
       python -m logspool preset NAME [--file PATH] [--json] [--level LEVEL]

Print the configuration of a framework for logging.config.dictConfig as JSON, or list the frameworks and how each of
them loads it: `python -m logspool preset vllm > logging.json`. With it the framework runs with logspool installed and
writes the lines that it writes without.

  --file PATH              write to this file instead of the console
  --json                   write a JSON object per line instead of the framework's format
  --level LEVEL            level of the framework's loggers, by default INFO

exit status: 0 printed, 2 usage
""",
    "recover": """\
usage: python -m logspool recover [DIR]

Write the records of killed processes of this user from the queue folder DIR to their files, and remove them there.
The default of DIR is LOGSPOOL_QUEUE_DIR, or this user's folder in /dev/shm. Records of live processes stay. Records
for terminals and pipes that ended with their process are dropped and counted.

exit status: 0 all delivered, 1 some records stay (stderr names them and the reason), 2 usage
""",
    "doctor": """\
usage: python -m logspool doctor [DIR]

List problems of this machine for programs with logspool, without changes: missing or small shared memory, and
records of killed processes in the queue folder DIR. The default of DIR is LOGSPOOL_QUEUE_DIR, or this user's folder
in /dev/shm. Each problem comes with its remedy.

exit status: 0 nothing found, 1 something found, 2 usage
""",
    "top": """\
usage: python -m logspool top [--pid PID | --name TEXT] [--queue-dir DIR] [--interval SECONDS] [--once]

Show the queues, outputs and rates of running processes, again every second until Ctrl-C. They are read from the
queues' shared memory; nothing has to run in the processes, and nothing in them is changed or delayed. On a terminal
this needs the package rich: pip install 'logspool[top]'. In a pipe, plain tables follow each other.

  --pid PID            only this process, wherever its queue is
  --name TEXT          only processes with TEXT in their command line
  --queue-dir DIR      look in this folder; the default is LOGSPOOL_QUEUE_DIR, or this user's folder in /dev/shm
  --interval SECONDS   time between two looks (default 1)
  --once               print one plain table and end; its rates are those of half a second

columns: records written to the output; its rates; records that wait for it; records dropped; failed writes; bytes in
the queue's lanes and overflow, and records refused at the call, once for each process

exit status: 0 ended by Ctrl-C or --once, 1 nothing to show (stderr names the reason), 2 usage
""",
}

#: Commands of the program `logspool`, which another package provides.
_SERVICE = ("serve", "query", "tail", "stats", "check-config")


def _find_program() -> str | None:
    """Return the path of the program `logspool`: first from this environment, then from the PATH."""
    import shutil

    beside = os.path.dirname(sys.executable)
    return shutil.which("logspool", path=beside) or shutil.which("logspool")


def main(arguments: Sequence[str]) -> int:
    """Run one command. Returns the exit code: 0 for success, 1 for a failure, 2 for a wrong command line."""
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
        from logspool.commands import _run

        return _run.main(rest)
    if command == "config":
        from logspool.commands import _config

        return _config.main(rest)
    if command == "preset":
        from logspool.commands import _preset

        return _preset.main(rest)
    if command == "doctor":
        from logspool.commands import _doctor

        return _doctor.main(rest)
    if command == "top":
        from logspool.commands import _top

        return _top.main(rest)
    if command == "recover":
        from logspool.commands import _recover

        return _recover.main(rest)
    from logspool.commands import _messages

    if command in _SERVICE:
        program = _find_program()
        if program is None:
            return _messages.usage(
                command,
                "that command belongs to the service, the program logspool of the package logspool-service, which is"
                " neither beside this Python nor on the PATH (fix: install the wheel of logspool-service, which"
                " `python scripts/wheels.py --service` makes in the sources of logspool; or there"
                " cargo install --path crates/logspool-server)",
            )
        os.execv(program, [program, command, *rest])
    from logspool.base._options import meant

    known = meant(command, [*_HELP, *_SERVICE])
    return _messages.usage("", f"no command is named {command!r}; {known} (fix: --help)")


def _main_for_a_pipe(arguments: Sequence[str]) -> int:
    """Run `main` for a reader of the output that may have enough before its end, such as `head`."""
    try:
        code = main(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python's own flush at the end must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(_main_for_a_pipe(sys.argv[1:]))
