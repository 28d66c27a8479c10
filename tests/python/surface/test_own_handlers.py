"""logspool's own StreamHandler and FileHandler: pretty on a terminal, otherwise as stock; options as keywords."""

import json
import re

import pytest

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

# Every native line of the installed side must equal the result of the handler's own `format` for the same record.
PRETTY = """\
import json, logging, sys
import logspool

logging.addLevelName(25, "NOTICE")
handler = logspool.StreamHandler(sys.stderr)
log = logging.getLogger("shop.cart")
log.addHandler(handler)
log.setLevel(1)
log.propagate = False
texts = []

class Keep(logging.Handler):
    def emit(self, record):
        texts.append(handler.format(record) + "\\n")

if sys.argv[1] == "formatted":
    log.addHandler(Keep())
for level in (5, 10, 20, 25, 30, 40, 50):
    log.log(level, "order %d took %.3f ms", level, 0.25)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("it broke")
handler.flush()
with open("texts.json", "w") as file:
    json.dump({"texts": texts}, file)
"""


def _lines(outcome):
    return outcome.err.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_shows_the_same_pretty_lines_on_the_native_and_the_python_path(run_program, no_color):
    outcome, folder = run_program(PRETTY, "formatted", terminal=True, NO_COLOR=no_color)

    outcome.expect_success()
    assert "".join(json.loads((folder / "texts.json").read_text())["texts"]) == _lines(outcome)
    assert ("\x1b[" in _lines(outcome)) == (no_color == "")


def test_levels_are_coloured_and_aligned_on_a_terminal(run_program):
    outcome, _ = run_program(PRETTY, "alone", terminal=True)

    lines = _lines(outcome.expect_success()).splitlines()
    time = r"\x1b\[2m\d\d:\d\d:\d\d\.\d\d\d\x1b\[0m"
    name = r"\x1b\[36mshop\.cart\x1b\[0m"
    shown = {
        "5": "Level 5",
        "10": r"\x1b\[34mDEBUG   \x1b\[0m",
        "20": r"\x1b\[32mINFO    \x1b\[0m",
        "25": r"\x1b\[32mNOTICE  \x1b\[0m",
        "30": r"\x1b\[33mWARNING \x1b\[0m",
        "40": r"\x1b\[31mERROR   \x1b\[0m",
        "50": r"\x1b\[1;31mCRITICAL\x1b\[0m",
    }
    for line, (level, text) in zip(lines, shown.items(), strict=False):
        assert re.fullmatch(rf"{time} {text} {name} order {level} took 0\.250 ms", line), line
    assert lines[-1] == "ZeroDivisionError: division by zero"


HOSTILE = """
log.info("user %s", "eve\\x1b[2J\\nINFO forged")
try:
    raise ValueError("bad\\x07\\u202e")
except ValueError:
    log.exception("failed")
handler.flush()
"""


@pytest.mark.parametrize("mode", ["alone", "formatted"])
def test_no_text_of_a_record_controls_the_terminal(run_program, mode):
    outcome, folder = run_program(PRETTY.replace("handler.flush()\n", HOSTILE), mode, terminal=True, NO_COLOR="1")

    lines = _lines(outcome.expect_success())
    assert "user eve\\x1b[2J\\nINFO forged\n" in lines
    assert lines.endswith("ValueError: bad\\x07\\u202e\n")
    assert "\x1b" not in lines
    if mode == "formatted":
        assert "".join(json.loads((folder / "texts.json").read_text())["texts"]) == lines


def test_without_colours_the_lines_are_plain(run_program):
    outcome, _ = run_program(PRETTY, "alone", terminal=True, NO_COLOR="1")

    first = _lines(outcome.expect_success()).splitlines()[2]
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d\d\d INFO     shop\.cart order 20 took 0\.250 ms", first)


def test_a_pipe_gets_the_same_lines_as_with_stock_logging(run_program):
    outcome, _ = run_program(PRETTY, "alone")

    lines = _lines(outcome.expect_success()).splitlines()
    assert lines[:3] == [f"order {level} took 0.250 ms" for level in (5, 10, 20)]
    assert "\x1b" not in _lines(outcome)


def test_a_custom_formatter_is_used_on_a_terminal_too(run_program):
    own = 'handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))\nlog.propagate = False'
    outcome, _ = run_program(PRETTY.replace("log.propagate = False", own), "alone", terminal=True)

    assert _lines(outcome.expect_success()).splitlines()[2] == "INFO order 20 took 0.250 ms"


OPTIONS = """\
import logging, logspool, sys
handler = logspool.FileHandler("own.log", queue_bytes=65_536, shutdown_timeout=2.0)
logging.getLogger().addHandler(handler)
for number in range(1000):
    logging.warning("line %d", number)
again = logspool.StreamHandler(sys.stdout, queue_bytes=65_536)
for options in ({"queue_bytes": 131_072}, {"queue_byte": 1}, {"shutdown_timeout": -1}, {"spool_dir": "/dev/null"}):
    try:
        logspool.FileHandler("other.log", **options)
    except Exception as error:
        print(type(error).__name__, error)
try:
    logspool.install(queue_bytes=131_072, shutdown_timeout=2.0)
except RuntimeError as error:
    print("install", error)
"""


def test_handlers_have_the_options_of_install_and_a_process_has_one_queue(run_program):
    outcome, folder = run_program(OPTIONS, side="stock")

    told = outcome.expect_success().out.decode().splitlines()
    assert (folder / "own.log").read_text() == "".join(f"line {number}\n" for number in range(1000))
    assert not (folder / "other.log").exists()
    assert told[0].startswith("RuntimeError FileHandler: the queue of this process has other options")
    assert "queue_bytes=65536 (now 131072)" in told[0]
    assert told[1] == "TypeError FileHandler has no option 'queue_byte'; the nearest one is 'queue_bytes'"
    assert told[2].startswith("ValueError shutdown_timeout must be")
    assert told[3].startswith("ValueError spool_dir=")
    assert told[4].startswith("install ") and "queue_bytes=65536 (now 131072)" in told[4]


AFTER_UNINSTALL = """\
import logging, os
import logspool

handler = logspool.FileHandler("app.log")
handler.setFormatter(logging.Formatter("first %(message)s"))
log = logging.getLogger("app")
log.setLevel(logging.INFO)
log.addHandler(handler)
logspool.install()
log.info("1")
logspool.uninstall()
log.info("2")
handler.formatter._style._fmt = "then %(message)s"
log.info("3")
os._exit(0)
"""


def test_after_uninstall_own_handlers_see_changes_and_are_complete_after_os_exit(run_program):
    outcome, folder = run_program(AFTER_UNINSTALL)

    outcome.expect_success()
    assert (folder / "app.log").read_text().splitlines() == ["first 1", "first 2", "then 3"]
