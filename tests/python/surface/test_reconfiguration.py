"""Programs that change loggers, handlers and formatters while they log: the work that calls repeat after a change."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

_COUNTED = """
import logging
import logspool
from logspool.adoption import _adopt, _formatters

asked = {"describe": 0, "describe_formatter": 0}

def counted(name, function):
    def counting(*arguments):
        asked[name] += 1
        return function(*arguments)
    return counting

for home, name in ((_adopt, "describe"), (_formatters, "describe_formatter")):
    setattr(home, name, counted(name, getattr(home, name)))

logspool.install()
log = logging.getLogger("app")
handlers = [logging.FileHandler("first.log"), logging.FileHandler("second.log")]
for handler in handlers:
    logging.getLogger().addHandler(handler)
log.setLevel(logging.INFO)
log.info("before")
"""

_TREE_CHANGES = (
    _COUNTED
    + """
asked.update(describe=0, describe_formatter=0)
plans = logspool.stats().plans
for number in range(20):
    log.setLevel(logging.DEBUG if number % 2 else logging.INFO)
    log.info("level %d", number)
print(logspool.stats().plans - plans)
for number in range(20):
    handlers[0].setLevel(logging.DEBUG if number % 2 else logging.INFO)
    log.info("handler %d", number)
    log.propagate = False
    log.info("nowhere")
    log.propagate = True
    log.info("propagate %d", number)
    alone = logging.Logger("app")
    alone.addHandler(handlers[0])
    alone.info("alone %d", number)
print(asked["describe"], asked["describe_formatter"])
"""
)


def test_a_change_of_loggers_or_levels_describes_no_handler_again(run_program):
    outcome, folder = run_program(_TREE_CHANGES)

    assert outcome.expect_success().out.decode().split() == ["0", "0", "0"]
    levels = [f"level {number}" for number in range(20)]
    others = [f"{what} {number}" for number in range(20) for what in ("handler", "propagate", "alone")]
    first, second = ((folder / f"{name}.log").read_text().splitlines() for name in ("first", "second"))
    assert first == ["before", *levels, *others]
    assert second == ["before", *levels, *(line for line in others if not line.startswith("alone"))]


_FORMATTER_CHANGES = (
    _COUNTED
    + """
formatters = [logging.Formatter("%(message)s"), logging.Formatter("<%(message)s>")]
asked.update(describe=0, describe_formatter=0)
for number in range(20):
    handlers[0].setFormatter(formatters[number % 2])
    log.info("%d", number)
print(asked["describe"], asked["describe_formatter"])
formatters[1]._style._fmt = "{%(message)s}"
log.info("style")
"""
)


def test_a_changed_formatter_describes_only_itself_again(run_program):
    outcome, folder = run_program(_FORMATTER_CHANGES)

    assert outcome.expect_success().out.decode().split() == ["0", "20"]
    numbers = [f"<{number}>" if number % 2 else str(number) for number in range(20)]
    assert (folder / "first.log").read_text().splitlines() == ["before", *numbers, "{style}"]


_RESTLESS = """
import logging
import logspool

logspool.install()
log, other = logging.getLogger("app"), logging.getLogger("other")
log.setLevel(logging.INFO)
logging.getLogger().addHandler(logging.FileHandler("app.log"))
other.warning("watched")

state = {"reads": 0, "restless": True}

class Restless(logging.Handler):
    \"\"\"Whoever looks at its level changes something that plans depend on.\"\"\"

    @property
    def level(self):
        state["reads"] += 1
        if state["restless"]:
            other.propagate = not other.propagate
        return logging.CRITICAL

    @level.setter
    def level(self, value):
        pass

    def emit(self, record):
        pass

log.addHandler(Restless())
plans = logspool.stats().plans
for number in range(500):
    log.info("%d", number)
print(state["reads"], logspool.stats().plans - plans)
state["restless"] = False
native = logspool.stats().paths["native"]
for number in range(500, 1600):
    log.info("%d", number)
print(logspool.stats().paths["native"] - native)
"""


def test_calls_take_the_stock_path_while_plans_are_stale_before_they_are_used(run_program):
    outcome, folder = run_program(_RESTLESS)

    reads, plans, native = map(int, outcome.expect_success().out.decode().split())
    # Stock logging reads the level once for each call.
    assert 500 <= reads <= 550
    assert plans <= 50
    assert native > 0
    lines = (folder / "app.log").read_text().splitlines()
    assert [line for line in lines if line != "watched"] == [str(number) for number in range(1600)]


_MANY_THREADS = """
import logging, threading
import logspool

logspool.install()
handler = logging.FileHandler("app.log")
logging.getLogger().addHandler(handler)
loggers = [logging.getLogger("a"), logging.getLogger("b")]
for logger in loggers:
    logger.setLevel(logging.INFO)
formatters = [logging.Formatter("%(message)s"), logging.Formatter("%(message)s ")]
done = threading.Event()

def work(number):
    for count in range(300):
        loggers[number % 2].info("%d %d", number, count)

def change():
    count = 0
    while not done.is_set():
        count += 1
        loggers[0].setLevel(logging.DEBUG if count % 2 else logging.INFO)
        handler.setLevel(logging.DEBUG if count % 2 else logging.INFO)
        handler.setFormatter(formatters[count % 2])

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
changing = threading.Thread(target=change)
changing.start()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
done.set()
changing.join()
"""


def test_concurrent_changes_lose_and_misplace_no_record_of_logging_threads(run_program):
    outcome, folder = run_program(_MANY_THREADS)

    outcome.expect_success()
    counts: dict[str, list[int]] = {}
    for line in (folder / "app.log").read_text().splitlines():
        number, count = line.split()
        counts.setdefault(number, []).append(int(count))
    assert counts == {str(number): list(range(300)) for number in range(8)}
