"""The systems that wheels are built for, with the needs of a build and the limits of a module for each."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import debian
import environment
import interpreters
import native_package
import terminal
from environment import BUILD, REQUIREMENTS

#: What level 3 of zstd, the only level of rotated files, does not use.
_UNUSED_COMPRESSORS = ("GREEDY", "LAZY", "LAZY2", "BTLAZY2", "BTOPT", "BTULTRA")

#: Parts of SQLite that its sink does not use; FTS5 stays for searches of its tables.
_UNUSED_PARTS = ("FTS3", "FTS3_PARENTHESIS", "RTREE", "STAT4", "DBSTAT_VTAB", "COLUMN_METADATA", "LOAD_EXTENSION")

#: Environment variables with which the libraries in C are as small as the library needs them.
SMALL = {
    "CFLAGS": " ".join(
        ["-fno-asynchronous-unwind-tables"]
        + [f"-DZSTD_EXCLUDE_{name}_BLOCK_COMPRESSOR" for name in _UNUSED_COMPRESSORS]
    ),
    "LIBSQLITE3_FLAGS": " ".join(
        [*(f"-USQLITE_ENABLE_{name}" for name in _UNUSED_PARTS), "-USQLITE_SOUNDEX", "-DSQLITE_OMIT_LOAD_EXTENSION"]
    ),
}

#: Symbols of CPython, which the module finds in the interpreter.
_PYTHON = re.compile(r"_?Py[A-Z_]")


@dataclass(frozen=True)
class Target:
    """A processor and a C library, named as in the tag of a wheel."""

    processor: str
    tag: str

    @property
    def name(self) -> str:
        """Return its name on the command line."""
        return f"{self.processor}-{self.tag}"

    @property
    def is_musl(self) -> bool:
        """Return whether its C library is musl."""
        return self.tag.startswith("musllinux")

    @property
    def runs_here(self) -> bool:
        """Return whether the Python of this machine can load its modules."""
        return not self.is_musl and self.processor == os.uname().machine

    @property
    def rust(self) -> str:
        """Return Rust's name of it."""
        return f"{self.processor}-unknown-linux-{'musl' if self.is_musl else 'gnu'}"


TARGETS = {
    target.name: target
    for processor in ("x86_64", "aarch64")
    for target in (Target(processor, "manylinux2014"), Target(processor, "musllinux_1_2"))
}

#: The newest symbols of glibc that a module may ask for.
OLDEST_GLIBC = {"manylinux2014": (2, 17)}


def tools() -> Path:
    """Return the environment of the tools with zig and auditwheel, which are installed on first use."""
    folder = environment.tools()
    wanted = environment.read_requirements(REQUIREMENTS / "wheels.txt")
    environment.Environment(interpreters.running(), "tools").install("zig and auditwheel", wanted, wheels_only=True)
    return folder


def path_with_zig() -> str:
    """Return a PATH for maturin, which asks the first `python3` in it for zig."""
    return os.pathsep.join([str(tools() / "bin"), os.environ["PATH"]])


def unwinder(target: Target) -> dict[str, str]:
    """Return the variable that names the folder with gcc's unwinder for a target, which zig does not have.

    glibc unwinds a thread that Python ends with it, and a module with another unwinder crashes then. musl does not.
    """
    if target.is_musl:
        return {}
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[target.processor]
    root = BUILD / "roots" / f"libgcc-{architecture}"
    with environment.locked("roots"):
        if not root.exists() and not debian.unpack("libgcc-s1", "bookworm", architecture, root):
            raise terminal.fail("the package libgcc-s1 cannot be fetched: wheels with glibc are built on Debian")
        link = root / "libgcc_s_of_target.so"
        if not link.exists():
            link.symlink_to(f"usr/lib/{target.processor}-linux-gnu/libgcc_s.so.1")
    return {"LOGSPOOL_UNWINDER": str(root)}


def missing(target: Target) -> str | None:
    """Return the missing requirement of a build for a target, with its remedy; None: nothing is missing."""
    if not native_package.rust_libraries(target.rust).is_dir():
        return f"Rust has no standard library for {target.rust}: rustup target add {target.rust}"
    if shutil.which("readelf") is None:
        return "readelf is missing: apt-get install binutils"
    return None


def faults(module: Path, target: Target) -> list[str]:
    """Return why a module or program does not run everywhere on its target."""
    libraries = needed(module)
    if target.is_musl:
        allowed = {"libc.so", f"libc.musl-{target.processor}.so.1", f"ld-musl-{target.processor}.so.1"}
        return [f"it needs {name}" for name in sorted(libraries - allowed)]
    newest, oldest = newest_glibc(module), OLDEST_GLIBC[target.tag]
    found = [f"it asks for GLIBC_{'.'.join(map(str, newest))}"] if newest > oldest else []
    # auditwheel does not see them: linked with an old glibc, a symbol of a newer one has no version.
    undefined, _ = _symbols(module, with_versions=True)
    unknown = sorted(name for name in undefined if "@" not in name and not _PYTHON.match(name))
    return found + [f"glibc {'.'.join(map(str, oldest))} has no {name}" for name in unknown]


def audit(wheel: Path, target: Target) -> str:
    """Return what auditwheel says about a wheel; the script ends where it does not find it fit for its target."""
    tag = {"manylinux2014": "manylinux_2_17"}.get(target.tag, target.tag) + f"_{target.processor}"
    command = [str(tools() / "bin" / "auditwheel"), "show", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = " ".join(done.stdout.split())
    if done.returncode != 0 or f'"{tag}"' not in said:
        raise terminal.fail(f"auditwheel does not find {wheel.name} fit for {tag}: {said} {done.stderr.strip()}")
    return f"auditwheel agrees: {tag}"


def newest_glibc(module: Path) -> tuple[int, ...]:
    """Return the newest version of glibc's symbols that a module asks for; empty: it asks for no version."""
    found = re.findall(r"@GLIBC_([\d.]+)", _readelf(module, "--dyn-syms"))
    return max((tuple(map(int, version.split("."))) for version in found), default=())


def unknown_to(library: Path, module: Path) -> list[str]:
    """Return the symbols that a module asks for and neither a C library nor CPython has."""
    undefined, _ = _symbols(module)
    _, defined = _symbols(library)
    return sorted(name for name in undefined - defined if not _PYTHON.match(name))


def needed(module: Path) -> set[str]:
    """Return the libraries that a module or program asks for."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", _readelf(module, "--dynamic")))


def _symbols(module: Path, with_versions: bool = False) -> tuple[set[str], set[str]]:
    """Return the symbols that a file asks for, and the symbols that it has."""
    undefined, defined = set(), set()
    for line in _readelf(module, "--dyn-syms").splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit():
            name = words[7] if with_versions else words[7].split("@")[0]
            if words[6] != "UND":
                defined.add(name)
            elif words[4] != "WEAK":
                undefined.add(name)
    return undefined, defined


def _readelf(module: Path, option: str) -> str:
    done = subprocess.run(["readelf", "--wide", option, str(module)], capture_output=True, text=True)
    if done.returncode != 0:
        raise terminal.fail(f"readelf cannot read {module}: {done.stderr.strip()}")
    return done.stdout
