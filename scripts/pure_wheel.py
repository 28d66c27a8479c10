"""Build the wheel without the native module, `py3-none-any`, and try it where nothing else is.

It has the same Python files as the other wheels. pip prefers a wheel with a native module that fits.
"""

import base64
import hashlib
import os
import re
import time
import zipfile
from pathlib import Path

import interpreters
import long_description
import terminal
import wheel_trials
from environment import ROOT, tomllib

DIST = ROOT / "dist"
RECORDS = wheel_trials.RECORDS

TRIAL = f"""
import contextlib, io, logging, pathlib, sys
import logspool
from logspool.__main__ import main

path = pathlib.Path(sys.argv[1])
said = io.StringIO()
with contextlib.redirect_stderr(said):
    logspool.install()
    logspool.install()
assert said.getvalue().startswith("logspool: native: no: ") and said.getvalue().count("\\n") == 1, said.getvalue()
logging.basicConfig(filename=path, level=logging.INFO, format="%(levelname)s %(name)s:%(lineno)d %(message)s")
log = logging.getLogger("trial")
for number in range({RECORDS}):
    log.info("record %d of %s", number, "trial")
assert logspool.flush()
lines = path.read_text().splitlines()
assert len(lines) == {RECORDS}, f"{{len(lines)}} lines instead of {RECORDS}"
assert all(getattr(logspool, name) for name in logspool.__all__)
assert not logspool.stats().native
with contextlib.redirect_stdout(said):
    assert main(["doctor"]) == 1
assert "native: no" in said.getvalue().splitlines()
assert sys.argv[2] not in logspool.__file__, f"imported from the checkout: {{logspool.__file__}}"
"""


def build() -> Path:
    """Write the wheel into dist/. The same sources and the same SOURCE_DATE_EPOCH give the same bytes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    package = ROOT / "python"
    files = {
        str(file.relative_to(package)): file.read_bytes()
        for file in sorted((package / "logspool").rglob("*"))
        if file.is_file() and file.suffix != ".so" and "__pycache__" not in file.parts
    }
    info = f"logspool-{version}.dist-info"
    files |= {f"{info}/licenses/{name}": (ROOT / name).read_bytes() for name in project["license-files"]}
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: logspool\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    # A zip file knows no earlier date.
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315_532_800))[:6]
    DIST.mkdir(exist_ok=True)
    wheel = DIST / f"logspool-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def metadata(project: "dict[str, object]", version: str) -> str:
    """Return the metadata of the package, from its row in pyproject.toml. Systems are left out: it runs on each."""
    rows = [
        ("Metadata-Version", "2.4"),
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("License-Expression", project["license"]),
        ("Requires-Python", project["requires-python"]),
        ("Keywords", ",".join(project["keywords"])),
        ("Author", ", ".join(author["name"] for author in project["authors"])),
        ("Description-Content-Type", "text/markdown"),
    ]
    rows += [("License-File", name) for name in project["license-files"]]
    rows += [("Project-URL", f"{name}, {url}") for name, url in project.get("urls", {}).items()]
    left_out = ("Operating System", "Programming Language :: Rust")
    rows += [("Classifier", name) for name in project["classifiers"] if not name.startswith(left_out)]
    for extra, requirements in project["optional-dependencies"].items():
        rows.append(("Provides-Extra", extra))
        rows += [("Requires-Dist", _of_extra(requirement, extra)) for requirement in requirements]
    head = "".join(f"{name}: {value}\n" for name, value in rows)
    return f"{head}\n{long_description.page()}"


def _of_extra(requirement: str, extra: str) -> str:
    name, semicolon, marker = requirement.partition(";")
    condition = f"({marker.strip()}) and extra == '{extra}'" if semicolon else f"extra == '{extra}'"
    return f"{name.strip()} ; {condition}"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def try_out(wheel: Path, interpreter: interpreters.Interpreter) -> None:
    """Log through the wheel in an empty environment, and check its output."""
    if any(re.search(r"\.(so|pyd)$", name) for name in zipfile.ZipFile(wheel).namelist()):
        raise terminal.fail(f"{wheel.name} has native code")
    with wheel_trials.empty_environment(interpreter) as place:
        wheel_trials.install(place, [wheel])
        (place.folder / "trial.py").write_text(TRIAL)
        place.run([f"{place.inside}/trial.py", f"{place.inside}/trial.log", str(ROOT / "python")], wheel.name)
        print(f"    {RECORDS} records found {place.description} of Python {interpreter.version}")
