"""Start the keeper: a separate process that delivers the records of this process if it is killed.

A queue in a folder has a keeper if the program requests one. A queue in memory always has a keeper. The core starts it
with the first record, by the command line that `command()` returns.

The keeper is an interpreter that loads only the native module. The native module then makes the keeper independent of
this process (`keeper.rs`): the started process ends at once, so this process has no child and need not wait for one.
"""

from __future__ import annotations

import os
import signal
import sys

from logspool import _native

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The variable of the option `keeper`. "off" also overrides the argument `keeper=True`.
VARIABLE = "LOGSPOOL_KEEPER"

#: A variable that names the process and the folder for which `python -m logspool run` has started a keeper.
KEPT = "LOGSPOOL_KEPT"

#: The Python program of the keeper. It imports only frozen modules, so the only file that it reads is the native
#: module.
_PROGRAM = """\
import _frozen_importlib as f, _frozen_importlib_external as x, sys
loader = x.ExtensionFileLoader("logspool._native", sys.argv[1])
native = f.module_from_spec(f.ModuleSpec("logspool._native", loader, origin=sys.argv[1]))
loader.exec_module(native)
"""

#: The last line of the program for a queue in a folder (`_KEEP`) and for a queue in memory (`_KEEP_MEMORY`).
_KEEP = "native.keep(3, sys.argv[2])\n"
_KEEP_MEMORY = "native.keep_memory(int(sys.argv[3]))\n"

#: Replaces the folder in the command line of a keeper, if its queue is in memory.
IN_MEMORY = "memfd"

#: Names of process and folder for which this process has started keepers.
_started: set[str] = set()


def is_off() -> bool:
    """Return whether the environment variable turns keepers off."""
    return os.environ.get(VARIABLE) == "off"


def below_run() -> bool:
    """Return whether this process itself, not its parent, was started by `run` with a keeper."""
    return not is_off() and os.environ.get(KEPT, "").startswith(f"{_identity()}:")


def ensure(folder: str) -> None:
    """Start a keeper of this process for a queue folder, if it has none. Does nothing with LOGSPOOL_KEEPER=off.

    Raises:
        OSError: no keeper can be started; `strerror` says why.
    """
    word = f"{_identity()}:{os.path.abspath(folder)}"
    if is_off() or word in _started or os.environ.get(KEPT) == word:
        return
    _start(os.path.abspath(folder))
    _started.add(word)


def note(environment: dict[str, str], folder: str) -> None:
    """Set the variable, so that the program that this process executes knows of its keeper for this folder."""
    environment[KEPT] = f"{_identity()}:{os.path.abspath(folder)}"


def command() -> tuple[tuple[list[bytes], list[bytes]] | None, str]:
    """Return how to start a keeper for a queue in memory, or None and the reason why none can be started.

    The first value is the command line without its last word, which is the process id, and the environment.
    """
    if is_off():
        return None, f"{VARIABLE}=off"
    try:
        words = [*_words(_interpreter(), _KEEP_MEMORY), IN_MEMORY]
    except OSError as error:
        return None, str(error.strerror)
    environment = [name + b"=" + value for name, value in os.environb.items()]
    return ([os.fsencode(word) for word in words], environment), ""


def _words(interpreter: str, then: str) -> list[str]:
    return [interpreter, "-I", "-S", "-c", _PROGRAM + then, os.path.abspath(_native.__file__)]


def _identity() -> str:
    """Return a unique name of this process: id and start time, because a later process may get the same id."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            # The second field is the program's name in parentheses. It may contain any characters, even `)`.
            start = file.read().rpartition(")")[2].split()[19]
    except OSError:
        # Without /proc, as in some containers, the id alone is the name.
        start = "unknown"
    return f"{os.getpid()}-{start}"


def _interpreter() -> str:
    """Return the program file of this interpreter, also if the interpreter is embedded in another program."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}{sys.abiflags}"
    own = sys.executable or ""
    beside = os.path.join(sys.base_exec_prefix, "bin", version)
    for path in (own if os.path.basename(own).startswith("python") else "", beside):
        # The kernel checks the effective ids of the process on execution, not the real ids.
        if path and os.access(path, os.X_OK, effective_ids=True):
            return path
    raise OSError(0, f"neither sys.executable, {own!r}, nor {beside!r} is an interpreter")


def _start(folder: str) -> None:
    interpreter = _interpreter()
    if not hasattr(os, "pidfd_open"):
        raise OSError(0, "this interpreter was built without pidfd_open (Linux 5.3)")
    watched = os.pidfd_open(os.getpid())
    try:
        words = [*_words(interpreter, _KEEP), folder, str(os.getpid())]
        # The keeper must not keep the output pipes open, because their readers would wait until the keeper ends.
        actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        child = os.posix_spawn(
            interpreter,
            words,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, watched, 3), *actions],
            # Signals are blocked before the keeper's first instruction, so that no signal to the process group ends it.
            setsigmask=signal.valid_signals(),
        )
    finally:
        os.close(watched)
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        # The program ignores SIGCHLD or waits for every child itself. The started process has ended, but its exit
        # status is not known.
        return
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise OSError(0, f"the keeper ended with {code} when it should have begun")


def running(folder: str) -> Iterator[tuple[int, int]]:
    """Yield the process id of each keeper for a queue folder, or `IN_MEMORY`, with the id of its program."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/comm", "rb") as file:
                if file.read() != b"logspool-keeper\n":
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if os.fsdecode(words[-3]) == (folder if folder == IN_MEMORY else os.path.abspath(folder)):
                yield int(name), int(words[-2])
        except (OSError, IndexError, ValueError):
            # The process ended meanwhile, or it is not a keeper.
            continue
