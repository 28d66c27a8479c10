"""Run the loom models, then prove that each model guards something.

The sources name each ordering that matters, and everything else that a model guards. With a name in
`LOGSPOOL_WEAKEN` the models run without that guard, and at least one model has to fail. If all models pass, this script
fails.
"""

import argparse
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path

import terminal
from environment import BUILD, ROOT

# The crates with models; the models of a crate also guard the orderings of the crates below it.
MODELLED = ("logspool-sys", "logspool-lanes", "logspool-pool", "logspool")
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED", re.MULTILINE)
NAME = re.compile(r'\b(?:guarded|full_fence|is_weakened)\(\s*"([^"]+)"')

# Chosen: a weakened model fails within seconds; a model that searches for minutes counts as passed.
SECONDS_PER_NAME = 300


def weakened_names() -> dict[str, str]:
    """Return every name that the sources can be weakened by, without comment lines, and the crate that has it."""
    found: dict[str, str] = {}
    for crate in MODELLED:
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            code = (line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
            found |= {name: crate for line in code for name in NAME.findall(line)}
    return dict(sorted(found.items()))


def build(crate: str) -> Path:
    """Compile the models of a crate."""
    command = ["cargo", "rustc", "-p", crate, "--lib", "--no-default-features", "--profile", "test"]
    command += ["--message-format=json", "--quiet"]
    variables = {
        **os.environ,
        "RUSTFLAGS": "--cfg loom",
        "CARGO_TARGET_DIR": str(BUILD / "target-loom"),
        "CARGO_PROFILE_TEST_OPT_LEVEL": "3",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "3",
    }
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        for message in messages:
            print(message.get("message", {}).get("rendered") or "", end="")
        raise terminal.fail(f"the models of {crate} do not compile", done.returncode)
    return Path(next(message["executable"] for message in messages if message.get("executable")))


def run_models(program: Path) -> int:
    """Run all models of a crate unchanged; return the exit code. A crate without models is a failure."""
    listed = subprocess.run([program, "models", "--list"], capture_output=True, text=True).stdout
    count = sum(line.endswith(": test") for line in listed.splitlines())
    if count == 0:
        terminal.fail("no model found: a green run would prove nothing")
        return 1
    terminal.note(f"{count} models in {program.name}")
    return subprocess.run([program, "models"]).returncode


def first_red(program: Path, name: str) -> str | None:
    """Run the models without `name` until one fails, and return its name; None if all pass or the time is up."""
    variables = {**os.environ, "RUST_BACKTRACE": "0", "LOGSPOOL_WEAKEN": name}
    models = subprocess.Popen([program, "models"], env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert models.stdout is not None
    deadline = time.monotonic() + SECONDS_PER_NAME
    output, red = b"", None
    while red is None and time.monotonic() < deadline:
        if select.select([models.stdout], [], [], 0.2)[0]:
            chunk = os.read(models.stdout.fileno(), 65536)
            if not chunk:
                models.wait(timeout=10)
                break
            output += chunk
            red = next(iter(FAILED.findall(output.decode(errors="replace"))), None)
    if red is None and models.poll() not in (None, 0):
        red = f"the test program itself (exit code {models.returncode})"
    models.kill()
    models.wait()
    return red


def main() -> None:
    """Run the models as they are, then weakened one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these weakened orderings; default: all")
    options = parser.parse_args()
    terminal.step("loom: the models as they are")
    programs = {crate: build(crate) for crate in MODELLED}
    for program in programs.values():
        code = run_models(program)
        if code != 0:
            raise terminal.fail("a model fails with the orderings as they are", code)
    names = weakened_names()
    unknown = set(options.names) - set(names)
    if unknown:
        raise terminal.fail(f"no such weakened ordering: {', '.join(unknown)}", 2)
    if not names:
        raise terminal.fail("the sources name no ordering that can be weakened")
    terminal.step(f"loom: {len(options.names or names)} weakened orderings, each must turn a model red")
    green = []
    for name in options.names or names:
        begin = time.monotonic()
        # The models beside an ordering guard it, as a rule.
        likely_first = sorted(programs, key=lambda crate: crate != names[name])
        red = next(filter(None, (first_red(programs[crate], name) for crate in likely_first)), None)
        seconds = f"{time.monotonic() - begin:5.1f} s"
        if red:
            print(f"    {terminal.paint('red  ', 'green')} {seconds}  {name}: {red}", flush=True)
        else:
            green.append(name)
            print(f"    {terminal.paint('GREEN', 'bold', 'red')} {seconds}  {name}: no model notices", flush=True)
    if green:
        raise terminal.fail(f"no model guards: {', '.join(green)}")


if __name__ == "__main__":
    main()
