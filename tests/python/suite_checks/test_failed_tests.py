"""What a long run says last of its failed tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import failed_tests

REPORT = """<testsuites><testsuite tests="3">
<testcase classname="tests.e2e.test_a" name="test_passes"/>
<testcase classname="tests.e2e.test_a" name="test_fails[two]"><failure message="short">def test():
&gt;   assert 1 == 2
E   assert 1 == 2
E    +  where 1 = f()
tests/e2e/test_a.py:3: AssertionError</failure></testcase>
<testcase classname="tests.e2e.test_a" name="test_hangs"><failure message="Failed: Timeout"/></testcase>
</testsuite></testsuites>"""


def test_each_failed_test_is_named_with_what_differed(tmp_path):
    report = tmp_path / "pytest-matrix-3.13t.xml"
    report.write_text(REPORT)
    assert failed_tests.summary([report]).splitlines() == [
        "failed in pytest-matrix-3.13t: tests.e2e.test_a::test_fails[two]",
        "    E   assert 1 == 2",
        "    E    +  where 1 = f()",
        "failed in pytest-matrix-3.13t: tests.e2e.test_a::test_hangs",
        "    Failed: Timeout",
    ]


def test_a_long_text_keeps_both_ends_and_many_tests_are_counted(tmp_path):
    report = tmp_path / "r.xml"
    case = f'<testcase classname="t" name="n"><failure>begin{"x" * 5000}end</failure></testcase>'
    report.write_text(f"<testsuite>{case * (failed_tests.SHOWN + 2)}</testsuite>")
    lines = failed_tests.summary([report]).splitlines()
    assert lines[1].startswith("    begin") and lines[3].endswith("xend")
    assert len(lines[1]) + len(lines[3]) < failed_tests.CHARACTERS + 20
    assert lines[-1].startswith("and 2 more")


def test_nothing_is_shown_of_a_run_without_failures(tmp_path):
    report = tmp_path / "r.xml"
    report.write_text('<testsuite><testcase classname="t" name="n"/></testsuite>')
    assert failed_tests.summary([report]) == ""
