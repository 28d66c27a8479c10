"""What makes two builds of one commit the same bytes, in whatever folder and at whatever time."""

import functools
import os
import subprocess
from pathlib import Path

from environment import ROOT


@functools.cache
def time() -> int:
    """Return the time of everything built, in seconds since 1970: the time of the commit, or SOURCE_DATE_EPOCH."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    # Without git it is the first time that a zip file can have.
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315532800


def folders(root: Path = ROOT) -> dict[Path, str]:
    """Return the folders of the builder whose names would be in a program, with the names that stand for them."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    version = _answer("rustc", "-vV")
    commit = next(line.split()[1] for line in version.splitlines() if line.startswith("commit-hash"))
    library = Path(_answer("rustc", "--print", "sysroot").strip()) / "lib/rustlib/src/rust"
    return {root: "/logspool", home: "/cargo", library: f"/rustc/{commit}"}


def variables(root: Path = ROOT) -> dict[str, str]:
    """Return the environment variables of a build of the sources in a folder for a target.

    Its build scripts run here and stay as they are.
    """
    names = folders(root).items()
    return {
        "SOURCE_DATE_EPOCH": str(time()),
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={folder}={name}" for folder, name in names),
        "CFLAGS": " ".join(f"-ffile-prefix-map={folder}={name}" for folder, name in names),
    }


def folders_in(binary: Path) -> list[str]:
    """Return the folders of the builder that a program or a module names."""
    content = binary.read_bytes()
    return [str(folder) for folder in [*folders(), Path.home() / ".rustup"] if f"{folder}/".encode() in content]


def _answer(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
