"""`pyproject.toml` of the current folder is used only if no user but this one and root can have written it."""

import os
import stat

import pytest

from suite import programs

pytestmark = pytest.mark.real

SHOW = """\
import logspool
from logspool.watch import _stats

logspool.install()
logspool.uninstall()
logspool.install()
print((_stats.options_in_force() or {}).get("flush_records"))
"""

TABLE = "[tool.logspool]\nflush_records = 2\n"

#: The id of a user other than this one and root.
OTHER = 54321

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")


@pytest.fixture
def project(tmp_path):
    """Return a folder `project` with the configuration, in a folder `above`."""
    folder = tmp_path / "above" / "project"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(TABLE)
    # Independent of the umask.
    for path in (folder.parent, folder, folder / "pyproject.toml"):
        path.chmod(0o644 if path.is_file() else 0o755)
    return folder


@pytest.fixture
def run(project, queue_dir):
    """Give a function that runs a command in the project and returns its outcome."""
    (project / "show.py").write_text(SHOW)

    def run(*arguments, folder=project, **variables):
        environment = programs.environment(programs.INSTALLED, queue_dir, LOGSPOOL_KEEPER="off", **variables)
        return programs.run(arguments, env=environment, folder=folder, deadline_seconds=60)

    return run


def ignored(outcome, why):
    """Check that a program has the defaults, and that one line names the file, the reason and a repair."""
    outcome.expect_success()
    told = outcome.err.decode().splitlines()
    assert ([b"100"], 1) == (outcome.out.split(), len(told)), told
    assert told[0].startswith("logspool: ")
    assert f"pyproject.toml is ignored: {why}" in told[0]
    assert "(fix: " in told[0]
    assert "LOGSPOOL_CONFIG" in told[0]


def test_the_file_of_this_user_is_used(run):
    outcome = run("show.py").expect_success()

    assert (b"2\n", b"") == (outcome.out, outcome.err)


@pytest.mark.parametrize("name", ["above/project/pyproject.toml", "above/project", "above"])
@pytest.mark.parametrize(("mode", "who"), [(0o020, "a group"), (0o002, "every user")])
def test_a_file_that_others_can_write_is_ignored(run, tmp_path, name, mode, who):
    path = tmp_path / name
    path.chmod(stat.S_IMODE(path.stat().st_mode) | mode)
    kind = "the folder " if path.is_dir() else ""

    ignored(run("show.py"), f"{who} may write to {kind}{path} (fix: chmod go-w {path}")


def test_a_sticky_folder_is_safe_above_the_folder_and_not_for_the_file(run, tmp_path, project):
    project.parent.chmod(0o1777)
    above = run("show.py").expect_success()
    project.chmod(0o1777)

    assert (b"2\n", b"") == (above.out, above.err)
    ignored(run("show.py"), "every user may write to the folder ")


@as_root
@pytest.mark.parametrize("name", ["above/project/pyproject.toml", "above/project", "above"])
def test_a_file_that_another_user_owns_is_ignored(run, tmp_path, name):
    os.chown(tmp_path / name, OTHER, OTHER)

    ignored(run("show.py"), f"user {OTHER} owns {tmp_path / name}")


@as_root
def test_a_foreign_folder_cannot_drop_the_records_of_root(run, project):
    os.chown(project, OTHER, OTHER)
    (project / "pyproject.toml").write_text('[tool.logspool]\nsample = ["0.0"]\nqueue_dir = "queue"\n')
    os.chown(project / "pyproject.toml", OTHER, OTHER)
    (project / "log.py").write_text(
        "import logging, logspool\nlogspool.install()\nlogging.basicConfig(filename='app.log')\n"
        "for number in range(100): logging.error('%d', number)\n"
    )
    run("log.py").expect_success()

    assert 100 == len((project / "app.log").read_text().splitlines())


def test_links_are_followed_and_each_folder_on_the_way_is_checked(run, tmp_path, project):
    (project / "pyproject.toml").rename(tmp_path / "real.toml")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "link").symlink_to("../real.toml")
    (project / "pyproject.toml").symlink_to("../../open/./link")
    safe = run("show.py").expect_success()
    (tmp_path / "open").chmod(0o1777)

    assert b"" == safe.err
    ignored(run("show.py"), f"every user may write to the folder {tmp_path / 'open'}")


@as_root
def test_a_link_of_another_user_is_ignored(run, tmp_path, project):
    (project / "pyproject.toml").rename(tmp_path / "real.toml")
    (project / "pyproject.toml").symlink_to(tmp_path / "real.toml")
    os.chown(project / "pyproject.toml", OTHER, OTHER, follow_symlinks=False)

    ignored(run("show.py"), f"user {OTHER} owns {project / 'pyproject.toml'}")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_pipe_and_other_kinds_of_file_are_ignored_without_waiting(run, project, kind):
    path = project / "pyproject.toml"
    path.unlink()
    make = {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "device": lambda: path.symlink_to("/dev/zero")}
    make[kind]()

    ignored(run("show.py"), "it is not a regular file")


BROKEN = {
    "syntax": "[tool.logspool]\nflush_records = \n",
    "bytes": "[tool.logspool]\nfallback = '\udcff'\n",
    "depth": "[tool.logspool]\nsample = " + "[" * 100_000 + "\n",
    "table": "[tool]\nlogspool = 3\n",
    "length": "# logspool\n" * 100_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_project_never_stops_a_program(run, project, name):
    (project / "pyproject.toml").write_bytes(BROKEN[name].encode("utf-8", "surrogateescape"))

    ignored(run("show.py"), "")


def test_a_project_that_does_not_mention_logspool_is_not_reported(run, project):
    (project / "pyproject.toml").write_text("[tool.other]\nx =\n")
    project.chmod(0o777)
    outcome = run("show.py").expect_success()

    assert (b"100\n", b"") == (outcome.out, outcome.err)


def test_the_warning_is_one_line_for_every_folder_name(run, project):
    forged = project.parent / "x\nlogspool: all is well\x1b[2J"
    project.rename(forged)
    forged.chmod(0o777)

    ignored(run("show.py", folder=forged), "every user may write to the folder ")


def test_run_prints_the_warning_once_for_all_children(run, project):
    project.chmod(0o777)
    (project / "parent.py").write_text(
        "import subprocess, sys\nfor _ in range(3): subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
        "print(100)\n"
    )

    ignored(run("-m", "logspool", "run", "parent.py"), "every user may write to the folder ")


def test_a_file_that_the_user_names_is_read_from_anywhere(run, project):
    project.chmod(0o777)
    outcome = run("show.py", LOGSPOOL_CONFIG="pyproject.toml").expect_success()

    assert (b"2\n", b"") == (outcome.out, outcome.err)


def test_config_shows_and_checks_the_ignored_file(run, project):
    project.chmod(0o777)
    shown, checked = run("-m", "logspool", "config", "show"), run("-m", "logspool", "config", "check")

    assert (0, 1) == (shown.status, checked.status)
    assert b"pyproject.toml is ignored: every user may write to the folder " in shown.out
    assert b"pyproject.toml is ignored: every user may write to the folder " in checked.err
