"""Records that stock logging passes to logspool's FileHandler: read by value if lines stay equal, always exact."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# Every format formats every record, once in a stock handler and once in a handler of logspool.
PROGRAM = """\
import json, logging
import logspool

FORMATS = {
    "line": ("%", "%(lineno)d %(message)s"),
    "file": ("%", "%(filename)s:%(lineno)d %(message)s"),
    "module": ("%", "%(module)s %(message)s"),
    "path": ("%", "%(pathname)s %(funcName)s %(message)s"),
    "brace": ("{", "{lineno} {message}"),
    "dollar": ("$", "$lineno $message"),
}
CHANGES = {
    "none": {},
    "filename": {"filename": "another.py"},
    "module": {"module": "another"},
    "pathname": {"pathname": "/somewhere/else.py", "funcName": "elsewhere"},
    "number": {7: "an attribute whose name is no text"},
}
by_value = {}
logging.raiseExceptions = False
for name, (style, template) in FORMATS.items():
    for change, attributes in CHANGES.items():
        for handler_class in (logging.FileHandler, logspool.FileHandler):
            kind = handler_class.__module__.partition(".")[0]
            handler = handler_class(f"{kind}.log")
            handler.setFormatter(logging.Formatter(template, style=style))
            logger = logging.getLogger(f"{kind}.{name}.{change}")
            logger.addHandler(handler)
            logger.propagate = False
            for number in range(2):
                text = f"{name} {change} %d"
                record = logging.LogRecord(logger.name, 20, "/shop/cart.py", 7, text, (number,), None, "add")
                vars(record).update(attributes)
                logger.handle(record)
            if kind == "logspool":
                by_value[f"{name} {change}"] = not hasattr(record, "message")
            handler.close()
with open("by_value.json", "w") as file:
    json.dump(by_value, file)
"""

# The format shows a name that differs from the record's path, or passes the attributes as keywords.
IN_THE_CALLER = {"file filename", "file module", "module filename", "module module", "brace number", "dollar number"}
# The collector derives the file's name from the path.
IN_THE_CALLER |= {"file pathname", "module pathname"}


def test_lines_equal_stock_logging_and_only_opaque_values_are_formatted_in_the_caller(run_program):
    outcome, folder = run_program(PROGRAM)

    outcome.expect_success()
    stock, own = ((folder / f"{kind}.log").read_text() for kind in ("logging", "logspool"))
    assert stock == own
    # 30 pairs with two records each; stock logging cannot format the last pair.
    assert len(own.splitlines()) == 2 * 29
    by_value = json.loads((folder / "by_value.json").read_text())
    assert {pair for pair, is_so in by_value.items() if not is_so} == IN_THE_CALLER
