"""With gevent and eventlet, a line shows the number and the name of its greenlet, and calls take the native path.

Both libraries replace functions and locks of `threading`, before or after `install()`.
"""

import importlib.util

import pytest

from suite import programs

pytestmark = pytest.mark.real

# Ten times the duration of a library's import on a busy machine.
SECONDS = 60

LIBRARIES = {
    "gevent": """\
from gevent import monkey
monkey.patch_all()
import gevent
spawn, join, sleep = gevent.spawn, gevent.Greenlet.join, gevent.sleep
""",
    "eventlet": """\
import warnings
warnings.simplefilter("ignore")
import eventlet
eventlet.monkey_patch()
spawn, join, sleep = eventlet.spawn, lambda greenlet: greenlet.wait(), eventlet.sleep
""",
}

PROGRAM = """\
{patch}
import logging, sys, threading
if "installs" in sys.argv:
    import logspool
    logspool.install()

def now():
    return f"{{threading.get_ident()}} {{threading.current_thread().name}}"

def agrees(record):
    return f"{{record.thread}} {{record.threadName}}" == now()

def work(number):
    for _ in range(5):
        shown.info(now())
        plain.info("without a thread")
        filtered.info("from greenlet %d", number)
        sleep(0)

def made(name, format):
    handler = logging.FileHandler(name + ".log", mode="w")
    handler.setFormatter(logging.Formatter(format))
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    return log

shown = made("shown", "%(thread)d %(threadName)s|%(message)s")
plain, filtered = made("plain", "%(message)s"), made("filtered", "%(message)s")
filtered.addFilter(agrees)
for greenlet in [spawn(work, number) for number in range(4)]:
    join(greenlet)
thread = threading.Thread(target=work, args=(9,), name="a thread")
thread.start()
thread.join()
logging.shutdown()
pairs = [line.rstrip().split("|") for line in open("shown.log")]
print(len(pairs), sum(first != second for first, second in pairs), len({{first for first, _ in pairs}}))
print(len(list(open("plain.log"))), len(list(open("filtered.log"))))
if logspool := sys.modules.get("logspool"):
    found = logspool.stats().loggers
    print([found["shown"].native, found["plain"].native, found["filtered"].stock], file=sys.stderr)
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_line_shows_its_greenlet_on_the_native_path(library, tmp_path, queue_dir):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    (tmp_path / "program.py").write_text(PROGRAM.format(patch=LIBRARIES[library]))
    environment = programs.environment(programs.STOCK, queue_dir)

    stock, late, below_run = (
        programs.run(words, env=environment, folder=tmp_path, deadline_seconds=SECONDS)
        for words in (["program.py"], ["program.py", "installs"], ["-m", "logspool", "run", "program.py"])
    )

    assert stock.out.split() == [b"25", b"0", b"5", b"25", b"25"]
    assert (late.out, below_run.out) == (stock.out, stock.out)
    assert late.err == below_run.err == stock.err + b"[25, 25, 0]\n"
