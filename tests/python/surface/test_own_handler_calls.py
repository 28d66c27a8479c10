"""`handle` of logspool's own handlers: results and lines of stock logging, whether or not its steps are replaced."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# Each case logs before and after its change, to a stock handler and to a handler of logspool.
PROGRAM = """\
import json, logging, sys
import logspool

if sys.argv[1] == "installed":
    logspool.install()
BASES = {"logging": logging.FileHandler, "logspool": logspool.FileHandler}
new_answers = sys.version_info >= (3, 12)

def drop(record):
    return record.args != (2,)

def exchange(record):
    return logging.makeLogRecord({**vars(record), "msg": "exchanged"}) if new_answers else True

def marked(method):
    def call(handler, record):
        record.msg = "marked " + record.msg
        return method(handler, record)
    return call

def change_class(name):
    def change(handler):
        owner = next(owner for owner in type(handler).__mro__ if name in vars(owner))
        stock = vars(owner)[name]
        setattr(owner, name, marked(stock))
        return lambda: setattr(owner, name, stock)
    return change

def overriding(name):
    def make(base):
        return type("Own", (base,), {name: marked(getattr(base, name))})
    return make

def named(answer, record):
    return "the record" if answer is record else answer if isinstance(answer, bool) else type(answer).__name__

CHANGES = {
    "none": lambda handler: None,
    "filter added": lambda handler: handler.addFilter(drop),
    "filter in the list": lambda handler: handler.filters.append(drop),
    "filters replaced": lambda handler: setattr(handler, "filters", [drop]),
    "filters no list": lambda handler: setattr(handler, "filters", (drop,)),
    "record exchanged": lambda handler: handler.addFilter(exchange),
    "emit on the handler": lambda handler: setattr(handler, "emit", marked(type(handler).emit).__get__(handler)),
    "handle on the handler": lambda handler: setattr(handler, "handle", marked(type(handler).handle).__get__(handler)),
    "filter on the handler": lambda handler: setattr(handler, "filter", drop),
    "Handler.filter": change_class("filter"),
    "emit of its class": change_class("emit"),
    "handle of its class": change_class("handle"),
    "format of its class": change_class("format"),
    "formatter": lambda handler: handler.setFormatter(logging.Formatter("%(levelname)s %(message)s")),
    "closed": lambda handler: handler.close(),
}
MAKERS = {"": lambda base: base} | {f"own {name}": overriding(name) for name in ("emit", "handle", "format", "filter")}
answers = {kind: [] for kind in BASES}
logging.raiseExceptions = False
for maker, make in MAKERS.items():
    for change, apply in CHANGES.items():
        for kind, base in BASES.items():
            handler = make(base)(f"{kind}.log")
            logger = logging.getLogger(f"{kind}.{maker}.{change}")
            logger.propagate = False
            logger.addHandler(handler)
            undo = None
            for number in range(5):
                if number == 1:
                    undo = apply(handler)
                logger.warning(f"{maker} {change} %d", number)
            record = logging.LogRecord(logger.name, 30, "/shop/cart.py", 7, f"{maker} {change} direct %d", (5,), None)
            answer = handler.handle(record)
            answers[kind].append([maker, change, named(answer, record)])
            if undo:
                undo()
            handler.close()
with open("answers.json", "w") as file:
    json.dump(answers, file)
"""


@pytest.mark.parametrize("way", ["alone", "installed"])
def test_handle_returns_and_writes_the_same_as_stock_logging_after_any_change(run_program, way):
    outcome, folder = run_program(PROGRAM, way)

    outcome.expect_success()
    answers = json.loads((folder / "answers.json").read_text())
    assert answers["logging"] == answers["logspool"]
    assert len(answers["logging"]) == 75
    stock, own = ((folder / f"{kind}.log").read_text() for kind in ("logging", "logspool"))
    assert stock == own
    assert "\nmarked marked own emit emit on the handler 1\n" in own


HELD = """\
import logging, threading
import logspool

handler = logspool.FileHandler("own.log")
log = logging.getLogger("shop")
log.addHandler(handler)
log.propagate = False
log.warning("free")
handler.acquire()
caller = threading.Thread(target=log.warning, args=("held",))
caller.start()
caller.join(20)
print(caller.is_alive())
handler.release()
"""


def test_a_record_by_value_waits_for_no_lock_of_the_handler(run_program):
    outcome, folder = run_program(HELD)

    assert b"False\n" == outcome.expect_success().out
    assert "free\nheld\n" == (folder / "own.log").read_text()
