"""Put README.md into a wheel with links that work on PyPI, where no file of the repository is beside it.

`python scripts/long_description.py` prints the page; with wheels as arguments it changes them.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

import repository_links
from environment import ROOT


def page() -> str:
    """Return README.md with absolute links, without the comments that only scripts read."""
    readme = ROOT / "README.md"
    text = re.sub(r"<!--.*?-->\n+", "", readme.read_text(encoding="utf-8"), flags=re.DOTALL)
    return repository_links.rewrite(
        text,
        lambda target: repository_links.address(target, readme) if repository_links.is_relative(target) else target,
    )


def put_into(wheel: Path) -> None:
    """Replace the long description of a wheel, and the hash of the changed file in its list of files."""
    with zipfile.ZipFile(wheel) as archive:
        parts = [(entry, archive.read(entry)) for entry in archive.infolist()]
    [metadata] = [content for entry, content in parts if entry.filename.endswith(".dist-info/METADATA")]
    changed = metadata.partition(b"\n\n")[0] + b"\n\n" + page().encode()
    made = wheel.with_suffix(".made")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in parts:
            if entry.filename.endswith(".dist-info/METADATA"):
                content = changed
            elif entry.filename.endswith(".dist-info/RECORD"):
                content = content.replace(_recorded(metadata), _recorded(changed))
            # With the entry, its time and its rights are kept.
            archive.writestr(entry, content, compresslevel=9)
    made.replace(wheel)


def _recorded(content: bytes) -> bytes:
    """Return the hash and the length of a file as the list of files has them."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return b"METADATA,sha256=" + digest + b"," + str(len(content)).encode()


def main() -> None:
    """Print the page, or put it into wheels."""
    for name in sys.argv[1:]:
        put_into(Path(name))
    if not sys.argv[1:]:
        print(page(), end="")


if __name__ == "__main__":
    main()
