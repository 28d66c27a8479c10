"""Trials of a wheel where nothing else is: in an empty environment, in an empty Debian, and under an emulator.

A trial that cannot be made on this machine says why; a failed trial ends the script.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import debian
import environment
import interpreters
import terminal
import wheel_targets
from environment import BUILD, ROOT

RECORDS = 10_000

#: The release of Debian that has a CPython.
DEBIAN = {"3.11": "bookworm", "3.13": "trixie"}

#: Starts a program in another root folder with the devices and processes of this system. The mounts end with it.
ENTER = [
    *("unshare", "--mount", "sh", "-c"),
    'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
]

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

TRIAL = f"""
import logging, pathlib, sys, threading, time
import logspool

assert logspool.stats().native, logspool.stats()
path = pathlib.Path(sys.argv[1])
logging.basicConfig(filename=path, level=logging.INFO, format="%(levelname)s %(name)s:%(lineno)d %(message)s")
logspool.install()
log = logging.getLogger("trial")
for number in range({RECORDS}):
    log.info("record %d of %s", number, "trial")
logspool.flush()
lines = path.read_text().splitlines()
assert len(lines) == {RECORDS}, f"{{len(lines)}} lines instead of {RECORDS}"
wrong = [line for number, line in enumerate(lines) if not line.endswith(f" record {{number}} of trial")]
assert not wrong, f"out of order or damaged: {{wrong[:3]}}"
assert sys.argv[2] not in logspool.__file__, f"imported from the checkout: {{logspool.__file__}}"


def ask():
    while True:
        logspool.health()


# Python ends these threads inside of native code: a module with an unwinder of its own crashes there.
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(0.5)
"""

SERVICE_TRIAL = f"""
import logging, os, re, subprocess, sys
import logspool

program, folder = sys.argv[1:]
os.environ["PATH"] = os.path.dirname(program)
words = [program, "serve", "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--store", f"sqlite:{{folder}}"]
service = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
addresses = []
for line in service.stderr:
    if "listening at tcp" in line:
        addresses.append(line.split("listening at ")[1].split("?")[0].strip())
    if "ready" in line:
        break
to, http = addresses
logging.basicConfig(level=logging.INFO, handlers=[logspool.ServiceHandler(to)])
logspool.install()
log = logging.getLogger("trial")
for number in range({RECORDS}):
    log.info("record %d of %s", number, "trial")
assert logspool.flush(timeout=60.0), logspool.stats()
query = ["query", "--service", http.replace("tcp", "http"), "record | count by logger"]
answer = subprocess.run([sys.executable, "-m", "logspool", *query], capture_output=True, text=True, timeout=60)
service.terminate()
assert service.wait(timeout=60) == 0, service.returncode
assert re.search(r"\\b{RECORDS}\\b", answer.stdout), answer
"""


@dataclass(frozen=True)
class Place:
    """A place where programs have only the packages installed there."""

    description: str
    #: The words before the arguments of Python.
    python: list[str]
    #: A folder, and its name for the programs.
    folder: Path
    inside: str
    variables: dict[str, str]

    def run(self, arguments: list[str], purpose: str, seconds: int = 600) -> None:
        """Run Python with arguments; a failure ends the script."""
        done = subprocess.run([*self.python, *arguments], cwd=self.folder, env=self.variables, timeout=seconds)
        if done.returncode != 0:
            raise terminal.fail(f"{purpose} fails {self.description}", done.returncode)


@contextlib.contextmanager
def empty_environment(interpreter: interpreters.Interpreter) -> Iterator[Place]:
    """Make an empty environment of an interpreter in a temporary folder.

    It is outside the checkout, so that neither the sources nor an editable installation can stand in for a file that
    the wheel lacks.
    """
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as folder:
        python = str(Path(folder) / "venv" / "bin" / "python")
        made = [interpreter.executable, "-m", "venv", str(Path(folder) / "venv")]
        if subprocess.run(made, capture_output=True).returncode != 0:
            environment.run([*made, "--without-pip", "--clear"])
        yield Place("in an empty environment", [python], Path(folder), folder, _variables())


@contextlib.contextmanager
def empty_debian(processor: str, tag: str) -> Iterator[Place | str]:
    """Make a Debian with CPython and its libraries, or say why not. Another processor is emulated."""
    release = DEBIAN.get(tag)
    if release is None:
        yield f"no Debian has CPython {tag}"
        return
    own = os.uname().machine == processor
    emulator = None if own else shutil.which(f"qemu-{processor}-static")
    if own and os.geteuid() != 0:
        yield "only root can change the root folder"
        return
    if not own and emulator is None:
        yield f"qemu-{processor}-static is missing: apt-get install qemu-user-static"
        return
    root = BUILD / "roots" / f"{release}-{ARCHITECTURES[processor]}"
    with environment.locked("roots"):
        if not root.exists() and not debian.unpack(f"python{tag}-venv", release, ARCHITECTURES[processor], root):
            yield f"the packages of Debian {release} cannot be fetched"
            return
    variables = _variables()
    with tempfile.TemporaryDirectory(prefix="trial-", dir=root / "tmp") as name:
        folder = Path(name)
        if own:
            command, inside = [*ENTER, str(root), f"/usr/bin/python{tag}"], f"/tmp/{folder.name}"
        else:
            command, inside = [str(emulator), "-L", str(root), str(root / f"usr/bin/python{tag}")], name
        kind = f"in an empty Debian {release}" + ("" if own else f" under {Path(str(emulator)).name}")
        # The wheel of pip that Debian has for `venv` runs as it is.
        pip = next((root / "usr/share/python-wheels").glob("pip-*.whl"))
        shutil.copy(pip, folder / pip.name)
        variables["PYTHONPATH"] = os.pathsep.join([f"{inside}/site", f"{inside}/{pip.name}"])
        yield Place(kind, command, folder, inside, variables)


def log_in(place: Place, wheel: Path) -> None:
    """Install a wheel alone, log through it and count the lines."""
    install(place, [wheel])
    (place.folder / "trial.py").write_text(TRIAL)
    place.run([f"{place.inside}/trial.py", f"{place.inside}/trial.log", str(ROOT / "python")], wheel.name)


def serve_in(place: Place, wheels: list[Path], program: str) -> None:
    """Install the wheels of library and service, send records from one to the other, and ask how many there are."""
    install(place, wheels)
    (place.folder / "trial.py").write_text(SERVICE_TRIAL)
    arguments = [f"{place.inside}/trial.py", f"{place.inside}/{program}", f"{place.inside}/data"]
    place.run(arguments, f"the service of {wheels[-1].name}")


def install(place: Place, wheels: list[Path]) -> None:
    """Install wheels and nothing else; pip of the place judges whether they fit."""
    options = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    if "PYTHONPATH" in place.variables:
        for wheel in wheels:
            shutil.copy(wheel, place.folder / wheel.name)
        names = [f"{place.inside}/{wheel.name}" for wheel in wheels]
        place.run(
            ["-m", "pip", *options, "--root-user-action=ignore", "--target", f"{place.inside}/site", *names], "pip"
        )
    else:
        pip = [str(environment.tools() / "bin" / "python"), "-m", "pip", "--python", place.python[0]]
        environment.run([*pip, *options, *map(str, wheels)])


def musl_library(target: wheel_targets.Target) -> Path | str:
    """Return musl's C library, with which a module is compared, or why it is missing."""
    root = BUILD / "roots" / f"musl-{ARCHITECTURES[target.processor]}"
    with environment.locked("roots"):
        if not root.exists() and not debian.unpack("musl", "bookworm", ARCHITECTURES[target.processor], root):
            return "the package musl of Debian cannot be fetched"
    return root / f"usr/lib/{target.processor}-linux-musl/libc.so"


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOGSPOOL"))}
