"""`python -m logspool run` runs a program exactly as without it, with logspool installed in it and its children."""

import signal
import sys
import venv

import pytest

from suite import programs

pytestmark = pytest.mark.real

_FACTS = """\
import os, sys
print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions, __name__, __spec__ and __spec__.name)
print(sorted(globals()), globals().get("__file__"), globals().get("__package__"), sys.executable)
print("sitecustomize" in sys.modules, sys.stdin.read())
"""

_WHETHER = """\
import sys
logspool = sys.modules.get("logspool")
print("installed" if logspool and logspool.stats().installed else "not installed", flush=True)
"""


@pytest.fixture
def both(tmp_path, queue_dir):
    """Run a command line directly and with `run`, and return both outcomes."""

    def run(*arguments, options=(), **variables):
        environment = programs.environment(programs.STOCK, queue_dir, **variables)
        plain, below = (
            programs.run([*options, *start, *arguments], env=environment, folder=tmp_path, deadline_seconds=60)
            for start in ((), ("-m", "logspool", "run"))
        )
        return plain, below

    return run


def _same(plain, below):
    assert (plain.status, plain.out, plain.err) == (below.status, below.out, below.err)


@pytest.mark.parametrize("options", [(), ("-Wdefault", "-X", "dev", "-u"), ("-B",), ("-OO",)])
def test_a_script_sees_the_same_state_as_without_run(both, tmp_path, options):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "program.py").write_text(_FACTS)

    _same(*both("folder/program.py", "-x", "two words", options=options))


def test_a_module_of_a_package_sees_the_same_state_as_without_run(both, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("print('package')\n")
    (tmp_path / "package" / "__main__.py").write_text("from . import part\n" + _FACTS)
    (tmp_path / "package" / "part.py").write_text("print(__name__)\n")

    _same(*both("-m", "package", "--flag"))


def test_a_folder_with_a_main_file_runs(both, tmp_path):
    (tmp_path / "application").mkdir()
    (tmp_path / "application" / "__main__.py").write_text(_FACTS)

    _same(*both("application"))


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.exit(7)\n",
        "raise SystemExit('a word')\n",
        "def f():\n    1 / 0\nf()\n",
        "import os\nos._exit(3)\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(9)\n",
        "def broken(:\n",
    ],
)
def test_run_ends_with_the_exit_status_of_the_program(both, tmp_path, text):
    (tmp_path / "program.py").write_text(text)

    _same(*both("program.py"))


def test_a_missing_module_is_reported_by_the_interpreter(both):
    _same(*both("-m", "no_such_module"))


def test_the_parent_sees_the_signal_that_ended_the_program(both, tmp_path):
    (tmp_path / "program.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    _, below = both("program.py")

    assert -signal.SIGTERM == below.status


def test_logspool_is_installed_before_the_first_line(both, tmp_path):
    (tmp_path / "program.py").write_text(_WHETHER)
    plain, below = both("program.py")

    assert (b"not installed\n", b"installed\n") == (plain.out, below.out)


def test_the_program_runs_unchanged_when_logspool_is_off(both, tmp_path):
    (tmp_path / "program.py").write_text(_FACTS + "print(sorted(os.environ.items()), sorted(sys.modules))\n")

    _same(*both("program.py", LOGSPOOL="off"))


def test_logspool_is_installed_in_subprocesses_too(both, tmp_path):
    (tmp_path / "child.py").write_text(_WHETHER)
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n"
    )
    plain, below = both("program.py")

    assert (b"not installed\n", b"installed\n") == (plain.out, below.out)


def test_logspool_is_installed_in_children_with_another_environment_too(both, tmp_path):
    venv.create(tmp_path / "environment", symlinks=True)
    (tmp_path / "child.py").write_text(_WHETHER)
    (tmp_path / "program.py").write_text(
        "import subprocess\nsubprocess.run(['environment/bin/python', 'child.py'], check=True)\n"
    )
    plain, below = both("program.py")

    assert (b"not installed\n", b"installed\n") == (plain.out, below.out), below.err


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_logspool_is_installed_in_multiprocessing_children_too(both, tmp_path, method):
    indented = "".join(f"    {line}\n" for line in _WHETHER.splitlines())
    (tmp_path / "program.py").write_text(
        f"import multiprocessing\ndef child():\n{indented}"
        "if __name__ == '__main__':\n"
        f"    process = multiprocessing.get_context({method!r}).Process(target=child)\n"
        "    process.start()\n    process.join()\n    raise SystemExit(process.exitcode)\n"
    )
    plain, below = both("program.py")

    assert (0, 0) == (plain.status, below.status)
    assert (b"not installed\n", b"installed\n") == (plain.out, below.out)


def test_a_sitecustomize_of_the_user_runs_too(both, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("answer = 42\n")
    (tmp_path / "program.py").write_text(
        "import sitecustomize, sys\nprint(sitecustomize.answer, sitecustomize.__file__, sys.path)\n"
    )
    kept = programs.environment(programs.STOCK, tmp_path)["PYTHONPATH"]

    _same(*both("program.py", PYTHONPATH=f"{tmp_path / 'site'}:{kept}"))


def test_options_of_the_program_override_those_of_run(both, tmp_path):
    (tmp_path / "program.py").write_text(
        "import logging, logspool\n"
        "logging.basicConfig(filename='app.log')\n"
        "logspool.install(queue_bytes=65_536)\n"
        "logging.warning('on')\n"
        "logspool.flush()\n"
        "print(logspool.stats().installed, open('app.log').read())\n"
        "try:\n    logspool.install()\nexcept RuntimeError as error:\n    print(error)\n"
    )
    _, below = both("program.py")

    assert below.out.startswith(b"True WARNING:root:on\n"), below.err
    assert b"logspool is installed with other options: queue_bytes=65536 (now 262144)" in below.out


def test_an_unusable_queue_folder_is_reported_before_the_program_starts(both, tmp_path):
    (tmp_path / "program.py").write_text("print('ran')\n")
    _, below = both("program.py", LOGSPOOL_QUEUE_DIR="/nowhere/at/all")

    assert (1, b"") == (below.status, below.out)
    assert b"LOGSPOOL_QUEUE_DIR='/nowhere/at/all'" in below.err


def test_options_of_the_interpreter_are_found_in_every_spelling():
    from logspool.commands._run import interpreter_options

    run = ["run", "x.py", "-m"]
    assert [] == interpreter_options([sys.executable, "-m", "logspool", *run], 3)
    assert [] == interpreter_options([sys.executable, "-mlogspool", *run], 3)
    assert ["-B"] == interpreter_options([sys.executable, "-Bm", "logspool", *run], 3)
    assert ["-X", "dev"] == interpreter_options([sys.executable, "-X", "dev", "-m", "logspool", *run], 3)


_CUSTOMISED = """\
import logging, sys

class Own(logging.Handler):
    def emit(self, record):
        pass

class Short(logging.Formatter):
    def format(self, record):
        return record.getMessage()

def handler(name, formatter=None, encoding="utf-8"):
    made = logging.FileHandler(f"{name}.log", encoding=encoding)
    made.setFormatter(formatter or logging.Formatter("%(message)s"))
    return made

filtered = handler("filtered")
filtered.addFilter(lambda record: True)
for name, made in {
    "plain": handler("plain"), "filtered": filtered, "formatted": handler("formatted", Short()), "handled": Own(),
    "coded": handler("coded", None, "utf-16"),
}.items():
    log = logging.getLogger(name)
    log.propagate = False
    log.addHandler(made)
    if name in sys.argv[1:]:
        log.warning("called")
        log.warning("called again")
"""


@pytest.mark.parametrize(
    ("name", "reason", "advice"),
    [
        ("filtered", "FileHandler: it has a filter", "logspool.bind()"),
        ("formatted", "FileHandler: Short.format is overridden", "logspool.deferred(formatter)"),
        ("handled", "Own: Own is no known handler class", "logspool.ThreadHandler(handler)"),
        ("coded", "FileHandler: its stream encodes to utf-16, not UTF-8", "encoding='utf-8'"),
    ],
)
def test_a_report_lists_calls_that_ran_in_the_caller_and_their_fixes(both, tmp_path, name, reason, advice):
    (tmp_path / "program.py").write_text(_CUSTOMISED)
    _, below = both("--report", "program.py", name)
    place, found, fix = below.err.decode().splitlines()

    assert 0 == below.status
    assert f"logger '{name}'" == place
    assert f"  found  2 calls ran Python code in the caller: {reason}" == found
    assert fix.startswith("  fix   ")
    assert advice in fix


def test_a_report_without_findings_counts_the_calls(both, tmp_path):
    (tmp_path / "program.py").write_text(_CUSTOMISED)
    _, below = both("--report", "program.py", "plain")

    assert b"logspool: 2 calls, no Python code of filters, formatters or handlers in the caller\n" == below.err


def test_children_print_no_report(both, tmp_path):
    (tmp_path / "program.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', '0'])\n")
    _, below = both("--report", "program.py")

    assert 1 == below.err.count(b"logspool: ")


def _script(path, text):
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


def test_logspool_is_installed_before_the_first_line_of_a_command(both, tmp_path):
    _script(tmp_path / "serve", _WHETHER + "import sys\nprint(sys.argv)\n")
    _, below = both("--", "./serve", "--port", "80")

    assert b"installed\n['./serve', '--port', '80']\n" == below.out, below.err


def test_a_command_is_found_on_the_path_and_keeps_its_exit_status(both, tmp_path):
    _script(tmp_path / "serve-it", _WHETHER + "raise SystemExit(7)\n")
    _, below = both("--", "serve-it", PATH=f"{tmp_path}:/usr/bin:/bin")

    assert (7, b"installed\n") == (below.status, below.out), below.err


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_logspool_is_installed_in_workers_of_a_command_too(both, tmp_path, method):
    (tmp_path / "worker.py").write_text(f"def child():\n{''.join(f'    {line}' for line in _WHETHER.splitlines(True))}")
    _script(
        tmp_path / "serve",
        "import multiprocessing, worker\nif __name__ == '__main__':\n"
        f"    process = multiprocessing.get_context({method!r}).Process(target=worker.child)\n"
        "    process.start()\n    process.join()\n    raise SystemExit(process.exitcode)\n",
    )
    _, below = both("--", "./serve")

    assert (0, b"installed\n") == (below.status, below.out), below.err


def test_logspool_is_installed_in_programs_started_by_a_shell_script(both, tmp_path):
    (tmp_path / "child.py").write_text(_WHETHER)
    (tmp_path / "start.sh").write_text(f"#!/bin/sh\nexec {sys.executable} child.py\n")
    (tmp_path / "start.sh").chmod(0o755)
    _, below = both("--", "./start.sh")

    assert (0, b"installed\n") == (below.status, below.out), below.err


@pytest.mark.parametrize(
    ("mode", "text", "expected"),
    [
        (0o644, "#!/bin/sh\n", b"cannot run './serve': Permission denied (fix: make it executable"),
        (0o755, "no script\n", b"cannot run './serve': Exec format error (fix: begin it with a line such as #!"),
    ],
)
def test_a_command_that_cannot_be_run_is_an_error_with_a_fix(both, tmp_path, mode, text, expected):
    (tmp_path / "serve").write_text(text)
    (tmp_path / "serve").chmod(mode)
    _, below = both("--", "./serve")

    assert 1 == below.status
    assert expected in below.err


def test_options_of_the_interpreter_do_not_reach_a_command(both, tmp_path):
    _script(tmp_path / "serve", "")
    _, below = both("--", "./serve", options=("-X", "dev"))

    assert 2 == below.status
    assert b"the interpreter's options -X dev do not reach a command" in below.err
