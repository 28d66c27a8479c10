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
import rebuildable
import terminal
import wheel_contents
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
    wheel = _maturin(target, profile, words, ROOT, environment.target_folder(interpreter), variables)
    wheel_contents.complete(wheel, "logspool-python", target)
    return wheel


def build_service(target: Target | None) -> Path:
    """Build the wheel of the service into dist/."""
    wheel = _maturin(target, "release", [], SERVICE, ROOT / "target", {})
    wheel_contents.complete(wheel, "logspool-server", target)
    return wheel


def _maturin(
    target: Target | None, profile: str, words: list[str], folder: Path, built: Path, variables: dict[str, str]
) -> Path:
    """Build the wheel of the project in a folder; without a target cargo builds in `built`."""
    if target is not None:
        # One folder for all interpreters: of some 150 crates three depend on Python.
        built = BUILD / "target-wheels"
        words = [*words, "--zig", "--target", target.rust, "--compatibility", target.tag]
        variables = _joined(rebuildable.variables(), variables) | {"PATH": wheel_targets.path_with_zig()}
    maturin = str(environment.tools() / "bin" / "maturin")
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as out:
        command = [maturin, "build", "--profile", profile, "--compression-level", "9", "--quiet", *words, "--out", out]
        environment.run(command, folder, CARGO_TARGET_DIR=str(built), **variables)
        [wheel] = Path(out).glob("*.whl")
        DIST.mkdir(exist_ok=True)
        return Path(shutil.move(wheel, DIST / wheel.name))


def _joined(*several: dict[str, str]) -> dict[str, str]:
    """Join variables; options of one name follow each other."""
    names = dict.fromkeys(name for variables in several for name in variables)
    return {name: " ".join(variables[name] for variables in several if name in variables) for name in names}


def inspect(wheel: Path, target: Target, limit: int) -> None:
    """End the script where the wheel is too large, or asks for more than each system of its target has."""
    with tempfile.TemporaryDirectory(prefix="logspool-wheel-") as folder:
        archive = zipfile.ZipFile(wheel)
        [name] = filter(wheel_contents.is_binary, archive.namelist())
        binary = Path(archive.extract(name, folder))
        faults = wheel_targets.faults(binary, target)
        faults += [f"it names {named} of this machine" for named in rebuildable.folders_in(binary)]
        static = target.is_musl and not wheel_targets.needed(binary)
        if static:
            print("    it is static: it asks for no library")
        elif target.is_musl:
            library = wheel_trials.musl_library(target)
            if isinstance(library, str):
                print(f"    its symbols were not compared with those of musl: {library}")
            else:
                faults += [f"musl has no {symbol}" for symbol in wheel_targets.unknown_to(library, binary)]
        else:
            print(f"    it asks for GLIBC_{'.'.join(map(str, wheel_targets.newest_glibc(binary)))} at most")
    if faults:
        raise terminal.fail(f"{wheel.name} does not run everywhere on {target.name}: {'; '.join(faults)}")
    # auditwheel finds nothing to judge in a static program.
    if not static:
        print(f"    {wheel_targets.audit(wheel, target)}")
    size = wheel.stat().st_size
    if size > limit:
        raise terminal.fail(f"{wheel.name} has {size} bytes; at most {limit} are allowed")


def try_out(wheel: Path, interpreter: interpreters.Interpreter, target: Target | None) -> None:
    """Log through the wheel wherever it can be tried here."""
    if target is None or target.runs_here:
        with wheel_trials.empty_environment(interpreter) as place:
            wheel_trials.log_in(place, wheel)
            print(f"    {RECORDS} records found {place.description}")
    if target is None:
        return
    empty = wheel_trials.empty_musl if target.is_musl else wheel_trials.empty_debian
    with empty(target.processor, interpreter.tag) as place:
        if isinstance(place, str):
            print(f"    not tried in an empty system for {target.name}: {place}")
        else:
            wheel_trials.log_in(place, wheel)
            print(f"    {RECORDS} records found {place.description}")


def try_out_service(
    service: Path, library: Path | None, interpreter: interpreters.Interpreter, target: Target | None
) -> None:
    """Send records through both wheels wherever they can be tried here, and ask for their number."""
    if target is not None:
        with wheel_trials.bare_root(service, target) as place:
            if isinstance(place, str):
                print(f"    not tried where nothing else is: {place}")
            else:
                seconds = wheel_trials.serve_alone(place)
                print(f"    {RECORDS} records sent, stored and found by a query {place.description}: {seconds:.1f} s")
    if library is None or not (target is None or target.runs_here):
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
    parser.add_argument("--only-service", action="store_true", help="the wheel of the service, tried alone")
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
        for interpreter in [] if options.only_service else chosen:
            terminal.step(f"wheel for Python {interpreter.version} ({interpreter.tag}){system}")
            made.append(build(interpreter, target))
            long_description.put_into(made[-1])
            check(made[-1], target, LIMIT)
            try_out(made[-1], interpreter, target)
        if options.service or options.only_service:
            terminal.step(f"wheel of the service{system}")
            service = build_service(target)
            check(service, target, SERVICE_LIMIT)
            try_out_service(service, made[0] if made else None, chosen[0], target)


def check(wheel: Path, target: Target | None, limit: int) -> None:
    """End the script where a wheel is not complete or, if it is for others, does not fit them."""
    print(f"    {wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    if missing := wheel_contents.missing_parts(wheel):
        raise terminal.fail(f"{wheel.name} lacks {', '.join(missing)}")
    if target is not None:
        inspect(wheel, target, limit)


if __name__ == "__main__":
    main()
