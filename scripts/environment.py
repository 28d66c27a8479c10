"""Virtual environments of the project, each made once and brought up to date only where its inputs changed.

`.venv-3.12` has the packages for the tests, `.venv-3.12-bench` and `.venv-3.12-demo` the packages for these folders.
The extension is built as the Rust tests are, with less optimisation and with debug assertions; for bench and demo in
release mode. Each other version of Python has its own cargo target folder.
Stamps inside the environment hold a hash of the inputs, so that a second call does nothing.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import interpreters
import terminal

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
REQUIREMENTS = ROOT / "scripts" / "requirements"

#: Tests that run at once. Most wait more than they compute: on two cores, six workers take a third less than three.
TEST_WORKERS = len(os.sched_getaffinity(0)) * 3

#: The profile of cargo that builds the tested extension. `release` takes three times as long to build, and lacks the
#: debug assertions; `make full` tests it.
TEST_PROFILE = os.environ.get("LOGSPOOL_TEST_PROFILE", "dev")

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]


@dataclass(frozen=True)
class Environment:
    """One virtual environment of one interpreter for one purpose."""

    interpreter: interpreters.Interpreter
    purpose: str = ""

    @property
    def folder(self) -> Path:
        """Return its folder."""
        return ROOT / f".venv-{self.interpreter.tag}{'-' + self.purpose if self.purpose else ''}"

    @property
    def python(self) -> str:
        """Return its interpreter."""
        return str(self.folder / "bin" / "python")

    def ensure(self) -> "Environment":
        """Make the environment if it is missing or belongs to another interpreter."""
        facts = f"{os.path.realpath(self.interpreter.executable)} {self.interpreter.version}"
        if self._stamped("venv", facts) and os.access(self.python, os.X_OK):
            return self
        terminal.note(f"making {self.folder.name} with Python {self.interpreter.version}")
        command = [self.interpreter.executable, "-m", "venv", "--clear", str(self.folder)]
        if subprocess.run(command, capture_output=True).returncode != 0:
            # Some distributions ship venv without ensurepip: pip of the base interpreter fills the gap.
            run([*command, "--without-pip"])
            run([self.interpreter.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "pip"])
        self._stamp("venv", facts)
        return self

    def install(self, label: str, requirements: Iterable[str], *, wheels_only: bool = False) -> None:
        """Install requirements once; a failure ends the script."""
        wanted = list(requirements)
        facts = "\n".join(wanted)
        if self._stamped(label, facts):
            return
        terminal.note(f"installing {label} into {self.folder.name}")
        done = self._pip(wanted, wheels_only)
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            raise terminal.fail(f"cannot install {label} into {self.folder.name}: pip failed")
        self._stamp(label, facts)

    def install_what_can_be(
        self, label: str, requirements: Iterable[str], *, wheels_only: bool = False, build_here: bool = False
    ) -> dict[str, str]:
        """Install requirements once, at need one by one; return those that failed, each with the reason.

        With `build_here` a package without a wheel is built with the packages of this environment.
        """
        wanted = list(requirements)
        facts = "\n".join(wanted)
        reasons = self._stamp_path(f"{label}-failed")
        if self._stamped(label, facts) and reasons.exists():
            return dict(json.loads(reasons.read_text()))
        terminal.note(f"installing {label} into {self.folder.name}")
        failed: dict[str, str] = {}
        if self._pip(wanted, wheels_only, build_here).returncode != 0:
            for requirement in wanted:
                alone = self._pip([requirement], wheels_only, build_here)
                if alone.returncode != 0:
                    failed[requirement] = reason_of(alone.stderr)
        reasons.parent.mkdir(exist_ok=True)
        reasons.write_text(json.dumps(failed))
        self._stamp(label, facts)
        return failed

    def _pip(
        self, requirements: list[str], wheels_only: bool, build_here: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        command = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
        if wheels_only:
            command += ["--only-binary", ":all:"]
        if build_here:
            command += ["--no-build-isolation"]
        return subprocess.run([*command, *requirements], capture_output=True, text=True)

    def build_extension(self, profile: str = "release") -> "Environment":
        """Build the native module by a profile of cargo and make the package importable here."""
        if self._stamped("extension", _extension_facts(self.interpreter, profile)):
            return self
        terminal.note(f"building the extension for Python {self.interpreter.tag}")
        with locked("python-sources"):
            target = target_folder(self.interpreter)
            _seed_target(target, profile)
            # Once the package is linked into the environment only the native module needs to be put in place.
            linked = ["--skip-install"] if self._stamped("editable", str(ROOT)) else []
            run(
                [str(tools() / "bin" / "maturin"), "develop", "--profile", profile, "--quiet", *linked],
                VIRTUAL_ENV=str(self.folder),
                CARGO_TARGET_DIR=str(target),
                PYO3_PYTHON=self.python,
                CONDA_PREFIX=None,
                **build_variables(self.interpreter),
            )
        self._stamp("editable", str(ROOT))
        self._stamp("extension", _extension_facts(self.interpreter, profile))
        return self

    def _stamp_path(self, label: str) -> Path:
        return self.folder / ".stamps" / label

    def _stamped(self, label: str, facts: str) -> bool:
        path = self._stamp_path(label)
        return path.exists() and path.read_text() == _digest(facts.encode())

    def _stamp(self, label: str, facts: str) -> None:
        path = self._stamp_path(label)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_digest(facts.encode()))


def build_variables(interpreter: interpreters.Interpreter) -> dict[str, str]:
    """Return the environment variables that building the extension for an interpreter needs.

    PyO3 supports free-threaded builds from 3.14 on, and its build script refuses 3.13t. Its definitions of CPython's
    structures still cover 3.13t, so the tests run there too where no 3.14t is at hand.
    """
    return {"UNSAFE_PYO3_SKIP_VERSION_CHECK": "1"} if interpreter.tag == "3.13t" else {}


def target_folder(interpreter: interpreters.Interpreter) -> Path:
    """Return cargo's folder for the extension of an interpreter.

    Each interpreter has one of its own, since most of what depends on Python would be built again at each change
    between two. The running one shares the folder of the Rust tests: the libraries written in C are built once.
    """
    here = interpreter.tag == interpreters.running().tag
    return ROOT / "target" if here else BUILD / f"target-{interpreter.tag}"


def _seed_target(target: Path, profile: str) -> None:
    """Start a build folder as a copy of another one: nearly all crates are independent of Python."""
    name = "debug" if profile == "dev" else profile
    # The programs of the Rust tests are most of the folder of the running interpreter.
    others = [*BUILD.glob(f"target-3.*/{name}"), *(ROOT / "target").glob(name)]
    others.sort(key=lambda folder: folder.stat().st_mtime)
    if (target / name).exists() or not others:
        return
    for part in (".fingerprint", "build", "deps"):
        libraries_only = _without_programs if part == "deps" else None
        if (others[-1] / part).is_dir():
            shutil.copytree(others[-1] / part, target / name / part, symlinks=True, ignore=libraries_only)


def _without_programs(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(name).suffix not in (".d", ".rlib", ".rmeta", ".so")]


def tools() -> Path:
    """Return the environment with maturin and ruff, which is made on first use."""
    environment = Environment(interpreters.running(), "tools").ensure()
    environment.install("tools", read_requirements(REQUIREMENTS / "tools.txt"))
    return environment.folder


def ensure_for_tests(interpreter: interpreters.Interpreter, *, libraries: bool = True) -> Environment:
    """Return the environment of an interpreter with the package, the test tools and maybe the tested libraries."""
    with locked(f"venv-{interpreter.tag}"):
        environment = Environment(interpreter).ensure()
        environment.install("test", extras("test"))
        if not libraries:
            return environment.build_extension(TEST_PROFILE)
        failed: dict[str, str] = {}
        for group in ("libraries", "frameworks"):
            wanted = read_requirements(REQUIREMENTS / f"{group}.txt")
            # Some of them take minutes to build from source, and then mostly fail.
            failed |= environment.install_what_can_be(group, wanted, wheels_only=True)
        for requirement, reason in failed.items():
            terminal.note(terminal.paint(f"not installable on {interpreter.tag}: {requirement}: {reason}", "yellow"))
        if failed and interpreter.tag in ("3.10", "3.11", "3.12", "3.13"):
            raise terminal.fail(f"libraries that the tests need are missing on {interpreter.tag}")
        return environment.build_extension(TEST_PROFILE)


def extras(name: str) -> list[str]:
    """Return the requirements of one extra of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return list(project["project"]["optional-dependencies"][name])


def read_requirements(path: Path) -> list[str]:
    """Return the requirements of a file, without comments."""
    lines = (line.split(" #")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def run(command: list[str], folder: Path = ROOT, **environment: str | None) -> None:
    """Run a command in a folder; a failure ends the script. A None in `environment` removes a variable."""
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    done = subprocess.run(command, cwd=folder, env=variables)
    if done.returncode != 0:
        raise terminal.fail(f"{' '.join(command)} exited with {done.returncode}", done.returncode)


def reason_of(pip_output: str) -> str:
    """Return the most informative line of pip's complaint."""
    lines = [line.strip() for line in pip_output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error:", "fatal error"))]
    return (errors or lines or ["pip gave no reason"])[0][:200]


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock that keeps two runs of these scripts apart."""
    folder = BUILD / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _extension_facts(interpreter: interpreters.Interpreter, profile: str) -> str:
    """Describe all inputs of the native module, and the last built module."""
    sources = [ROOT / name for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml")]
    sources += sorted(path for path in (ROOT / "crates").rglob("*") if path.is_file())
    facts = [f"{path.relative_to(ROOT)} {_digest(path.read_bytes())}" for path in sources if path.exists()]
    # `cpython-313t-` is not matched by `cpython-313-`, so the two builds of one version stay apart.
    pattern = f"_native.cpython-{interpreter.tag.replace('.', '')}-*.so"
    for module in sorted((ROOT / "python" / "logspool").glob(pattern)):
        facts.append(f"{module.name} {module.stat().st_size} {module.stat().st_mtime_ns}")
    return "\n".join([f"{os.path.realpath(interpreter.executable)} {interpreter.version} {profile}", *facts])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def main() -> None:
    """Make the test environment of one interpreter and print the path of its Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter: path, command or version")
    options = parser.parse_args()
    interpreter = interpreters.resolve(options.python)
    if interpreter is None:
        raise terminal.fail(f"{options.python} is no CPython 3.10 or later")
    print(ensure_for_tests(interpreter).python)


if __name__ == "__main__":
    main()
