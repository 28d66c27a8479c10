"""The contents of a wheel: the parts of a complete one, and the parts that maturin does not put in."""

import base64
import hashlib
import time
import zipfile
from pathlib import Path

import audit_section
import linked_crates
import native_package
import rebuildable
import terminal
from wheel_targets import Target

NOTICES = "LICENSES-OF-OTHERS.txt"


def is_binary(name: str) -> bool:
    """Return whether a file of a wheel is the native module or the program."""
    native = name.startswith("logspool/_native.") and name.endswith(".so")
    return native or name.endswith(".data/scripts/logspool")


def missing_parts(wheel: Path) -> list[str]:
    """Return the parts of a complete wheel that this one lacks."""
    names = zipfile.ZipFile(wheel).namelist()
    parts = {
        "both licences": sum(Path(name).name.startswith("LICENSE-") for name in names) >= 2,
        "the licence texts of others": any(name.endswith(f"/licenses/{NOTICES}") for name in names),
        "the list of crates": any(name.endswith(".cdx.json") for name in names),
    }
    if wheel.name.startswith("logspool_service-"):
        parts["the program"] = any(name.endswith(".data/scripts/logspool") for name in names)
    else:
        parts["the native module"] = any(is_binary(name) for name in names)
        parts["py.typed"] = "logspool/py.typed" in names
        parts["the stubs of the native module"] = "logspool/_native.pyi" in names
    return [part for part, there in parts.items() if not there]


def complete(wheel: Path, package: str, target: Target | None) -> None:
    """Put the licence texts and the list of the linked crates into the wheel of a package of the workspace."""
    rust = target.rust if target else linked_crates.host()
    crates = linked_crates.linked(package, rust)
    if wrong := linked_crates.refused(crates):
        raise terminal.fail(f"licences that are not permissive: {'; '.join(wrong)}")
    texts = {
        f"licenses/{NOTICES}": linked_crates.notices(crates),
        f"sboms/{package}.cdx.json": linked_crates.sbom(package, native_package.version(), crates),
    }
    section = audit_section.listed(crates, package, native_package.version())
    rewrite(wheel, {name: text.encode() for name, text in texts.items()}, section)


def rewrite(wheel: Path, added: dict[str, bytes], section: bytes) -> None:
    """Write a wheel again with more files in its folder of metadata, and a list of crates in its program or module.

    Only its contents rule the bytes written.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: (info.external_attr >> 16, archive.read(info)) for info in archive.infolist()}
    for name, (mode, content) in files.items():
        if is_binary(name):
            files[name] = (mode, audit_section.add(content, section))
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("RECORD")
    # maturin's list of crates has a random number, the time of the build and paths of the builder.
    files = {name: file for name, file in files.items() if not name.startswith(f"{folder}sboms/")}
    files |= {folder + name: (0o100644, content) for name, content in added.items()}
    mode, metadata = files[f"{folder}METADATA"]
    licences = sorted(name.removeprefix("licenses/") for name in added if name.startswith("licenses/"))
    head, end, body = metadata.decode().partition("\n\n")
    head += "".join(f"\nLicense-File: {name}" for name in licences)
    files[f"{folder}METADATA"] = (mode, (head + end + body).encode())
    del files[record]
    # pip reads the metadata from the end of the file.
    names = sorted(files, key=lambda name: (name.startswith(folder), name))
    lines = [f"{name},sha256={_digest(files[name][1])},{len(files[name][1])}" for name in names]
    files[record] = (0o100644, "".join(f"{line}\n" for line in [*lines, f"{record},,"]).encode())
    date = time.gmtime(max(rebuildable.time(), 315532800))[:6]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in [*names, record]:
            info = zipfile.ZipInfo(name, date)
            info.external_attr = (files[name][0] or 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name][1], compresslevel=9)


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
