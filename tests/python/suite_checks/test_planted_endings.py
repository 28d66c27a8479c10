"""Faults of endings planted in the stand-in turn the endings red."""

import pytest

from endings import programs as table
from endings.test_endings import Ended
from suite import comparing, programs

ENDINGS = {each.name: each for each in table.ENDINGS}


@pytest.mark.parametrize("name", ["os_exit", "return", "sigterm", "process_pool_executor_fork"])
def test_a_planted_lost_line_is_found_in_the_files(tmp_path, name):
    ended = Ended(ENDINGS[name], tmp_path, package="stand-in:drops")

    assert comparing.differences(ended.files[programs.STOCK], ended.files[programs.INSTALLED])


@pytest.mark.parametrize("name", ["os_exit", "execv", "sigterm"])
def test_a_planted_delayed_line_is_found_where_no_handler_is_closed(tmp_path, name):
    ended = Ended(ENDINGS[name], tmp_path, package="stand-in:late")

    assert comparing.differences(ended.files[programs.STOCK], ended.files[programs.INSTALLED])


def test_a_planted_exit_status_is_found(tmp_path):
    ended = Ended(ENDINGS["return"], tmp_path, package="stand-in:dies")

    assert ended.outcome[programs.STOCK].status != ended.outcome[programs.INSTALLED].status


def test_a_planted_file_in_the_queue_folder_is_found(tmp_path):
    ended = Ended(ENDINGS["return"], tmp_path, package="stand-in:leaves-a-file")

    assert ended.left == ["segment (4 bytes)"]


def test_a_hanging_program_is_ended_at_its_deadline_and_shows_its_stacks(run_program):
    text = "import logging\nfrom suite import side\nlogging.basicConfig(filename='app.log', level=10)\nside.install()\n"

    with pytest.raises(programs.DeadlinePassed, match=r"plants\.py"):
        run_program(
            text + "for number in range(1000):\n    logging.info('x')\n", deadline_seconds=3, chosen="stand-in:hangs"
        )
