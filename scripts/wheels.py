"""Build a wheel for each interpreter chosen and try it where nothing else is installed.

The trial happens in an empty environment in a temporary folder outside the checkout, so that neither the sources
nor an editable installation can stand in for a file that the wheel lacks.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import environment
import interpreters
import terminal
from environment import BUILD, ROOT

RECORDS = 10_000

TRIAL = f"""
import logging, pathlib, sys
import logspool
import logspool._native

path = pathlib.Path(sys.argv[1])
logging.basicConfig(filename=path, level=logging.INFO, format="%(levelname)s %(name)s:%(lineno)d %(message)s")
logspool.install()
log = logging.getLogger("trial")
for number in range({RECORDS}):
    log.info("record %d of %s", number, "trial")
logspool.flush()
lines = path.read_text().splitlines()
assert len(lines) == {RECORDS}, f"{{len(lines)}} lines instead of {RECORDS}"
wrong = [line for number, line in enumerate(lines) if not line.endswith(f" record {{number}} of trial")]
assert not wrong, f"out of order or damaged: {{wrong[:3]}}"
assert sys.argv[2] not in logspool.__file__, f"imported from the checkout: {{logspool.__file__}}"
"""


def build(interpreter: interpreters.Interpreter) -> Path:
    """Build the wheel of one interpreter into dist/."""
    maturin = str(environment.tools() / "bin" / "maturin")
    out = BUILD / "wheels" / interpreter.tag
    for old in out.glob("*.whl"):
        old.unlink()
    command = [maturin, "build", "--release", "--quiet", "-i", interpreter.executable, "--out", str(out)]
    variables = environment.build_variables(interpreter)
    environment.run(command, CARGO_TARGET_DIR=str(environment.target_folder(interpreter)), **variables)
    wheel = next(out.glob("*.whl"))
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    return wheel.replace(dist / wheel.name)


def missing_parts(wheel: Path) -> list[str]:
    """Return the parts of a complete wheel that this one lacks."""
    names = zipfile.ZipFile(wheel).namelist()
    parts = {
        "the native module": any(name.startswith("logspool/_native.") and name.endswith(".so") for name in names),
        "py.typed": "logspool/py.typed" in names,
        "the stubs of the native module": "logspool/_native.pyi" in names,
        "both licences": sum(Path(name).name.startswith("LICENSE") for name in names) >= 2,
    }
    return [part for part, there in parts.items() if not there]


def try_out(wheel: Path, interpreter: interpreters.Interpreter) -> None:
    """Install the wheel alone, log through it and count the lines."""
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as folder:
        python = str(Path(folder) / "venv" / "bin" / "python")
        made = [interpreter.executable, "-m", "venv", str(Path(folder) / "venv")]
        if subprocess.run(made, capture_output=True).returncode != 0:
            environment.run([*made, "--without-pip", "--clear"])
        install = ["-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
        environment.run([str(environment.tools() / "bin" / "python"), *install])
        script = Path(folder) / "trial.py"
        script.write_text(TRIAL)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOGSPOOL"))}
        command = [python, str(script), str(Path(folder) / "trial.log"), str(ROOT)]
        done = subprocess.run(command, cwd=folder, env=variables, timeout=120)
        if done.returncode != 0:
            raise terminal.fail(f"{wheel.name} does not work in an empty environment", done.returncode)


def main() -> None:
    """Build and try the wheels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="for every interpreter of the matrix")
    options = parser.parse_args()
    own = interpreters.probe(sys.executable)
    chosen = interpreters.chosen() if options.all or own is None else [own]
    for interpreter in chosen:
        terminal.step(f"wheel for Python {interpreter.version} ({interpreter.tag})")
        wheel = build(interpreter)
        missing = missing_parts(wheel)
        if missing:
            raise terminal.fail(f"{wheel.name} lacks {', '.join(missing)}")
        try_out(wheel, interpreter)
        size = wheel.stat().st_size / 1024
        print(f"    {wheel.relative_to(ROOT)} ({size:.0f} KiB): {RECORDS} records found where only it is installed")


if __name__ == "__main__":
    main()
