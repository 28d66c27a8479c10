"""Talk to the example ``percent_lines``, which renders cases natively.

The protocol is described at the head of ``crates/logspool-record/examples/percent_lines.rs``.
"""

import argparse
import collections
import pathlib
import random
import resource
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT_BINARY = ROOT / "target" / "debug" / "examples" / "percent_lines"

# Cases held in memory at once. Chosen: some 20 MB; more saves nothing.
PORTION = 5_000

# Limit of the address space. A random `%*d` may ask for a text of terabytes; without a limit that exhausts the machine.
MEMORY_BYTES = 4 << 30

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def options(description):
    """Parse the options that every differential script takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", default=str(DEFAULT_BINARY), help="the built example percent_lines")
    parser.add_argument("--cases", type=int, default=20_000, help="number of random cases")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator")
    parser.add_argument("--show", type=int, default=10, help="number of differences to print")
    return parser.parse_args()


def run(description, make, compare):
    """Make the cases, compare them in portions, print the counts; return the number of differences.

    Args:
        description: First line of the help text.
        make: Makes one case from a random generator.
        compare: Takes cases, options and a counter; returns the differences, each a tuple to print.
    """
    parsed = options(description)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    rng = random.Random(parsed.seed)
    counts = collections.Counter()
    failures = []
    for start in range(0, parsed.cases, PORTION):
        cases = [make(rng) for _ in range(min(PORTION, parsed.cases - start))]
        failures += compare(cases, parsed, counts)
    for failure in failures[: parsed.show]:
        print("different:", *map(ascii, failure))
    print(f"python {sys.version.split()[0]}:", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    print(f"{parsed.cases - len(failures)} passed, {len(failures)} failed")
    return len(failures)


def ask(binary, lines):
    """Send all lines at once; return one answer for each."""
    done = subprocess.run([binary], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(lines), (len(answers), len(lines), done.stderr[-2000:])
    return answers


def hexed(text):
    """Return text as hex of its UTF-8."""
    return text.encode().hex()


def kind(value):
    """Return the word for the exact type of a value, as ``ArgumentKind`` has it."""
    if value is None:
        return "none"
    if type(value) is bool:
        return "bool"
    if type(value) is int:
        return "int" if INT_MIN <= value <= INT_MAX else "bigint"
    if type(value) is float:
        return "float"
    if type(value) is str:
        if value.isascii():
            return "ascii"
        return "other" if any("\ud800" <= character <= "\udfff" for character in value) else "str"
    return "bytes" if type(value) is bytes else "other"


def word(value):
    """Return a value as a word of the protocol."""
    name = kind(value)
    if name == "none":
        return "n"
    if name == "bool":
        return "t" if value else "f"
    if name == "int":
        return f"i{value}"
    if name == "bigint":
        return f"g{value}"
    if name == "float":
        return "d" + struct.pack(">d", value).hex()
    if name in ("ascii", "str"):
        return "s" + hexed(value)
    assert name == "bytes", value
    return "b" + value.hex()


def random_float(rng):
    """Return a float: simple, halfway, power of two, decimal, or any bits."""
    way = rng.randrange(9)
    if way == 0:
        return rng.choice(
            [
                0.0,
                -0.0,
                1.0,
                float("nan"),
                -float("nan"),
                float("inf"),
                float("-inf"),
                5e-324,
                1.7976931348623157e308,
                2.2250738585072014e-308,
                1e16,
                1e15,
                9999999999999998.0,
                1e22,
                1e23,
                0.0001,
                0.00001,
                0.1,
                0.5,
                1.5,
                2.5,
                1e-4,
                123456789.0,
                9.5,
                99.5,
                0.05,
            ]
        )
    if way == 1:
        return rng.choice([-1, 1]) * rng.randrange(1, 4000) / rng.choice([2, 4, 8, 16, 32, 64, 128])
    if way == 2:
        return rng.choice([-1, 1]) * 2.0 ** rng.randrange(-1074, 1024)
    if way == 3:
        return round(rng.uniform(-1e6, 1e6), rng.randrange(0, 9))
    if way == 4:
        return struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
    if way == 5:
        return float(f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.randrange(1, 18))}e{rng.randrange(-30, 30)}")
    if way == 6:
        return float(rng.randrange(-(10 ** rng.randrange(1, 20)), 10 ** rng.randrange(1, 20)))
    if way == 7:
        return (rng.randrange(10**6) + 0.5) / 10 ** rng.randrange(0, 7)
    return rng.uniform(0, 1000)


def random_int(rng):
    """Return an int: small, near a bound, or of any size."""
    way = rng.randrange(6)
    if way == 0:
        return rng.randrange(-3, 12)
    if way == 1:
        return rng.choice(
            [
                INT_MIN,
                INT_MAX,
                INT_MIN + 1,
                INT_MAX + 1,
                INT_MIN - 1,
                2**53,
                2**53 + 1,
                2**64,
                0x10FFFF,
                0x110000,
                0xD800,
                -1,
                255,
                10**400,
            ]
        )
    if way == 2:
        return rng.getrandbits(63) * rng.choice([-1, 1])
    return rng.randrange(-(10 ** rng.randrange(1, 19)), 10 ** rng.randrange(1, 19))


ALPHABETS = ["abcXYZ 09", "ab'\"\\\n\t\r%{}$", "\x00\x01\x1f\x7f ~", "é\xa0\xad☃\u2028ßЖ中", "😀𝒳\U000e0001"]


def random_text(rng):
    """Return text from one or several alphabets."""
    length = rng.choice([0, 1, 1, 2, 3, 5, 8, 13])
    if rng.random() < 0.6:
        alphabet = ALPHABETS[rng.choice([0, 0, 1, 2])]
    else:
        alphabet = "".join(ALPHABETS)
    return "".join(rng.choice(alphabet) for _ in range(length))


class Shown:
    """An object of a class that native code does not know."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text

    def __repr__(self):
        return "<Shown é>"


class IntOnly(int):
    """A subclass of int, which is not an exact int."""


def random_value(rng):
    """Return an argument of any kind."""
    way = rng.randrange(20)
    if way < 5:
        return random_text(rng)
    if way < 10:
        return random_int(rng)
    if way < 15:
        return random_float(rng)
    if way == 15:
        return None
    if way == 16:
        return rng.random() < 0.5
    if way == 17:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
    if way == 18:
        return rng.choice([(1, "é"), (), [1, 2], {"a": 1}, Shown("x y"), 1j])
    return rng.choice([IntOnly(rng.randrange(300)), Shown(random_text(rng))])
