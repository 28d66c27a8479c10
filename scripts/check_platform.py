"""Refuse calls of Linux outside of `logspool-sys/src/platform/`, and a `cfg` that asks for a system anywhere else.

A port is one folder there. The names of `MOVED` are in that folder only. The names of `_LEFT` are still in other files;
their number may only become smaller. Tests, and the service, which is a program of its own, are not read.
"""

import re
from collections.abc import Iterator

import terminal
from check_descriptors import CRATES
from rust_sources import ROOT, without_comments, without_tests

PLATFORM = ROOT / "crates" / "logspool-sys" / "src" / "platform"

MOVED = re.compile(
    r"\b(SYS_getrandom|SYS_gettid|SYS_memfd_create|SYS_futex|FUTEX_\w+|SYS_membarrier|MEMBARRIER_\w+"
    r"|getauxval|AT_RANDOM|libc::(?:gettid|getrandom|memfd_create))\b"
)
_SYSTEM = re.compile(r"\bcfg!?\([^\n]*\b(?:target_os|target_env|target_family|target_vendor|unix|windows)\b")
_LEFT = re.compile(r"\b(?:SYS_\w+|MADV_\w+|PR_SET_\w+|PR_GET_\w+|prctl|unshare|O_PATH|O_TMPFILE|F_SEAL_\w+|MFD_\w+)\b")

#: Uses of names of Linux outside of the folder; the figure may only become smaller.
LEFT = 40


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each use in a Rust file that belongs into the folder of a system."""
    for number, line in enumerate(without_comments(without_tests(text)).split("\n"), 1):
        if found := MOVED.search(line):
            yield number, f"{found[1]} is called in crates/logspool-sys/src/platform/ only"
        if _SYSTEM.search(line):
            yield number, "a cfg of a system is in crates/logspool-sys/src/platform.rs only"


def left(text: str) -> int:
    """Return how often a Rust file uses a name of Linux that is not moved yet."""
    return len(_LEFT.findall(without_comments(without_tests(text))))


def main() -> None:
    """Print the faults; exit with 1 if there are any, or if the figure is not right."""
    found, count = [], 0
    for crate in CRATES:
        for file in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            if PLATFORM in file.parents or file == PLATFORM.with_suffix(".rs"):
                continue
            text = file.read_text(encoding="utf-8")
            found += [f"{file.relative_to(ROOT)}:{number}: {fault}" for number, fault in faults(text)]
            count += left(text)
    terminal.note(f"uses of names of Linux outside of the folder of the system: {count} of {LEFT}")
    if count > LEFT:
        found.append(f"{count} uses of names of Linux outside of the folder of the system, {LEFT} allowed")
    if count < LEFT:
        found.append(f"only {count} uses of names of Linux are left: lower the figure of scripts/check_platform.py")
    if found:
        print(*found, sep="\n")
        raise terminal.fail("calls of a system belong to its folder, so that a port is one folder")


if __name__ == "__main__":
    main()
