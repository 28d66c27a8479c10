"""Install Debian packages for the tests if possible."""

import os
import shutil
import subprocess
import tempfile
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
    terminal.step(f"downloading {package} of Debian {release} for the tests")
    if not _apt(folder, release, [], ["download", package]):
        return None
    return next(folder.glob(f"{package}_*.deb"), None)


def source(package: str, release: str, folder: Path) -> Path | None:
    """Download the sources of a package into a folder and return the path of their archive; None: they cannot be had.

    It is the archive of the program's makers, without Debian's changes.
    """
    terminal.step(f"downloading the sources of {package} of Debian {release}")
    if not _apt(folder, release, [], ["source", "--download-only", package], kind="deb-src"):
        return None
    return next(folder.glob("*.orig.tar.*[a-z2]"), None)


def unpack(package: str, release: str, architecture: str, root: Path) -> bool:
    """Unpack a package with all that it needs into a folder that is a system of its own then; tell whether it worked.

    No program of the packages is run, so it may be another architecture.
    """
    with tempfile.TemporaryDirectory(prefix="logspool-debian-") as name:
        terminal.step(f"unpacking {package} of Debian {release} for {architecture} into {root}")
        options = ["-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}"]
        wanted = ["install", "--download-only", "--yes", "--no-install-recommends", package]
        if not _apt(Path(name), release, options, wanted):
            return False
        made = Path(f"{root}.part")
        shutil.rmtree(made, ignore_errors=True)
        for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "dev", "proc", "tmp"):
            (made / folder).mkdir(parents=True)
        for link in ("bin", "lib", "lib64", "sbin"):
            (made / link).symlink_to(f"usr/{link}")
        for archive in sorted((Path(name) / "cache/archives").glob("*.deb")):
            # dpkg would put a folder in the place of the links.
            contents = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
            extract = ["tar", "-x", "-C", str(made), "--keep-directory-symlink"]
            if subprocess.run(extract, stdin=contents.stdout).returncode != 0 or contents.wait() != 0:
                return False
        made.rename(root)
    return True


def _apt(folder: Path, release: str, options: list[str], command: list[str], kind: str = "deb") -> bool:
    """Run a command of apt-get after it has fetched the lists of a release; tell whether it worked."""
    keys = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if not shutil.which("apt-get") or not keys.exists():
        return False
    for place in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / place).mkdir(parents=True)
    (folder / "sources.list").write_text(f"{kind} [signed-by={keys}] http://deb.debian.org/debian {release} main\n")
    places = {"State": folder, "State::lists": folder / "lists", "Cache": folder / "cache"}
    places |= {"Etc::sourcelist": folder / "sources.list", "Etc::sourceparts": folder / "parts"}
    own = [part for name, place in places.items() for part in ("-o", f"Dir::{name}={place}")]
    own += ["-o", "Dir::State::status=/dev/null", "-o", "APT::Sandbox::User=", *options]
    for arguments in (["update"], command):
        done = subprocess.run(["apt-get", "--quiet", *own, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            terminal.note(done.stderr.strip())
            return False
    return True
