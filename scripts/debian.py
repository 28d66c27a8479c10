"""Install Debian packages for the tests if possible."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import environment
import terminal


def install(packages: str, purpose: str) -> None:
    """Install packages, named in one text, by apt-get.

    Does nothing where the script does not run as root, or the system has no apt-get. No service is started.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    terminal.step(f"installing {purpose} for the tests: apt-get install {packages}")
    # With SYSTEMD_OFFLINE systemctl starts nothing.
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "UCF_FORCE_CONFFOLD": "1", "SYSTEMD_OFFLINE": "1"}
    began = time.monotonic()
    # apt-get waits for nobody who updates its lists.
    with environment.locked("apt"):
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages.split()]):
            done = subprocess.run(
                ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=120", *arguments],
                env=variables,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                terminal.note(done.stderr.strip())
    terminal.note(f"installing {packages} took {time.monotonic() - began:.0f} s")


def download(package: str, release: str, folder: Path) -> Path | None:
    """Download a package of another release of Debian into a folder and return its path; None: it cannot be fetched.

    Lists and settings of apt are in the folder too, so the system's own stay as they are. apt checks the signature.
    """
    keys = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if not shutil.which("apt-get") or not keys.exists():
        return None
    terminal.step(f"downloading {package} of Debian {release} for the tests")
    for place in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / place).mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb [signed-by={keys}] http://deb.debian.org/debian {release} main\n")
    places = {"State": folder, "State::lists": folder / "lists", "Cache": folder / "cache"}
    places |= {"Etc::sourcelist": folder / "sources.list", "Etc::sourceparts": folder / "parts"}
    options = [part for name, place in places.items() for part in ("-o", f"Dir::{name}={place}")]
    options += ["-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User="]
    for arguments in (["update"], ["download", package]):
        command = ["apt-get", "--quiet", *options, *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            terminal.note(done.stderr.strip())
            return None
    return next(folder.glob(f"{package}_*.deb"), None)
