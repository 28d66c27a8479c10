"""Packages and image of the service: complete, the same bytes at each time, and refused where something is wrong."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import audit_section
import image
import package_trials
import packages
import rebuildable
import wheel_contents
import wheels
from linked_crates import Crate
from wheel_targets import TARGETS

TARGET = TARGETS[f"{os.uname().machine}-manylinux2014"]
STATIC = TARGETS[f"{os.uname().machine}-musllinux_1_2"]

#: Stands for the program: it writes manual pages and completions.
PROGRAM = """#!/bin/sh
case "$1" in
    man) for page in logspool logspool-serve; do echo ".TH $page 1" > "$2/$page.1"; done ;;
    completions) echo "completions of $2" ;;
esac
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "DIST", tmp_path / "dist")
    (tmp_path / "dist").mkdir()
    path = tmp_path / "logspool"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is missing")
def test_a_package_for_debian_has_all_files_and_the_same_bytes_again(program, monkeypatch):
    monkeypatch.setattr(packages, "_needs", lambda program: "libc6 (>= 2.17)")
    made = packages.make_deb(program, TARGET, "1.2.3")
    first = made.read_bytes()
    os.utime(program, (1, 1))

    assert packages.make_deb(program, TARGET, "1.2.3").read_bytes() == first
    listed = subprocess.run(["dpkg-deb", "--contents", made], capture_output=True, text=True, check=True).stdout
    for name in (
        *("usr/bin/logspool", "etc/logspool/serve.toml", "usr/lib/systemd/system/logspool.service"),
        *("usr/share/man/man1/logspool-serve.1.gz", "usr/share/bash-completion/completions/logspool"),
        *("usr/share/doc/logspool/notices.txt.gz", "usr/share/doc/logspool/sbom.cdx.json.gz"),
    ):
        assert f" ./{name}\n" in listed
    fields = subprocess.run(["dpkg-deb", "--field", made], capture_output=True, text=True, check=True).stdout
    assert "Version: 1.2.3\n" in fields
    assert "Depends: libc6 (>= 2.17)" in fields
    assert "@" not in fields.replace("authors@logspool.invalid", "")


def test_an_image_has_the_program_and_a_user_without_rights(program):
    made = image.make(program, STATIC, "1.2.3")
    first = made.read_bytes()

    assert image.make(program, STATIC, "1.2.3").read_bytes() == first
    configuration, layer = package_trials.unpacked(made)
    assert configuration["config"]["User"] == "65532:65532"
    assert configuration["config"]["Entrypoint"] == ["/usr/bin/logspool"]
    (made.parent / "layer.tar").write_bytes(layer)
    with tarfile.open(made.parent / "layer.tar") as archive:
        members = {member.name: member for member in archive}
    assert members["usr/bin/logspool"].mode == 0o755
    assert (members["var/lib/logspool"].uid, members["var/lib/logspool"].mode) == (65532, 0o750)
    assert not {"bin/sh", "usr/bin/sh"} & set(members)
    assert b'"name": "mimalloc"' in made.with_suffix(".cdx.json").read_bytes()


def test_an_image_with_a_wrong_hash_is_refused(program, capsys):
    made = image.make(program, STATIC, "1.2.3")
    content = made.read_bytes()
    place = content.index(b'"User":"65532:65532"')
    made.write_bytes(content[:place] + b'"User":"00000:00000"' + content[place + 20 :])

    with pytest.raises(SystemExit):
        package_trials.unpacked(made)
    assert "the hash of" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_the_unit_is_judged_by_systemd(monkeypatch, capsys):
    package_trials.judge_unit()
    assert "Overall exposure level for logspool.service: " in capsys.readouterr().out

    monkeypatch.setattr(package_trials, "EXPOSURE", 0.1)
    with pytest.raises(SystemExit):
        package_trials.judge_unit()


def test_a_wheel_gets_licence_texts_and_has_the_same_bytes_at_each_time(tmp_path, monkeypatch):
    folder = "logspool-1.2.3.dist-info"
    made = []
    for name, year in (("one", 2020), ("two", 2021)):
        path = tmp_path / f"{name}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for file in ("logspool/__init__.py", f"{folder}/sboms/random.json", f"{folder}/RECORD"):
                archive.writestr(zipfile.ZipInfo(file, (year, 1, 1, 0, 0, 0)), str(year) if "random" in file else "")
            archive.writestr(f"{folder}/METADATA", "Name: logspool\nLicense-File: LICENSE-MIT\n\nbody\n\nmore\n")
        wheel_contents.rewrite(path, {"licenses/OTHERS.txt": b"terms", "sboms/own.cdx.json": b"{}"}, b"")
        made.append(path)

    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as archive:
        names = archive.namelist()
        record = archive.read(f"{folder}/RECORD").decode()
        metadata = archive.read(f"{folder}/METADATA").decode()
    assert f"{folder}/sboms/random.json" not in names
    assert metadata == "Name: logspool\nLicense-File: LICENSE-MIT\nLicense-File: OTHERS.txt\n\nbody\n\nmore\n"
    assert [line.split(",")[0] for line in record.splitlines()] == names
    assert record.endswith(f"{folder}/RECORD,,\n")


def test_a_program_lists_its_crates_and_still_runs(tmp_path):
    crates = [Crate("tokio", "1.2.3", "MIT", checksum="0" * 64), Crate("sqlite", "3.54.1", "blessing")]
    content = audit_section.listed(crates, "logspool-server", "0.1.0")
    plain = Path(os.path.realpath(shutil.which("true"))).read_bytes()
    made = tmp_path / "true"
    made.write_bytes(audit_section.add(plain, content))
    made.chmod(0o755)

    assert audit_section.read(plain) is None
    assert audit_section.read(made.read_bytes()) == [
        {"name": "logspool-server", "version": "0.1.0", "source": "local", "root": True},
        {"name": "tokio", "version": "1.2.3", "source": "crates.io"},
    ]
    assert audit_section.add(made.read_bytes(), content) == made.read_bytes()
    subprocess.run([made], check=True)
    if shutil.which("readelf"):
        done = subprocess.run(["readelf", "--wide", "--sections", made], capture_output=True, text=True, check=True)
        assert ".dep-v0" in done.stdout
        assert "Warning" not in done.stderr
    with pytest.raises(ValueError, match="no ELF file"):
        audit_section.add(b"#!/bin/sh", content)


def test_a_binary_that_names_a_folder_of_its_builder_is_found(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\0/rustc/abc/library/core.rs\0")
    assert rebuildable.folders_in(binary) == []

    binary.write_bytes(f"\0{rebuildable.ROOT}/crates/x.rs\0".encode())
    assert rebuildable.folders_in(binary) == [str(rebuildable.ROOT)]


def test_the_folder_of_the_sources_is_not_in_what_is_built(tmp_path):
    made = []
    for name in ("one", "another"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "main.rs").write_text("fn main() { std::env::args().nth(1).unwrap(); println!(file!()); }\n")
        flags = rebuildable.variables(folder)["RUSTFLAGS"].split()
        command = ["rustc", "-O", "-C", "strip=symbols", *flags, "-o", str(folder / "main"), str(folder / "main.rs")]
        subprocess.run(command, check=True, cwd=tmp_path)
        made.append((folder / "main").read_bytes())

    assert made[0] == made[1]
    assert b"/logspool/main.rs" in made[0]
    assert str(tmp_path).encode() not in made[0]


def test_the_time_of_everything_built_is_the_commits_or_the_given_one(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    rebuildable.time.cache_clear()
    assert rebuildable.time() == 1700000000
    assert rebuildable.variables()["SOURCE_DATE_EPOCH"] == "1700000000"
    rebuildable.time.cache_clear()
