"""The page on versions has the numbers that the formats have in the sources."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]

#: The beginning of a row of the page, and where its numbers are: a file of crates/ and a pattern that finds them.
FORMATS = {
    "the queue of a process": ("logspool-lanes/src/segment/layout.rs", r"const MAJOR: u32 = (\d+);"),
    "the copy of an unfinished write": ("logspool/src/sidecar/intent.rs", r"const VERSION: u64 = (\d+);"),
    "segments of the": ("logspool-spool/src/spool_segment.rs", r"const VERSION: u32 = (\d+);"),
    "the view of a thread's lane": ("logspool-lanes/src/queue/view.rs", r"const VIEW_VERSION: u32 = (\d+);"),
    "day files, index and catalog": (
        "logspool-server/src/stores/sqlite/database.rs",
        r"Self::(?:Day|Index \| Self::Catalog) => (\d+),",
    ),
    "the table of functions": ("logspool-abi/src/table.rs", r"const MAJOR: u32 = (\d+);"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_has_the_number_of_each_format(name):
    page = (ROOT / "docs" / "explain" / "versions.md").read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| {re.escape(name)}[^|]* \| ([^|]+) \|", page, flags=re.MULTILINE)
    file, pattern = FORMATS[name]
    found = re.findall(pattern, (ROOT / "crates" / file).read_text(encoding="utf-8"))

    assert found
    assert set(re.findall(r"\d+", row)) == set(found)


def test_the_checkpoint_has_the_number_of_the_segments():
    text = (ROOT / "crates" / "logspool-spool" / "src" / "checkpoint.rs").read_text(encoding="utf-8")
    segment, pattern = FORMATS["segments of the"]

    assert re.findall(pattern, text) == re.findall(pattern, (ROOT / "crates" / segment).read_text(encoding="utf-8"))
