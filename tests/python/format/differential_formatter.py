"""Compare native lines with ``logging.Formatter`` of the running interpreter, and JSON lines with their rules.

Each case is a random Formatter (three styles, date formats, attributes of every type, extra fields) and a random
LogRecord. The interpreter's own ``LogRecord`` makes it under a replaced clock, so that ``created``, ``msecs`` and
``relativeCreated`` come from its own arithmetic. If the native side refuses a Formatter that Python can use, the
template must have a feature that is known to stay on the stock path.

    TZ=America/New_York python differential_formatter.py --binary target/debug/examples/percent_lines --cases 200000
"""

import datetime
import inspect
import json
import logging
import math
import re
import string
import sys
import time

import native

TEXTS = [
    "name",
    "levelname",
    "pathname",
    "filename",
    "module",
    "funcName",
    "threadName",
    "taskName",
    "processName",
    "message",
    "asctime",
]
INTEGERS = ["levelno", "lineno", "thread", "process"]
FLOATS = ["created", "msecs", "relativeCreated"]
EXTRAS = ["user", "port", "ratio", "ключ", "x_1"]
LITERALS = ["", " ", "|", " - ", "[", "]", "é", "\n", "\t", ": "]
# Text by repr, a number as a character, the whole dictionary.
PERCENT_BEYOND = re.compile(r"%\([^()]*\)[-+ #0]*\d*(\.\d*)?[rc]|%s")

DATE_FORMATS = [
    None,
    None,
    None,
    "",
    "%H:%M:%S",
    "%d.%m.%Y é☃",
    "%c|%x|%X|%p|%Z|%z|%s|%j|%U|%W|%V|%G|%u|%w",
    "%%",
    "plain",
    "%e%k%l%P%C%g%h%D%F%T%R%r%n%t%y%b%B%a%A%I",
    "%E%Y %Oy %_d %-d %^a %#Z %5Y",
    "%q%",
    "%",
]
TIME_FORMATS = [None, None, "%Y/%m/%d", "%H", ""]
MSEC_FORMATS = [
    None,
    None,
    None,
    "%s.%03d",
    "%s,%d",
    "%5s|%07.3f",
    "",
    "%s %s",
    "<%-30s|%+5d>%%",
    "%.5s%e",
    "%s é %x",
    "%s",
    "%r%d",
    "%a %g",
]


def arithmetic():
    """Return the name of the arithmetic with which this interpreter's LogRecord computes times, by its source code."""
    source = inspect.getsource(logging.LogRecord.__init__)
    if "time_ns()" in source:
        return "nanoseconds"
    return "whole" if "int((ct - int(ct)) * 1000)" in source else "fraction"


ARITHMETIC = arithmetic()


def seconds(time_ns):
    """Return ``time.time()`` at a moment, as CPython converts it."""
    return float(time_ns // 10**9) if time_ns % 10**9 == 0 else time_ns / 1e9


def percent_field(rng, name):
    """Return ``%(name)...``, mostly with a conversion that fits the attribute."""
    if rng.random() < 0.5:
        return f"%({name}){'s' if name in TEXTS or rng.random() < 0.5 else 'd'}"
    flags = "".join(rng.choice("#0- +") for _ in range(rng.choice([0, 0, 1, 2])))
    width = rng.choice(["", "", "3", "8", "20"])
    precision = rng.choice(["", "", "", ".0", ".2", ".3", ".9"])
    if name in TEXTS:
        letters = "ssssssar"
    elif name in INTEGERS:
        letters = "ddddsrxoXifgc"
    elif name in FLOATS:
        letters = "ffffdsregEG"
    else:
        letters = "sssdfrax"
    return f"%({name}){flags}{width}{precision}{rng.choice(letters)}"


def brace_field(rng, name):
    """Return ``{name...}``, mostly with a spec that fits the attribute."""
    if rng.random() < 0.4:
        return "{" + name + rng.choice(["", "", "", "!s", "!r", "!a"]) + "}"
    align = rng.choice(["", "", "<", ">", "^", "*<", "é>", "0^", "=", " ="])
    sign = rng.choice(["", "", "", "+", "-", " "]) if name not in TEXTS or rng.random() < 0.05 else ""
    alternate = rng.choice(["", "", "", "#"]) if name not in TEXTS else ""
    zero = rng.choice(["", "", "0"])
    width = rng.choice(["", "3", "8", "20", "25"])
    grouping = rng.choice([",", "_"]) if rng.random() < 0.02 else ""
    precision = rng.choice(["", "", ".0", ".1", ".3", ".7"]) if name not in INTEGERS else ""
    if name in TEXTS:
        letters = ["", "", "s"]
    elif name in INTEGERS:
        letters = ["", "d", "d", "x", "X", "o", "b", "f", "e", "g", "%", "c", "n"]
    elif name in FLOATS:
        letters = ["", "f", "F", "e", "E", "g", "G", "%", "n", "d"]
    else:
        letters = ["", "", "s", "d", "f"]
    convert = rng.choice(["", "", "", "", "", "!s", "!a", "!r"])
    return (
        "{" + f"{name}{convert}:{align}{sign}{alternate}{zero}{width}{grouping}{precision}{rng.choice(letters)}" + "}"
    )


def dollar_field(rng, name):
    """Return ``$name`` or ``${name}``."""
    return "${" + name + "}" if not name.isascii() or rng.random() < 0.5 else "$" + name


ODD = {
    "%": ["%%", "%", "%s", "%(message", "%(args)s", "%(lineno)*d", "%(missing)s", "%(user (x))s"],
    "{": [
        "{{",
        "}}",
        "{",
        "}",
        "{}",
        "{0}",
        "{message.x}",
        "{message[0]}",
        "{lineno:{levelno}}",
        "{missing}",
        "{args}",
    ],
    "$": ["$$", "$", "${", "$1", "${message", "$missing", "${a b}", "$args"],
}


def random_template(rng, style):
    """Return a format string of a style."""
    make = {"%": percent_field, "{": brace_field, "$": dollar_field}[style]
    parts = []
    for _ in range(rng.choice([1, 2, 3, 4, 6])):
        parts.append(rng.choice(LITERALS))
        if rng.random() < 0.03:
            parts.append(rng.choice(ODD[style]))
        parts.append(make(rng, rng.choice(rng.choice([TEXTS, TEXTS, INTEGERS, FLOATS, EXTRAS[:3]]))))
    parts.append(rng.choice(LITERALS))
    return "".join(parts)


def random_time_ns(rng):
    """Return a moment: today, near the end of a second, any in range, or before 1970."""
    way = rng.randrange(6)
    if way == 0:
        return rng.randrange(2**31) * 10**9 + rng.choice([999_999_999, 999_999_900, 0, 1, 999_000_000, 998_999_999])
    if way == 1:
        return rng.randrange(-9 * 10**18, 9 * 10**18)
    if way == 2:
        return rng.randrange(-(10**10), 10**10)
    if way == 3:
        return rng.randrange(2**32) * 10**6
    return 1_700_000_000_000_000_000 + rng.randrange(10**17)


class Case:
    """One Formatter and one record."""

    def __init__(self, rng):
        self.style = rng.choice("%%{{$")
        self.template = random_template(rng, self.style)
        self.json = rng.choice(["omit", "append"]) if rng.random() < 0.2 else None
        if self.json:
            names = rng.choices(
                TEXTS + INTEGERS + FLOATS + EXTRAS + ["time", "level", "logger", "exception", "stack"],
                k=rng.choice([0, 1, 3, 6]),
            )
            self.members = [
                (rng.choice([name, name, native.random_text(rng).replace("\n", "")]), name) for name in names
            ]
            self.template = "\n".join(part for member in self.members for part in member)
        self.date_format = rng.choice(DATE_FORMATS)
        self.time_format = rng.choice(TIME_FORMATS)
        self.msec_format = rng.choice(MSEC_FORMATS)
        self.utc = rng.random() < 0.5
        self.time_ns = random_time_ns(rng)
        self.start_ns = 1_700_000_000_000_000_000 - rng.randrange(10**15)
        self.level = rng.choice([0, 10, 20, 30, 40, 50, 25, 60, 65535])
        self.logger = rng.choice(["root", "app.db", native.random_text(rng)])
        self.file = rng.choice(
            ["/srv/app/main.py", "main.py", "/x/.hidden", "/x/a.tar.gz", "<stdin>", "/é/☃.py", "/x/"]
        )
        self.line = rng.choice([0, 1, 42, 12345])
        self.function = rng.choice(["<module>", "run", "größe"])
        self.thread = rng.choice([None, 140_000_000_000_000, 1])
        self.thread_name = rng.choice([None, "MainThread", "Thread-1 (run)", "tröd"])
        self.process = rng.choice([None, 1, 4_194_304])
        self.process_name = rng.choice([None, "MainProcess", "Prozeß"])
        self.task_name = rng.choice([None, "Task-1", "☃"])
        self.message = rng.choice(["", "done", "line\n", native.random_text(rng)])
        self.exception = rng.choice([None, None, "", "Traceback: é", "ends\n"])
        self.stack = rng.choice([None, None, "", "Stack:\n  x"])
        chosen = [name for name in EXTRAS if rng.random() < 0.6]
        fitting = {"user": native.random_text, "port": native.random_int, "ratio": native.random_float}
        if rng.random() < 0.3:
            fitting = {}
        self.fields = {name: fitting.get(name, native.random_value)(rng) for name in chosen}
        self.arguments = ()
        if rng.random() < 0.4:
            self.message = "user %s did %d in %.3f ms"
            self.arguments = native.random_text(rng), rng.randrange(-(10**6), 10**6), native.random_float(rng)

    def record(self):
        """Make the LogRecord with the interpreter's own arithmetic."""
        saved = time.time, time.time_ns, logging._startTime
        time.time, time.time_ns = lambda: seconds(self.time_ns), lambda: self.time_ns
        logging._startTime = self.start_ns if ARITHMETIC == "nanoseconds" else seconds(self.start_ns)
        try:
            record = logging.LogRecord(
                self.logger,
                self.level,
                self.file,
                self.line,
                self.message,
                self.arguments,
                None,
                self.function,
                self.stack,
            )
        finally:
            time.time, time.time_ns, logging._startTime = saved
        record.thread, record.threadName = self.thread, self.thread_name
        record.process, record.processName = self.process, self.process_name
        if sys.version_info >= (3, 12):
            record.taskName = self.task_name
        record.exc_text = self.exception
        record.__dict__.update(self.fields)
        return record

    def formatter(self):
        """Make the stock Formatter."""

        class Chosen(logging.Formatter):
            converter = time.gmtime if self.utc else time.localtime

        if self.time_format is not None:
            Chosen.default_time_format = self.time_format
        if self.msec_format is not None:
            Chosen.default_msec_format = self.msec_format
        return Chosen(self.template or " ", self.date_format, self.style, validate=False)

    def expected(self):
        """Return the line that stock logging writes, or the exception."""
        try:
            line = self.json_line() if self.json else self.formatter().format(self.record())
            return (line + "\n").encode()
        except Exception as error:
            return error

    def json_line(self):
        """Return the line by the rules at the head of ``crates/logspool-record/src/format/json.rs``."""
        record = self.record()
        if any(name == "asctime" for _, name in self.members):
            self.style, self.template, template = "%", "%(asctime)s", self.template
            record.asctime = self.formatter().formatTime(record, self.date_format)
            self.template = template
        moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        known = {
            "time": moment.strftime("%Y-%m-%dT%H:%M:%S.%f").zfill(26) + "Z",
            "level": record.levelname,
            "logger": record.name,
            "exception": self.exception or None,
            "stack": self.stack or None,
        }
        record.message = record.getMessage()
        parts = []
        for key, name in self.members:
            is_field = name not in known and name not in TEXTS + INTEGERS + FLOATS
            is_field = is_field or (name == "taskName" and sys.version_info < (3, 12))
            value = known[name] if name in known else getattr(record, name, None)
            if name in self.fields if is_field else value is not None:
                parts.append(dumped(key) + ":" + dumped(value))
        if self.json == "append":
            listed = {key for key, _ in self.members}
            listed |= {name for _, name in self.members if name not in known and name not in TEXTS + INTEGERS + FLOATS}
            parts += [dumped(key) + ":" + dumped(value) for key, value in self.fields.items() if key not in listed]
        return "{" + ",".join(parts) + "}"

    def words(self):
        """Return the format and the record as words of the protocol, without extra fields."""
        words = [
            f"style={self.style}",
            f"template={native.hexed(self.template or ' ')}",
            f"minor={sys.version_info.minor}",
            f"arithmetic={ARITHMETIC}",
            f"start={self.start_ns}",
            f"process={self.process or 0}",
            f"time={self.time_ns}",
            f"level={self.level}",
            f"lineno={self.line}",
        ]
        for key, text in [
            ("datefmt", self.date_format),
            ("timefmt", self.time_format),
            ("msecfmt", self.msec_format),
            ("logger", self.logger),
            ("file", self.file),
            ("function", self.function),
            ("threadname", self.thread_name),
            ("processname", self.process_name),
            ("taskname", self.task_name),
            ("msg" if self.arguments else "message", self.message),
            ("exception", self.exception),
            ("stack", self.stack),
        ]:
            if text is not None:
                words.append(f"{key}={native.hexed(text)}")
        if self.json:
            words[1] = f"template={native.hexed(self.template)}"
            words.append(f"json={self.json}")
        if self.utc:
            words.append("utc=1")
        if self.thread is not None:
            words.append(f"thread={self.thread}")
        return words + [native.word(value) for value in self.arguments]

    def stays_on_stock_path(self):
        """Return whether the Formatter has a feature that the native side is known to refuse."""
        if self.msec_format == "%r%d" and "asctime" in self.template:
            return True
        if self.style == "%":
            return "%(args)" in self.template or bool(PERCENT_BEYOND.search(self.template.replace("%%", "")))
        if any(part in self.template for part in ("args", "!r", "[0]", ".x}", "{lineno:{")):
            return True
        return self.style == "{" and any(
            spec and (spec[-1] in "nc" or "," in spec or "_" in spec or "#" in spec)
            for _, name, spec, _ in string.Formatter().parse(self.template)
            if name
        )


def dumped(value):
    """Return the JSON text of a value by the rules of `json_line`."""
    if type(value) is float and not math.isfinite(value):
        return "null"
    if value is None or type(value) in (bool, int, float, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)


def field_words(case, answer):
    """Return the words of the extra fields as capture sends them; None if the record takes the stock path."""
    words = []
    for (name, value), acceptance in zip(case.fields.items(), answer.split()[1:]):
        if acceptance == "mismatch":
            return None
        if acceptance == "caller":
            try:
                value = str(value)
                value.encode()
            except Exception:
                return None
        words.append(f"@{native.hexed(name)}={native.word(value)}")
    return words


def compare(cases, options, counts):
    """Run some cases; count them and return the differences."""
    failures = []
    to_render = []
    answers = native.ask(
        options.binary,
        [
            " ".join(
                [
                    "accept",
                    *case.words(),
                    *(f"@{native.hexed(name)}={native.kind(value)}" for name, value in case.fields.items()),
                ]
            )
            for case in cases
        ],
    )
    for case, answer in zip(cases, answers):
        wanted = case.expected()
        words = None if answer == "unsupported" else field_words(case, answer)
        if words is not None:
            to_render.append((case, wanted, words))
        elif answer != "unsupported" or isinstance(wanted, Exception) or case.stays_on_stock_path():
            counts["stock path"] += 1
        else:
            counts["stock path, unforeseen"] += 1
            failures.append((case.style, case.template, case.msec_format, case.date_format, "unsupported", wanted))
    lines = native.ask(options.binary, [" ".join(["line", *case.words(), *words]) for case, _, words in to_render])
    for (case, wanted, _), line in zip(to_render, lines):
        raised = isinstance(wanted, Exception)
        if raised and line in ("MissingField", "WrongType"):
            counts["both refuse the record"] += 1
        elif not raised and line == wanted.hex():
            counts["equal JSON" if case.json else f"equal {case.style}"] += 1
        else:
            shown = bytes.fromhex(line) if set(line) <= set(string.hexdigits) else line
            failures.append((case.style, case.template, case.msec_format, case.date_format, case.fields, wanted, shown))
    return failures


def main():
    """Run the cases; print and return the number of differences."""
    time.tzset()
    return native.run(__doc__.splitlines()[0], Case, compare)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
