"""Exceptions that programs rarely raise: odd classes, odd texts, odd chains, groups."""

import random
import sys
import types

COUNTS = {"str": 0}


class Plain(Exception):
    pass


class Counting(Exception):
    def __str__(self):
        COUNTS["str"] += 1
        return f"str number {COUNTS['str']}"


class Failing(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Interrupting(Exception):
    def __str__(self):
        raise KeyboardInterrupt


class NoText(Exception):
    def __str__(self):
        return 7  # noqa: PLE0307


class Text(str):
    def __str__(self):
        return "text of a subclass"

    def __bool__(self):
        return False


class OfSubclass(Exception):
    def __str__(self):
        return Text("made")


class Control(Exception):
    def __str__(self):
        return "a\rb\x0bc\x0cd\x1ce\x85f\u2028g"


class Falsy(Exception):
    def __bool__(self):
        return False


class Sized(Exception):
    def __len__(self):
        return 0


class Renamed(Exception):
    pass


Renamed.__qualname__ = "Outer.<locals>.Ренамед"


class NoModule(Exception):
    __module__ = 3


class MainModule(Exception):
    __module__ = "__main__"


class OddModule(Exception):
    __module__ = "a.b\nc"


class Meta(type):
    @property
    def __module__(cls):
        return "module of a metaclass"


class OfMeta(Exception, metaclass=Meta):
    pass


class Getting(Exception):
    def __getattr__(self, name):
        if name == "__notes__":
            return ["a note that is made"]
        raise AttributeError(name)


class GettingAll(Exception):
    def __getattribute__(self, name):
        if name in ("__cause__", "__context__"):
            return None
        return super().__getattribute__(name)


class NotesOfClass(Exception):
    __notes__ = ("note of the class", "another one")


class CauseOfClass(Exception):
    __cause__ = None


class SuppressOfClass(Exception):
    @property
    def __suppress_context__(self):
        return True

    @__suppress_context__.setter
    def __suppress_context__(self, value):
        pass


class Class(Exception):
    @property
    def __class__(self):
        return ValueError


class Slots(Exception):
    __slots__ = ("a",)


class OwnSyntax(SyntaxError):
    pass


class OwnAttribute(AttributeError):
    name = "countt"
    obj = ()


class OwnImport(ImportError):
    pass


class OwnGetter(NameError):
    @property
    def name(self):
        COUNTS["str"] += 1
        return "prin"


class Nested:
    class Inner(OSError):
        pass


class Noting(Exception):
    def __str__(self):
        self.__notes__ = ["noted by __str__", f"{COUNTS['str']}"]
        return "noting"


class Chaining(Exception):
    def __str__(self):
        self.__context__ = Plain("put in by __str__")
        return "chaining"


CLASSES = [
    value for value in list(globals().values()) if isinstance(value, type) and issubclass(value, BaseException)
] + [Nested.Inner]


class Surrogate(Exception):
    """Not in `CLASSES`, because `__str__` of a whole chain runs twice if a text cannot be encoded."""

    def __str__(self):
        return "lone \ud800 surrogate"


NAMES = [cls.__name__ for cls in CLASSES if cls is not Nested.Inner and cls is not OfMeta and cls is not Renamed]
NAMES += ["Surrogate", "Nested.Inner", "OfMeta", "Renamed"]


def _raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def call(seed):
    """Raise an exception inside a call of native code."""
    rng = random.Random(seed)
    return rng.choice(
        [
            lambda: sorted([2, 1], key=lambda number: 1 / (number - 1)),
            lambda: list(map(int, ["1", "x"])),
            lambda: next(iter([])),
            lambda: "%d" % "x",  # noqa: PLE1307, UP031
            lambda: max([1], key=lambda _: {}["missing"]),
            lambda: type("Made", (), {"__init_subclass__": None, "x": property(len)})().x,
            lambda: __import__("odd").missing_attribute,
            lambda: sys.argvv,
            lambda: exec("raise ValueError('from a text')", {"__name__": "texts"}),
            lambda: exec(compile("\n\nraise odd.Plain(1)", "relative.py", "exec"), {"odd": sys.modules["odd"]}),
            lambda: exec(compile("1/0", "<odd>", "exec")),
            lambda: exec(compile("1/0", "", "exec")),
        ]
    )()


def _notes(rng):
    return rng.choice(
        [
            ["one"],
            ["one", "two\nlines", ""],
            ["ends\n"],
            [],
            ["日本語", Text("text")],
            ["text", 3, None],
            ("a", "tuple"),
            "a text",
            b"bytes",
            7,
            None,
            {"a": 1},
            [Failing()],
            range(2),
            ["a\rb\x0bc"],
        ]
    )


def made(seed):
    """Return an unusual exception that has not been raised yet."""
    rng = random.Random(seed)
    kind = rng.randrange(12)
    error = _simple(rng)
    if kind < 3:
        try:
            error.__notes__ = _notes(rng)
        except AttributeError:
            pass
    elif kind == 3:
        error.__cause__ = error
    elif kind == 4:
        other = _raised(_simple(rng))
        error.__context__ = other
        other.__context__ = error
    elif kind == 5:
        chain = [_raised(_simple(rng)) for _ in range(rng.choice([2, 3, 5, 70]))]
        current = error
        for following in chain:
            setattr(current, rng.choice(["__cause__", "__context__"]), following)
            if rng.random() < 0.2:
                try:
                    current.__suppress_context__ = rng.random() < 0.5
                except AttributeError:
                    pass
            current = following
        if rng.random() < 0.3:
            current.__cause__ = error
    elif kind == 6:
        frame = sys._getframe(rng.randrange(2))
        instruction = rng.choice([-1, 0, 2, 4, 10, 20, frame.f_lasti])
        line = rng.choice([1, frame.f_lineno, 100_000])
        error.__traceback__ = types.TracebackType(None, frame, instruction, line)
    elif kind in (7, 8) and sys.version_info >= (3, 11):
        error = _group(rng, rng.randrange(1, 4))
        if rng.random() < 0.3:
            error.add_note("note of a group\nwith two lines")
    elif kind == 9:
        error.__cause__ = _raised(made(rng.randrange(10**6)))
    return error


def _simple(rng):
    cls = rng.choice([*CLASSES, ValueError, KeyError, OSError, TypeError, SyntaxError, NameError, ImportError])
    return cls(*rng.choice([(), ("text",), ("text", 2), (None,), ("größe\nzwei",), ("",)]))


def _group(rng, depth):
    def member():
        if depth and rng.random() < 0.4:
            return _group(rng, depth - 1)
        error = _simple(rng)
        return _raised(error) if rng.random() < 0.5 else error

    members = [member() for _ in range(rng.choice([1, 2, 3, 16, 17]))]
    group = BaseExceptionGroup(rng.choice(["group", "two\nlines"]), members)  # noqa: F821
    if rng.random() < 0.3:
        group.__cause__ = _raised(_simple(rng))
    return _raised(group) if rng.random() < 0.5 else group
