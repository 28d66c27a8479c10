"""A wrong argument is an error that names the value and the expected values."""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

PROGRAM = """\
import logging
import logspool
from logspool.pool import Pool, Results, as_completed

pool = Pool(1)
for call in (
    lambda: pool.submit(None),
    lambda: pool.push(3),
    lambda: pool.submit_first(None),
    lambda: pool.high.submit(None),
    lambda: pool.push_many(None, [1]),
    lambda: pool.map(None, [1]),
    lambda: pool.stream(None),
    lambda: pool.map(int, [1], timeout="1"),
    lambda: pool.map(int, [1], chunksize="1"),
    lambda: as_completed([], "1"),
    lambda: pool.wait_idle(-1),
    lambda: pool.resize(1.5),
    lambda: Results("1"),
    lambda: logspool.bind("x"),
    lambda: logspool.bind(name="x"),
    lambda: logspool.bind(a=1)(5),
    lambda: logspool.JSONFormatter({"t": "tiem"}),
    lambda: logspool.JSONFormatter({"f": "func_name"}),
    lambda: logspool.JSONFormatter(["time"]),
    lambda: logspool.JSONFormatter("time"),
    lambda: logspool.JSONFormatter(datefmt=5),
    lambda: logspool.ThreadHandler(logging.NullHandler()).flush(-1),
    lambda: logspool.ServiceHandler(9),
):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(error)
print(pool.stats().submitted, pool.submit(int).result(60))
"""


def test_an_invalid_argument_is_an_error_that_names_it_and_a_fix(run_program):
    told = run_program(PROGRAM)[0].expect_success().out.decode().splitlines()

    assert told == [
        "submit() needs a function, not None: give it uncalled, its arguments after it",
        "push() needs a function, not 3: give it uncalled, its arguments after it",
        "submit_first() needs a function, not None: give it uncalled, its arguments after it",
        "submit() needs a function, not None: give it uncalled, its arguments after it",
        "push_many() needs a function, not None: give it uncalled, its arguments after it",
        "map() needs a function, not None: give it uncalled, its arguments after it",
        "stream() needs a function, not None: give it uncalled, its arguments after it",
        "timeout must be a number of seconds or None, not '1'",
        "chunksize must be a whole number, not '1'",
        "timeout must be a number of seconds or None, not '1'",
        "timeout must be 0 or more seconds, or None, not -1",
        "max_workers must be a whole number, not 1.5",
        "maxsize must be a whole number, not '1'",
        "bind takes fields by name, as bind(request_id=1), not 'x'",
        "bind: name: LogRecord has an attribute of that name; give the field another one",
        "bind(...) decorates a function, not 5",
        "JSONFormatter: there is no attribute 'tiem'; use 'time', or give an extra field a name that is not so close "
        "to it",
        "JSONFormatter: there is no attribute 'func_name'; use 'funcName', or give an extra field a name that is not "
        "so close to it",
        "JSONFormatter: fields must map each key to the attribute that it shows, as {'time': 'time'}, not ['time']",
        "JSONFormatter: fields must map each key to the attribute that it shows, as {'time': 'time'}, not 'time'",
        "JSONFormatter: datefmt must be text as for time.strftime, or None, not 5",
        "timeout must be 0 or more seconds, or None, not -1",
        "address must be text, as 'tcp://host:port', not 9",
        "0 0",
    ], told


TAKEN = """\
import logging
import logspool
from logspool.pool import Pool

logspool.JSONFormatter({"a": "levels", "b": "stock", "c": "state", "d": "file", "e": "taskName", "f": "time"})
with logspool.bind(self=1):
    pass
pool = Pool(1)
pool.submit(int)
pool.shutdown(1, cancel_futures=1)
Pool(1).shutdown(cancel_futures="")
"""


def test_names_of_attributes_and_any_truth_value_are_accepted(run_program):
    run_program(TAKEN)[0].expect_success()


STRINGS = """\
import logging, sys
import logspool

logging.basicConfig(filename="app.log", format="%(message)s", level=logging.INFO)
if sys.argv[1] == "installed":
    logspool.install()

class Shown:
    count = 0

    def __str__(self):
        Shown.count += 1
        return "shown %s"

logging.raiseExceptions = False
for arguments in ((Shown(), 1), (Shown(), 1, 2), (Shown(),), ("%s %d", Shown(), "x"), ("%s %s", Shown(), 1)):
    Shown.count = 0
    logging.info(*arguments)
    print(Shown.count)
"""


def test_the_text_of_an_object_is_made_once_in_a_call_as_by_stock_logging(run_program):
    stock, _ = run_program(STRINGS, "stock", side="stock")
    installed, _ = run_program(STRINGS, "installed")

    assert installed.expect_success().out == stock.expect_success().out == b"1\n" * 5
