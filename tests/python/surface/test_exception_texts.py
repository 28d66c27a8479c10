"""A formatter that cannot be described is named, and texts of exceptions are counted by maker: native or Python."""

import pytest

pytestmark = pytest.mark.every_interpreter

PROGRAM = """\
import logging, os
import logspool

logspool.install()
log = logging.getLogger("a")
handler = logging.FileHandler("a.log")
log.addHandler(handler)
log.propagate = False

def fail():
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("failed")
"""


def _run(run_program, text):
    outcome, _ = run_program(PROGRAM + text)
    assert outcome.status == 0, outcome.err.decode()
    return outcome.out.decode()


@pytest.mark.real
def test_a_formatter_whose_attributes_raise_is_named_with_the_error(run_program):
    text = """
class Broken(logging.Formatter):
    @property
    def datefmt(self):
        raise LookupError("no such format")

    @datefmt.setter
    def datefmt(self, value):
        pass

handler.setFormatter(Broken("%(message)s"))
log.warning("one")
path = logspool.stats().loggers["a"]
logspool.flush()
print(path.native, path.by_record, path.stock, open("a.log").read(), end="")
print(path.reason)
print(path.advice)
"""
    first, reason, advice = _run(run_program, text).splitlines()

    assert first == "0 1 0 one"
    assert reason == ("FileHandler: Broken cannot be described, so it runs in Python: LookupError: no such format")
    assert advice.startswith("logspool.deferred(formatter)")


@pytest.mark.real
def test_exception_texts_are_counted_as_native_or_python(run_program):
    text = """
assert logspool.stats().exceptions == {"native": 0, "python": 0}
fail()
fail()
import traceback
stock = traceback.print_exception
traceback.print_exception = lambda *args, **kwargs: stock(*args, **kwargs)
fail()
found = logspool.stats()
assert found.exceptions == {"native": 2, "python": 1}, found.exceptions
assert "exceptions: 2 texts by native code, 1 by Python" in str(found)
page = logspool.metrics_text()
assert 'logspool_exception_texts_total{made_by="native"} 2\\n' in page, page
assert page.endswith('logspool_exception_texts_total{made_by="python"} 1\\n# EOF\\n'), page
if os.fork() == 0:
    os._exit(0 if logspool.stats().exceptions == {"native": 0, "python": 0} else 1)
assert os.wait()[1] == 0
"""
    assert _run(run_program, text) == ""
