"""`logging._srcfile` may be an object that equals several file names; frames of these files are not the caller."""

import pytest

pytestmark = pytest.mark.real

PROGRAM = """\
import logging
from suite import side

class Files:
    def __init__(self, *names):
        self.names = names

    def __eq__(self, other):
        return other in self.names

    __hash__ = None

with open("wrapper.py", "w") as file:
    file.write("import logging\\ndef wrapped(text):\\n    logging.getLogger('app').error(text)\\n")
import sys
sys.path.insert(0, "")
import wrapper

logging.basicConfig(filename="app.log", format="%(filename)s %(funcName)s %(message)s")
logging._srcfile = Files(logging._srcfile, wrapper.wrapped.__code__.co_filename)
side.install()

def caller():
    wrapper.wrapped("text")

caller()
"""


@pytest.mark.parametrize("which", ["stock", "installed"])
def test_frames_of_all_copies_of_the_logging_module_are_skipped(run_program, which):
    outcome, folder = run_program(PROGRAM, side=which, deadline_seconds=60)

    outcome.expect_success()
    assert (folder / "app.log").read_text() == "program.py caller text\n"
