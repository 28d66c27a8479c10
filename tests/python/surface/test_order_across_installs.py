"""Lines of one thread stay in order while another thread installs and uninstalls logspool."""

import pytest

from suite import fixtures, lines

pytestmark = pytest.mark.real

CYCLES = 64 if fixtures.faults_full() else 12

PROGRAM = """\
import logging, logging.handlers, sys, threading, time
import logspool

kind, cycles = sys.argv[1], int(sys.argv[2])
handler = {
    "plain": lambda: logging.FileHandler("app.log"),
    "own": lambda: logspool.FileHandler("app.log"),
    "rotating": lambda: logging.handlers.RotatingFileHandler("app.log", maxBytes=200_000, backupCount=500),
    "stream": lambda: logging.StreamHandler(open("app.log", "a")),
}[kind]()
handler.setFormatter(logging.Formatter("%(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(handler)
ends = threading.Event()
logged = [0] * 3

def work(who):
    while not ends.is_set():
        for _ in range(20):
            log.info("%s %d end", f"t{who}", logged[who])
            logged[who] += 1
        time.sleep(0.0001)  # others log too, and a run stays small

def await_lines(more):
    wanted = [count + more for count in logged]
    while any(have < want for have, want in zip(logged, wanted)):
        time.sleep(0.0005)

threads = [threading.Thread(target=work, args=[who]) for who in range(len(logged))]
for thread in threads:
    thread.start()
for _ in range(cycles):
    logspool.install()
    await_lines(100)
    logspool.uninstall()
    await_lines(20)
ends.set()
for thread in threads:
    thread.join()
logging.shutdown()
print(*logged)
"""


@pytest.mark.parametrize("kind", ["plain", "own", "rotating", "stream"])
def test_lines_of_a_thread_stay_in_order_through_many_installs(run_program, kind):
    outcome, folder = run_program(PROGRAM, kind, str(CYCLES), deadline_seconds=120)

    logged = [int(word) for word in outcome.expect_success().out.split()]
    backups = sorted(folder.glob("app.log.*"), key=lambda path: -int(path.suffix[1:]))
    found = lines.count(*backups, folder / "app.log")
    assert found.other == []
    assert found.out_of_order() == {}
    assert found.doubled() == {}
    assert {who: len(numbers) for who, numbers in found.numbers.items()} == {
        f"t{who}": count for who, count in enumerate(logged)
    }
