"""Build a wheel for each interpreter chosen and try it where nothing else is installed.

`--pure` builds the wheel `py3-none-any` in place of these.
Without `--target` a wheel is for this machine. With it, zig links it with the oldest C library that the target has, so
that it runs on every Linux since 2014; it is inspected, and tried wherever this machine can.
"""

import argparse
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import environment
import interpreters
import long_description
import pure_wheel
import terminal
import wheel_targets
import wheel_trials
from environment import BUILD, ROOT
from wheel_targets import TARGETS, Target
from wheel_trials import RECORDS

DIST = ROOT / "dist"
SERVICE = ROOT / "packaging" / "service"

#: The size in bytes that no wheel of a target may have: 4 and 8 MiB.
LIMIT, SERVICE_LIMIT = 4 << 20, 8 << 20


def build(interpreter: interpreters.Interpreter, target: Target | None) -> Path:
    """Build the wheel of one interpreter into dist/."""
    # maturin knows the Pythons of other targets by their names.
    here = target is None or target.runs_here
    words = ["-i", interpreter.executable if here else f"python{interpreter.tag}"]
    profile = "release" if target is None else "wheel"
    variables = environment.build_variables(interpreter)
    if target is not None:
        variables |= wheel_targets.SMALL | wheel_targets.unwinder(target)
    return _maturin(target, profile, words, ROOT, environment.target_folder(interpreter), variables)


def build_service(target: Target | None) -> Path:
    """Build the wheel of the service into dist/."""
    return _maturin(target, "release", [], SERVICE, ROOT / "target", {})


def _maturin(
    target: Target | None, profile: str, words: list[str], folder: Path, built: Path, variables: dict[str, str]
) -> Path:
    """Build the wheel of the project in a folder; without a target cargo builds in `built`."""
    if target is not None:
        # One folder for all interpreters: of some 150 crates three depend on Python.
        built = BUILD / "target-wheels"
        words = [*words, "--zig", "--target", target.rust, "--compatibility", target.tag]
        variables = variables | {"PATH": wheel_targets.path_with_zig()}
    maturin = str(environment.tools() / "bin" / "maturin")
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as out:
        command = [maturin, "build", "--profile", profile, "--compression-level", "9", "--quiet", *words, "--out", out]
        environment.run(command, folder, CARGO_TARGET_DIR=str(built), **variables)
        [wheel] = Path(out).glob("*.whl")
        DIST.mkdir(exist_ok=True)
        return Path(shutil.move(wheel, DIST / wheel.name))


def missing_parts(wheel: Path) -> list[str]:
    """Return the parts of a complete wheel that this one lacks."""
    names = zipfile.ZipFile(wheel).namelist()
    parts = {"both licences": sum(Path(name).name.startswith("LICENSE") for name in names) >= 2}
    if wheel.name.startswith("logspool_service-"):
        parts["the program"] = any(name.endswith(".data/scripts/logspool") for name in names)
    else:
        parts["the native module"] = any(_is_binary(name) for name in names)
        parts["py.typed"] = "logspool/py.typed" in names
        parts["the stubs of the native module"] = "logspool/_native.pyi" in names
    return [part for part, there in parts.items() if not there]


def inspect(wheel: Path, target: Target, limit: int) -> None:
    """End the script where the wheel is too large, or asks for more than each system of its target has."""
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as folder:
        archive = zipfile.ZipFile(wheel)
        [name] = filter(_is_binary, archive.namelist())
        binary = Path(archive.extract(name, folder))
        faults = wheel_targets.faults(binary, target)
        if target.is_musl:
            library = wheel_trials.musl_library(target)
            if isinstance(library, str):
                print(f"    its symbols were not compared with those of musl: {library}")
            else:
                faults += [f"musl has no {symbol}" for symbol in wheel_targets.unknown_to(library, binary)]
        else:
            print(f"    it asks for GLIBC_{'.'.join(map(str, wheel_targets.newest_glibc(binary)))} at most")
    if faults:
        raise terminal.fail(f"{wheel.name} does not run everywhere on {target.name}: {'; '.join(faults)}")
    print(f"    {wheel_targets.audit(wheel, target)}")
    size = wheel.stat().st_size
    if size > limit:
        raise terminal.fail(f"{wheel.name} has {size} bytes; at most {limit} are allowed")


def _is_binary(name: str) -> bool:
    native = name.startswith("logspool/_native.") and name.endswith(".so")
    return native or name.endswith(".data/scripts/logspool")


def try_out(wheel: Path, interpreter: interpreters.Interpreter, target: Target | None) -> None:
    """Log through the wheel wherever it can be tried here."""
    if target is None or target.runs_here:
        with wheel_trials.empty_environment(interpreter) as place:
            wheel_trials.log_in(place, wheel)
            print(f"    {RECORDS} records found {place.description}")
    if target is None:
        return
    if target.is_musl:
        print("    not tried: no CPython for musl can be had here, Debian has none")
        return
    with wheel_trials.empty_debian(target.processor, interpreter.tag) as place:
        if isinstance(place, str):
            print(f"    not tried in an empty Debian for {target.processor}: {place}")
        else:
            wheel_trials.log_in(place, wheel)
            print(f"    {RECORDS} records found {place.description}")


def try_out_service(service: Path, library: Path, interpreter: interpreters.Interpreter, target: Target | None) -> None:
    """Send records through both wheels wherever they can be tried here, and ask for their number."""
    if target is not None and not target.runs_here:
        print(f"    not tried: programs for {target.name} do not run here")
        return
    with wheel_trials.empty_environment(interpreter) as place:
        wheel_trials.serve_in(place, [library, service], "venv/bin/logspool")
        print(f"    {RECORDS} records sent, stored and found by a query {place.description}")
    if target is None:
        return
    with wheel_trials.empty_debian(target.processor, interpreter.tag) as place:
        if isinstance(place, str):
            print(f"    not tried in an empty Debian: {place}")
        else:
            wheel_trials.serve_in(place, [library, service], "site/bin/logspool")
            print(f"    {RECORDS} records sent, stored and found by a query {place.description}")


def build_pure(on_all: bool) -> None:
    """Build the wheel without a native module, and try it with the running interpreter or each of the matrix."""
    terminal.step("wheel for any system, without a native module")
    wheel = pure_wheel.build()
    print(f"    {wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    own = interpreters.probe(sys.executable)
    for interpreter in interpreters.chosen() if on_all or own is None else [own]:
        pure_wheel.try_out(wheel, interpreter)


def main() -> None:
    """Build and try the wheels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="for every interpreter of the matrix")
    names = [*TARGETS, "all"]
    parser.add_argument("--target", nargs="+", choices=names, default=[], metavar="TARGET", help=", ".join(names))
    parser.add_argument("--service", action="store_true", help="the wheel of the service too, tried with the first one")
    parser.add_argument("--pure", action="store_true", help="only the wheel without a native module, for any system")
    options = parser.parse_args()
    if options.pure:
        build_pure(options.all)
        return
    targets = list(TARGETS.values()) if "all" in options.target else [TARGETS[name] for name in options.target]
    for target in targets:
        if lacks := wheel_targets.missing(target):
            raise terminal.fail(lacks)
    own = interpreters.probe(sys.executable)
    chosen = interpreters.chosen() if options.all or own is None else [own]
    for target in targets or [None]:
        system = f" and {target.name}" if target else ""
        made = []
        for interpreter in chosen:
            terminal.step(f"wheel for Python {interpreter.version} ({interpreter.tag}){system}")
            made.append(build(interpreter, target))
            long_description.put_into(made[-1])
            check(made[-1], target, LIMIT)
            try_out(made[-1], interpreter, target)
        if options.service:
            terminal.step(f"wheel of the service{system}")
            service = build_service(target)
            check(service, target, SERVICE_LIMIT)
            try_out_service(service, made[0], chosen[0], target)


def check(wheel: Path, target: Target | None, limit: int) -> None:
    """End the script where a wheel is not complete or, if it is for others, does not fit them."""
    print(f"    {wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    if missing := missing_parts(wheel):
        raise terminal.fail(f"{wheel.name} lacks {', '.join(missing)}")
    if target is not None:
        inspect(wheel, target, limit)


if __name__ == "__main__":
    main()
