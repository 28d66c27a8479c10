"""The crates that are linked into a program or a module: their licence texts, and a list of them (SBOM).

Both texts follow from Cargo.lock and the sources of the crates alone, so two builds of one commit have the same ones:
no serial number, no time, no path of the builder.
"""

import argparse
import functools
import json
import re
import subprocess
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import terminal
from environment import ROOT, tomllib

#: Licences that allow the use in any program, the ones with the shortest conditions first.
PERMISSIVE = (
    *("0BSD", "CC0-1.0", "Unlicense", "MIT", "ISC", "Zlib", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0"),
    *("Unicode-3.0", "CDLA-Permissive-2.0", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"),
)

#: A phrase of the text of a licence. Licences without one are recognised by the name of the file only.
_PHRASES = {
    "MIT": "permission is hereby granted, free of charge",
    "Apache-2.0": "apache license",
    "ISC": "permission to use, copy, modify, and",
    "Zlib": "provided 'as-is'",
    "BSD-2-Clause": "redistribution and use in source and binary forms",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "Unlicense": "free and unencumbered software",
    "CC0-1.0": "cc0 1.0",
    "Unicode-3.0": "unicode license",
    "BSL-1.0": "boost software license",
    "CDLA-Permissive-2.0": "cdla",
}

_LICENCE_FILE = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)")


@dataclass(frozen=True)
class Crate:
    """A crate of another project, or a library in C that is in a crate."""

    name: str
    version: str
    licence: str
    authors: tuple[str, ...] = ()
    folder: Path | None = None
    repository: str = ""
    checksum: str = ""

    @property
    def purl(self) -> str:
        """Return its package URL, by which databases of weaknesses know it."""
        return f"pkg:{'cargo' if self.checksum else 'generic'}/{self.name}@{self.version}"


_MIMALLOC = r"#define MI_MALLOC_VERSION +(\d)(\d\d)(\d\d)"

#: Libraries in C that crates bring: their names, their licences, and where their versions are.
_IN_CRATES = {
    "libsqlite3-sys": ("sqlite", "blessing", "sqlite3/sqlite3.h", r'#define SQLITE_VERSION +"([\d.]+)"'),
    "zstd-sys": ("zstd", "BSD-3-Clause", "Cargo.toml", r'version = "[\d.]+\+zstd\.([\d.]+)"'),
    "libmimalloc-sys": ("mimalloc", "MIT", "c_src/mimalloc/v3/include/mimalloc.h", _MIMALLOC),
}


def linked(package: str, target: str) -> list[Crate]:
    """Return the crates of others that are linked into a package of the workspace for a target of Rust."""
    command = ["cargo", "tree", "--locked", "--package", package, "--target", target, "--prefix", "none"]
    lines = _answer([*command, "--edges", "normal,no-proc-macro", "--format", "{p}"]).splitlines()
    wanted = {tuple(line.split()[:2]) for line in lines if line}
    found = [crate for crate in crates() if (crate.name, f"v{crate.version}") in wanted]
    found += [library for crate in found if (library := _library_in(crate))]
    found.append(Crate("rust-std", _rust_version(), "MIT OR Apache-2.0", ("The Rust Project Developers",)))
    if target.endswith("-musl"):
        found.append(Crate("musl", "1.2", "MIT", ("Rich Felker, et al.",)))
    return sorted(found, key=lambda crate: (crate.name, crate.version))


@functools.cache
def crates() -> tuple[Crate, ...]:
    """Return all crates of others that Cargo.lock names."""
    checksums = {
        (package["name"], package["version"]): package["checksum"]
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        if "checksum" in package
    }
    described = json.loads(_answer(["cargo", "metadata", "--locked", "--format-version", "1"]))
    return tuple(
        Crate(
            package["name"],
            package["version"],
            # Old crates separate the licences by a slash.
            (package["license"] or "").replace("/", " OR "),
            tuple(package["authors"]),
            Path(package["manifest_path"]).parent,
            package["repository"] or "",
            checksums[package["name"], package["version"]],
        )
        for package in described["packages"]
        if package["source"]
    )


def _library_in(crate: Crate) -> Crate | None:
    if crate.name not in _IN_CRATES or crate.folder is None:
        return None
    name, licence, path, pattern = _IN_CRATES[crate.name]
    version = re.search(pattern, (crate.folder / path).read_text(errors="replace"))
    if version is None:
        raise terminal.fail(f"{crate.folder / path} does not say which {name} is in the crate")
    return Crate(
        name,
        ".".join(str(int(part)) for group in version.groups() for part in group.split(".")),
        licence,
        (),
        crate.folder,
    )


def refused(of: Iterable[Crate]) -> list[str]:
    """Return the crates whose licences are not permissive, each with its licence."""
    return [f"{crate.name}: {crate.licence}" for crate in of if crate.checksum and not _permitted(crate.licence)]


def _permitted(expression: str) -> bool:
    """Return whether a licence expression can be fulfilled by permissive licences alone."""
    words = re.sub(r"[\w.-]+(?: WITH [\w.-]+)?", lambda word: _truth(word[0]), expression)
    # Only these words are left of a well-formed expression.
    if not re.fullmatch(r"(?:True|False|and|or|[() ])+", words):
        return False
    return bool(eval(words, {}))


def _truth(word: str) -> str:
    return word.lower() if word in ("AND", "OR") else str(word in PERMISSIVE)


def notices(of: Iterable[Crate]) -> str:
    """Return the licence texts of crates; equal texts are there once."""
    by_text: dict[str, list[Crate]] = defaultdict(list)
    for crate in of:
        for text in _texts(crate):
            by_text[text].append(crate)
    parts = ["Works of other projects in this program, with their licence texts.\n"]
    for text, users in sorted(by_text.items(), key=lambda item: (item[1][0].name, item[1][0].version, item[0])):
        names = "\n".join(f"{crate.name} {crate.version} ({crate.licence})" for crate in users)
        parts.append(f"{'=' * 80}\n{names}\n{'-' * 80}\n{text}\n")
    return "\n".join(parts)


def _texts(crate: Crate) -> list[str]:
    """Return the licence texts of a crate: all where it asks for all, else the shortest that it allows."""
    if crate.licence == "blessing":
        return ["Public domain: https://sqlite.org/copyright.html"]
    if crate.folder is None:
        # The crate that has a library in C has its text.
        return [_own_text(crate, ["MIT"])] if crate.authors else []
    files = sorted(path for path in crate.folder.rglob("*") if _LICENCE_FILE.match(path.name) and path.is_file())
    # Texts of test data and of tools are not about linked code.
    files = [path for path in files if not {"tests", "benches", "examples"} & set(path.relative_to(crate.folder).parts)]
    texts = list(dict.fromkeys(_plain(path) for path in files if path.suffix not in (".rs", ".py", ".c", ".h")))
    allowed = [licence for licence in PERMISSIVE if licence in re.split(r" (?:OR|AND) |[()]", crate.licence)]
    if "AND" not in crate.licence and crate.name not in _IN_CRATES:
        for licence in allowed:
            fit = [text for text in texts if _PHRASES.get(licence, licence.lower()) in " ".join(text.lower().split())]
            if fit:
                return fit[:1]
    return texts or [_own_text(crate, allowed)]


def _own_text(crate: Crate, allowed: list[str]) -> str:
    """Return the text of the licence of a crate that has no file with it."""
    if "MIT" in allowed:
        terms = _plain(ROOT / "LICENSE-MIT")
        of = ", ".join(crate.authors) or f"the authors of {crate.name}"
        return re.sub(r"(?m)^Copyright .*$", f"Copyright (c) {of}", terms)
    if "Apache-2.0" in allowed:
        return _plain(ROOT / "LICENSE-APACHE")
    raise terminal.fail(f"{crate.name} {crate.version} has no licence text: {crate.licence}")


def _plain(path: Path) -> str:
    return "\n".join(line.rstrip() for line in path.read_text(errors="replace").strip().splitlines())


def sbom(name: str, version: str, of: Iterable[Crate]) -> str:
    """Return the list of the linked crates in the form of CycloneDX 1.5."""
    own = f"pkg:generic/{name}@{version}"
    components = [_component(crate) for crate in of]
    listed = json.dumps(components, sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same contents have the same number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + listed)}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": own, "name": name, "version": version}},
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [component["bom-ref"] for component in components]}],
    }
    return json.dumps(document, indent=1) + "\n"


def _component(crate: Crate) -> dict[str, object]:
    found: dict[str, object] = {
        "type": "library",
        "bom-ref": crate.purl,
        "name": crate.name,
        "version": crate.version,
        "purl": crate.purl,
        "licenses": [{"expression": crate.licence}],
    }
    if crate.checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    if crate.repository:
        found["externalReferences"] = [{"type": "vcs", "url": crate.repository}]
    return found


def _rust_version() -> str:
    return _answer(["rustc", "--version"]).split()[1]


def host() -> str:
    """Return Rust's name of this machine."""
    return re.search(r"host: (.+)", _answer(["rustc", "-vV"]))[1]


def _answer(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the licence texts, or with `--sbom` the list of crates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default="logspool-server")
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    parser.add_argument("--sbom", action="store_true")
    options = parser.parse_args()
    found = linked(options.package, options.target)
    print(sbom(options.package, "0", found) if options.sbom else notices(found), end="")


if __name__ == "__main__":
    main()
