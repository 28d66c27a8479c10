"""Strategies: messages with every directive, arguments that fit and that do not, formatters of every style."""

import itertools
import math

from hypothesis import strategies as st

from formatting.worker import Formatted

# All of Unicode: lone surrogates, controls and characters beyond the first plane too.
anything = st.text(st.characters(), max_size=12)
plain = st.text(st.sampled_from("abc xyz0159äß世🎉\t\\'\"{}$\x00\x1b\x7f\x85\u2028\ud800\udfff"), max_size=12)
text = st.one_of(plain, anything)
literal = text.map(lambda each: each.replace("%", "%%"))

integers = st.one_of(
    st.integers(-10, 10),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 2**64, 10**100, -(10**300), 0, -1]),
    st.booleans(),
)
floats = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.0, -0.0, math.inf, -math.inf, math.nan, 1e16, 1e-5, 123456.5, 0.1 + 0.2, 5e-324, 1.7e308, 2.5, 0.5]
    ),
    st.floats(-1e6, 1e6).map(lambda each: round(each, 3)),
)
values = st.one_of(integers, floats, text, st.none(), st.binary(max_size=8))
containers = st.one_of(
    st.lists(values, max_size=3),
    st.lists(values, max_size=3).map(tuple),
    st.dictionaries(text, values, max_size=3),
    st.sets(st.integers(-5, 5), max_size=1),
    st.complex_numbers(),
)
arguments_of_any_kind = st.one_of(values, values, containers)

# The parts of a directive between `%` and its kind. A draw of hypothesis is expensive, so one number selects all parts.
# Likely values are in these lists several times.
_FLAGS = ["".join(some) for count in range(4) for some in itertools.product("-+ #0", repeat=count)]
_WIDTHS = [*[""] * 40, *map(str, range(41)), *["*"] * 40]
_PRECISIONS = [*[""] * 30, *["."] * 30, *[f".{number}" for number in range(31)], *[".*"] * 15, *[".60"] * 15]
_MODIFIERS = ["", "", "", "h", "l", "L"]
_KINDS = "diouxXeEfFgGcrsa"
# Whether the argument is of a type that fits.
_FITS = [True] * 19 + [False]
_PARTS = (_FLAGS, _WIDTHS, _PRECISIONS, _MODIFIERS, _KINDS, _FITS)
flags = st.sampled_from(_FLAGS)
stars = st.one_of(st.integers(-20, 20), st.integers(-20, 20), st.booleans())


def _parts(number: int) -> list:
    """Return the parts of the directive with this number, one from each list of `_PARTS`."""
    chosen = []
    for choices in _PARTS:
        number, index = divmod(number, len(choices))
        chosen.append(choices[index])
    return chosen


specifications = st.integers(0, math.prod(map(len, _PARTS)) - 1).map(_parts)


def _values() -> dict[str, st.SearchStrategy]:
    """Return, for each kind of directive, a strategy of arguments that fit it."""
    whole = st.one_of(integers, integers, floats.filter(math.isfinite))
    real = st.one_of(floats, floats, integers.filter(lambda each: abs(each) < 10**300))
    fitting = {
        **dict.fromkeys("di", whole),
        **dict.fromkeys("oxX", integers),
        **dict.fromkeys("eEfFgG", real),
        "c": st.one_of(st.integers(0, 0x10FFFF), st.characters()),
    }
    return {kind: fitting.get(kind, arguments_of_any_kind) for kind in _KINDS}


_VALUES = _values()


@st.composite
def directives(draw, key: str | None = None):
    """Return (directive, its arguments)."""
    directive, arguments, value = draw(directives_without_value(key))
    return directive, [*arguments, draw(value)]


@st.composite
def directives_without_value(draw, key: str | None = None):
    """Return (directive, the arguments for its stars, the strategy of its value)."""
    flags, width, precision, modifier, kind, fits = draw(specifications)
    name = ""
    if key is not None:
        name, width, precision = f"({key})", width.replace("*", "7"), precision.replace("*", "3")
    arguments = [draw(stars) for part in (width, precision) if "*" in part]
    value = _VALUES[kind] if fits else arguments_of_any_kind
    return f"%{name}{flags}{width}{precision}{modifier}{kind}", arguments, value


@st.composite
def positional_calls(draw):
    """Return (message, args) with the right number of arguments, most of them of the right type."""
    message, arguments = draw(literal), []
    for _ in range(draw(st.integers(1, 4))):
        directive, more = draw(directives())
        message += directive + draw(literal)
        arguments += more
    return message, tuple(arguments)


@st.composite
def calls_with_one_dict(draw):
    """Return (message, (dict,)) with named directives, some of them missing in the dict."""
    keys = draw(st.lists(text.filter(lambda each: not set(each) & set("()%")), min_size=1, max_size=3, unique=True))
    message, fields = draw(literal), {}
    for key in keys:
        directive, (value,) = draw(directives(key))
        message += directive + draw(literal)
        fields[key] = value
    if draw(st.integers(0, 9)) == 0:
        fields.pop(next(iter(fields)))
    return message, (fields,)


@st.composite
def calls_of_wrong_shape(draw):
    """Return (message, args) with too many or too few arguments, or with a broken directive."""
    message, arguments = draw(st.one_of(positional_calls(), calls_with_one_dict()))
    how = draw(st.integers(0, 4))
    if how == 0:
        return message, arguments[:-1]
    if how == 1:
        return message, (*arguments, draw(values))
    if how == 2:
        return message + draw(
            st.sampled_from(["%", "%y", "%(", "%(x", "%.", "%5", "%-", "%*", "%(a)", "%ll"])
        ), arguments
    if how == 3:
        return draw(text), arguments
    return draw(text), ()


calls = st.one_of(positional_calls(), positional_calls(), calls_with_one_dict(), calls_of_wrong_shape())
levels = st.sampled_from([10, 20, 20, 30, 40, 50, 25, 1])


def python_can(message: str, arguments: tuple) -> bool:
    """Return whether `%` accepts these arguments as `LogRecord` passes them."""
    if arguments and len(arguments) == 1 and isinstance(arguments[0], dict) and arguments[0]:
        arguments = arguments[0]
    try:
        message % arguments if arguments else message
    except Exception:
        return False
    return True


def _is_whole(value: object) -> bool:
    """Return whether a text has no lone surrogate; the caller may render texts with half a character."""
    return not isinstance(value, str) or not any(0xD800 <= ord(each) <= 0xDFFF for each in value)


def certainly_native(message: str, arguments: tuple) -> bool:
    """Return whether the native path is promised: a correct call with builtin values and no lone surrogates."""
    return (
        python_can(message, arguments)
        and all(type(each) in (int, float, str, bytes, bool, type(None)) for each in arguments)
        and all(map(_is_whole, (message, *arguments)))
        # `%c` of a number can make a lone surrogate.
        and _is_whole(message % arguments if arguments else message)
    )


# Keywords -----------------------------------------------------------------------------------------------------------

whole_text = st.text(st.sampled_from("abc xyz019äß世🎉\t\\'\"%{}\n"), max_size=12)


def fields(*names: str):
    """Return dicts for `extra` with values of any kind, sometimes with a name missing."""
    some = st.fixed_dictionaries({}, optional=dict.fromkeys(names, arguments_of_any_kind))
    return st.one_of(st.fixed_dictionaries(dict.fromkeys(names, arguments_of_any_kind)), some)


@st.composite
def keywords(draw, usual: bool = False):
    """Return keywords of a logging call; with `usual`, the call is promised the native path."""
    errors = st.builds(
        lambda kind, message: kind(message),
        st.sampled_from([ValueError, KeyError, OSError, SystemExit]),
        whole_text if usual else text,
    )
    asked = {
        "exc_info": st.one_of(
            st.sampled_from([None, False, True, 0, 1, ()]), errors, errors.map(lambda each: (type(each), each, None))
        ),
        "stack_info": st.sampled_from([None, False, True]),
        "stacklevel": st.integers(1, 8),
        "extra": st.one_of(st.none(), st.just({}), fields("user", "count")),
    }
    if not usual:
        asked["exc_info"] = st.one_of(asked["exc_info"], st.sampled_from(["yes", (1, 2, 3), [], 1.5]))
        asked["stacklevel"] = st.one_of(asked["stacklevel"], st.just(True), st.just(2**70))
        asked["extra"] = st.one_of(asked["extra"], st.just({1: 2}))
    chosen = draw(st.lists(st.sampled_from(sorted(asked)), max_size=4, unique=True))
    return {name: draw(asked[name]) for name in chosen}


# Formatters ---------------------------------------------------------------------------------------------------------

# Fields with the same value on both sides; times and idents have other tests.
NUMBERS = ("levelno", "lineno")
TEXTS = ("name", "levelname", "filename", "module", "funcName", "threadName", "processName", "message", "pathname")

percent_fields = st.one_of(
    st.tuples(
        st.sampled_from(TEXTS),
        flags,
        st.integers(0, 30).map(str),
        st.sampled_from(["", ".0", ".3", ".40"]),
        st.sampled_from("sra"),
    ),
    st.tuples(
        st.sampled_from(NUMBERS),
        flags,
        st.integers(0, 30).map(str),
        st.sampled_from(["", ".0", ".5"]),
        st.sampled_from("dsxofeg"),
    ),
).map(lambda parts: f"%({parts[0]}){parts[1]}{parts[2]}{parts[3]}{parts[4]}")

_fills = st.sampled_from(["", "*", " ", "ä", "世", "0", "<"])
_aligns = st.sampled_from(["", "<", ">", "^"])


@st.composite
def brace_fields(draw, texts=TEXTS, numbers=NUMBERS):
    """Return a replacement field of `{`-style with conversion and format specification."""
    align = draw(_aligns)
    fill = draw(_fills) if align else ""
    width = draw(st.sampled_from(["", "1", "8", "25"]))
    if draw(st.booleans()):
        name, conversion = draw(st.sampled_from(texts)), draw(st.sampled_from(["", "!s", "!r", "!a"]))
        specification = f"{fill}{align}{width}{draw(st.sampled_from(['', '.0', '.4', 's', '.3s']))}"
    else:
        name, conversion = draw(st.sampled_from(numbers)), ""
        align = draw(st.sampled_from(["", "<", ">", "^", "="]))
        fill = fill if align else ""
        specification = (
            f"{fill}{align}{draw(st.sampled_from(['', '+', '-', ' ']))}{draw(st.sampled_from(['', '#']))}"
            f"{draw(st.sampled_from(['', '0']))}{width}{draw(st.sampled_from(['', ',', '_']))}"
            f"{draw(st.sampled_from(['', 'd', 'x', 'o', 'b', 'e', 'f', 'g', 'n', 'c']))}"
        )
    return f"{{{name}{conversion}{':' + specification if specification else ''}}}"


dollar_fields = st.one_of(
    st.sampled_from(TEXTS + NUMBERS).map(lambda name: f"${name} "),
    st.sampled_from(TEXTS + NUMBERS).map(lambda name: f"${{{name}}}"),
    st.just("$$"),
)

_literals = {
    "%": literal,
    "{": text.map(lambda each: each.replace("{", "{{").replace("}", "}}")),
    "$": text.map(lambda each: each.replace("$", "$$")),
}
_fields = {"%": percent_fields, "{": brace_fields(), "$": dollar_fields}


@st.composite
def formatters(draw):
    """Return a `Formatted` of any style that does not show the time."""
    style = draw(st.sampled_from("%%{$"))
    parts = [draw(st.one_of(_literals[style], _fields[style])) for _ in range(draw(st.integers(0, 5)))]
    fmt = "".join(parts)
    if style == "$":
        fmt = fmt.replace("\x00", "")
    return Formatted(fmt=draw(st.sampled_from([fmt, fmt, fmt, None if style == "%" else fmt])), style=style)


@st.composite
def formatters_of_fields(draw, *names: str):
    """Return a `Formatted` of any style that shows fields of `extra`."""
    style = draw(st.sampled_from("%%{$"))
    shows = {
        "%": st.sampled_from(names).flatmap(lambda name: directives(name)).map(lambda made: made[0]),
        "{": brace_fields(names, names),
        "$": st.sampled_from(names).map(lambda name: f"${{{name}}}"),
    }[style]
    message = {"%": "%(message)s|", "{": "{message}|", "$": "$message|"}[style]
    return Formatted(fmt=message + "|".join(draw(st.lists(shows, min_size=1, max_size=3))), style=style)


# Parts of a date that do not change while both sides log a batch.
_still_directives = st.sampled_from(["%Z", "%z", "%%", "%Z%z", "on a day", "äß %Z", "%", "%Q", "\n", "%-Z", "%10Z"])
date_formats = st.lists(_still_directives, min_size=1, max_size=4).map("".join)
zones = st.one_of(
    st.sampled_from(
        ["UTC", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", "Europe/Dublin", "AAA-14", "BBB+11:59:59"]
    ),
    st.builds(
        lambda name, sign, hours, minutes: f"{name}{sign}{hours}:{minutes:02d}",
        st.text(st.sampled_from("ABCXYZ"), min_size=3, max_size=6),
        st.sampled_from(["+", "-"]),
        st.integers(0, 23),
        st.integers(0, 59),
    ),
    st.just("<+0330>-3:30<+0430>,J79/24,J263/24"),
)


@st.composite
def dated_formatters(draw):
    """Return a `Formatted` with an asctime whose text does not depend on the current time."""
    style, field = draw(
        st.sampled_from([("%", "%(asctime)s"), ("%", "%(asctime)20s"), ("{", "{asctime:^30}"), ("$", "$asctime ")])
    )
    message = {"%": "%(message)s", "{": "{message}", "$": "$message"}[style]
    by_default_format = draw(st.booleans())
    return Formatted(
        fmt=f"{field}|{message}",
        style=style,
        datefmt=None if by_default_format else draw(date_formats),
        default_time_format=draw(date_formats) if by_default_format else None,
        default_msec_format=draw(st.sampled_from([None, "%s%.0s", "%s,%.0s!", "%.0s%.0s"]))
        if by_default_format
        else True,
        zone=draw(zones),
        gmt=draw(st.booleans()),
    )
