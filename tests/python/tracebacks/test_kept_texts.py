"""Tests when native code asks Python for the text of an exception, and when it reuses a text that it kept."""

import json
import sys

import pytest

pytestmark = pytest.mark.real

PROGRAM = """\
import gc, importlib, json, linecache, logging, os, sys, threading, traceback, weakref
from logspool.adoption import _texts, _traceback

counts = {{}}

def counted(module, name):
    function = getattr(module, name)
    counts[name] = 0
    def call(*args):
        counts[name] += 1
        return function(*args)
    setattr(module, name, call)

for module, name in ((_texts, "exception_text"), (_traceback, "frame_texts"), (_traceback, "final_lines")):
    counted(module, name)

import logspool

sys.path.insert(0, os.getcwd())
log = logging.getLogger("app")
handler = logging.FileHandler("app.log", encoding="utf-8")
handler.setFormatter(logging.Formatter("%(message)s"))
log.addHandler(handler)
log.propagate = False
# The collector may be delayed on a busy machine, so no call drops its record here.
logspool.install(blocking_timeout=60)

SOURCE = "def fail(error):\\n    raise error\\n"

def write(text, seconds):
    with open("made.py", "w") as file:
        file.write(text)
    os.utime("made.py", (seconds, seconds))

write(SOURCE, 1_600_000_000)
import made

def text_of(error):
    "Log an exception; return the text in the file, which is the one of stock logging."
    try:
        made.fail(error)
    except BaseException as caught:
        error = caught
        before = os.path.getsize("app.log")
        log.error("m", exc_info=(type(error), error, error.__traceback__))
    logspool.flush()
    with open("app.log", encoding="utf-8") as file:
        file.seek(before)
        text = file.read().removeprefix("m\\n").removesuffix("\\n")
    asked = dict(counts)
    stock = logging.Formatter().formatException((type(error), error, error.__traceback__))
    assert text == stock, (text, stock)
    return text, {{name: asked[name] - seen.get(name, 0) for name in asked}}

seen = {{}}
shown = []

def show(error):
    seen.update(counts)
    text, asked = text_of(error)
    shown.append([name for name, count in asked.items() for _ in range(count)])
    return text

{body}
print(json.dumps(shown))
"""


@pytest.fixture
def asked(run_program):
    """Give a function that runs a program and returns, for each exception, the Python functions that were called."""

    def run(body: str) -> list[list[str]]:
        outcome, _ = run_program(PROGRAM.format(body=body))
        outcome.expect_success()
        return json.loads(outcome.out)

    return run


def test_the_text_of_a_frame_is_requested_once(asked):
    assert asked("for number in range(3): show(ValueError(number))") == [["frame_texts"], [], []]


def test_a_changed_file_shows_its_new_lines(asked):
    body = """\
show(ValueError("a")); show(ValueError("a"))
write(SOURCE.replace("raise error", "raise error  # changed"), 1_600_000_001)
assert "# changed" in show(ValueError("a")); show(ValueError("a"))
os.utime("made.py", (1_600_000_002, 1_600_000_002))
show(ValueError("a")); show(ValueError("a"))
os.remove("made.py")
assert "raise error" not in show(ValueError("a"))
write(SOURCE, 1_600_000_003)
assert "raise error" in show(ValueError("a")); show(ValueError("a"))
"""

    once = [["frame_texts"], []]
    assert asked(body) == [*once, *once, *once, ["frame_texts"], *once]


def test_another_entry_of_linecache_is_shown(asked):
    body = """\
show(ValueError("a")); show(ValueError("a"))
linecache.clearcache()
show(ValueError("a")); show(ValueError("a"))
name = made.fail.__code__.co_filename
linecache.cache[name] = (1, None, ["one\\n", "two lines\\n"], name)
assert "two lines" in show(ValueError("a")); show(ValueError("a"))
linecache.checkcache()
show(ValueError("a"))
"""

    assert asked(body) == [["frame_texts"], []] * 3 + [[]]


#: Patches of programs: the name of an attribute, its value while it is patched, and another statement that then runs.
PATCHED = [
    ("linecache.checkcache", "lambda name=None: stock(name)", ""),
    ("linecache.updatecache", "lambda *args: ['other\\n'] * 9", "linecache.clearcache()"),
    ("traceback.print_exception", "lambda *args, **more: stock(*args, **more)", ""),
    ("traceback.TracebackException", "type('Own', (stock,), {})", ""),
    ("traceback.StackSummary.format", "lambda self, **more: ['patched\\n']", ""),
    ("traceback.FrameSummary.line", "property(lambda self: stock.fget(self))", ""),
    ("os.stat", "lambda *args, **more: stock(*args, **more)", ""),
    ("builtins.print", "lambda *args, **more: stock(*args, **more)", ""),
    ("sys.tracebacklimit", "1", ""),
]


@pytest.mark.parametrize(("name", "value", "more"), PATCHED, ids=[name for name, _, _ in PATCHED])
def test_python_formats_the_traceback_while_something_is_patched(asked, name, value, more):
    owner, _, attribute = name.rpartition(".")
    body = f"""\
import builtins
show(ValueError("a"))
stock = getattr({owner}, "{attribute}", None)
{name} = {value}
{more}
show(ValueError("a"))
{name} = stock
show(ValueError("a"))
show(KeyError("a"))
"""

    before, patched, back, again = asked(body)
    assert (before, patched, again) == (["frame_texts"], ["exception_text"], [])
    # If a patched function filled `linecache`, the lines may be read again.
    assert back in ([], ["frame_texts"])


def test_python_formats_final_lines_of_unusual_exceptions(asked):
    body = """\
show(ValueError("a"))
show(SyntaxError("a", ("file.py", 1, 2, "text", 1, 3)))
error = ValueError("a")
error.__notes__ = ["a", 3]
show(error)
error.__notes__ = ["a", "b\\nc", ""]
show(error)
class Text(str):
    pass
class Own(Exception):
    def __str__(self):
        return Text("of a subclass")
show(Own())
show(AttributeError("no name"))
try:
    print(sys.argvv)
except AttributeError as caught:
    show(caught)
show(ModuleNotFoundError("No module named 'tkinter'", name="tkinter"))
"""

    first, syntax, odd_notes, *plain, attribute, module = asked(body)
    assert first == ["frame_texts"]
    assert syntax == ["final_lines"]
    # Notes are shown since 3.11, suggestions are made in Python since 3.12.
    assert odd_notes == (["final_lines"] if sys.version_info >= (3, 11) else [])
    assert plain == [[], [], []]
    assert attribute == (["frame_texts", "final_lines"] if sys.version_info >= (3, 12) else ["frame_texts"])
    # Since 3.15 the text says if a module of the standard library is missing in the installation.
    assert module == (["final_lines"] if sys.version_info >= (3, 15) else [])


def test_python_formats_exceptions_whose_class_changes_attribute_access(asked):
    body = """\
class Falsy(Exception):
    def __bool__(self):
        return False
class Caused(Exception):
    __cause__ = None
class Got(Exception):
    def __getattribute__(self, name):
        return super().__getattribute__(name)
for cls in (Falsy, Caused, Got):
    show(cls("a"))
"""

    assert asked(body) == [["exception_text"]] * 3


def test_the_text_of_an_exception_is_requested_once(asked):
    body = """\
class Own(Exception):
    count = 0
    def __str__(self):
        self.count += 1
        return f"number {self.count}"
class Raising(Own):
    def __str__(self):
        super().__str__()
        raise KeyboardInterrupt
errors = [Own(), Raising()]
for error in errors:
    try:
        made.fail(error)
    except Exception as caught:
        log.exception("m")
assert [error.count for error in errors] == [1, 1]
"""

    assert asked(body) == []


def test_old_code_is_not_kept_forever(asked):
    body = """\
made_of = []
for number in range(9000):
    globals_of = {}
    exec(compile(f"def fail(): raise ValueError({number})", "<made>", "exec"), globals_of)
    made_of.append(weakref.ref(globals_of["fail"].__code__))
    try:
        globals_of["fail"]()
    except ValueError:
        log.exception("m")
del globals_of
gc.collect()
assert sum(code() is not None for code in made_of) < 5000
"""

    assert asked(body) == []


def test_threads_see_lines_of_one_version_of_a_file(asked):
    body = """\
import re
def other(number):
    return f"def fail(error):\\n    raise error  # version {number} {'x' * number}\\n"
write(other(0), 1_600_000_000)
importlib.reload(made)
ending = threading.Event()
def work():
    while not ending.is_set():
        try:
            made.fail(ValueError("a"))
        except ValueError:
            log.exception("m")
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
for number in range(60):
    write(other(number), 1_600_000_000 + number)
    # The other threads log with this version, however busy the machine is.
    ending.wait(0.002)
    if number % 10 == 0:
        linecache.clearcache()
ending.set()
[thread.join() for thread in threads]
logspool.flush()
with open("app.log") as file:
    text = file.read()
blocks = text.split("m\\nTraceback (most recent call last):\\n")[1:]
assert blocks and all(block.count("File ") == 2 and block.endswith("ValueError: a\\n") for block in blocks)
versions = re.findall(r"version (\\d+) (x*)$", text, re.MULTILINE)
wrong = [(number, len(xs)) for number, xs in versions if len(xs) != int(number)]
assert versions and not wrong, (wrong, len(versions))
show(ValueError("last"))
"""

    (last,) = asked(body)
    assert last in ([], ["frame_texts"])
