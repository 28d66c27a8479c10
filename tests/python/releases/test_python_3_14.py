"""What CPython 3.14 brought: the same lines as with stock logging."""

import sys

import pytest

from releases.both_sides import BEGIN, compared
from suite import programs

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.version_info < (3, 14), reason="the programs use the language of 3.14"),
]


def test_deferred_annotations_change_no_line_and_no_path(run_program):
    body = """
import annotationlib

class Named(logging.Formatter):
    suffix: Missing = " (named)"
    width: "also missing"

class Kept(logging.Handler):
    lines: list[Missing]
    def emit(self, record: Missing) -> Missing:
        log.info("kept %s", record.getMessage())

class Adapter(logging.LoggerAdapter):
    extra: Missing

def annotated(value: Missing, other: int = 3) -> Missing:
    log.info("called with %s", value)

side.install()
log = to_file("app")
log.handlers[0].setFormatter(Named("%(levelname)s %(message)s %(lineno)d"))
other = to_file("other")
other.addHandler(Kept())
annotated(1)
for form in (annotationlib.Format.FORWARDREF, annotationlib.Format.STRING):
    log.info("annotations: %s", annotationlib.get_annotations(annotated, format=form))
other.warning("to both")
Adapter(log, {"field": 1}).warning("by an adapter")
try:
    annotated.__annotations__
except NameError:
    log.exception("no such name")
log.info("%s", annotationlib.ForwardRef("Missing"))
"""
    files, err = compared(run_program, body)

    assert "NameError: name 'Missing' is not defined" in files["app.log"]
    assert "kept to both" in files["app.log"]
    assert "" == err


def test_exceptions_without_parentheses_are_shown_with_their_lines(run_program):
    body = """
side.install()
log = to_file("app")
for number in range(3):
    for fail in (lambda: int("x"), lambda: [][1], lambda: {}["key"]):
        try:
            fail()
        except ValueError, LookupError:
            log.exception("failed %d", number)
try:
    try:
        raise ExceptionGroup("several", [ValueError(1), TypeError("two")])
    except* ValueError, TypeError:
        log.exception("group")
        raise OSError(5, "third")
except (OSError, ExceptionGroup) as error:
    error.add_note("a note")
    log.error("chained", exc_info=error)
"""
    files, err = compared(run_program, body)

    assert 9 == files["app.log"].count(" failed ")
    assert "a note" in files["app.log"] and "ExceptionGroup: several (2 sub-exceptions)" in files["app.log"]
    assert "" == err


def test_warnings_about_finally_and_context_reach_the_warnings_logger(run_program):
    body = """
import threading, warnings
side.install()
to_file("py.warnings", "%(name)s %(levelname)s %(message)s")
logging.captureWarnings(True)
warnings.simplefilter("always")
source = "def leaves():\\n    try:\\n        return 1\\n    finally:\\n        return 2\\n"
exec(compile(source, "leaves.py", "exec"))
for _ in range(3):
    warnings.warn("in a program", UserWarning)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("caught")
warnings.warn_explicit("elsewhere", DeprecationWarning, "other.py", 3)
assert len(caught) == 1
"""
    files, err = compared(run_program, body)

    assert "SyntaxWarning: 'return' in a 'finally' block" in files["py.warnings.log"]
    assert 3 == files["py.warnings.log"].count("UserWarning: in a program")
    assert "" == err


def test_template_strings_can_be_messages_and_arguments(run_program):
    body = """
side.install()
log = to_file("app")
json = to_file("fields", "%(message)s %(shop)s")
name, price = "apple", 2.5
for _ in range(3):
    log.info(t"{name} costs {price:.2f}")
    log.info("%s and %r", t"{name}", t"{price!r:>8}")
    log.info(t"{name} %s", "an argument")
    log.info(t"", "no place")
    log.log(logging.WARNING, t"{name}" t" joined {price}")
    json.info("fields", extra={"shop": t"{name}"})
    logging.LoggerAdapter(json, {"shop": t"{price}"}).info(t"{name}")
log.info("%(name)s", {"name": t"{name}"})
log.info("%s", [t"{name}", (t"{price}",)])
log.info("%d", t"{name}")
"""
    files, err = compared(run_program, body)

    assert "Template(strings=('', ' costs ', '')" in files["app.log"]
    assert 1 == err.count("\nTypeError: ") - err.count("not all arguments")


def test_new_error_texts_equal_those_of_the_interpreter(run_program):
    body = """
import math
side.install()
log = to_file("app")

class Shop:
    price = 3

def wrong_keyword(): exec("whille True: pass")
def unhashable(): return {[]: 1}
def domain(): return math.sqrt(-1)
def unpack(): a, b = 1, 2, 3
def attribute(): return Shop().prices
def name(): return prise
def keyword(): return print(1, ends="")
def missing_module(): import no_such_module_here
def from_module(): from math import sqrrt
def prefix(): exec('x = ub"text"')
def types(): return 1 + "1"
def context():
    with Shop(): pass
def async_context():
    async def run():
        with Shop2(): pass
    class Shop2:
        async def __aenter__(self): pass
        async def __aexit__(self, *_): pass
    run().send(None)
def huge(): return int("1" * 5000)
def deep(): return deep()

prize = 1
for _ in range(2):
    for fail in (wrong_keyword, unhashable, domain, unpack, attribute, name, keyword, missing_module, from_module,
                 prefix, types, context, async_context, huge, deep):
        try:
            fail()
        except Exception:
            log.exception("%s", fail.__name__)
"""
    files, _ = compared(run_program, body)

    for text in ("Did you mean 'while'", "cannot use 'list' as a dict key", "'sqrt'?", "RecursionError: maximum"):
        assert 2 == files["app.log"].count(text), text


@pytest.mark.parametrize("colours", [{"FORCE_COLOR": "1"}, {"PYTHON_COLORS": "1"}])
def test_only_tracebacks_of_the_interpreter_have_colours(run_program, colours):
    body = """
import threading
side.install()
log = to_file("app")
logging.getLogger("console").addHandler(logging.StreamHandler())

def fail():
    raise ValueError("red")

try:
    fail()
except ValueError:
    log.exception("in a file")
    logging.getLogger("console").exception("on the console")
logging.getLogger("console").info("%d", "not a number") or logging.getLogger("console").warning("%d", "no number")
side.settle()
thread = threading.Thread(target=fail, name="failing")
thread.start()
thread.join()
"""
    files, err = compared(run_program, body, **colours)

    assert "\x1b[" not in files["app.log"]
    assert "on the console" in err and "Exception in thread failing" in err
    assert "\x1b[" in err.partition("Exception in thread failing")[2]


def test_the_main_interpreter_logs_while_other_interpreters_run(run_program):
    body = """
import concurrent.futures, concurrent.interpreters
side.install()
log = to_file("app")
INNER = '''
import logging
log = logging.getLogger("inner")
if not log.handlers:
    log.addHandler(logging.FileHandler("inner.log"))
try:
    import logspool
    logspool.install()
except ImportError as error:
    log.warning("refused: %s", error)
'''
log.info("before")
other = concurrent.interpreters.create()
other.exec("import logging; logging.basicConfig(filename='other.log'); logging.warning('from %s', 'there')")
log.info("beside it")
other.close()
with concurrent.futures.InterpreterPoolExecutor(max_workers=1) as pool:
    for number, _ in enumerate(pool.map(exec, [INNER] * 2)):
        log.info("done %d", number)
log.info("after")
"""
    files, err = compared(run_program, body)

    assert [5, 1] == [files[name].count("\n") for name in ("app.log", "other.log")]
    refused = [line for line in files["inner.log"].splitlines() if line.startswith("refused: ")]
    assert 2 == len(refused) == files["inner.log"].count("subinterpreter")
    assert "" == err


def test_a_script_injected_from_outside_can_log(run_program):
    body = """
import os, pathlib, time
side.install()
log = to_file("app")
done = pathlib.Path("done")
script = pathlib.Path("remote.py").absolute()
script.write_text(f'''
import logging, pathlib
log = logging.getLogger("app")
def remote(number):
    try:
        raise ValueError(number)
    except ValueError:
        log.exception("from %s", "outside")
remote(1)
log.info("again")
pathlib.Path({str(done.absolute())!r}).touch()
''')
log.info("before")
sys.remote_exec(os.getpid(), str(script))
deadline = time.monotonic() + 30
while not done.exists() and time.monotonic() < deadline:
    time.sleep(0.001)
log.info("after")
pathlib.Path(script).unlink()
"""
    files, err = compared(run_program, body)

    kinds = [line.split()[1].split(":")[0] for line in files["app.log"].splitlines() if line[:5] in ("INFO ", "ERROR")]
    assert ["<module>", "remote", "<module>", "<module>"] == kinds
    assert "" == err


def test_maps_with_a_buffer_log_in_order(run_program):
    body = """
import concurrent.futures
side.install()
log = to_file("app", "%(levelname)s %(message)s")

def twice(number):
    log.debug("job")
    return number * 2

with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for answer in pool.map(twice, range(20), buffersize=4):
        log.info("%d", answer)
"""
    # Threads log in any order, so only what the main thread logs has one.
    for side in programs.SIDES:
        outcome, folder = run_program(BEGIN + body, side=side)
        outcome.expect_success()
        lines = (folder / "app.log").read_text().splitlines()

        assert [f"INFO {number * 2}" for number in range(20)] == [line for line in lines if line.startswith("INFO")]
        assert 20 == lines.count("DEBUG job")
