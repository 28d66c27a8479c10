"""Refuse a field or a static that holds a descriptor and is not checked before each use.

The program may close or reuse any number at any moment. So a descriptor that is held for longer than a call is a
`KeptDescriptor` of `logspool_sys::kept`, which compares the file before each use, or it has a row and a reason here.
The service is a program of its own, so its crates are not read.
"""

import re

import terminal
from rust_sources import ROOT, without_comments, without_tests

CRATES = [
    "logspool-sys",
    "logspool-lanes",
    "logspool-spool",
    "logspool",
    "logspool-abi",
    "logspool-c",
    "logspool-python",
]

# Types that own or name a descriptor.
_HELD = re.compile(
    r"\b(?<!D::)(?:File|OwnedFd|RawFd|BorrowedFd(?:<[^>]*>)?|TcpStream|TcpListener|UdpSocket|UnixStream|UnixDatagram"
    r"|PipeReader|PipeWriter|Child|Agent|Connection)\b"
)
_KEPT = re.compile(r"\bKeptDescriptor<[^<>]*>")

# Fields and statics that may hold an unchecked descriptor, as `file: name` of the field, and the reason.
ALLOWED = {
    "crates/logspool/src/descriptor_capture.rs: pipe": "handed to the thread of the capture, which checks it",
    "crates/logspool/src/descriptor_capture.rs: restored": "handed to the thread of the capture, which checks it",
    "crates/logspool/src/descriptor_capture.rs: original": "handed to the thread of the capture, which checks it",
    "crates/logspool/src/keeper/spawn.rs: watched": "in the child that becomes the keeper, before exec",
    "crates/logspool/src/keeper/spawn.rs: socket": "in the child that becomes the keeper, before exec",
    "crates/logspool-lanes/src/segment/pages.rs: open": "opens the file for one call",
    "crates/logspool/src/recover/lane.rs: file": "borrowed for the read of one lane",
    "crates/logspool/src/sinks/service.rs: connection": "its socket is kept checked",
    "crates/logspool/src/sinks/http/client.rs: agent": "its sockets are kept checked",
    "crates/logspool/src/sinks/sqlite/database.rs: connection": "its thread has a descriptor table of its own",
    "crates/logspool-abi/src/sinks.rs: _descriptor": "held while the core duplicates it, within one call",
}

_STRUCT = re.compile(r"\b(?:struct|enum|union)\s+\w+(?:<[^{(;]*>)?[^{(;]*([{(])")
_STATIC = re.compile(r"\bstatic\s+(?:mut\s+)?(\w+)\s*:([^=;]+)[=;]")


def _body(code: str, start: int) -> str:
    """Return the text from the bracket at `start` to its closing bracket."""
    depth = 0
    for place in range(start, len(code)):
        if code[place] in "{([":
            depth += 1
        elif code[place] in "})]":
            depth -= 1
            if depth == 0:
                return code[start + 1 : place]
    return code[start + 1 :]


def _parts(body: str) -> list[str]:
    """Split the fields of a type at the commas between them."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(body):
        if character in "{([<":
            depth += 1
        elif character in "})]" or (character == ">" and body[place - 1] != "-"):
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(body[begin:place])
            begin = place + 1
    return [*parts, body[begin:]]


def held(code: str) -> list[str]:
    """Return the names of the fields, variants and statics that hold a descriptor without a check."""
    found = []
    for match in _STRUCT.finditer(code):
        for part in _parts(_body(code, match.end() - 1)):
            field = re.sub(r"#\[[^\]]*\]", "", part).strip()
            name, _, kind = (
                field.partition(":") if match[1] == "{" and "(" not in field.partition(":")[0] else ("", "", "")
            )
            if not kind:
                variant = re.match(r"(?:pub(?:\([^)]*\))?\s+)?(\w+)?\s*[({](.*)", field, re.DOTALL)
                name, kind = (variant[1] or "", variant[2]) if variant else ("0", field)
                # A variant of an enum without contents has only its name.
                if variant is None and match[0].lstrip().startswith("enum"):
                    continue
            if _HELD.search(_KEPT.sub("", kind)):
                found.append(name.split()[-1] if name.split() else "0")
    found += [match[1] for match in _STATIC.finditer(code) if _HELD.search(_KEPT.sub("", match[2]))]
    return found


def main() -> None:
    """Check all sources of the client."""
    seen = set()
    for crate in CRATES:
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            if path.name in ("kept.rs", "tests.rs") or "proof" in path.parts:
                continue
            place = path.relative_to(ROOT).as_posix()
            seen.update(f"{place}: {name}" for name in held(without_tests(without_comments(path.read_text()))))
    for row in sorted(seen - set(ALLOWED)):
        print(f"{row} holds a descriptor that no use checks (fix: KeptDescriptor, or a reason in {__file__})")
    for row in sorted(set(ALLOWED) - seen):
        print(f"{row} holds no descriptor any more (fix: remove its row)")
    if seen != set(ALLOWED):
        raise terminal.fail("descriptors are held unchecked")


if __name__ == "__main__":
    main()
