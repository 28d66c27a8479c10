"""Show the effect of logspool on an unchanged program.

A small web service on uvicorn writes an access log and an application log under a few seconds of local load:
first as it is, then with `python -m logspool run` in front of its command, alternating for some rounds.
The demo compares the lines of both and shows their cost and latency.
Then a service collects the records of many programs at once, and answers queries.
"""

import argparse
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import collect
import environment
import files
import interpreters
import load
import show
import terminal
from server import Server

FOLDER = environment.BUILD / "demo"
SIDES = {"as-it-is": "as it is", "with-logspool": "with logspool"}


def prepare(without_logspool: bool) -> environment.Environment:
    """Make the environment of the service."""
    interpreter = interpreters.probe(sys.executable)
    if interpreter is None:
        raise terminal.fail(f"{sys.executable} is no CPython 3.10 or later; set PYTHON=/path/to/python3")
    with environment.locked(f"venv-{interpreter.tag}-demo"):
        prepared = environment.Environment(interpreter, "demo").ensure()
        requirements = environment.read_requirements(Path(__file__).with_name("requirements.txt"))
        failed = prepared.install_what_can_be("service", requirements)
        needed = [requirement for requirement in failed if requirement.startswith(("fastapi", "uvicorn"))]
        if needed:
            raise terminal.fail(f"cannot install {needed[0]}: {failed[needed[0]]}")
        if not without_logspool:
            prepared.build_extension()
    return prepared


def measure(python: str, side: str, numbers: range, progress: Callable[[int], None]) -> show.Measured:
    """Run the service once under the whole load."""
    server = Server(python, FOLDER / side, logspool=side == "with-logspool")
    try:
        server.wait_until_up()
        finished = 0

        def done() -> None:
            nonlocal finished
            finished += 1
            progress(finished)

        cpu, begin = server.cpu_seconds(), time.perf_counter()
        seconds = load.orders(server.port, numbers, done)
        wall, cpu = time.perf_counter() - begin, server.cpu_seconds() - cpu
        times = load.call_times(server.port)
    finally:
        code = server.stop()
    if code != 0:
        raise RuntimeError(f"the service ended with exit code {code}; see {server.folder}/errors.log")
    return show.Measured(len(numbers), wall, cpu, seconds, times)


def run(python: str, sides: list[str], rounds: int, numbers: range) -> tuple[dict[str, list[show.Measured]], list]:
    """Run all rounds, the sides in turn, and compare the files of each pair."""
    measured: dict[str, list[show.Measured]] = {side: [] for side in SIDES}
    worst: list[files.Comparison] = []
    for round_number in range(1, rounds + 1):
        for side in sides:
            words = f"round {round_number} of {rounds}, {SIDES[side]}"
            measured[side].append(measure(python, side, numbers, _progress(words, len(numbers))))
            figures = measured[side][-1]
            _line(f"{words}: {figures.requests / figures.wall_seconds:,.0f} requests a second", end=True)
        if len(sides) == 2:
            compared = files.compare(FOLDER / sides[0], FOLDER / sides[1], numbers)
            worst = worst if any(not comparison.equal for comparison in worst) else compared
    return measured, worst


def _progress(words: str, total: int) -> Callable[[int], None]:
    step = max(1, total // 50)

    def show_progress(finished: int) -> None:
        if finished % step == 0 and sys.stderr.isatty():
            filled = finished * 30 // total
            bar = terminal.paint("█" * filled, "cyan", stream=sys.stderr) + "░" * (30 - filled)
            _line(f"{words}  {bar} {finished:,} of {total:,} requests")

    return show_progress


def _collected(stored: int, total: int) -> None:
    filled = stored * 30 // total
    bar = terminal.paint("█" * filled, "cyan", stream=sys.stderr) + "░" * (30 - filled)
    _line(f"{bar} {stored:,} of {total:,} records stored", end=stored == total)


def _line(words: str, end: bool = False) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K    {words}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end:
        terminal.note(words)


def main() -> None:
    """Prepare, run, show, keep the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=6000, help="requests in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-logspool", action="store_true", help="run the first half only")
    options = parser.parse_args()
    if options.requests < 100 or options.rounds < 1:
        raise terminal.fail("--requests has to be 100 or more, --rounds 1 or more", 2)
    terminal.step("preparing the service")
    prepared = prepare(options.without_logspool)
    sides = list(SIDES)[:1] if options.without_logspool else list(SIDES)
    terminal.step(f"{options.requests:,} requests in each run, on 127.0.0.1, {load.CONNECTIONS} connections")
    shutil.rmtree(FOLDER, ignore_errors=True)
    measured, comparisons = run(prepared.python, sides, options.rounds, range(1, options.requests + 1))
    figures = show.rows(measured["as-it-is"], measured["with-logspool"])
    show.print_table(figures, comparisons, options.rounds)
    picture = FOLDER / "comparison.svg"
    seconds = statistics.median(run.wall_seconds for run in measured["as-it-is"])
    where = f"Python {platform.python_version()}, FastAPI on uvicorn, {options.requests:,} requests in {seconds:.1f} s"
    show.draw(picture, figures, where)
    print(f"\n  picture   {picture}\n  log files {FOLDER / 'as-it-is'} and {FOLDER / 'with-logspool'}\n")
    if any(not comparison.equal for comparison in comparisons):
        raise terminal.fail("the two runs did not leave the same lines")
    if not options.without_logspool:
        terminal.step(f"a service that collects: {collect.CLIENTS} programs with SocketHandler, one with logspool")
        collect.show(prepared.python, _collected)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        raise terminal.fail("stopped; the service was ended too", 130) from None
    except (RuntimeError, OSError, TimeoutError) as error:
        raise terminal.fail(str(error)) from None
