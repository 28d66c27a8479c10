"""C programs close loggers and sinks: their places are used again, and each record keeps its logger's name."""

import signal
import subprocess

import pytest

RULES = {
    "the same logger": 1,
    "record after one close of two": 0,
    "record after both": -3,
    "one close too many": -3,
    "level of a closed logger": -3,
    "found": 0,
    "another logger of the name": 1,
    "record to a closed sink": 0,
    "second close of a sink": -3,
    "logger of a closed sink": 0,
    "end of the child": 0,
    "record of the parent": 0,
}


def lines(folder, name):
    return (folder / f"{name}.log").read_text().splitlines()


def close(program, folder, way, count=0, code=0):
    command = [program("closing"), folder, way, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (code, "") == (done.returncode, done.stderr)
    return done.stdout


def test_a_logger_is_closed_by_its_last_user_and_a_sink_by_its_last_logger(program, tmp_path):
    shown = [line.rsplit(" ", 1) for line in close(program, tmp_path, "rules").splitlines()]

    assert RULES == {what: int(value) for what, value in shown}
    assert ["twice 1", "keeps its sink 3", "keeps its sink 5"] == lines(tmp_path, 0)
    assert ["of a child 4"] == lines(tmp_path, 1)


@pytest.mark.parametrize("way", ["loggers", "kill"])
def test_any_number_of_loggers_can_be_opened_in_turn_and_each_keeps_its_name(program, tmp_path, way):
    count = 100_000
    close(program, tmp_path, way, count, -signal.SIGKILL if way == "kill" else 0)
    close(program, tmp_path, "recover")

    lasting = {number: [f"lasting {number}"] for number in range(0, count, 100)}
    wanted = [line for i in range(count) for line in (f"connection {i} {i}", *lasting.get(i, []))]
    assert wanted == lines(tmp_path, -1)


@pytest.mark.parametrize(("way", "name"), [("sinks", "connection {}"), ("changes", "one")])
def test_any_number_of_sinks_can_be_opened_in_turn(program, tmp_path, way, name):
    count = 1_000
    close(program, tmp_path, way, count)

    for file in range(200):
        assert [f"{name.format(i)} {i}" for i in range(file, count, 200)] == lines(tmp_path, file)
