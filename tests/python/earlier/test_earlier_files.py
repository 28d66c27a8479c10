"""The files that earlier versions left are read, and each of their records is delivered once.

Each folder beside this file has the name of a version, which wrote its files by `make_files.py`.
"""

import sys
import tarfile
from pathlib import Path

import pytest

from suite import programs, queue_folder

from . import make_files

pytestmark = pytest.mark.real

VERSIONS = sorted(path.name for path in Path(__file__).parent.glob("[0-9]*"))

LINES = [f"INFO shop order {number}: {{'paid': True}}" for number in range(make_files.RECORDS)]


def unpacked(version, name, folder):
    """Unpack a folder of files that a version wrote."""
    with tarfile.open(Path(__file__).parent / version / f"{name}.tar.xz") as archive:
        archive.extractall(folder, **({"filter": "data"} if sys.version_info >= (3, 12) else {}))
    folder.chmod(0o700)
    return folder


def recover(folder, place):
    """Deliver what is in a place into files of the folder, and return what was said."""
    arguments = ["-m", "logspool", "recover", str(place)]
    env = programs.environment(programs.INSTALLED, folder / "no queue")
    return programs.run(arguments, env=env, folder=folder, deadline_seconds=60).expect_success().out.decode()


def expect_all(lines):
    """Compare lines with those that the program of `make_files.py` logs."""
    assert lines[: make_files.RECORDS] == LINES
    error, head, *_, last = lines[make_files.RECORDS :]
    assert error == "ERROR shop the last one"
    assert head.startswith("Traceback (most recent call last)")
    assert last == "KeyError: 'näher'"


def test_there_are_files_of_an_earlier_version():
    assert "0.1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_records_in_the_queue_of_an_earlier_version_are_delivered_once(version, tmp_path, queue_dir):
    unpacked(version, "queue", queue_dir)
    # The names of its files are in the archive with their rights.
    assert queue_folder.left_in(queue_dir)

    recover(tmp_path, queue_dir)

    expect_all((tmp_path / "app.log").read_text(encoding="utf-8").splitlines())
    assert queue_folder.left_in(queue_dir) == []
    recover(tmp_path, queue_dir)
    assert len((tmp_path / "app.log").read_text(encoding="utf-8").splitlines()) < make_files.RECORDS + 20


@pytest.mark.parametrize("version", VERSIONS)
def test_records_in_the_spool_of_an_earlier_version_are_delivered_once(version, tmp_path):
    spool = unpacked(version, "spool", tmp_path / "spool")

    recover(tmp_path, spool)

    expect_all((tmp_path / "app.log").read_text(encoding="utf-8").splitlines())
    recover(tmp_path, spool)
    assert (tmp_path / "app.log").read_text(encoding="utf-8").count("the last one") == 1
