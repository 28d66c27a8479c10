"""Nim programs: their lines, their ends, and the messages of wrong inputs."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "nim"
MEMORY = ("refc", "orc", "arc")
#: The Nim of the system, and Nim 2 if scripts/native_tools.py has fetched one beside an older Nim.
COMPILERS = [str(path) for path in (shutil.which("nim"), ROOT / "build/nim-2/bin/nim") if path and Path(path).exists()]

pytestmark = pytest.mark.skipif(shutil.which("nim") is None, reason="nim is missing: apt-get install nim")


@pytest.fixture(scope="module")
def nim(package, builds):
    """Return a function that compiles a program and returns its path. The compiler must give no warning."""

    def compiled(source, memory="orc", *flags, compiler="nim"):
        options = ["--hints:off", "--threads:on", f"--mm:{memory}", f"--path:{ROOT / 'bindings/nim/src'}"]
        options += [f"-d:logspoolDir={package}", *flags]

        def build(path):
            command = [compiler, "c", *options, f"--nimcache:{path}.cache", f"-o:{path}", source]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (0, []) == (done.returncode, [line for line in done.stderr.splitlines() if "Warning" in line]), (
                done.stderr
            )

        return builds.get(Path(source).stem, (compiler, options, source), build)

    return compiled


@pytest.mark.parametrize("memory", MEMORY)
def test_values_are_shown_as_nim_shows_them(nim, tmp_path, memory):
    subprocess.run([nim(PROGRAMS / "values.nim", memory), "a.log", "wanted"], cwd=tmp_path, check=True, timeout=60)

    lines = (tmp_path / "a.log").read_text().splitlines()
    wanted = (tmp_path / "wanted").read_text().splitlines()
    assert wanted == lines
    assert len(lines) == 10


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_value_of_each_type_is_shown_by_the_dollar_proc_in_scope(nim, tmp_path, compiler, memory):
    path = nim(PROGRAMS / "types.nim", memory, compiler=compiler)
    subprocess.run([path, "a.log", "wanted"], cwd=tmp_path, check=True, timeout=60)

    lines = (tmp_path / "a.log").read_bytes().split(b"\n")
    assert (tmp_path / "wanted").read_bytes().split(b"\n") == lines
    assert b"some(1)" == lines[0]
    assert b"a a\0b b" in lines
    assert len(lines) > 200


@pytest.mark.parametrize("compiler", COMPILERS)
def test_asynchronous_procedures_log(nim, tmp_path, compiler):
    subprocess.run([nim(PROGRAMS / "waiting.nim", compiler=compiler), "a.log"], cwd=tmp_path, check=True, timeout=60)

    lines = (tmp_path / "a.log").read_text().splitlines()
    assert ["before 1", "after 1 some(1)", "before 2", "after 2 some(2)", "sum 2 and 4 kept"] == lines[:5]
    assert ["@[11, 11]"] == lines[9:]


@pytest.mark.parametrize("memory", MEMORY)
def test_records_in_the_lane_are_whole_and_in_order(nim, tmp_path, memory):
    # Of several compilers the newest one: the tables of types compile with each.
    path = nim(PROGRAMS / "lane.nim", memory, compiler=COMPILERS[-1])
    subprocess.run([path, "a.log", "wanted"], cwd=tmp_path, check=True, timeout=60)

    assert (tmp_path / "wanted").read_bytes() == (tmp_path / "a.log").read_bytes()


def test_a_format_with_the_thread_has_it_in_each_line(nim, tmp_path):
    command = [nim(PROGRAMS / "lane.nim"), "a.log", "wanted", "%(thread)d %(message)s"]
    with subprocess.Popen(command, cwd=tmp_path) as running:
        assert 0 == running.wait(60)

    lines = (tmp_path / "a.log").read_text().splitlines()
    assert [f"{running.pid} {line}" for line in (tmp_path / "wanted").read_text().splitlines()] == lines


@pytest.mark.parametrize("ending", ["return", "quit", "raise", "kill"])
def test_each_record_is_written_once(nim, tmp_path, ending):
    done = subprocess.run([nim(PROGRAMS / "ends.nim"), ending, "a.log", "b.log"], cwd=tmp_path, timeout=60, check=False)
    assert {"return": 0, "quit": 0, "raise": 1, "kill": -9}[ending] == done.returncode
    if ending == "kill":
        # The next program that writes to the files delivers the remaining records.
        subprocess.run([nim(PROGRAMS / "values.nim"), "b.log", "wanted"], cwd=tmp_path, check=True, timeout=60)

    lines = (tmp_path / "b.log").read_text().splitlines()[:4000]
    for thread in range(4):
        mine = [line for line in lines if line.startswith(f"{thread} ")]
        assert [f"{thread} {number}" for number in range(1000)] == mine
    if ending != "kill":
        # A file that the program has opened cannot be named, so a later start does not deliver to it.
        borrowed = (tmp_path / "a.log").read_text().splitlines()
        assert ["of the program", *lines] == borrowed


def test_a_program_that_closes_descriptors_keeps_every_line_and_its_own_files(nim, tmp_path):
    command = [nim(PROGRAMS / "closes.nim"), "a.log", "1000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (0, "1 0\n", "") == (done.returncode, done.stdout, done.stderr)
    assert list(range(1000)) == [int(line) for line in (tmp_path / "a.log").read_text().splitlines()]


@pytest.mark.parametrize("ending", ["return", "quit"])
def test_a_record_after_the_drain_at_exit_is_in_the_file(nim, tmp_path, ending):
    program = nim(PROGRAMS / "late.nim", compiler=COMPILERS[-1])
    subprocess.run([program, "a.log", ending], cwd=tmp_path, check=True, timeout=60)

    late = [*(["destroyed"] if ending == "return" else []), *(f"at exit {number}" for number in range(3))]
    assert ["in the program", *late] == (tmp_path / "a.log").read_text().splitlines()


def test_any_number_of_outputs_can_be_opened_in_turn(nim, tmp_path):
    program = nim(PROGRAMS / "closing.nim", compiler=COMPILERS[-1])
    done = subprocess.run([program, "400"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)

    assert "the output is closed already\n" == done.stdout
    assert [*map(str, range(400)), "again"] == (tmp_path / "lasting.log").read_text().splitlines()
    for file in range(50):
        assert [*map(str, range(file, 400, 50))] == (tmp_path / f"{file}.log").read_text().splitlines()


def test_a_full_device_is_reported_at_the_end(nim, tmp_path):
    program = nim(PROGRAMS / "device.nim", compiler=COMPILERS[-1])
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)

    assert "false\n" == done.stdout
    told = done.stderr.splitlines()
    assert 1 == len(told), told
    assert told[0].startswith("logspool: 1 records were not written within 0.2 s; they are kept"), told
    assert told[0].endswith("(the device is full: /dev/full)"), told


def test_invalid_inputs_are_errors_with_a_fix(nim, tmp_path):
    done = subprocess.run([nim(PROGRAMS / "wrong.nim")], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    shown = done.stdout.splitlines()
    wanted = ["No such file", "x.log", "the file is nil: open it first", "queue_bytes", "32768"]
    assert len(wanted) == len(shown), done.stdout + done.stderr
    assert [] == [(part, line) for part, line in zip(wanted, shown, strict=True) if part not in line]


def test_calls_below_the_compile_time_level_generate_no_code(nim, tmp_path):
    (tmp_path / "floor.nim").write_text(
        'import logspool\naddLogger("a.log", "%(message)s")\n'
        'proc never(): int = (echo "called"; 1)\ninfo "low ", never()\nwarn "high"\n'
    )
    done = subprocess.run(
        [nim(tmp_path / "floor.nim", "orc", "-d:logspoolFloor=30")], cwd=tmp_path, capture_output=True, check=True
    )

    assert (b"", "high\n") == (done.stdout, (tmp_path / "a.log").read_text())


def test_a_call_without_a_free_site_logs_its_template(nim, tmp_path):
    done = subprocess.run([nim(PROGRAMS / "full.nim")], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert 1_000_000 < int(done.stdout)
    assert "full.nim:11 All {} Bananas\n" == (tmp_path / "a.log").read_text()


def test_the_example_logs_in_the_default_form(nim, tmp_path):
    done = subprocess.run([nim(ROOT / "examples/nim/example.nim")], cwd=tmp_path, capture_output=True, text=True)

    lines = [line.partition("]")[2] for line in done.stdout.splitlines()]
    assert [
        "[example]: Hello World!",
        "[example]: All 3 Bananas",
        "[example]: a {brace} and 2.5 @[1, 2] c true",
        "[example]: sum 7 of texts",
    ] == lines
    assert done.stdout == (tmp_path / "x.log").read_text()


def test_a_missing_library_is_an_error_with_a_fix(tmp_path):
    command = ["nim", "c", "--hints:off", f"--path:{ROOT / 'bindings/nim/src'}", f"-d:logspoolDir={tmp_path}"]
    done = subprocess.run([*command, PROGRAMS / "wrong.nim"], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode != 0
    assert "run `make native`" in done.stderr + done.stdout
