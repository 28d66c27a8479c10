"""Run every check that reads the sources without running the tests; the first failure ends the run.

Words after the script choose checks by name: `python scripts/lint.py ruff sizes`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import environment
import interpreters
import linked_crates
import rust_sources
import terminal
from environment import ROOT, run

#: A check that takes longer says so.
SLOW_SECONDS = 5

PYTHON_FOLDERS = ["python", "tests", "scripts", "bench", "demo"]


def rustfmt() -> None:
    """Check that the Rust sources have the format of rustfmt."""
    run(["cargo", "fmt", "--all", "--check"])
    run(["rustfmt", "--check", "--edition", "2024", *rust_sources.files_declared_by_macros()])


def clippy() -> None:
    """Let clippy read all Rust targets; a warning is an error."""
    run(["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], **_pyo3())


def rustdoc() -> None:
    """Build the Rust pages; a broken link or a missing page is an error."""
    run(["cargo", "doc", "--workspace", "--no-deps", "--quiet"], RUSTDOCFLAGS="-D warnings", **_pyo3())


def ruff() -> None:
    """Check the Python sources and their format."""
    program = str(environment.tools() / "bin" / "ruff")
    folders = [folder for folder in PYTHON_FOLDERS if any((ROOT / folder).rglob("*.py"))]
    run([program, "check", "--quiet", *folders])
    run([program, "format", "--check", "--quiet", *folders])


def stubs() -> None:
    """Compare the stubs with the binary, and let two type checkers read typed programs."""
    prepared = environment.ensure_for_tests(interpreters.running())
    prepared.install("lint", environment.read_requirements(environment.REQUIREMENTS / "lint.txt"))
    allowlist = ROOT / "scripts" / "stubtest-allowlist.txt"
    configuration = ["--mypy-config-file", str(ROOT / "pyproject.toml")]
    command = [prepared.python, "-m", "mypy.stubtest", "logspool", "--concise", *configuration]
    if allowlist.exists():
        command += ["--allowlist", str(allowlist)]
    run(command, MYPYPATH=str(ROOT / "python"))
    if any((ROOT / "tests" / "typing").glob("*.py")):
        run([prepared.python, "-m", "mypy", "tests/typing"])
        run([str(prepared.folder / "bin" / "basedpyright"), "--pythonpath", prepared.python, "tests/typing"])


def generated() -> None:
    """Compare the pages and the signature that are made from tables of the core with these tables."""
    prepared = environment.ensure_for_tests(interpreters.running())
    run([prepared.python, "scripts/generated_pages.py", "--check"])


def sizes() -> None:
    """Refuse files that are too long."""
    run([sys.executable, "scripts/check_sizes.py"])


def layers() -> None:
    """Refuse imports that go up, and cycles of files."""
    run([sys.executable, "scripts/check_layers.py"])


def names() -> None:
    """Refuse a name that two types of a crate share."""
    run([sys.executable, "scripts/check_names.py"])


def unsafe() -> None:
    """Refuse more unsafe functions than there are, and SAFETY comments without a fact."""
    run([sys.executable, "scripts/check_unsafe.py"])


def orderings() -> None:
    """Refuse strong orderings of atomics that no model guards."""
    run([sys.executable, "scripts/check_orderings.py"])


def descriptors() -> None:
    """Refuse a field that keeps a descriptor without a check of its identity."""
    run([sys.executable, "scripts/check_descriptors.py"])


def platform() -> None:
    """Refuse calls of Linux outside of the folder of the system."""
    run([sys.executable, "scripts/check_platform.py"])


def locks() -> None:
    """Refuse plain locks in the package."""
    run([sys.executable, "scripts/check_locks.py"])


def fuzz_lock() -> None:
    """Refuse a lock file of the fuzz targets that does not fit their dependencies."""
    run(["cargo", "tree", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--depth", "0"])


def licences() -> None:
    """Refuse a crate whose licence is not permissive."""
    crates = linked_crates.crates()
    if wrong := linked_crates.refused(crates):
        raise terminal.fail(f"licences that are not permissive: {'; '.join(wrong)}")
    print(f"    {len(crates)} crates have permissive licences")


def words() -> None:
    """Refuse comments and pages that are harder to read than before."""
    run([sys.executable, "scripts/check_words.py"])


def workflows() -> None:
    """Refuse workflows of GitHub that allow more than they need. Nothing is asked of GitHub."""
    run([str(environment.tools() / "bin" / "zizmor"), "--offline", "--quiet", "--pedantic", ".github"])


CHECKS: dict[str, Callable[[], None]] = {
    "rustfmt": rustfmt,
    "ruff": ruff,
    "sizes": sizes,
    "layers": layers,
    "names": names,
    "unsafe": unsafe,
    "orderings": orderings,
    "descriptors": descriptors,
    "platform": platform,
    "locks": locks,
    "fuzz_lock": fuzz_lock,
    "licences": licences,
    "words": words,
    "workflows": workflows,
    "clippy": clippy,
    "rustdoc": rustdoc,
    "stubs": stubs,
    "generated": generated,
}


def _pyo3() -> dict[str, str | None]:
    """Pin the Python that the bindings are checked against, so that cargo's cache stays valid."""
    return {"PYO3_PYTHON": interpreters.running().executable}


def main() -> None:
    """Run the checks in the order of the table."""
    names = sys.argv[1:] or list(CHECKS)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise terminal.fail(f"unknown checks: {', '.join(unknown)} (there are {', '.join(CHECKS)})", 2)
    missing = [name for name in ("rustfmt", "clippy") if name in names and not _has_component(name)]
    if missing:
        raise terminal.fail(f"the Rust toolchain lacks {', '.join(missing)}: rustup component add {' '.join(missing)}")
    for name in names:
        terminal.step(f"lint: {name}")
        began, used = time.monotonic(), _processor_seconds()
        CHECKS[name]()
        if time.monotonic() - began >= SLOW_SECONDS:
            terminal.note(f"{time.monotonic() - began:.0f} s, {_processor_seconds() - used:.0f} s of processor time")


def _processor_seconds() -> float:
    """Return the processor time of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _has_component(name: str) -> bool:
    subcommand = {"rustfmt": "fmt", "clippy": "clippy"}[name]
    return subprocess.run(["cargo", subcommand, "--version"], capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
