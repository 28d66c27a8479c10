"""Links of a page to files that are not beside it where it is read: on the site and on PyPI.

Such a link becomes a link to the file in the repository. `[project.urls]` of pyproject.toml has the address of the
repository; it is set there and nowhere else by hand (`tests/python/surface/test_site.py` compares the other places).
"""

import re
from collections.abc import Callable
from pathlib import Path

from environment import ROOT, tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]

_PICTURES = (".svg", ".png")
# Code is skipped. A target is in the parentheses of a link, or at the end of the line that defines a reference.
_LINK = re.compile(r"^```.*?^```|`[^`\n]+`|(\]\()([^)\s]+)(\))|(^\[[^\]\n]+\]: +)(\S+)($)", re.MULTILINE | re.DOTALL)


def rewrite(text: str, change: Callable[[str], str]) -> str:
    """Return a page with the result of `change` in the place of each target of a link."""

    def changed(match: re.Match[str]) -> str:
        before, target, after = match.groups()[:3] if match[2] else match.groups()[3:]
        return before + change(target) + after if target else match[0]

    return _LINK.sub(changed, text)


def targets(text: str) -> list[str]:
    """Return the targets of all links of a page."""
    found: list[str] = []
    rewrite(text, lambda target: found.append(target) or target)
    return found


def is_relative(target: str) -> bool:
    """Return whether a target is a path from the page."""
    return not re.match(r"[a-z]+:|#", target)


def address(target: str, page: Path) -> str:
    """Return the address in the repository of the file that a page links by a path.

    An anchor that names a test becomes the line where the test begins, since the repository knows lines only.
    """
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve()
    if not path.exists() or not path.is_relative_to(ROOT):
        raise SystemExit(f"{page.relative_to(ROOT)}: {target} leads to no file of the project")
    if anchor and path.suffix in (".py", ".rs"):
        anchor = f"L{_line(path, anchor, page)}"
    kind = "tree" if path.is_dir() else "raw" if path.suffix in _PICTURES else "blob"
    place = f"{REPOSITORY}/{kind}/v{VERSION}/{path.relative_to(ROOT)}"
    return f"{place}#{anchor}" if anchor else place


def _line(path: Path, name: str, page: Path) -> int:
    """Return the line of a file where a function begins."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(rf"\s*(?:pub |async )*(?:def|fn|class) {name}\b", line):
            return number
    raise SystemExit(f"{page.relative_to(ROOT)}: {path.relative_to(ROOT)} has no function {name}")
