"""Sanitizers, valgrind and warnings find nothing in C and C++ programs and in the headers."""

import shutil
import subprocess

import pytest
from toolchain import CLANG, COMPILERS, INCLUDES, PROGRAMS, ROOT, STRICT

#: gcc's runtime has no leaks of its own to hide: memory that the core keeps for the life of the process is reachable.
#: Without optimisation the programs compile in a third of the time, and no read is optimised away.
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-O0"]
#: A flag that makes the program `shown` compile in half the time.
QUICK = ["-DONE_FORM"]
HEADERS = sorted((ROOT / "bindings/cpp").rglob("*.hpp"))
#: They need headers of other projects; the programs of the tests compile them.
OF_OTHERS = ("logspool_python.hpp", "logspool_spdlog.hpp", "logspool_onnxruntime.hpp", "logspool_tensorrt.hpp")


def run(*command):
    command = [str(part) for part in command]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("end", ["return", "drain", "signals", "fork"])
def test_address_and_undefined_behaviour_sanitizers_find_nothing(cpp, tmp_path, end, monkeypatch):
    if end == "fork":
        # What only the stacks of the parent's threads refer to is a leak in a child.
        monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    done = run(cpp("ends", "g++", *SANITIZED), tmp_path / "a.log", end, 20 if end == "fork" else 2_000)

    assert (0, "") == (done.returncode, done.stderr)
    wanted = {"return": 8_000, "drain": 8_000, "signals": 2_000, "fork": 40}
    assert len((tmp_path / "a.log").read_text().splitlines()) >= wanted[end]


@pytest.mark.parametrize("arguments", ["types", "behaviour levels", "behaviour rates", "behaviour keys"])
def test_the_sanitizers_find_nothing_in_values_and_calls(cpp, tmp_path, arguments):
    program, *what = arguments.split()
    form = ['{"json": {"message": "message"}, "extras": true}'] if what else []
    done = run(cpp(program, "g++", *SANITIZED), tmp_path / "a.log", *what, *form)

    assert (0, "") == (done.returncode, done.stderr)
    assert (tmp_path / "a.log").stat().st_size > 0


def test_the_sanitizers_find_nothing_in_values_without_a_codec(cpp, tmp_path):
    done = run(cpp("shown", "g++", *SANITIZED, *QUICK), tmp_path / "a.log")

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout == (tmp_path / "a.log").read_text()


OVERRUN = """\
#include <logspool.hpp>
int main(int count, char **arguments) {
    const logspool::logger log("a", logspool::level::info, logspool::sink(arguments[1]));
    const char *const text = new char[3]{'a', 'b', 'c'};
    LOGSPOOL_INFO(log, "{}", std::string_view(text, static_cast<std::size_t>(count) + 2));
}
"""


def test_the_sanitizer_sees_the_reads_of_the_header(cpp, tmp_path):
    source = tmp_path / "overrun.cpp"
    source.write_text(OVERRUN)
    done = run(cpp(str(source), "g++", *SANITIZED), tmp_path / "a.log")

    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing: apt-get install valgrind")
def test_valgrind_finds_no_error_and_no_leak(cpp, tmp_path):
    options = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    options += ["--show-leak-kinds=definite"]
    done = run("valgrind", *options, cpp("ends"), tmp_path / "a.log", "return", 100)

    assert (0, "") == (done.returncode, done.stderr)
    assert len((tmp_path / "a.log").read_text().splitlines()) == 400


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("header", [path for path in HEADERS if path.name not in OF_OTHERS], ids=lambda path: path.name)
def test_each_header_compiles_alone_without_a_warning(compiler, header, tmp_path):
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{header}"\nint main() {{}}\n')
    done = run(compiler, *STRICT, *INCLUDES, "-fsyntax-only", source)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["c99", "c17"])
def test_the_c_header_compiles_without_a_warning(compiler, standard, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing: apt-get install {compiler}")
    source = tmp_path / "alone.c"
    source.write_text("#include <logspool.h>\nint main(void) { return 0; }\n")
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    done = run(compiler, f"-std={standard}", *warnings, *INCLUDES, "-fsyntax-only", source)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.skipif(CLANG is None, reason="clang++ is missing: apt-get install clang")
@pytest.mark.parametrize("program", ["behaviour", "ends", "inference", "lane", "types"])
def test_the_programs_compile_with_clang_too(program):
    done = run(CLANG, *STRICT, *INCLUDES, "-fsyntax-only", PROGRAMS / f"{program}.cpp")

    assert (0, "") == (done.returncode, done.stderr)


RACE = """\
#include <logspool.hpp>
#include <thread>
int main(int, char **arguments) {
    const logspool::logger log("a", logspool::level::info, logspool::sink(arguments[1]));
    int number = 0;
    std::thread other([&] { ++number; });
    LOGSPOOL_INFO(log, "{}", number);
    other.join();
}
"""


@pytest.fixture
def thread_sanitized(cpp, tmp_path, monkeypatch):
    """Return a function that compiles a program with ThreadSanitizer, with the options of the page."""
    page = (ROOT / "docs/how-to/log-from-cpp.md").read_text()
    (tmp_path / "tsan.supp").write_text(page.partition("```text\n")[2].partition("```")[0])
    monkeypatch.setenv("TSAN_OPTIONS", f"suppressions={tmp_path / 'tsan.supp'} die_after_fork=0")
    return lambda program, *flags: cpp(program, "g++", "-g", "-O0", "-fsanitize=thread", *flags)


def test_thread_sanitizer_finds_the_races_of_the_program_only(thread_sanitized, tmp_path):
    done = run(thread_sanitized("ends"), tmp_path / "a.log", "return", 500)
    assert (0, "") == (done.returncode, done.stderr)

    source = tmp_path / "race.cpp"
    source.write_text(RACE)
    done = run(thread_sanitized(str(source)), tmp_path / "b.log")
    assert "data race" in done.stderr


def test_thread_sanitizer_finds_nothing_in_values_without_a_codec(thread_sanitized, tmp_path):
    done = run(thread_sanitized("shown", *QUICK), tmp_path / "a.log")

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout == (tmp_path / "a.log").read_text()
