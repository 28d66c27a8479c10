"""`python -m logspool run`: execute a program in this process, with logspool installed before its first line.

The process executes the interpreter again, with the program as its argument. So argv, `sys.path`, `__main__`,
tracebacks, signals and the exit status are exactly those of the program. Every interpreter imports `sitecustomize` when
it starts. `_children/sitecustomize.py`, which is on PYTHONPATH, installs logspool and then runs the `sitecustomize`
that the interpreter would have found otherwise. Child processes inherit the environment, so logspool is installed in
them, too.
"""

from __future__ import annotations

import os
import sys

from logspool.commands import _messages

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
_CHILDREN = os.path.join(_HERE, "_children")
_PACKAGE = os.path.dirname(_HERE)


def main(arguments: Sequence[str]) -> int:
    """Run the program in this process. Returns the exit code only if that fails."""
    reports = list(arguments[:1]) == ["--report"]
    arguments = arguments[1:] if reports else arguments
    is_command = list(arguments[:1]) == ["--"]
    if not arguments or list(arguments) in (["-m"], ["--"]):
        return _messages.usage("run", "name a script, -m and a module, or -- and a command (fix: --help)")
    first = arguments[0]
    if first not in ("-m", "--"):
        if first.startswith("-"):
            return _messages.usage(
                "run",
                f"no option is named {first!r}; there are --report, -m MODULE and -- COMMAND (fix: options of the "
                "interpreter go before -m logspool, those of the program after its name)",
            )
        if not os.path.exists(first):
            return _messages.usage("run", f"cannot open {first!r}: no such file ({_fix(first)})")
    options = interpreter_options(sys.orig_argv, len(sys.argv) - 1)
    program = _command(arguments[1]) if is_command else sys.executable
    if program is None:
        return _messages.usage(
            "run",
            f"no command is named {arguments[1]!r}, neither beside this Python nor on the PATH (fix: install it into "
            "this environment, or name its path)",
        )
    if is_command and options:
        return _messages.usage(
            "run",
            f"the interpreter's options {' '.join(options)} do not reach a command (fix: omit them, or use -m MODULE)",
        )
    environment = dict(os.environ)
    if environment.get("LOGSPOOL") != "off":
        code = _install_below(environment, reports=reports)
        if code:
            return code
    if not program:
        return _messages.failed("run", "this interpreter does not know its own program file (fix: use its full path)")
    sys.stdout.flush()
    sys.stderr.flush()
    words = [*arguments[1:]] if is_command else [program, *options, *arguments]
    try:
        os.execve(program, words, environment)
    except OSError as error:
        return _messages.failed("run", f"cannot run {program!r}: {error.strerror} (fix: {_not_run(error)})")


def _fix(name: str) -> str:
    """Return what to type if no file has the name of the script."""
    if _command(name) is not None:
        return f"fix: python -m logspool run -- {name}"
    return "fix: name a script, -m MODULE, or -- COMMAND"


def _command(name: str) -> str | None:
    """Return the path of a command: first from the environment of this Python, then from the PATH."""
    import shutil

    if os.sep in name:
        return name
    return shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name)


def _not_run(error: OSError) -> str:
    import errno

    if error.errno == errno.EACCES:
        return "make it executable by chmod +x, or name it without --"
    if error.errno == errno.ENOEXEC:
        return "begin it with a line such as #!/usr/bin/env python3, or name it without --"
    return "name a command that exists"


def _install_below(environment: dict[str, str], *, reports: bool) -> int:
    """Let the program with this environment, and its children, install logspool. Returns an exit code; 0: done."""
    from logspool.base import _options
    from logspool.process import _configuration

    try:
        settings = _configuration.in_force()
    except ValueError as error:
        return _messages.failed("run", f"cannot install: {error}")
    if sys.flags.ignore_environment or sys.flags.no_site:
        return _messages.usage("run", "the interpreter's options -E, -I and -S keep logspool out (fix: omit them)")
    prepare(environment)
    configuration = _configuration.read()
    if configuration.file is not None and configuration.is_set_by_file:
        # Children may have another current folder.
        environment[_configuration.FILE_VARIABLE] = configuration.file
    if configuration.ignored is not None:
        environment[_configuration.IGNORED_VARIABLE] = str(configuration.ignored)
    if reports:
        # The program keeps the id of this process; its children have others, and report nothing.
        environment["LOGSPOOL_REPORT"] = str(os.getpid())
    queue_dir = settings.get("queue_dir")
    folder = None if queue_dir is None else _options.queue_dir(queue_dir.value)
    _keep(environment, folder or _options.default_queue_dir())
    return 0


def _keep(environment: dict[str, str], folder: str) -> None:
    """Start a keeper for the program. Without a keeper, the next start delivers the records that a kill leaves."""
    from logspool.process import _keeper

    if _keeper.is_off():
        return
    try:
        _keeper.ensure(folder)
    except OSError as error:
        sys.stderr.write(f"logspool: the program has no keeper: {error.strerror or error}\n")
        return
    _keeper.note(environment, folder)


def prepare(environment: dict[str, str]) -> None:
    """Let interpreters that start with this environment install logspool."""
    environment["LOGSPOOL_INSTALL"] = "1"
    # The folder that contains this copy of logspool, for child processes with another sys.path.
    environment["LOGSPOOL_PACKAGE"] = os.path.dirname(_PACKAGE)
    rest = environment.get("PYTHONPATH", "")
    folders = [folder for folder in rest.split(os.pathsep) if folder != _CHILDREN] if rest else []
    environment["PYTHONPATH"] = os.pathsep.join([_CHILDREN, *folders])


def interpreter_options(command: Sequence[str], arguments: int) -> list[str]:
    """Return the interpreter's own options of a command line that ends with `-m logspool` and some arguments."""
    options = list(command[1 : len(command) - arguments])
    if options and options[-1] == "logspool":
        options.pop()
    elif options and options[-1].endswith("logspool"):
        options[-1] = options[-1][: -len("logspool")]
    # The last option is `-m`, or a group of letters that ends with `m`, such as `-Bm`.
    if options and options[-1].endswith("m"):
        letters = options.pop()[:-1]
        if letters != "-":
            options.append(letters)
    return options
