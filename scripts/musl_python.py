"""Build a CPython for musl, in which wheels for musl are tried: Debian has musl and the sources, but no such program.

It has zlib, which pip needs, and otherwise only the modules that need no library.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import debian
import environment
import terminal
from environment import BUILD

#: The releases of Debian that have the sources.
RELEASES = {"3.11": "bookworm", "3.13": "trixie"}


def root(tag: str) -> Path | str:
    """Return a root folder with CPython, musl and nothing else, made on first use; or why it cannot be made."""
    if tag not in RELEASES:
        return f"no Debian has the sources of CPython {tag}"
    if shutil.which("musl-gcc") is None:
        return "musl-gcc is missing: apt-get install musl-tools"
    made = BUILD / "roots" / f"musl-python-{tag}"
    with environment.locked("roots"):
        return made if made.exists() else _build(tag, made) or made


def _build(tag: str, made: Path) -> str | None:
    """Build the root folder; return why it cannot be built, or None."""
    part = Path(f"{made}.part")
    shutil.rmtree(part, ignore_errors=True)
    if not debian.unpack("musl", RELEASES[tag], "amd64", part):
        return "the package musl of Debian cannot be fetched"
    with tempfile.TemporaryDirectory(prefix="logspool-musl-") as name:
        folder = Path(name)
        for package in ("zlib", f"python{tag}"):
            (folder / package).mkdir()
            archive = debian.source(package, RELEASES[tag], folder / package)
            if archive is None:
                return f"the sources of {package} cannot be fetched"
            (folder / package / "src").mkdir()
            extract = ["tar", "-x", "--strip-components=1", "-C", str(folder / package / "src"), "-f", str(archive)]
            subprocess.run(extract, check=True)
        terminal.step(f"building CPython {tag} for musl, minutes")
        zlib, python = folder / "zlib" / "src", folder / f"python{tag}" / "src"
        # The compiler would name the system of glibc as its target, and configure would refuse it.
        compiler = folder / "musl-cc"
        compiler.write_text('#!/bin/sh\n[ "$1" = --print-multiarch ] || exec musl-gcc "$@"\n')
        compiler.chmod(0o755)
        variables = {**os.environ, "CC": str(compiler), "CFLAGS": "-O1 -fPIC"}
        _run(["./configure", "--static"], zlib, variables)
        _run(["make", "libz.a"], zlib, variables)
        variables |= {"ZLIB_CFLAGS": f"-I{zlib}", "ZLIB_LIBS": f"-L{zlib} -lz"}
        variables |= {"CPPFLAGS": f"-I{zlib}", "LDFLAGS": f"-L{zlib}"}
        _run(["./configure", "--prefix=/usr", "--disable-test-modules", "--without-ensurepip"], python, variables)
        _run(["make", f"-j{len(os.sched_getaffinity(0))}"], python, variables)
        _run(["make", "install", f"DESTDIR={part}"], python, variables)
    # pip cannot unpack a wheel without it.
    if not any(part.glob("usr/lib/python*/lib-dynload/zlib*.so")):
        return "the CPython that was built for musl has no zlib"
    shutil.rmtree(part / "usr/include")
    part.rename(made)
    return None


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise terminal.fail(f"{' '.join(command)} failed: {done.stdout[-2000:]} {done.stderr[-2000:]}")
