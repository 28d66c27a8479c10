"""Install packages of Debian for the tests, where that is possible."""

import os
import shutil
import subprocess
import time

import terminal


def install(packages: str, purpose: str) -> None:
    """Install packages, named in one text, by apt-get.

    Does nothing where the script does not run as root, or the system has no apt-get. No service is started.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    terminal.step(f"installing {purpose} for the tests: apt-get install {packages}")
    # With SYSTEMD_OFFLINE systemctl starts nothing.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "UCF_FORCE_CONFFOLD": "1", "SYSTEMD_OFFLINE": "1"}
    began = time.monotonic()
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages.split()]):
        done = subprocess.run(
            ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=120", *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            terminal.note(done.stderr.strip())
    terminal.note(f"installing {packages} took {time.monotonic() - began:.0f} s")
