"""Trials of a wheel where nothing else is: in an empty environment, in an empty Debian, and under an emulator.

A trial that cannot be made on this machine says why; a failed trial ends the script.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import debian
import environment
import interpreters
import musl_python
import terminal
import wheel_targets
from environment import BUILD, ROOT

RECORDS = 10_000

#: The release of Debian that has a CPython.
DEBIAN = {"3.11": "bookworm", "3.13": "trixie"}

#: The oldest release of Debian that is still served; its glibc is 2.31.
OLD_DEBIAN = "bullseye"

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
    kind = f"in an empty Debian {release}" + ("" if own else f" under {Path(str(emulator)).name}")
    with _place_in(root, f"/usr/bin/python{tag}", kind, root, emulator) as place:
        yield place


@contextlib.contextmanager
def empty_musl(processor: str, tag: str) -> Iterator[Place | str]:
    """Make a system with musl and a CPython built for it, or say why not."""
    if processor != os.uname().machine:
        yield f"no CPython for musl on {processor} is built here"
        return
    if os.geteuid() != 0:
        yield "only root can change the root folder"
        return
    root = musl_python.root(tag)
    if isinstance(root, str):
        yield root
        return
    pip = BUILD / "roots" / f"pip-{ARCHITECTURES[processor]}"
    with environment.locked("roots"):
        if not pip.exists() and not debian.unpack("python3-pip-whl", "bookworm", ARCHITECTURES[processor], pip):
            yield "the package python3-pip-whl of Debian cannot be fetched"
            return
    with _place_in(root, f"/usr/bin/python{tag}", "in a system with musl and CPython only", pip) as place:
        yield place


@contextlib.contextmanager
def _place_in(root: Path, python: str, kind: str, with_pip: Path, emulator: str | None = None) -> Iterator[Place]:
    """Make a folder for a trial in a root folder; `with_pip` has the wheel of pip that Debian has for `venv`."""
    variables = _variables()
    with tempfile.TemporaryDirectory(prefix="trial-", dir=root / "tmp") as name:
        folder = Path(name)
        if emulator is None:
            command, inside = [*ENTER, str(root), python], f"/tmp/{folder.name}"
        else:
            command, inside = [emulator, "-L", str(root), f"{root}{python}"], name
        # The wheel runs as it is.
        pip = next((with_pip / "usr/share/python-wheels").glob("pip-*.whl"))
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


@contextlib.contextmanager
def bare_root(service: Path, target: wheel_targets.Target) -> Iterator[Place | str]:
    """Make a system with the program of a wheel and the C library that it needs, and nothing else; or say why not."""
    if os.geteuid() != 0:
        yield "only root can change the root folder"
        return
    own = os.uname().machine == target.processor
    emulator = None if own else shutil.which(f"qemu-{target.processor}-static")
    if not own and emulator is None:
        yield f"qemu-{target.processor}-static is missing: apt-get install qemu-user-static"
        return
    with tempfile.TemporaryDirectory(prefix="logspool-root-") as name:
        root, system = Path(name), "in an empty folder as root"
        if not target.is_musl:
            system = f"in a Debian {OLD_DEBIAN} that has only the C library"
            made = c_library_root(target)
            if made is None:
                yield f"the packages of Debian {OLD_DEBIAN} cannot be fetched"
                return
            root = root / "system"
            environment.run(["cp", "--archive", str(made), str(root)])
        for folder in ("dev", "proc", "tmp", "usr/bin"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(service) as archive:
            program = next(name for name in archive.namelist() if name.endswith(".data/scripts/logspool"))
            (root / "usr/bin/logspool").write_bytes(archive.read(program))
        (root / "usr/bin/logspool").chmod(0o755)
        command = [*ENTER, str(root)]
        if emulator is not None:
            shutil.copy(emulator, root / "emulator")
            command.append("/emulator")
            system += f" under {Path(emulator).name}"
        yield Place(system, [*command, "/usr/bin/logspool"], root, "", {"PATH": os.environ["PATH"]})


def serve_alone(place: Place, store: str = "/tmp/data", before: int = 0, seconds: float = 300) -> float:
    """Let the program of a place store records that come as lines of JSON, and find them; return the time it takes.

    `before` is the number of records that the store has already.
    """
    words = ["serve", "--listen", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--store", f"sqlite:{store}"]
    service = subprocess.Popen(
        [*place.python, *words], stderr=subprocess.PIPE, text=True, env=place.variables, cwd=place.folder
    )
    try:
        said: list[str] = []
        ports: list[str] = []
        for line in service.stderr:
            said.append(line)
            ports += re.findall(r"listening at \w+://127\.0\.0\.1:(\d+)", line)
            if "ready" in line:
                break
        if len(ports) != 2:
            raise terminal.fail(f"the service does not start {place.description}: {''.join(said)}")
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", int(ports[0])), timeout=seconds) as connection:
            lines = (json.dumps({"message": f"record {number}", "logger": "trial"}) for number in range(RECORDS))
            connection.sendall("".join(f"{line}\n" for line in lines).encode())
        query = [*place.python, "query", "--service", f"http://127.0.0.1:{ports[1]}", "record | count by logger"]
        wanted = before + RECORDS
        while True:
            answer = subprocess.run(query, capture_output=True, text=True, env=place.variables, timeout=seconds)
            if re.search(rf"\b{wanted}\b", answer.stdout):
                break
            if time.monotonic() - began > seconds:
                raise terminal.fail(f"{wanted} records are not found {place.description}: {answer}")
            time.sleep(0.1)
        taken = time.monotonic() - began
        service.terminate()
        if service.wait(timeout=seconds) != 0:
            raise terminal.fail(f"the service ends with {service.returncode} {place.description}")
        return taken
    finally:
        service.kill()
        service.wait()
        service.stderr.close()


def c_library_root(target: wheel_targets.Target) -> Path | None:
    """Return the folder of a system that has glibc and nothing else; None: it cannot be made."""
    architecture = ARCHITECTURES[target.processor]
    root = BUILD / "roots" / f"libc-{architecture}"
    with environment.locked("roots"):
        if not root.exists() and not debian.unpack("libc6", OLD_DEBIAN, architecture, root):
            return None
    return root


def musl_library(target: wheel_targets.Target) -> Path | str:
    """Return musl's C library, with which a module is compared, or why it is missing."""
    root = BUILD / "roots" / f"musl-{ARCHITECTURES[target.processor]}"
    with environment.locked("roots"):
        if not root.exists() and not debian.unpack("musl", "bookworm", ARCHITECTURES[target.processor], root):
            return "the package musl of Debian cannot be fetched"
    return root / f"usr/lib/{target.processor}-linux-musl/libc.so"


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOGSPOOL"))}
