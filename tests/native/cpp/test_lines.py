"""Lines of C++ programs are as {fmt} would make them, and calls behave as the header says."""

import json
import re
from pathlib import Path

import pytest
from toolchain import COMPILERS, PROGRAMS

MESSAGE = '{"template": "%(levelname)s %(message)s"}'


def behaviour(run_cpp, path, what, form=MESSAGE):
    printed = run_cpp("behaviour", path, what, form).splitlines()
    offered, accepted, refused, depth = map(int, printed.pop().split())
    assert (offered, 0, 0) == (accepted, refused, depth)
    lines = path.read_text().splitlines()
    assert len(lines) == accepted
    return lines, printed


@pytest.mark.parametrize("compiler", COMPILERS)
def test_values_of_every_type_are_shown_as_fmt_shows_them(run_cpp, tmp_path, compiler):
    expected = run_cpp("types", tmp_path / "a.log", compiler=compiler)

    assert expected.splitlines() == (tmp_path / "a.log").read_text().splitlines()


@pytest.mark.parametrize(("compiler", "flags"), [*((name, ()) for name in COMPILERS), ("g++", ("-DWITH_FMT",))])
def test_values_without_a_codec_are_shown_by_functions_of_the_program_or_the_library(
    run_cpp, tmp_path, compiler, flags
):
    if flags and not Path("/usr/include/fmt/format.h").exists():
        pytest.skip("fmt is missing: apt-get install libfmt-dev")
    expected = run_cpp("shown", tmp_path / "a.log", compiler=compiler, flags=flags)

    assert expected.splitlines() == (tmp_path / "a.log").read_text().splitlines()


def test_levels_at_compile_time_and_run_time(run_cpp, tmp_path):
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "levels")

    assert [
        *("INFO i 1", "WARNING w 1", "ERROR e 1", "CRITICAL c 1", "Level 25 25 1"),
        *("INFO fi", "WARNING fw", "ERROR fe", "CRITICAL fc", "Level 25 f25"),
        *("DEBUG d 1", "INFO template 1", "INFO template two", "INFO evaluated 6"),
    ] == lines


def test_a_pattern_defines_the_line(run_cpp, tmp_path):
    form = '{"pattern": "{{{time:%Y}}} [{level:^9}] {file} {logger} {message}", "level_words": "short", "utc": true}'
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "levels", form)

    assert re.fullmatch(r"\{\d{4}\} \[   INF   \] behaviour\.cpp app i 1", lines[0])
    words = [re.search(r"\[ *(.*?) *\]", line)[1] for line in lines]
    assert ["INF", "WRN", "ERR", "CRT"] == words[:4]


def test_a_pattern_shows_key_values(run_cpp, tmp_path):
    form = '{"pattern": "{level} {message} <{fields}> {fields.user}", "level_words": "letter"}'
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "keys", form)

    assert "I by Ana <user=Ana n=3 yes=true> Ana" == lines[0]


def test_rate_limits_let_only_their_share_pass(run_cpp, tmp_path):
    form = '{"json": {"message": "message"}, "extras": true}'
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "rates", form)
    lines = [json.loads(line) for line in lines]

    assert ["every 0", "every 3", "every 6"] == [x["message"] for x in lines if x["message"].startswith("every")]
    assert [{"message": "hour 0"}] == [x for x in lines if x["message"].startswith("hour")]
    limited = [x for x in lines if x["message"].startswith("limit")]
    assert [{"message": "limit 0"}, {"message": "limit 6", "suppressed": 5}] == limited


def test_key_values_are_fields_of_the_line(run_cpp, tmp_path):
    form = '{"json": {"message": "message"}, "extras": true}'
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "keys", form)

    assert [
        {"message": "by Ana", "user": "Ana", "n": 3, "yes": True},
        {"message": "order", "id": 1, "name": "apple"},
        {"message": "text", "k": 2.5},
        {"message": "mended \ufffd", "\ufffd": "\ufffd"},
    ] == [json.loads(line) for line in lines]


def test_kept_records_come_before_the_record_that_flushes_them(run_cpp, tmp_path):
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "backtrace")

    assert [
        *["WARNING below the flush level"] * 5,
        *(f"DEBUG kept {i} {'x' * 50 * i}" for i in (2, 3, 4)),
        *("ERROR first", "ERROR nothing is kept", "INFO kept \ufffd", "ERROR second", "INFO by hand"),
    ] == lines


def test_formats_that_show_the_thread_have_it(run_cpp, tmp_path):
    form = '{"template": "%(thread)d %(message)s"}'
    lines, (first, second) = behaviour(run_cpp, tmp_path / "a.log", "threads", form)

    assert [f"{first} first {i}" for i in range(3)] + [f"{second} second {i}" for i in range(3)] == lines


@pytest.mark.parametrize(
    ("form", "rest"),
    [
        ('{"template": "%(threadName)s %(message)s %(fields.user)s %%(fields.x)s"}', " {} %(fields.x)s"),
        ('{"style": "{", "template": "{threadName} {message} {fields.user}"}', " {}"),
        ('{"pattern": "{thread_name} {message} {fields.user}"}', " {}"),
    ],
)
def test_formats_show_the_name_of_the_thread_and_keys(run_cpp, tmp_path, form, rest):
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "names", form)

    assert [f"main thread first {i}" + rest.format("ada") for i in range(2)] == lines[:2]
    assert "w\ufffd second" + rest.format("bob") == lines[2]
    assert lines[3].startswith("w\ufffd text")


@pytest.mark.parametrize(
    "form",
    ['{"template": "%(asctime)s", "date_format": "%z"}', '{"pattern": "{time:%z}"}'],
    ids=["template", "pattern"],
)
def test_a_line_shows_the_zone_that_the_program_has_set(run_cpp, tmp_path, form):
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "zones", form)

    assert ["+0100", "+0200", "+0300", "+0100", "+0000"] == [*lines[:4], lines[5]]
    assert lines[4] in ("+0100", "+0200")


def test_texts_beyond_the_largest_record_are_cut_and_say_by_how_much(run_cpp, tmp_path):
    lines, (size,) = behaviour(run_cpp, tmp_path / "a.log", "large", '{"template": "%(message)s"}')

    assert len(lines) == 3
    for line, rest in zip(lines, ("1 {} 2", "{}", "{}"), strict=True):
        shown = re.fullmatch(rest.format(r"(xé+) \[(\d+) bytes are cut\]"), line)
        assert shown is not None, line[:20] + line[-60:]
        assert int(size) == len(shown[1].encode()) + int(shown[2])


def test_a_record_has_its_source_location(run_cpp, tmp_path):
    form = '{"template": "%(filename)s %(funcName)s %(lineno)d %(name)s"}'
    lines, _ = behaviour(run_cpp, tmp_path / "a.log", "errors", form)

    assert len(lines) == 1
    file, function, line, name = lines[0].split()
    assert ("behaviour.cpp", "errors", "app") == (file, function, name)
    source = (PROGRAMS / "behaviour.cpp").read_text().splitlines()
    assert "goes on" in source[int(line) - 1]


def test_definitions_throw_and_calls_pass_on_exceptions_of_a_codec(run_cpp, tmp_path):
    lines, printed = behaviour(run_cpp, tmp_path / "a.log", "errors")

    assert ["INFO goes on"] == lines
    assert "thrown" == printed[0]
    assert "No such file" in printed[1]
    assert "queue_bytes" in printed[2]
