"""Build the receivers that tests/receivers sends to: VictoriaLogs, the OpenTelemetry Collector, Loki and a GELF reader.

Go downloads their sources as modules of the versions below and checks them against `go.sum`, or against Go's database
of checksums. The programs go into build/receivers; a stamp beside each names its sources.
The first build takes some 15 minutes of one processor, 10 of them for Loki.

The collector is made by its own builder from tests/receivers/collector/manifest.yaml. The builder only writes the
sources: its `go mod tidy` would also download the imports of each module's tests, and some cannot be downloaded.
Loki replaces some modules of its own, which Go ignores in a module that another one requires. So tests/receivers/loki
is a module with the same replacements.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import environment
import terminal

SOURCES = environment.ROOT / "tests" / "receivers"
FOLDER = environment.BUILD / "receivers"

VICTORIA_LOGS = "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@v1.52.1"
COLLECTOR_BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.165.0"
LOKI = "github.com/grafana/loki/v3"

#: A build by Go takes long, and should not slow down other processes.
NICENESS = 10


class Missing(Exception):
    """A receiver cannot be built; the text says why."""


def victoria_logs() -> Path:
    """Return the program of VictoriaLogs."""

    def build(program: Path) -> None:
        _go(["install", VICTORIA_LOGS], FOLDER, GOBIN=str(program.parent))

    return _built("victoria-logs", [VICTORIA_LOGS], build)


def collector() -> Path:
    """Return the program of an OpenTelemetry Collector with the receivers of the manifest."""
    sources = SOURCES / "collector"

    def build(program: Path) -> None:
        folder = FOLDER / "collector"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        _go(["install", COLLECTOR_BUILDER], FOLDER, GOBIN=str(FOLDER))
        manifest = ["--config", str(sources / "manifest.yaml"), "--skip-strict-versioning"]
        _run([str(FOLDER / "builder"), *manifest, "--skip-get-modules", "--skip-compilation"], folder)
        for name in ("go.mod", "go.sum"):
            shutil.copy(sources / name, folder / name)
        _go(["build", "-o", str(program), "."], folder)

    return _built("otelcol", [COLLECTOR_BUILDER, *_files(sources)], build)


def graylog_reader() -> Path:
    """Return the program that reads GELF with Graylog's library for Go."""
    sources = SOURCES / "gelf"

    def build(program: Path) -> None:
        _go(["build", "-o", str(program), "."], sources)

    return _built("graylog-reader", _files(sources), build)


def loki() -> Path:
    """Return the program of Grafana Loki."""
    sources = SOURCES / "loki"

    def build(program: Path) -> None:
        folder = FOLDER / "loki-module"
        folder.mkdir(exist_ok=True)
        shutil.copy(sources / "go.mod", folder / "go.mod")
        module = json.loads(_go(["mod", "download", "-json", LOKI], folder))
        # The checksums of its requirements; Go adds the checksums of its modules that are not replaced here.
        (folder / "go.sum").write_bytes((Path(module["Dir"]) / "go.sum").read_bytes())
        _go(["build", "-mod=mod", "-o", str(program), f"{LOKI}/cmd/loki"], folder)

    return _built("loki", _files(sources), build)


def _built(name: str, facts: Sequence[str], build: Callable[[Path], None]) -> Path:
    """Return a program; build it if it is missing or was built from other sources."""
    program, stamp = FOLDER / name, FOLDER / f".{name}.stamp"
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    with environment.locked(f"receiver-{name}"):
        if not (program.exists() and stamp.exists() and stamp.read_text() == digest):
            if not shutil.which("go"):
                raise Missing("there is no program go on the PATH: install Go 1.26 or later from https://go.dev/dl")
            FOLDER.mkdir(parents=True, exist_ok=True)
            terminal.note(f"building {name} into build/receivers: minutes")
            build(program)
            stamp.write_text(digest)
    return program


def _files(folder: Path) -> list[str]:
    return [f"{path.name}\n{path.read_text()}" for path in sorted(folder.iterdir())]


def _go(arguments: Sequence[str], folder: Path, **variables: str) -> str:
    # Without C these programs need no compiler but Go's, and run on any Linux.
    variables |= {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -ldflags=-s"}
    return _run(["go", *arguments], folder, **variables)


def _run(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        ["nice", "-n", str(NICENESS), *command],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Missing(f"{' '.join(command[:2])} exited with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


TOOLS: tuple[Callable[[], Path], ...] = (victoria_logs, collector, graylog_reader, loki)


def main() -> None:
    """Build all of them; the script ends if one cannot be built."""
    for tool in TOOLS:
        try:
            tool()
        except Missing as missing:
            raise terminal.fail(f"{tool.__name__}: {missing}") from missing


if __name__ == "__main__":
    main()
