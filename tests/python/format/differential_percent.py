"""Compare native message templates with ``%`` of the running interpreter.

Each case is a random template with random arguments. The native side first says for each directive whether the caller
or the collector renders it (``plan``). This script renders the caller's directives as capture does. Then both texts
must be equal; if Python raises, the native side must have refused.

    python differential_percent.py --binary target/debug/examples/percent_lines --cases 200000
"""

import sys

import native

LITERALS = ["", "", " ", "x=", "%%", "é", "ab%%cd", "\n", "{}", "$x"]


def random_directive(rng):
    """Return the source of a directive; Python refuses a few of them."""
    if rng.random() < 0.01:
        return rng.choice(["%", "%z", "%5%", "%*d", "%.*f", "%(a)s", "%hhd", "%.-3f", "%é", "%#%", "% 5", "%l%", "%y"])
    if rng.random() < 0.25:
        return rng.choice(["%s", "%d", "%r", "%.3f", "%f", "%x", "%5d", "%-8s", "%05.1f", "%g"])
    flags = "".join(rng.choice("#0- +") for _ in range(rng.choice([0, 0, 1, 1, 2, 3])))
    width = rng.choice(["", "", "", "5", "12", "1", "30", "0", "007", "1100"] if rng.random() < 0.1 else ["", "", "6"])
    precision = rng.choice(["", "", ".", ".0", ".1", ".2", ".3", ".6", ".12", ".17", ".25", ".60", ".1024"])
    length = rng.choice(["", "", "", "", "", "", "", "l", "h", "L"])
    return f"%{flags}{width}{precision}{length}{rng.choice('ssssrraaddiuoxXffFeEgGc')}"


def fitting_value(rng, directive):
    """Return a value that the directive usually accepts."""
    letter = directive[-1]
    if rng.random() < 0.12 or letter in "sra":
        return native.random_value(rng)
    if letter in "diuoxXc":
        return native.random_int(rng) if rng.random() < 0.8 else native.random_float(rng)
    return native.random_float(rng) if rng.random() < 0.8 else native.random_int(rng)


def random_case(rng):
    """Return a template and a tuple of arguments, never empty: without arguments stock logging does not format."""
    directives = [random_directive(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
    template = rng.choice(LITERALS) + "".join(directive + rng.choice(LITERALS) for directive in directives)
    arguments = [fitting_value(rng, directive) for directive in directives]
    if rng.random() < 0.02 or not arguments:
        arguments.append(native.random_value(rng))
    if rng.random() < 0.01 and len(arguments) > 1:
        arguments.pop()
    return template or " ", tuple(arguments)


def expected(template, arguments):
    """Return the result of ``%`` as UTF-8, or the exception."""
    try:
        return (template % arguments).encode()
    except Exception as error:
        return error


def caller_values(plan, arguments):
    """Return the words of a deferred record, or None if capture takes the stock path."""
    head, *directives = plan.split()
    if head == "no" or len(directives) != len(arguments):
        return None
    words = []
    for directive, value in zip(directives, arguments):
        acceptance, text = directive.split(":")
        if acceptance == "mismatch":
            return None
        if acceptance == "deferred":
            words.append(native.word(value))
            continue
        try:
            words.append("r" + native.hexed(bytes.fromhex(text).decode() % (value,)))
        except Exception:
            return None
    return words


def compare(cases, options, counts):
    """Run some cases; count them and return the differences."""
    failures = []
    to_render = []
    plans = native.ask(
        options.binary,
        [" ".join(["plan", native.hexed(template), *map(native.kind, arguments)]) for template, arguments in cases],
    )
    for (template, arguments), plan in zip(cases, plans):
        wanted = expected(template, arguments)
        words = caller_values(plan, arguments)
        if words is not None:
            counts["deferred"] += 1
            counts["directives rendered in the caller"] += plan.count("caller:")
            to_render.append((template, arguments, wanted, words))
        elif isinstance(wanted, bytes) and "*" not in template and "(" not in template:
            failures.append((template, arguments, wanted, plan))
        else:
            counts["stock path"] += 1
    answers = native.ask(
        options.binary, [" ".join(["render", native.hexed(template), *words]) for template, _, _, words in to_render]
    )
    for (template, arguments, wanted, _), answer in zip(to_render, answers):
        if isinstance(wanted, bytes) and answer == wanted.hex():
            counts["equal"] += 1
        else:
            shown = answer if answer == "malformed" else bytes.fromhex(answer)
            failures.append((template, arguments, wanted, shown))
    return failures


if __name__ == "__main__":
    sys.exit(min(native.run(__doc__.splitlines()[0], random_case, compare), 1))
