"""`SinkHandler` reaches every sink of the core's table by its name. A new sink needs no change here."""

import pytest

from logspool.handlers._sinks import table

pytestmark = pytest.mark.real

FILES = sorted(
    kind
    for kind, row in table().items()
    if row["takes"] == "lines" and any(option["name"] == "path" for option in row["options"])
)

TO_FILE = """\
import logging, os, sys
import logspool

if sys.argv[2] == "installed":
    logspool.install()
handler = logspool.SinkHandler(sys.argv[1], path="app.log")
handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
log = logging.getLogger("shop")
log.setLevel("INFO")
log.addHandler(handler)
log.info("order %d", 7)
handler.terminator = "|\\n"
log.warning("took %.2f s", 0.5)
handler.setFormatter(None)
handler.terminator = "\\n"
log.error("%r", ["x"])
handler.format = lambda record: f"mine: {record.getMessage()}"
log.error("last")
handler.flush()
name = os.path.abspath("app.log")
print(list(logspool.stats().sinks), handler, handler.sink)
handler.close()
"""


@pytest.mark.parametrize("installed", ["installed", "alone"])
@pytest.mark.parametrize("kind", FILES)
def test_lines_reach_a_file_through_any_sink_with_a_path(run_program, kind, installed):
    outcome, folder = run_program(TO_FILE, kind, installed)

    name = folder / "app.log"
    told = f"[{str(name)!r}] <SinkHandler {kind} {name} (NOTSET)> {kind}\n"
    assert outcome.expect_success().out.decode() == told
    assert name.read_text() == "INFO order 7\nWARNING took 0.50 s|\n['x']\nmine: last\n"


OTHERS = """\
import logging.config, os
import logspool

logging.config.dictConfig({
    "version": 1,
    "formatters": {"short": {"format": "%(message)s"}},
    "handlers": {
        "out": {"class": "logspool.SinkHandler", "sink": "console", "descriptor": 1, "formatter": "short"},
        "pipe": {"class": "logspool.SinkHandler", "sink": "console", "descriptor": os.dup(1), "formatter": "short"},
        "null": {"class": "logspool.SinkHandler", "sink": "null", "flush_records": 7},
    },
    "root": {"handlers": ["out", "pipe", "null"], "level": "INFO"},
})
logging.info("seen")
logspool.flush()
written = {name: sink["INFO"].written for name, sink in logspool.stats().sinks.items()}
assert sum(written.values()) >= 2 and written["null"] == 1, written
"""


def test_dict_config_accepts_descriptor_and_null_sinks(run_program):
    outcome, _ = run_program(OTHERS)

    assert outcome.expect_success().out.decode() == "seen\nseen\n"


WRONG = """\
import logspool

for make in (
    lambda: logspool.SinkHandler("flie", path="a"),
    lambda: logspool.SinkHandler(3),
    lambda: logspool.SinkHandler("file"),
    lambda: logspool.SinkHandler("file", pth="a"),
    lambda: logspool.SinkHandler("file", path="a", flush_recods=1),
    lambda: logspool.SinkHandler("file", path=3),
    lambda: logspool.SinkHandler("rotating", path="a", max_bytes="1"),
    lambda: logspool.SinkHandler("rotating", path="a", max_bytes=-1),
    lambda: logspool.SinkHandler("rotating", path="a", rules="togehter"),
    lambda: logspool.SinkHandler("service", address="nowhere"),
    lambda: logspool.SinkHandler("null", flush_records=0),
):
    try:
        make()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""


def test_an_unknown_name_is_refused_with_the_nearest_name(run_program):
    told = run_program(WRONG)[0].expect_success().out.decode().splitlines()

    assert told == [
        'ValueError there is no sink "flie"; the nearest one is "file"',
        "TypeError SinkHandler: sink must be the name of a sink, not 3",
        'TypeError file needs the option "path"',
        "TypeError SinkHandler('file') has no option 'pth'; the nearest one is 'path'",
        "TypeError SinkHandler('file') has no option 'flush_recods'; the nearest one is 'flush_records'",
        "TypeError path must be a path, not 3",
        'TypeError max_bytes must be a whole number of bytes, not "1"',
        "ValueError max_bytes must be 0 to 18446744073709551615 bytes, not -1",
        'ValueError rules has no value "togehter"; the nearest one is "together"',
        'ValueError address: "nowhere" is no address of a service: it must begin with tcp://, tls:// or unix://',
        "ValueError flush_records must be 1 to 1000000000 records, not 0",
    ], told


def test_sinks_and_install_share_no_option_name():
    from logspool.process import _install_options

    taken = {"sink", "level", "filters", "formatter", "class", *_install_options.shapes()}
    for kind, row in table().items():
        assert not taken & {option["name"] for option in row["options"]}, kind
