"""C++ and Python in one process: an extension module that links nothing, and a program that embeds the interpreter."""

import collections
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from python_side import PYTHON_LOGGER
from toolchain import INCLUDES, PROGRAMS, ROOT, STRICT, compile_silently

COUNT = 500
HEADERS = Path(sysconfig.get_path("include"))
EXAMPLES = ROOT / "examples/mixed"

pytestmark = pytest.mark.skipif(not (HEADERS / "Python.h").exists(), reason="this Python has no headers: Python.h")


@pytest.fixture(scope="session")
def extension(builds):
    """Return a function that compiles an extension module, without any library, and returns its folder."""

    def compiled(source):
        command = ["g++", *STRICT, *INCLUDES, f"-isystem{HEADERS}", "-O2", "-shared", "-fPIC", source]

        def build(folder):
            folder.mkdir(exist_ok=True)
            compile_silently(*command, "-o", folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}")

        return builds.get("extension", command, build)

    return compiled


@pytest.fixture(scope="session")
def embedding(cpp):
    """Return a function that compiles a program with an interpreter in it."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library to embed")
    folder = sysconfig.get_config_var("LIBDIR")
    name = f"python{sysconfig.get_config_var('LDVERSION')}"
    flags = [f"-isystem{HEADERS}", f"-L{folder}", f"-Wl,-rpath,{folder}", f"-l{name}"]

    def compiled(source):
        return cpp(source, "g++", *flags)

    return compiled


def run(*command, path=(), folder=None):
    """Run a program that imports from the folders `path`, and from the folders of this interpreter."""
    parts = [*map(str, path), *(part for part in sys.path if part)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(parts)}
    command = [str(part) for part in command]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def recovered(program, path):
    """Return the lines of a file, after the records of dead programs were delivered."""
    assert run(program("ends"), path, "recover", 0).returncode == 0
    return path.read_text().splitlines()


SCRIPT = f"""{PYTHON_LOGGER}
order, end, path, count = sys.argv[1:]
import part

if order == "cpp":
    part.set_up(path)
    part.log_one(-1)
    log = python_logger()
    log.info("python -1")
else:
    log = python_logger()
    log.info("python -1")
    part.set_up(path)
    part.log_one(-1)
if end.startswith("threads"):
    part.start(int(count))
for i in range(int(count)):
    part.log_one(i)
    log.info("python %d", i)
part.join()
if end.endswith("kill"):
    os.kill(os.getpid(), 9)
"""


def in_turns(first, second):
    return [f"{who} {i}" for i in range(-1, COUNT) for who in ((first, second) if i < 0 else ("c++", "python"))]


@pytest.mark.parametrize("end", ["exit", "kill", "threads-kill"])
@pytest.mark.parametrize("order", ["cpp", "python"])
def test_records_of_an_extension_module_and_python_have_one_order(extension, program, tmp_path, order, end):
    path = tmp_path / "a.log"
    done = run(sys.executable, "-c", SCRIPT, order, end, path, COUNT, path=[extension(PROGRAMS / "part.cpp")])

    assert ("", 0 if end == "exit" else -9) == (done.stderr, done.returncode)
    lines = recovered(program, path)
    of_threads = [line for line in lines if line.startswith("thread")]
    if end == "threads-kill":
        wanted = [f"thread{thread} {i}" for thread in range(2) for i in range(COUNT)]
        assert wanted == sorted(of_threads, key=lambda line: line.split()[0])
    else:
        assert [] == of_threads
    expected = in_turns("c++", "python") if order == "cpp" else in_turns("python", "c++")
    assert expected == [line for line in lines if not line.startswith("thread")]


@pytest.mark.parametrize("source", [PROGRAMS / "part.cpp", EXAMPLES / "shop_native.cpp"])
def test_an_extension_module_does_not_link_logspool(extension, source):
    (built,) = extension(source).iterdir()
    needed = run("readelf", "-d", built).stdout
    undefined = run("nm", "-D", "--undefined-only", built).stdout
    assert "PyCapsule_Import" in undefined
    assert "NEEDED" in needed
    assert "logspool" not in needed
    assert "logspool_" not in undefined


VERSIONS = """\
import sys
import part
major, missing, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
print(part.use(major, missing))
try:
    part.set_up(path)
except RuntimeError as error:
    print(error)
part.log_one(1)
"""


@pytest.mark.parametrize(
    ("major", "missing", "shown"),
    [
        (1, 0, "True\n"),
        (2, 0, "False\nthe core of logspool has major version 2 of the interface; this header has 1\n"),
        (1, 8, "False\nthe core of logspool has version 1.2 of the interface; this header needs 1.2\n"),
    ],
)
def test_a_table_of_another_version_is_refused_with_a_text(extension, tmp_path, major, missing, shown):
    path = tmp_path / "a.log"
    done = run(sys.executable, "-c", VERSIONS, major, missing, path, path=[extension(PROGRAMS / "part.cpp")])

    assert (0, "", shown) == (done.returncode, done.stderr, done.stdout)
    assert (path.read_text() if path.exists() else "") == ("c++ 1\n" if shown == "True\n" else "")


def test_without_the_package_the_module_is_not_imported(extension, tmp_path):
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.path.append(sys.argv[1]); import part"]
    done = run(*command, extension(PROGRAMS / "part.cpp"))

    assert done.returncode == 1
    assert done.stderr.endswith('ImportError: PyCapsule_Import could not import module "logspool"\n')


@pytest.mark.parametrize("end", ["exit", "kill", "finalize", "finalize-kill"])
@pytest.mark.parametrize("order", ["cpp", "python"])
def test_records_of_a_program_that_embeds_python_have_one_order(embedding, program, tmp_path, order, end):
    path = tmp_path / "a.log"
    done = run(embedding("embedding"), path, order, end, COUNT)

    assert ("", -9 if end.endswith("kill") else 0) == (done.stderr, done.returncode)
    lines = recovered(program, path) if end.endswith("kill") else path.read_text().splitlines()
    first = ["c++ is there", "python is there"]
    turns = [f"{who} {i}" for i in range(COUNT) for who in ("c++", "python")]
    after = [*(f"after {i}" for i in range(COUNT)), "after on a thread"] if end.startswith("finalize") else []
    assert [*(first if order == "cpp" else first[::-1]), *turns, *after] == lines


@pytest.mark.parametrize("end", ["fork", "fork-announced"])
@pytest.mark.parametrize("order", ["cpp", "python"])
def test_a_forked_child_of_a_program_that_embeds_python_logs(embedding, tmp_path, order, end):
    path = tmp_path / "a.log"
    done = run(embedding("embedding"), path, order, end, COUNT)

    assert ("", 0) == (done.stderr, done.returncode)
    lines = path.read_text().splitlines()
    for process in ("parent", "child"):
        whos = ("c++", "python") if end == "fork-announced" else ("c++",)
        wanted = [f"{who} in {process} {i}" for i in range(COUNT) for who in whos]
        assert wanted == [line for line in lines if f" in {process} " in line]


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("end", ["exit", "kill", "finalize"])
def test_cpp_threads_log_while_python_takes_over_the_queue(embedding, program, tmp_path, end, turn):
    path = tmp_path / "a.log"
    done = run(embedding("embedding"), path, "threads", end, 100)

    assert ("", -9 if end == "kill" else 0) == (done.stderr, done.returncode)
    of = collections.defaultdict(list)
    for line in recovered(program, path):
        who, _, number = line.partition(" ")
        of[who].append(number)
    logged = dict(zip(["thread0", "thread1", "thread2", "new"], map(int, done.stdout.split()), strict=True))
    logged["text"] = logged["new"]
    assert {who: count > 10 for who, count in logged.items()} == dict.fromkeys(logged, True)
    for who, count in logged.items():
        assert [str(i) for i in range(count)] == of[who], who
    for who in ("c++", "python"):
        assert ["is there", *map(str, range(100))] == of[who]


def test_the_example_of_an_extension_module_runs(extension, tmp_path):
    done = run(sys.executable, EXAMPLES / "shop.py", path=[extension(EXAMPLES / "shop_native.cpp")], folder=tmp_path)

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "INFO shop open",
        "INFO shop a customer wants apples",
        "INFO shop.till sold 2 apples",
        "INFO shop a customer wants pears",
        "INFO shop.till sold 3 pears",
        "INFO shop closed",
    ] == without_times(tmp_path / "shop.log")


def test_the_example_of_a_program_that_embeds_python_runs(embedding, tmp_path):
    done = run(embedding(EXAMPLES / "embedding.cpp"), folder=tmp_path)

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "INFO shop open",
        "INFO shop.plan two customers are expected",
        "INFO shop customer 1 is served",
        "INFO shop.plan one customer is left",
        "INFO shop customer 2 is served",
        "INFO shop closed",
    ] == without_times(tmp_path / "shop.log")


def without_times(path):
    return [re.fullmatch(r"[\d-]+ [\d:,]+ (.*)", line)[1] for line in path.read_text().splitlines()]
