"""Count the code to be believed: unsafe functions of the bindings, and SAFETY comments without a fact.

The figures may only become smaller. That every unsafe block has a comment, and every public unsafe function a
`# Safety` section, is checked by clippy.
"""

import re

import terminal
from rust_sources import ROOT, without_comments

# Most unsafe functions in the bindings.
UNSAFE_FUNCTIONS = 35

# Of these, without a `# Safety` section.
WITHOUT_SECTION = 0

# SAFETY comments in any crate that name no fact, but the place where one may be found.
WITHOUT_FACT = 0

_UNSAFE_FUNCTION = re.compile(r"\bunsafe\s+(?:extern\s+\"\"\s+)?fn\s+(\w+)")
_EMPTY_WORDS = re.compile(
    r"(?:attached(?: again)?|passed on|as above|the same|see above|as there|likewise|as the caller says"
    r"|(?:a )?live objects?|the caller's (?:promise|contract)|the contract of the function)[.;]?$",
    re.IGNORECASE,
)


def comments_without_fact(text: str) -> list[int]:
    """Return the lines of SAFETY comments that say only "attached", "passed on", "as above" or the like."""
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines):
        comment = re.match(r"\s*// SAFETY: (.*)", line)
        if comment is None:
            continue
        words = comment[1]
        for following in lines[number + 1 :]:
            more = re.match(r"\s*// (.*)", following)
            if more is None:
                break
            words += " " + more[1]
        parts = [part.strip() for part in re.split(r"[,;]| and ", words) if part.strip()]
        if all(_EMPTY_WORDS.match(part) for part in parts):
            found.append(number + 1)
    return found


def functions_without_section(text: str) -> tuple[int, int]:
    """Return how many unsafe functions a file has, and how many of these have no `# Safety` section."""
    lines = text.split("\n")
    code = without_comments(text).split("\n")
    functions = bare = 0
    for number, line in enumerate(code):
        if _UNSAFE_FUNCTION.search(line) is None:
            continue
        functions += 1
        above = number - 1
        documented = False
        while above >= 0 and re.match(r"\s*(///|#\[|//)", lines[above]):
            documented = documented or "# Safety" in lines[above]
            above -= 1
        bare += not documented
    return functions, bare


def main() -> None:
    """Print the figures; exit with 1 where one is above its limit."""
    functions = bare = 0
    for file in sorted((ROOT / "crates" / "logspool-python" / "src").rglob("*.rs")):
        more, undocumented = functions_without_section(file.read_text(encoding="utf-8"))
        functions += more
        bare += undocumented
    places = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted((ROOT / "crates").rglob("*.rs"))
        for line in comments_without_fact(file.read_text(encoding="utf-8"))
    ]
    terminal.note(
        f"bindings: {functions} unsafe functions, {bare} without # Safety; {len(places)} SAFETY comments name no fact"
    )
    faults = []
    if functions > UNSAFE_FUNCTIONS:
        faults.append(f"{functions} unsafe functions in the bindings, {UNSAFE_FUNCTIONS} allowed")
    if bare > WITHOUT_SECTION:
        faults.append(f"{bare} of them have no # Safety section, {WITHOUT_SECTION} allowed")
    if len(places) > WITHOUT_FACT:
        print(*places, sep="\n")
        faults.append(f"{len(places)} SAFETY comments name no fact, {WITHOUT_FACT} allowed")
    if faults:
        raise terminal.fail("; ".join(faults))


if __name__ == "__main__":
    main()
