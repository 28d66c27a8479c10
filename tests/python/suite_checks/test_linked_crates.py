"""The linked crates are known: licence texts, a list of crates, and the advisories that concern them."""

import json
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import advisories
import linked_crates
from linked_crates import Crate

GNU = "x86_64-unknown-linux-gnu"


@pytest.fixture(scope="module")
def service():
    return linked_crates.linked("logspool-server", GNU)


def test_the_libraries_in_c_and_the_allocator_of_musl_are_in_the_list(service):
    names = {crate.name for crate in service}
    musl = {crate.name for crate in linked_crates.linked("logspool-server", "x86_64-unknown-linux-musl")}

    assert {"sqlite", "ring", "tokio", "rust-std"} <= names
    assert musl - names == {"libmimalloc-sys", "mimalloc", "musl"}
    # What only builds or tests the program is not linked in.
    assert not {"cc", "serde_derive", "proptest", "logspool"} & names


def test_the_list_of_crates_says_the_same_at_each_time_and_place(service):
    first, second = (linked_crates.sbom("logspool", "1.2.3", service) for _ in range(2))
    described = json.loads(first)

    assert first == second
    assert str(Path.home()) not in first
    assert "timestamp" not in described["metadata"]
    assert described["serialNumber"] != json.loads(linked_crates.sbom("logspool", "1.2.4", service))["serialNumber"]
    tokio = next(component for component in described["components"] if component["name"] == "tokio")
    assert tokio["purl"] == f"pkg:cargo/tokio@{tokio['version']}"
    assert len(tokio["hashes"][0]["content"]) == 64


def test_each_crate_has_a_licence_text_and_its_licence_is_permissive(service):
    text = linked_crates.notices(service)

    for crate in service:
        assert f"{crate.name} {crate.version} (" in text
    for phrase in ("Permission is hereby granted", "Apache License", "ISC", "UNICODE LICENSE"):
        assert phrase in text
    assert linked_crates.refused(linked_crates.crates()) == []


@pytest.mark.parametrize(
    ("licence", "permitted"),
    [
        ("MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("", False),
        ("MIT OR __import__('os')", False),
    ],
)
def test_a_licence_that_is_not_permissive_is_named(licence, permitted):
    crate = Crate("one", "1.0.0", licence, checksum="0" * 64)

    assert linked_crates.refused([crate]) == ([] if permitted else [f"one: {licence}"])


def test_a_crate_without_a_licence_text_ends_the_script(tmp_path, capsys):
    with pytest.raises(SystemExit):
        linked_crates.notices([Crate("one", "1.0.0", "ISC", folder=tmp_path)])
    assert "one 1.0.0 has no licence text: ISC" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "wanted", "fit"),
    [
        ("1.2.3", ">= 1.2.3", True),
        ("1.2.2", ">= 1.2.3", False),
        ("1.10.0", "> 1.9.9, < 2", True),
        ("2.0.0-rc.1", ">= 2.0.0", False),
        ("1.9.0", "^1.4", True),
        ("2.0.0", "^1.4", False),
        ("0.3.9", "^0.3.2", True),
        ("0.4.0", "^0.3.2", False),
        ("0.2.9", "0.2.8", True),
        ("1.4.9", "~1.4.2", True),
        ("1.5.0", "~1.4.2", False),
        ("1.0.1", "=1.0.1", True),
        ("1.0.1+build", "<= 1.0.1", True),
        ("1.0.0", "*", True),
    ],
)
def test_versions_are_compared_as_cargo_does(version, wanted, fit):
    assert advisories.fits(version, wanted) == fit


def advisory(folder: Path, name: str, package: str, more: str = "", patched: str = '[">= 1.2.0"]') -> None:
    path = folder / "crates" / package / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'```toml\n[advisory]\nid = "{name}"\npackage = "{package}"\ndate = "2026-01-01"\n{more}\n'
    path.write_text(f"{text}[versions]\npatched = {patched}\n```\n\n# Something is wrong\n")


LOCK = """
[[package]]
name = "weak"
version = "1.1.9"
source = "registry"

[[package]]
name = "mended"
version = "1.2.0"
source = "registry"
"""


def test_advisories_that_concern_the_lock_are_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(advisories, "FEWEST", 1)
    advisory(tmp_path, "RUSTSEC-2026-0001", "weak")
    advisory(tmp_path, "RUSTSEC-2026-0002", "mended")
    advisory(tmp_path, "RUSTSEC-2026-0003", "weak", 'informational = "unmaintained"', "[]")
    advisory(tmp_path, "RUSTSEC-2026-0004", "weak", 'withdrawn = "2026-01-02"')

    assert advisories.judge(advisories.read(tmp_path), LOCK, "2026-02-01") == 1
    said = capsys.readouterr().out
    assert "weakness: weak 1.1.9: RUSTSEC-2026-0001 Something is wrong" in said
    assert "unmaintained: weak 1.1.9: RUSTSEC-2026-0003" in said
    assert "3 advisories, the newest of 2026-01-01" in said


def test_a_check_that_cannot_be_made_is_not_green(tmp_path, monkeypatch, capsys):
    advisory(tmp_path, "RUSTSEC-2026-0001", "mended")
    monkeypatch.setattr(sys, "argv", ["advisories.py", "--database", str(tmp_path)])

    # A part of the advisories proves nothing.
    with pytest.raises(SystemExit) as ended:
        advisories.main()
    assert ended.value.code == 2
    assert "the advisories were not checked" in capsys.readouterr().err

    # Neither does an old copy.
    monkeypatch.setattr(advisories, "FEWEST", 1)
    with pytest.raises(advisories.NotRun, match="days old"):
        advisories.judge(advisories.read(tmp_path), LOCK, time.strftime("2027-%m-%d"))
