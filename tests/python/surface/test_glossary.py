"""The glossary explains the nouns of public types."""

import re
from pathlib import Path

import pytest

import logspool
import logspool.pool

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"

#: Number of head words of Rust types that the glossary omits: everyday words, and names without a noun. May only fall.
MOST_MISSING = 129

_ROW = re.compile(r"^\| (?!word \|)([^|]+) \|", re.MULTILINE)
_TYPE = re.compile(r"^pub (?:struct|enum|trait) (\w+)", re.MULTILINE)

#: Nouns that a Python programmer knows without a glossary.
PYTHON_WORDS = {"file", "thread", "logger", "count", "sink", "console", "path", "service", "broken", "time", "json"}
PYTHON_WORDS |= {"sq", "lite"}  # the pattern below splits SQLite into these parts


def _explained():
    """Return the words of the glossary, in lower case."""
    return set(re.findall(r"[a-z]+", " ".join(_ROW.findall(GLOSSARY.read_text(encoding="utf-8"))).lower()))


def _words(name):
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", name)]


def _is_explained(word, explained):
    return word in explained or word.rstrip("s") in explained


def test_every_noun_of_a_public_python_class_is_explained():
    explained = _explained()
    names = [name for module in (logspool, logspool.pool) for name in module.__all__ if name[0].isupper()]
    words = {word for name in names for word in _words(name)} - PYTHON_WORDS - {"rotating", "timed"}

    assert len(words) > 10
    assert [] == sorted(word for word in words if not _is_explained(word, explained))


def test_the_number_of_unexplained_nouns_in_rust_types_only_falls():
    explained = _explained()
    heads = set()
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        heads |= {_words(name)[-1] for name in _TYPE.findall(path.read_text(encoding="utf-8"))}
    missing = sorted(head for head in heads if not _is_explained(head, explained))

    assert len(heads) > 200
    assert len(missing) <= MOST_MISSING, missing


def test_no_word_has_two_meanings():
    rows = [word.strip() for row in _ROW.findall(GLOSSARY.read_text(encoding="utf-8")) for word in row.split(",")]

    assert sorted(set(rows)) == sorted(rows)
