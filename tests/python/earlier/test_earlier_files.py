"""Files that earlier versions left are read: each of their records is delivered once, and no file stays.

Each folder beside this file has the name of a version, which wrote its files by `make_files.py`.
"""

import pytest

from suite import programs, queue_folder

from . import make_files
from .kept import VERSIONS, unpacked

pytestmark = pytest.mark.real

LINES = [f"INFO shop order {number}: {{'paid': True}}" for number in range(make_files.RECORDS)]


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
    recover(tmp_path, queue_dir)

    expect_all((tmp_path / "app.log").read_text(encoding="utf-8").splitlines())
    assert queue_folder.left_in(queue_dir) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_records_in_the_spool_of_an_earlier_version_are_delivered_once(version, tmp_path):
    spool = unpacked(version, "spool", tmp_path / "spool")

    recover(tmp_path, spool)

    expect_all((tmp_path / "app.log").read_text(encoding="utf-8").splitlines())
    assert queue_folder.left_in(spool) == []
