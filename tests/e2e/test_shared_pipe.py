"""Several programs log to one pipe: each line arrives whole."""

import contextlib
import os

import pytest

from suite import lines, programs

pytestmark = pytest.mark.real

RECORDS = 3000
SECONDS = 60

PROGRAM = """\
import logging, sys
from suite import side

name, path = sys.argv[1], sys.argv[2]
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(logging.FileHandler(path) if path else logging.StreamHandler())
# The collector may be delayed on a busy machine, so no call drops its record here.
side.install(blocking_levels=["INFO"], blocking_timeout=60)
for number in range(int(sys.argv[3])):
    # Now and then a long line; two of these still fit into one atomic write to a pipe.
    log.info(f"{name} {number:0{1500 if number % 100 == 0 else 100}} end")
"""


@pytest.mark.parametrize("kind", ["stderr", "named"])
def test_lines_of_several_programs_on_one_pipe_are_not_cut_into_each_other(tmp_path, queue_dir, kind):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    path = tmp_path / "fifo"
    if kind == "named":
        os.mkfifo(path)
        reader, writer = os.open(path, os.O_RDONLY | os.O_NONBLOCK), os.open(path, os.O_WRONLY)
        os.set_blocking(reader, True)
    else:
        reader, writer = os.pipe()
    env = programs.environment(programs.INSTALLED, queue_dir)
    with contextlib.ExitStack() as ends:
        for name in ("a", "b", "c"):
            arguments = [script, name, str(path) if kind == "named" else "", str(RECORDS)]
            # It has the pipe open from its start to its end.
            errors = {"pass_fds": [writer]} if kind == "named" else {"stderr": writer}
            child = programs.start(arguments, env=env, folder=tmp_path, **errors)
            ends.enter_context(programs.ended(child))
        os.close(writer)
        with open(reader, "rb") as source, (tmp_path / "read").open("wb") as target:
            while data := source.read1(1 << 16):
                target.write(data)

    found = lines.count(tmp_path / "read")
    assert found.other == []
    assert found.numbers == {name: list(range(RECORDS)) for name in ("a", "b", "c")}
