"""Run the checks in their full sizes and keep their counts.

`bench/runs/DATE-MACHINE/checks/STEP.json` holds the commands, seed, commit, exit codes, seconds and counts of a step;
`summary.md` beside them is written again from all of them after each step. A step that fails ends the run.
With `--continue` a step continues after the commands that passed in its last run, with its seed and in its folder: long
steps can be done in parts. Nothing is timed here, so another machine may continue; the
file has the processor of each command.
"""

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import interpreters
import terminal
from environment import BUILD, ROOT, ensure_for_tests

sys.path.insert(0, str(ROOT / "bench"))

import machine

SUITE_RUNS = 20
FORMAT_CASES = 1_000_000
NATIVE_FORMAT_CASES = 12_000_000
# Hypothesis remembers all cases of a run; each part starts without them, and a run can continue after any part.
PROPERTY_PARTS = 10
CORE_KILLS = 1_000
SHARED_FILE_KILLS = 300
SPOOL_KILLS = 300
SERVICE_CLIENT_KILLS = 1_000
CRASH_STATES = 100_000_000
#: The parts of the crash states; a run can continue after any part.
CRASH_PARTS = 20
FUZZ_ROUNDS = 20_000
FUZZ_SECONDS = 600
SERVICE_KILLS = 50
SEQUENCES = 400
TRACEBACKS = 20_000

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"

FUZZ_TARGET = re.compile(r'^name = "([a-z_]+)"$', re.MULTILINE)

# A line of output that matches this is kept as a count.
COUNTED = re.compile(
    r"(\d[\d,]* (passed|failed|skipped|xfailed|kills|lines|records|rounds|cases|sequences|executions)"
    r"|\d (crash states( of|:)|changed bytes|lengths)"
    r"|test result:|LOGSPOOL_SEED=|missing|panics|differences)"
)


@dataclass
class Command:
    """One command of a step and, once it ran, its result."""

    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    #: Label of the JUnit report that the command writes, if it is a run of pytest.
    report: str | None = None
    code: int | None = None
    seconds: float = 0.0
    counts: list[str] = field(default_factory=list)
    commit: str = ""
    processor: str = ""


def pytest(interpreter: interpreters.Interpreter, label: str, *arguments: str, **variables: str) -> Command:
    """Make the command that runs pytest on an interpreter."""
    script = [sys.executable, str(ROOT / "scripts" / "run_pytest.py"), "--python", interpreter.executable]
    report = f"pytest-{label}-{interpreter.tag}.xml"
    return Command([*script, "--label", label, "--", *arguments], variables, report)


def cargo_test(*names: str, crate: str = "logspool", **variables: str) -> Command:
    """Make the command that runs integration tests of the core in release mode."""
    wanted = [word for name in names for word in ("--test", name)]
    return Command(["cargo", "test", "--release", "-p", crate, *wanted, "--", "--nocapture"], variables)


def faults(seed: int) -> Iterator[Command]:
    """Kills, forks, frozen outputs and write errors, with the package."""
    full = {"LOGSPOOL_FAULTS": "full", "LOGSPOOL_SEED": str(seed)}
    # Thousands of kills; they alone take twenty minutes.
    kills = "tests/e2e/test_killed_at_calls.py"
    yield pytest(interpreters.running(), "faults-kills", kills, "--timeout=3600", **full)
    others = ["tests/e2e", f"--ignore={kills}", "-m", "not quiet", "--timeout=3600"]
    yield pytest(interpreters.running(), "faults", *others, **full)
    yield pytest(interpreters.running(), "faults-quiet", "tests/e2e", "-m", "quiet", LOGSPOOL_TEST_WORKERS="0", **full)


def core_kills(seed: int) -> Iterator[Command]:
    """SIGKILL and recovery of the core alone, of one process and of several, and segments with damaged bytes."""
    yield cargo_test("recover_killed", LOGSPOOL_KILLS=str(CORE_KILLS), LOGSPOOL_SEED=str(seed))
    yield cargo_test("recover_steps")
    yield cargo_test("several_processes", LOGSPOOL_KILLS=str(SHARED_FILE_KILLS), LOGSPOOL_SEED=str(seed))
    yield cargo_test("rotating_compressed", LOGSPOOL_KILLS=str(SHARED_FILE_KILLS), LOGSPOOL_SEED=str(seed))
    hostile = {"LOGSPOOL_FUZZ": str(FUZZ_ROUNDS), "LOGSPOOL_FAULTS": "full"}
    yield cargo_test("recover_hostile", LOGSPOOL_SEED=str(seed), **hostile)
    yield cargo_test("spool_real", crate="logspool-spool", LOGSPOOL_KILLS=str(CORE_KILLS), LOGSPOOL_SEED=str(seed))
    yield cargo_test("spooled_killed", LOGSPOOL_KILLS=str(SPOOL_KILLS), LOGSPOOL_SEED=str(seed))
    yield cargo_test("recover_service", LOGSPOOL_KILLS=str(SERVICE_CLIENT_KILLS), LOGSPOOL_SEED=str(seed))


def crash_states(seed: int) -> Iterator[Command]:
    """Crashes of the spool on a simulated disk, every damaged byte of a segment, and every planted defect."""
    proof = ["cargo", "test", "--release", "-p", "logspool-spool", "--lib"]
    shown = ["--", "--nocapture"]
    yield Command([*proof, "proof::", *shown], {"LOGSPOOL_SEED": str(seed), "LOGSPOOL_FAULTS": "full"})
    for part in range(CRASH_PARTS):
        # A run has hundreds of states, each of which belongs to one part.
        first = seed + part * CRASH_STATES
        states = {"LOGSPOOL_CRASH_STATES": str(CRASH_STATES // CRASH_PARTS), "LOGSPOOL_SEED": str(first)}
        yield Command([*proof, "random_programs", *shown], states)


def formatting(seed: int) -> Iterator[Command]:
    """Templates and formatters against each interpreter's own, a million cases each, in the core alone."""
    yield Command(["cargo", "build", "--release", "-p", "logspool-record", "--example", "percent_lines"])
    binary = ROOT / "target" / "release" / "examples" / "percent_lines"
    for interpreter in interpreters.chosen():
        for name in ("differential_percent", "differential_formatter"):
            script = ROOT / "tests" / "python" / "format" / f"{name}.py"
            options = ["--binary", str(binary), "--cases", str(FORMAT_CASES // 2), "--seed", str(seed)]
            yield Command([interpreter.executable, str(script), *options])


def native_formatting(seed: int) -> Iterator[Command]:
    """Random templates and values against {fmt} (Debian's libfmt) and against Rust's `format!`."""
    cases = {"LOGSPOOL_FORMAT_CASES": str(NATIVE_FORMAT_CASES), "LOGSPOOL_SEED": str(seed)}
    yield Command([sys.executable, str(ROOT / "scripts" / "fmt_tools.py")])
    for name in ("fmt_differences", "rust_differences"):
        yield cargo_test(name, crate="logspool-record", **cases)


def properties(seed: int) -> Iterator[Command]:
    """Whole calls of the installed package against stock logging, the same million cases on all interpreters."""
    pythons = [ensure_for_tests(interpreter).python for interpreter in interpreters.chosen()]
    test = "tests/python/formatting/test_formatting.py"
    for part in range(PROPERTY_PARTS):
        variables = {
            "LOGSPOOL_EXAMPLES": str(FORMAT_CASES // PROPERTY_PARTS),
            "LOGSPOOL_EXAMPLE_PYTHONS": os.pathsep.join(pythons),
        }
        options = [test, f"--hypothesis-seed={seed + part}", "--timeout=36000"]
        yield pytest(interpreters.running(), "properties", *options, **variables)


def tracebacks(seed: int) -> Iterator[Command]:
    """Texts of generated exceptions against the module `traceback` of each interpreter."""
    test = "tests/python/tracebacks"
    for interpreter in interpreters.chosen():
        variables = {"LOGSPOOL_TRACEBACKS": str(TRACEBACKS), "LOGSPOOL_SEED": str(seed)}
        yield pytest(interpreter, "tracebacks", test, "--timeout=3600", **variables)


def rotation(seed: int) -> Iterator[Command]:
    """Rotating and watched sinks against the handlers of each interpreter."""
    yield Command(["cargo", "build", "--release", "-p", "logspool", "--example", "rotate_lines"])
    script = ROOT / "tests" / "python" / "sinks" / "compare.py"
    example = ROOT / "target" / "release" / "examples" / "rotate_lines"
    options = [f"--example={example}", f"--sequences={SEQUENCES}", f"--seed={seed}"]
    for interpreter in interpreters.chosen():
        yield Command([interpreter.executable, str(script), *options])


def service(seed: int) -> Iterator[Command]:
    """Kills of the service under clients, of its writer of SQLite, and of PostgreSQL, and rounds of all faults."""
    full = {"LOGSPOOL_FAULTS": "full", "LOGSPOOL_SEED": str(seed)}
    # They take minutes, and no other test may slow down their pace.
    alone = {"away": "tests/service/test_store_away.py", "rounds": "tests/service/test_fault_rounds.py"}
    ignored = [f"--ignore={path}" for path in alone.values()]
    yield pytest(interpreters.running(), "service", "tests/service", *ignored, "--timeout=3600", **full)
    for label, path in alone.items():
        yield pytest(interpreters.running(), label, path, "--timeout=7200", LOGSPOOL_TEST_WORKERS="0", **full)
    tests = ["sqlite_killed::", "postgres_crashes::"]
    command = ["cargo", "test", "--release", "-p", "logspool-server", "--test", "all", "--", "--nocapture", *tests]
    yield Command(command, {"LOGSPOOL_KILLS": str(SERVICE_KILLS)})


def fuzz(seed: int) -> Iterator[Command]:
    """Each decoder of the service with input that no program sends."""
    targets = FUZZ_TARGET.findall((ROOT / "fuzz" / "Cargo.toml").read_text())
    for target in targets:
        variables = {"PYTHON": sys.executable, "LOGSPOOL_SEED": str(seed)}
        yield Command([str(ROOT / "scripts" / "fuzz.sh"), str(FUZZ_SECONDS), target], variables)


def suite(seed: int) -> Iterator[Command]:
    """Run the suite repeatedly; a test that fails once is flaky and must be fixed."""
    for number in range(SUITE_RUNS):
        yield Command(["make", "--no-print-directory", "test-rust"])
        variables = {"LOGSPOOL_SEED": str(seed + number), "LOGSPOOL_KINDS": "all"}
        yield pytest(interpreters.running(), "suite", "tests/python", **variables)


def additions(_seed: int) -> Iterator[Command]:
    """The contract tests with the additions that CONTRIBUTING.md shows."""
    variables = {"LOGSPOOL_ADDITIONS": "compile"}
    yield pytest(interpreters.running(), "additions", "tests/python/surface/test_additions.py", **variables)


def pure(_seed: int) -> Iterator[Command]:
    """All tests that apply to a copy without the native module."""
    yield Command([sys.executable, str(ROOT / "scripts" / "pure_tests.py"), "--all"])


def receivers(_seed: int) -> Iterator[Command]:
    """Sinks against VictoriaLogs, an OpenTelemetry Collector and Loki, which are built where they are missing."""
    yield Command([sys.executable, str(ROOT / "scripts" / "receiver_tools.py")])
    yield pytest(interpreters.running(), "receivers", "tests/receivers", LOGSPOOL_TOOLS="required")


def senders(_seed: int) -> Iterator[Command]:
    """All senders of the page against the service; a sender that arrives in another way than recorded fails."""
    yield Command([sys.executable, str(ROOT / "scripts" / "service_tools.py"), "--all"])
    variables = {"LOGSPOOL_SENDERS": "all", "LOGSPOOL_TOOLS": "required"}
    yield pytest(interpreters.running(), "senders", "tests/service/senders/test_survey.py", **variables)


def publication(_seed: int) -> Iterator[Command]:
    """All that a release publishes beside wheels: the site, without a warning, the crates, and the workflows."""
    yield Command(["make", "--no-print-directory", "site"])
    yield Command(["cargo", "publish", "--workspace", "--dry-run", "--allow-dirty"])
    yield Command(["go", "run", ACTIONLINT, "-no-color"])


def wheels(_seed: int) -> Iterator[Command]:
    """Wheels of library and service for each target and interpreter, tried where nothing else is."""
    yield Command([sys.executable, str(ROOT / "scripts" / "wheels.py"), "--all", "--target", "all", "--service"])


def packages(_seed: int) -> Iterator[Command]:
    """The packages and images of the service, made of the programs in the wheels, and tried."""
    for processor in ("x86_64", "aarch64"):
        yield Command([sys.executable, str(ROOT / "scripts" / "packages.py"), "--processor", processor])


def sanitize(_seed: int) -> Iterator[Command]:
    """Run the tests of the core under the sanitizers."""
    yield Command(["make", "--no-print-directory", "sanitize"])


def loom(_seed: int) -> Iterator[Command]:
    """Run the concurrency models, as they are and weakened."""
    yield Command(["make", "--no-print-directory", "loom"])


STEPS: dict[str, Callable[[int], Iterator[Command]]] = {
    "faults": faults,
    "core-kills": core_kills,
    "crash-states": crash_states,
    "formatting": formatting,
    "native-formatting": native_formatting,
    "rotation": rotation,
    "tracebacks": tracebacks,
    "loom": loom,
    "wheels": wheels,
    "publication": publication,
    "pure": pure,
    "packages": packages,
    "sanitize": sanitize,
    "service": service,
    "receivers": receivers,
    "senders": senders,
    "fuzz": fuzz,
    "properties": properties,
    "suite": suite,
    "additions": additions,
}

#: Steps whose commands have a processor each and nothing in common: as many at a time as there are processors.
SIDE_BY_SIDE = ("fuzz",)


def run(command: Command, log: Path) -> None:
    """Run a command with its output on the terminal and in a log; note its result."""
    began = time.monotonic()
    kept: list[str] = []
    with log.open("a", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(
            command.words,
            cwd=ROOT,
            env={**os.environ, **command.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            file.write(line)
            if COUNTED.search(line):
                kept.append(re.sub(r"\x1b\[[0-9;]*m", "", line).strip())
        command.code = process.wait()
    command.seconds = round(time.monotonic() - began, 1)
    command.counts = counts_of_report(BUILD / "reports" / command.report) if command.report else kept[-60:]


def counts_of_report(path: Path) -> list[str]:
    """Return the counts of a JUnit report in one line, then the counts that its tests reported."""
    if not path.exists():
        return ["no report"]
    root = ElementTree.fromstring(path.read_text())
    suites = list(root.iter("testsuite"))
    total, failed, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites for name in names.split())
        for names in ("tests", "failures errors", "skipped")
    )
    counted = [
        f"{case.get('name')}: {found.get('value')}"
        for case in root.iter("testcase")
        for found in case.iter("property")
        if found.get("name") == "summary"
    ]
    return [f"{total} tests, {failed} failed, {skipped} skipped or expected to fail", *counted]


def write_summary(folder: Path) -> None:
    """Make the page that shows all steps kept in a folder."""
    lines = [
        "# Checks in full size",
        "",
        "| step | commit | seed | commands | failed | seconds |",
        "|---|---|---|---|---|---|",
    ]
    counts = []
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        commands = kept["commands"]
        failed = sum(command["code"] != 0 for command in commands)
        seconds = sum(command["seconds"] for command in commands)
        commits = ", ".join(dict.fromkeys(command.get("commit", kept["commit"]) for command in commands))
        # A step that will be continued shows how many of its commands are done.
        done = f"{len(commands)} of {kept.get('planned', len(commands))}"
        facts = f"{kept['step']} | {commits} | {kept['seed']} | {done} | {failed} | {seconds:.0f}"
        lines.append(f"| {facts} |")
        counts += ["", f"## {kept['step']}", "", "```"]
        counts += [line for command in commands for line in command["counts"]]
        counts.append("```")
    (folder / "summary.md").write_text("\n".join([*lines, *counts, ""]))


def passed_before(path: Path) -> tuple[int, list[Command]]:
    """Return the seed of a kept step and its commands up to the first that failed."""
    kept = json.loads(path.read_text())
    known = {key: kept[key] for key in ("commit", "processor")}
    commands = [Command(**{**known, **each}) for each in kept["commands"]]
    return kept["seed"], list(itertools.takewhile(lambda each: each.code == 0, commands))


def last_run(name: str) -> Path | None:
    """Return the newest file of a step."""
    kept = (ROOT / "bench" / "runs").glob(f"*/checks/{name}.json")
    return max(kept, key=lambda path: json.loads(path.read_text())["date"], default=None)


def run_step(name: str, seed: int, folder: Path, facts: dict[str, object], go_on: bool) -> None:
    """Run the commands of one step and keep their counts; the script ends where a command fails."""
    path = folder / f"{name}.json"
    done: list[Command] = []
    if go_on and (last := last_run(name)):
        path = last
        seed, done = passed_before(path)
    terminal.step(f"{name} in full size, seed {seed}" + (f", after {len(done)} commands kept" if done else ""))
    log = BUILD / "checks" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    planned = list(STEPS[name](seed))
    width = (os.cpu_count() or 1) if name in SIDE_BY_SIDE else 1
    for first in range(len(done), len(planned), width):
        group = planned[first : first + width]
        for command in group:
            command.commit, command.processor = str(facts["commit"]), str(facts["processor"])
        with ThreadPoolExecutor(width) as threads:
            list(threads.map(run, group, [log] * len(group)))
        done += group
        kept = {"step": name, "seed": seed, **{key: facts[key] for key in ("date", "commit", "processor")}}
        kept |= {"planned": len(planned), "commands": [asdict(each) for each in done]}
        text = json.dumps(kept, indent=1).replace(f"{ROOT}/", "").replace(str(Path.home()), "~")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        write_summary(path.parent)
        for command in group:
            if command.code:
                text = f"{name}: {' '.join(command.words)} ended with {command.code}; see {log}"
                raise terminal.fail(text, command.code)


def main() -> None:
    """Run the chosen steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default=",".join(STEPS), help="default: all, in this order: %(default)s")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--continue", action="store_true", dest="go_on", help="go on after what passed last time")
    options = parser.parse_args()
    names = options.steps.split(",")
    if unknown := [name for name in names if name not in STEPS]:
        raise terminal.fail(f"unknown step: {', '.join(unknown)} (steps: {', '.join(STEPS)})", 2)
    facts = machine.describe()
    folder = ROOT / "bench" / "runs" / machine.folder_name(facts) / "checks"
    ensure_for_tests(interpreters.running())
    for name in names:
        run_step(name, options.seed, folder, facts, options.go_on)


if __name__ == "__main__":
    main()
