"""Count constructions that make English hard to read, per 1,000 words of comments, docstrings and pages.

The figures are a ratchet: they may only become smaller. They count habits, not quality; a text without one of them can
still be bad. Counted in the same way, ripgrep has 1.1, mini-redis 0.7, crossbeam 1.4 and structlog 1.0.

`python scripts/check_words.py --show 5` names five places of each construction, and the files with most of them.
"""

import argparse
import ast
import collections
import re
import subprocess
from pathlib import Path

import terminal

ROOT = Path(__file__).resolve().parent.parent

# Per 1,000 words: all constructions, and the first of them alone.
MOST = 3.0
MOST_NOUN_CLAUSES = 1.0

NOUN_CLAUSE = "what/who ... as a noun"

CONSTRUCTIONS = {
    NOUN_CLAUSE: r"\b(?:[Ww]hat|[Ww]ho|[Ww]hoever|[Ww]hatever) (?:is|was|are|has|have|had|it|they|came|comes|follows"
    r"|stands|lies|waits|sends|reads|takes|does|did|a|the|of|others|holds|asks|nobody|somebody)\b",
    "is told, tells": r"\btold\b|\btells\b",
    "given up, gives up": r"\bgiven? up\b|\bgives up\b",
    "behind (for after)": r"\bbehind\b",
    "none (as a noun)": r"\bnone\b",
    "so many, so much, so long, so far": r"\bso (?:many|much|long|far|often)\b",
    "stands, lies (for is)": r"\b(?:stands?|lies?|lay)\b",
    "anew": r"\banew\b",
    "those of, that which": r"\b(?:[Tt]hose|that) (?:of|that|who|which)\b",
    "goes on": r"\b(?:goes|go|went|gone) on\b",
    "one that, one of": r"\b[Oo]ne (?:that|which|who|of)\b",
    "nobody, somebody": r"\b(?:[Nn]obody|[Ss]omebody)\b",
}

# Folders of recorded measurements: programs wrote their pages.
RECORDED = ("bench/runs/",)
C_SUFFIXES = (".c", ".h", ".cpp", ".hpp")
HASH_SUFFIXES = (".py", ".pyi", ".nim", ".sh")
SUFFIXES = (".rs", ".md", *C_SUFFIXES, *HASH_SUFFIXES)


def prose(name: str, text: str) -> str:
    """Return the text of a file that people read: comments and docstrings, or Markdown without its code."""
    if name.endswith(".md"):
        return re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    if name.endswith(HASH_SUFFIXES):
        parts = [line.strip().lstrip("#") for line in text.split("\n") if re.match(r"\s*#(?!!)", line)]
        if name.endswith((".py", ".pyi")):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    parts.append(ast.get_docstring(node) or "")
        return "\n".join(parts)
    lines = (line for line in text.split("\n") if re.match(r"\s*//", line))
    parts = [re.sub(r"^\s*//[/!]?", "", line) for line in lines]
    if name.endswith(C_SUFFIXES):
        blocks = re.findall(r"/\*(.*?)\*/", text, flags=re.DOTALL)
        parts += [re.sub(r"^\s*\*", "", block, flags=re.MULTILINE) for block in blocks]
    return "\n".join(parts)


def main() -> None:
    """Print the figures; exit with 1 where one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="name N places of each construction")
    parser.add_argument("places", nargs="*", help="count only files whose path begins so; nothing is judged then")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    within = tuple(options.places) or ("",)
    names = [
        name for name in listed if name.startswith(within) and name.endswith(SUFFIXES) and not name.startswith(RECORDED)
    ]
    words = 0
    counts: collections.Counter[str] = collections.Counter()
    files: collections.Counter[str] = collections.Counter()
    shown = collections.defaultdict(list)
    for name in names:
        text = prose(name, (ROOT / name).read_text(encoding="utf-8"))
        words += len(text.split())
        for construction, pattern in CONSTRUCTIONS.items():
            for hit in re.finditer(pattern, text):
                counts[construction] += 1
                files[name] += 1
                if len(shown[construction]) < options.show:
                    shown[construction].append(f"{name}: {text[max(0, hit.start() - 40) : hit.end() + 40]!r}")
    thousands = max(words, 1) / 1000
    every, noun_clauses = sum(counts.values()) / thousands, counts[NOUN_CLAUSE] / thousands
    if options.show:
        for construction in CONSTRUCTIONS:
            print(f"{counts[construction] / thousands:6.2f}  {construction}", *shown[construction], sep="\n        ")
        print("most in:", *(f"{name} {count}" for name, count in files.most_common(15)), sep="\n        ")
    terminal.note(
        f"{words} words, per 1,000: {every:.1f} listed constructions, {noun_clauses:.1f} of them noun clauses"
    )
    if not options.places and (every > MOST or noun_clauses > MOST_NOUN_CLAUSES):
        raise terminal.fail(
            f"per 1,000 words {MOST} listed constructions and {MOST_NOUN_CLAUSES} noun clauses are allowed: "
            "python scripts/check_words.py --show 5 names places"
        )


if __name__ == "__main__":
    main()
