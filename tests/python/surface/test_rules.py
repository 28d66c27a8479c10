"""The rules of `install()`: redaction, escapes, sampling, limits. Each test runs a program and reads its file."""

import json

import pytest

pytestmark = pytest.mark.real

HEAD = """\
import json, logging, os, sys
import logspool

FORMAT = "%(levelname)s %(name)s %(message)s"

class Own(logging.Formatter):
    def format(self, record):
        return "own " + super().format(record)

def handler(kind):
    made = logging.FileHandler("app.log")
    made.setFormatter({"text": lambda: logging.Formatter(FORMAT), "json": logspool.JSONFormatter, "own": Own}[kind]())
    return made

def begin(kind="text", **options):
    logspool.install(**options)
    logging.basicConfig(handlers=[handler(kind)], level=logging.DEBUG)

log = logging.getLogger("app")

"""


@pytest.fixture
def run(run_program):
    """Run a program that begins with `HEAD`; return its output and its folder."""

    def call(body, **variables):
        outcome, folder = run_program(HEAD + body, **variables)
        return outcome.expect_success().out.decode(), folder

    return call


@pytest.fixture
def lines(run):
    """Run a program; return the lines of its file and its output."""

    def call(body):
        printed, folder = run(body)
        return (folder / "app.log").read_text().splitlines(), printed

    return call


SECRETS = """
begin({kind!r}, redact_keys=["password", "token"], redact_patterns=[r"\\d{{4}}-\\d{{4}}"])
log.info("user %s has password=%s", "ada", "hunter2")
log.info(f"card 1234-5678")
log.info("nothing to hide %d", 7)
fields = {{"db_password": "hunter2", "count": 3, "note": "call 1234-5678", "deep": {{"token": "hunter2"}}}}
log.info("fields", extra=fields)
log.info("%(token)s", {{"token": "hunter2"}})
log.info("arguments %s", {{"token": "hunter2", "n": 1}})
try:
    raise ValueError("token=hunter2")
except ValueError:
    log.exception("failed with %s", "1234-5678")
with logspool.bind(token="hunter2"):
    log.info("bound")
logging.getLogger("app").handlers or log.addFilter(lambda record: True)
log.info("filtered password: %s", "hunter2")
logspool.flush()
print(json.dumps(dict(logspool.stats().rules)))
"""


@pytest.mark.parametrize("kind", ["text", "json", "own"])
def test_no_secret_reaches_the_file(lines, kind):
    written, printed = lines(SECRETS.format(kind=kind))
    text = "\n".join(written)

    assert "1234" not in text
    # A rule cannot recognise a value without its name. If Python code sees the record, the mapping of its arguments
    # still has the name.
    assert text.count("hunter2") == (0 if kind == "own" else 1)
    assert "password=[REDACTED]" in text
    assert "card [REDACTED]" in text
    assert "nothing to hide 7" in text
    assert "ValueError: token=[REDACTED]" in text
    assert "filtered password: [REDACTED]" in text
    assert json.loads(printed)["rewritten"] >= 5
    if kind == "json":
        fields = next(row for row in map(json.loads, written) if row["message"] == "fields")
        assert (fields["db_password"], fields["count"], fields["note"]) == ("[REDACTED]", 3, "call [REDACTED]")
        assert "[REDACTED]" in json.dumps(fields["deep"])
        assert next(row for row in map(json.loads, written) if row["message"] == "bound")["token"] == "[REDACTED]"


def test_the_defaults_know_the_usual_secrets(lines):
    written, _ = lines("""
begin(redact_keys=["default"], redact_patterns=["default"])
for text in (
    "Authorization: Bearer abcdefghijk", "api_key=abc", "Cookie: session=abc; b=1", "postgres://u:pw@host/db",
    "sk-abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE", "{'secret': 'abc'}",
):
    log.info("%s", text)
""")

    assert written == [
        "INFO app Authorization: Bearer [REDACTED]",
        "INFO app api_key=[REDACTED]",
        "INFO app Cookie: [REDACTED]",
        "INFO app postgres://u:[REDACTED]@host/db",
        "INFO app [REDACTED]",
        "INFO app [REDACTED]",
        "INFO app {'secret': '[REDACTED]'}",
    ]


def test_control_characters_cannot_forge_lines(lines):
    written, _ = lines("""
begin(escape_control=True)
log.info("user %s", "eve\\nINFO root forged\\x1b[2J")
log.info("fields %s", "tab\\tstays")
try:
    raise ValueError("bad\\x07")
except ValueError:
    log.exception("failed")
""")

    assert written[0] == "INFO app user eve\\nINFO root forged\\x1b[2J"
    assert written[1] == "INFO app fields tab\tstays"
    assert written[2:4] == ["ERROR app failed", "Traceback (most recent call last):"]
    assert written[-1] == "ValueError: bad\\x07"


def test_repetitions_are_counted_and_summarised(lines):
    written, printed = lines("""
begin(deduplicate=3600.0)
for number in range(100):
    log.warning("disk %s is full", "sda")
log.warning("disk %s is full", "sdb")
logspool.uninstall()
stats = logspool.stats()
print(stats.rules["repeated"], stats.levels["WARNING"].accepted)
""")

    assert written == [
        "WARNING app disk sda is full",
        "WARNING app disk sdb is full",
        "WARNING app disk sda is full [repeated 99 times in 3600 s]",
    ]
    assert printed.split() == ["99", "3"]


@pytest.mark.parametrize("kind", ["text", "own"])
def test_a_rate_limit_counts_by_call_site(lines, kind):
    written, printed = lines(f"""
begin({kind!r}, rate_limit=5)
import time
begun = time.monotonic()
for number in range(1000):
    log.info("noisy %d", number)
    if number % 100 == 0:
        log.info("rare %d", number // 1000)
    log.error("error %d", number)
seconds = time.monotonic() - begun
logspool.uninstall()
print(logspool.stats().rules["over_rate"], seconds)
""")
    left_out, seconds = int(printed.split()[0]), float(printed.split()[1])
    noisy = [line for line in written if "noisy" in line and "left out" not in line]
    rare = [line for line in written if "rare" in line and "left out" not in line]

    assert sum("error" in line for line in written) == 1000
    assert 5 <= len(noisy) <= 5 * (int(seconds) + 2)
    assert len(noisy) + len(rare) + left_out == 1010
    told = [line for line in written if "more from this place left out: the rate limit is 5 a second" in line]
    assert sum(int(line.split("[")[1].split()[0]) for line in told) == left_out


def test_sampling_keeps_failures_and_all_records_of_a_sampled_request(lines):
    written, printed = lines("""
begin("json", sample=["0.1 logger=access keep=status>=400", "0.5 logger=work by=request_id"])
access, work = logging.getLogger("access.web"), logging.getLogger("work")
for number in range(2000):
    access.info("GET %s", "/", extra={"status": 500 if number % 100 == 0 else 200})
    for step in range(3):
        work.info("step %d", step, extra={"request_id": f"r{number}"})
access.warning("never sampled")
log.info("another logger")
logspool.flush()
assert "logspool_rule_records_total{rule=\\"sampled\\"}" in logspool.metrics_text()
print(logspool.stats().rules["sampled"])
""")
    rows = [json.loads(line) for line in written]
    access = [row for row in rows if row["logger"] == "access.web"]
    steps = {}
    for row in rows:
        if row["logger"] == "work":
            steps[row["request_id"]] = steps.get(row["request_id"], 0) + 1

    assert sum(row.get("status") == 500 for row in access) == 20
    assert 100 < sum(row.get("status") == 200 for row in access) < 300
    assert set(steps.values()) == {3}
    assert 800 < len(steps) < 1200
    assert [row["message"] for row in rows[-2:]] == ["never sampled", "another logger"]
    assert len(rows) + int(printed) == 2000 * 4 + 2


def test_a_forked_child_summarises_its_own_records(lines):
    written, _ = lines("""
begin(deduplicate=3600.0)

def work(times):
    for number in range(times):
        log.warning("same")

work(10)
pid = os.fork()
work(5)
if pid:
    assert os.waitpid(pid, 0)[1] == 0
else:
    assert logspool.stats().rules["repeated"] == 4, logspool.stats().rules
    sys.exit()
""")

    assert sorted(written) == [
        "WARNING app same",
        "WARNING app same",
        "WARNING app same [repeated 14 times in 3600 s]",
        "WARNING app same [repeated 4 times in 3600 s]",
    ]


def test_a_service_gets_no_secret(run):
    printed, _ = run("""
from logspool.handlers import _service
logspool.install(redact_keys=["token"], redact_patterns=["[0-9]{4}-[0-9]{4}"])
parts = {"msg": "token=%s", "args": ("hunter2",), "token": "hunter2", "deep": {"token": "hunter2"}}
record = logging.makeLogRecord({**parts, "levelno": 20, "items": ["1234-5678"], "note": "1234-5678"})
entry = _service.entry(record, None)
print(entry.count(b"[REDACTED]"), b"hunter2" in entry, b"1234" in entry)
""")

    assert printed.split() == ["5", "False", "False"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ('redact_patterns=["(?=x)y"]', "exponential time (fix: write the pattern without it)"),
        ('redact_patterns=["x*"]', "matches the empty text"),
        ('redact_patterns=["("]', "(fix: correct the regular expression)"),
        ('redact_patterns="secret"', "redact_patterns must be a collection of texts, not 'secret'"),
        ("redact_keys=[3]", "redact_keys must be a collection of texts, not one with 3"),
        ('redact_keys=[""]', "a key is empty"),
        ('sample=["ten"]', 'the share "ten" is no number from 0 to 1'),
        ("rate_limit=-1", "rate_limit must be 0 to 1000000000 records a second"),
        ("deduplicate=-1.0", "deduplicate must be 0 to 3600 seconds"),
    ],
)
def test_invalid_rules_are_refused_with_a_fix(run_program, options, error):
    outcome, _ = run_program(HEAD + f"begin({options})")

    assert outcome.status == 1
    assert error in outcome.err.decode()


def test_rules_can_be_set_in_the_environment(run):
    printed, _ = run(
        'begin()\nlog.info("token=abc card 1234")\nlogspool.flush()\nprint(open("app.log").read())',
        LOGSPOOL_REDACT_KEYS="token;secret",
        LOGSPOOL_REDACT_PATTERNS='["[0-9]{4}"]',
    )

    assert printed.strip() == "INFO app token=[REDACTED] card [REDACTED]"


def test_once_logs_once_per_call_site(lines):
    written, printed = lines("""
import threading
FORMAT = "%(funcName)s %(levelname)s %(message)s"
begin()

def work():
    for _ in range(100):
        logspool.warning_once(log, "slow path %s", "a")
        logspool.log_once(log, logging.ERROR, "failed")
        assert not logspool.log_once(log, 5, "disabled")

def other():
    assert logspool.info_once(log, "slow path %s", "b")

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
other()
logspool.flush()
print(logspool.stats().rules["once"])
""")

    assert sorted(written) == ["other INFO slow path b", "work ERROR failed", "work WARNING slow path a"]
    assert printed.strip() == str(2 * 400 - 2)


SEEN_BY_PYTHON = """
import io
seen = []

class Bare(logging.Formatter):
    def format(self, record):
        super().format(record)
        return f"{record.password} {record.accessToken} {record.deep} {record.getMessage()} {record.exc_text}"

class Own(logging.Handler):
    def emit(self, record):
        seen.append(f"{record.__dict__} {record.exc_text}")

begin("text", redact_keys=["default"], redact_patterns=["default"])
root = logging.getLogger()
for number in range(2):
    made = logging.FileHandler("app.log")
    made.setFormatter(Bare())
    root.addHandler(made)
root.addHandler(Own())
third = logging.FileHandler("app.log")
third.setFormatter(logging.Formatter("third %(password)s %(message)s"))
root.addHandler(third)
log.addFilter(lambda record: seen.append(str(record.__dict__)) or True)
deep = {"token": "hunter2", "n": [{"secret": "hunter2"}]}
fields = {"password": "hunter2", "accessToken": "hunter2", "deep": deep}
try:
    raise ValueError("token=hunter2")
except ValueError:
    log.exception("user %s password=%s", "ada", "hunter2", extra=fields)
logspool.flush()
shown = open("app.log").read() + "".join(seen).replace("ValueError('token=hunter2')", "")
print(shown.count("hunter2"), shown.count("third [REDACTED]"), deep["token"])
"""


def test_python_code_sees_no_secret(run):
    printed, _ = run(SEEN_BY_PYTHON)

    assert printed.split() == ["0", "1", "hunter2"]
