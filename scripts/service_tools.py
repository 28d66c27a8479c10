"""Make ready the programs of others that the tests of the service use: senders, and a browser for its page.

Python packages go into .venv-TAG-senders; packages of Node.js and a program in Go into build/senders.
rsyslog and Chromium are looked for on the PATH and where Debian puts them; root on a system with apt installs them.
For each program that cannot be had this says why. Tests that use it are skipped with that reason; with
LOGSPOOL_TOOLS=required, as in CI, they fail.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import debian
import environment
import interpreters
import terminal

SOURCES = environment.ROOT / "tests" / "service" / "senders"
FOLDER = environment.BUILD / "senders"


class Missing(Exception):
    """A program is not available; the text names it and the reason."""


def python() -> Path:
    """Return the interpreter that has the Python packages."""
    requirements = environment.read_requirements(environment.REQUIREMENTS / "senders.txt")
    with environment.locked("senders-python"):
        prepared = environment.Environment(interpreters.running(), "senders")
        try:
            prepared.ensure().install("senders", requirements)
        except SystemExit as failure:
            raise Missing(f"scripts/requirements/senders.txt: pip cannot install it (exit code {failure})") from failure
    return Path(prepared.python)


def node() -> tuple[str, Path]:
    """Return the program of Node.js, and the folder with its packages."""
    program, npm = _program("node"), _program("npm")
    folder = FOLDER / "node"
    with environment.locked("senders-node"):
        if _is_new(folder, SOURCES / "node"):
            terminal.note("installing the packages of Node.js into build/senders")
            for name in ("package.json", "package-lock.json"):
                shutil.copy(SOURCES / "node" / name, folder / name)
            _run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder, "npm")
            _stamp(folder, SOURCES / "node")
    return program, folder / "node_modules"


def docker() -> Path:
    """Return the program that sends as Docker's log driver `fluentd` does."""
    go = _program("go")
    folder = FOLDER / "docker"
    with environment.locked("senders-docker"):
        if _is_new(folder, SOURCES / "docker"):
            terminal.note("building tests/service/senders/docker into build/senders")
            _run([go, "build", "-o", str(folder / "docker"), "."], SOURCES / "docker", "go")
            _stamp(folder, SOURCES / "docker")
    return folder / "docker"


def go() -> Path:
    """Return the folder with the programs in Go that send for the survey."""
    program = _program("go")
    sources, folder = SOURCES / "go", FOLDER / "go"
    with environment.locked("senders-go"):
        if _is_new(folder, sources):
            terminal.note("building tests/service/senders/go into build/senders")
            _run([program, "build", "-o", f"{folder}/", "./..."], sources, "go")
            _stamp(folder, sources)
    return folder


def java() -> Path:
    """Return the folder with the programs in Java that send for the survey, and the libraries that they need."""
    compiler, maven = _program("javac"), _program("mvn")
    sources, folder = SOURCES / "java", FOLDER / "java"
    with environment.locked("senders-java"):
        if _is_new(folder, sources):
            terminal.note("building tests/service/senders/java into build/senders")
            options = ["-q", "-B", "-f", str(sources / "pom.xml"), f"-DoutputDirectory={folder / 'lib'}"]
            _run([maven, *options, "dependency:copy-dependencies"], folder, "mvn")
            files = [str(path) for path in sorted(sources.glob("*.java"))]
            _run([compiler, "-cp", f"{folder / 'lib'}/*", "-d", str(folder / "classes"), *files], folder, "javac")
            for path in sources.glob("*.xml"):
                shutil.copy(path, folder / "classes")
            _stamp(folder, sources)
    return folder


def version_of(package: str) -> str:
    """Return the version of a package of the survey, from the files that name it, or from its own program."""
    if found := _pinned(package):
        return found
    asked = {"Python": [str(python()), "--version"], "Go": [_program("go"), "version"]}
    command = asked.get(package) or ["dpkg-query", "-W", "-f", "${Version}", package]
    # The last one is for a package that is only unpacked.
    for each in (command, ["apt-cache", "show", "--no-all-versions", package]):
        done = subprocess.run(each, capture_output=True, text=True)
        if done.returncode == 0:
            break
    else:
        raise Missing(f"{package} has no version here")
    return re.search(r"\d[\w.]*\d", done.stdout.partition(":")[2] or done.stdout)[0]


def _pinned(package: str) -> "str | None":
    """Return the version that the project asks for, where it is one of a language's packages."""
    for requirement in environment.read_requirements(environment.REQUIREMENTS / "senders.txt"):
        name, _, version = requirement.partition("==")
        if name == package:
            return version
    npm = json.loads((SOURCES / "node" / "package.json").read_text())["dependencies"]
    required = re.search(rf"^\s+{re.escape(package)} v(\S+)$", (SOURCES / "go" / "go.mod").read_text(), re.MULTILINE)
    maven = re.search(
        rf"<artifactId>{re.escape(package)}</artifactId>\s*<version>([^<]+)<",
        (SOURCES / "java" / "pom.xml").read_text(),
    )
    return npm.get(package) or next((found[1] for found in (required, maven) if found), None)


def rsyslogd() -> str:
    """Return the program of rsyslog."""
    return program_of_debian("rsyslogd", "rsyslog")


def busybox() -> str:
    """Return the program of busybox."""
    return program_of_debian("busybox", "busybox")


def nginx() -> str:
    """Return the program of nginx."""
    return program_of_debian("nginx", "nginx-light")


def haproxy() -> str:
    """Return the program of haproxy."""
    return program_of_debian("haproxy", "haproxy")


def syslog_ng() -> tuple[list[str], dict[str, str]]:
    """Return the command of syslog-ng and its variables.

    Its package of Debian removes rsyslog, so it is unpacked with the libraries that it needs.
    """
    with contextlib.suppress(Missing):
        return [_program("syslog-ng")], {}
    folder = FOLDER / "syslog-ng"
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    with environment.locked("syslog-ng"):
        if not (folder / "usr/sbin/syslog-ng").exists():
            for package in ("syslog-ng-core", "libivykis0", "libnet1"):
                with tempfile.TemporaryDirectory() as name:
                    if not (found := debian.download(package, release, Path(name))):
                        raise Missing(f"there is no syslog-ng, and {package} of Debian cannot be downloaded")
                    subprocess.run(["dpkg-deb", "--extract", found, folder], check=True)
    libraries = folder / "usr/lib/syslog-ng"
    (modules,) = libraries.glob("3.*")
    paths = [str(libraries), *map(str, (folder / "usr/lib").glob("*-linux-gnu"))]
    command = [str(folder / "usr/sbin/syslog-ng"), f"--module-path={modules}"]
    return command, {"LD_LIBRARY_PATH": os.pathsep.join(paths)}


def omrelp() -> Path:
    """Return the module of rsyslog that sends with RELP, which root on Debian installs with its package."""
    rsyslogd()
    with environment.locked("debian"):
        if not (found := _module("omrelp")):
            debian.install("rsyslog-relp", "omrelp")
            found = _module("omrelp")
    if not found:
        raise Missing("rsyslog has no module omrelp (Debian: rsyslog-relp)")
    return found


def ossl() -> Path:
    """Return the module with which rsyslog receives over TLS, which root on Debian installs with its package."""
    rsyslogd()
    with environment.locked("debian"):
        if not (found := _module("lmnsd_ossl")):
            debian.install("rsyslog-openssl", "lmnsd_ossl")
            found = _module("lmnsd_ossl")
    if not found:
        raise Missing("rsyslog has no module lmnsd_ossl (Debian: rsyslog-openssl)")
    return found


def _module(name: str) -> "Path | None":
    places = [*Path("/usr/lib").glob(f"*/rsyslog/{name}.so"), *Path("/usr").glob(f"lib*/rsyslog/{name}.so")]
    return next(iter(places), None)


def chromium() -> str:
    """Return the program of a browser that the DevTools protocol drives: Chromium, or Chrome."""
    others = filter(None, map(shutil.which, ("chromium-browser", "google-chrome")))
    return next(others, None) or program_of_debian("chromium", "chromium")


def logger() -> str:
    """Return the program `logger` of util-linux; others know other options."""
    program = _program("logger")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if "util-linux" not in version:
        raise Missing(f"{program} is not that of util-linux")
    return program


def curl() -> str:
    """Return the program `curl`."""
    return _program("curl")


def program_of_debian(name: str, package: str) -> str:
    """Return a program, which root on Debian installs with its package."""
    with environment.locked("debian"):
        try:
            return _program(name)
        except Missing:
            debian.install(package, name)
            return _program(name)


def _program(name: str) -> str:
    # Debian has its daemons in folders that are not on the PATH of a user.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    if not found:
        raise Missing(f"there is no program {name} on the PATH")
    return found


def _run(command: list[str], folder: Path, name: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{name} exited with {done.returncode}: {done.stderr.strip()[-500:]}")


def _digest(sources: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _is_new(folder: Path, sources: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".stamp"
    return not stamp.exists() or stamp.read_text() != _digest(sources)


def _stamp(folder: Path, sources: Path) -> None:
    (folder / ".stamp").write_text(_digest(sources))


TOOLS: dict[str, Callable[[], object]] = {
    "Python packages": python,
    "Node.js": node,
    "Docker's client": docker,
    "programs in Go": go,
    "rsyslog": rsyslogd,
    "omrelp": omrelp,
    "logger": logger,
    "curl": curl,
    "a browser": chromium,
}


#: What only `make test-senders` needs.
MORE_TOOLS: dict[str, Callable[[], object]] = {
    "programs in Java": java,
    "busybox": busybox,
    "nginx": nginx,
    "haproxy": haproxy,
    "syslog-ng": syslog_ng,
}


def main() -> None:
    """Install all programs, and report the missing ones."""
    for name, tool in {**TOOLS, **(MORE_TOOLS if "--all" in sys.argv else {})}.items():
        try:
            tool()
        except Missing as missing:
            terminal.note(terminal.paint(f"tests with {name} are skipped: {missing}", "yellow"))


if __name__ == "__main__":
    main()
