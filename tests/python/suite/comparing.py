"""Makes two outputs comparable: removes only text that must differ between two processes."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

# Line numbers of frames inside the logging package; they differ when a frame of logspool's path is native.
_LOGGING_LINE = re.compile(rb'(File "[^"\n]*/logging/(?:__init__|handlers|config)\.py", line )\d+')
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,16}")


def normalise(output: bytes, folder: Path, aliases: Mapping[str, str] | None = None, addresses: bool = False) -> bytes:
    """Return `output` with the run's own folder, the aliases and logging's line numbers replaced.

    `aliases` maps text of this run (a pid, a thread's ident) to a label common to both runs.
    `addresses` also replaces object addresses, for scenarios that print a default repr.
    """
    output = output.replace(str(folder).encode(), b"<folder>")
    output = _LOGGING_LINE.sub(rb"\g<1>N", output)
    for text, label in sorted((aliases or {}).items(), key=lambda item: -len(item[0])):
        output = re.sub(rb"(?<![0-9A-Za-z])" + re.escape(text.encode()) + rb"(?![0-9A-Za-z])", label.encode(), output)
    return _ADDRESS.sub(b"0x<address>", output) if addresses else output


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below `folder` by relative name, with entries for links and folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = b"link to " + str(path.readlink()).encode()
        elif path.is_dir():
            found[name + "/"] = b""
        else:
            found[name] = path.read_bytes()
    return found


def difference(expected: bytes, actual: bytes, name: str) -> str:
    """Return the difference as the lines of a unified diff, cut to 60 lines."""
    if expected == actual:
        return ""
    lines = list(
        difflib.unified_diff(
            expected.decode("utf-8", "backslashreplace").splitlines(keepends=True),
            actual.decode("utf-8", "backslashreplace").splitlines(keepends=True),
            f"{name} (stock)",
            f"{name} (installed)",
            n=2,
        )
    )
    shown = "".join(line if line.endswith("\n") else line + "\n\\ no newline at the end\n" for line in lines[:60])
    return shown + (f"... {len(lines) - 60} more lines\n" if len(lines) > 60 else "") or "differs in bytes only\n"


def differences(expected: dict[str, bytes], actual: dict[str, bytes]) -> str:
    """Return the differences of two sets of named outputs; empty when they are equal."""
    parts = []
    for name in sorted(expected.keys() | actual.keys()):
        if name not in actual:
            parts.append(f"{name}: only on the stock side ({len(expected[name])} bytes)\n")
        elif name not in expected:
            parts.append(f"{name}: only on the installed side ({len(actual[name])} bytes)\n{actual[name][:500]!r}\n")
        else:
            parts.append(difference(expected[name], actual[name], name))
    return "".join(parts)
