"""The program of a comparison: options, kept results, tables and exit code."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import chart
import machine
import report
from parts import Part
from report import Table
from results import Results
from targets import NOT_CHOSEN, Target, Verdict, failures, judged
from terminal import fail, paint  # its folder was added by report

ROOT = machine.ROOT

#: The line below which a picture says nothing more about a bar without a value.
REASON_LENGTH = 60


class Bench:
    """A comparison. A script declares its measurements, tables and targets, and calls `main`."""

    #: Title of the summary, and of the picture where there is one.
    title: str
    picture = ""
    #: Folder below that of the run, and the mark of its part of the README.
    folder: str
    readme = ""
    #: Sentences below the title of the summary.
    notes: tuple[str, ...] = ()
    #: Options that choose among names: (option, all names).
    choices: tuple[tuple[str, Collection[str]], ...] = ()
    #: Options for the size of a measurement: (option, default, meaning). Another size makes another run.
    sizes: tuple[tuple[str, Any, str], ...] = ()
    parts: Collection[Part] = ()
    targets: Iterable[Target] = ()
    #: Targets that hold in a run of any length.
    counts: Iterable[Target] = ()
    #: How often everything is measured, and the name of that option.
    rounds = 5
    rounds_option = "rounds"
    #: Whether `--quick` is an option: few records, once.
    quick = False
    #: Whether a whole run has to measure every target.
    strict = False
    #: Names of the files of raw results and picture.
    tag = "raw"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add options of its own."""

    def instead(self, options: argparse.Namespace) -> bool:
        """Do something else that an option asks for; return whether it was."""
        return False

    def measure(self, options: argparse.Namespace, results: Results) -> None:
        """Measure into the results: `options` has the chosen names and the number of rounds."""
        (part,) = self.parts
        for number in numbered(options.rounds, self.rounds_option.rstrip("s")):
            for row in options.rows:
                results.take(row, part.name, number, partial(self.measure_row, row, number, options))

    def measure_row(self, row: str, number: int, options: argparse.Namespace) -> dict[str, Any]:
        """Measure one row of the only part once."""
        raise NotImplementedError

    def own(self, row: str) -> bool:
        """Say whether a row is logspool's."""
        return row.startswith("logspool")

    def must_work(self, cell: str) -> bool:
        """Say whether a measurement that fails misses a target: of logspool, unless a script says more."""
        return self.own(cell)

    def judge_counts(self, results: Results) -> list[Verdict]:
        """Compare the figures that hold in a run of any length: no time, no memory."""
        return [*judged(results, self.counts), failures(results, self.must_work)]

    def judge(self, results: Results) -> list[Verdict]:
        """Compare a run with all targets."""
        return [*judged(results, self.targets), *self.judge_counts(results)]

    def tables(self, results: Results) -> list[tuple[Table, list[str]]]:
        """Return the tables, each with the sentences below it."""
        found = [(part.table(results, self.own), part.notes()) for part in self.parts]
        return [(table, notes) for table, notes in found if table is not None]

    def panels(self, results: Results) -> list[chart.Panel]:
        """Return the panels of the picture."""
        return []

    def facts_in_words(self, results: Results) -> str:
        """Return what the line about the machine ends with."""
        rounds = max((len(found) for cells in results.cells.values() for found in cells.values()), default=0)
        return f"{rounds} rounds at most"

    def readme_lines(self, results: Results, place: Path) -> list[str]:
        """Return the part of the README between the line about the machine and the link to the summary."""
        return [f"![{self.picture}]({place}/{self.plot_name(self.tag)})"]

    # -- the program -------------------------------------------------------------------------

    def main(self) -> None:
        """Measure, keep, show, judge."""
        options = self._options()
        if self.instead(options):
            return
        if options.again:
            self.again(options.again.resolve())
            return
        began = time.monotonic()
        results = Results({})
        self.measure(options, results)
        results.process["seconds"] = time.monotonic() - began
        # Read at the end: whatever switched the GIL on in between shows.
        results.facts = {**machine.describe(), "load": os.getloadavg()[0], "rounds": options.rounds, **results.facts}
        whole = not (options.partial or options.quick)
        runs = ROOT / ("bench/runs" if whole else "build/bench")
        folder = (options.out or runs / machine.folder_name(results.facts) / self.folder).resolve()
        self.keep(folder, results)
        self.print_all(results)
        verdicts = self.judge_counts(results) if options.quick else self.judge(results)
        if options.quick:
            print("\na quick run shows that everything works; it judges the counts alone")
        report.print_verdicts([verdict for verdict in verdicts if whole or verdict.value != NOT_CHOSEN])
        print(f"\nresults: {folder}/summary.md, {self.tag}.json{f', {self.plot_name(self.tag)}' * bool(self.picture)}")
        if whole and options.out is None and self.readme:
            self.update_readme(folder, results)
        bad = (False, None) if whole and self.strict else (False,)
        if missed := [verdict.what for verdict in verdicts if verdict.met in bad]:
            raise fail(f"{len(missed)} targets missed or not measured: {'; '.join(missed)}")

    def keep(self, folder: Path, results: Results) -> None:
        """Write raw results, summary and picture into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.tag}.json").write_text(json.dumps(results.to_json(), indent=1))
        self.again(folder)

    def again(self, folder: Path) -> dict[str, Results]:
        """Make pictures and summary of a folder from its raw results, and return them."""
        found = {path.stem: Results.from_json(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}
        several = len(found) > 1 or "raw" not in found
        lines = [f"# {self.title}", "", *(f"- {note}" for note in self.notes), ""]
        for tag, results in found.items():
            lines += [f"## {tag}", ""] if several else []
            lines += self._summary(results, self.plot_name(tag), "###" if several else "##")
            if self.picture:
                chart.write(folder / self.plot_name(tag), self.picture, self.where(results), self.panels(results))
        (folder / "summary.md").write_text("\n".join(lines) + "\n")
        return found

    def print_all(self, results: Results) -> None:
        """Print everything measured."""
        print(self.where(results))
        for table, notes in self.tables(results):
            print(f"\n{paint(table.title, 'bold')}")
            report.print_table(table)
            for note in notes:
                print(paint(f"  {note}", "dim"))
        for name, reason in results.skipped.items():
            print(paint(f"skipped: {name}: {reason}", "yellow"))

    def update_readme(self, folder: Path, results: Results) -> None:
        """Put the main figures of a run between the marks of the README."""
        place = folder.relative_to(ROOT)
        lines = [self.where(results), "", *self.readme_lines(results, place), ""]
        lines += [f"All rows and targets: [{place}/summary.md]({place}/summary.md)."]
        report.put_into_readme(self.readme, lines)

    def where(self, results: Results) -> str:
        """Return the machine, versions and commit of a run, in a line."""
        facts = results.facts
        gil = "" if facts.get("gil", True) else " without the GIL"
        return (
            f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, Python {facts['python']}{gil}, "
            f"commit {facts['commit']}, {self.facts_in_words(results)}."
        )

    def plot_name(self, tag: str) -> str:
        """Return the name of the picture beside raw results of this name."""
        return "plot.svg" if tag == "raw" else f"{tag}.svg"

    def bar(self, results: Results, label: str, row: str, part: str, figure: str) -> chart.Bar:
        """Return the bar of a figure, or the reason why there is none."""
        value = results.median(row, part, figure)
        names = (f"{row} {part}", part, row, row.split(".")[0])
        reasons = [why for name in names for why in (results.failed.get(name), results.skipped.get(name)) if why]
        if value is not None and value <= 0:
            # The loop that is subtracted took longer: too few rounds, or a busy machine.
            value, reasons = None, ["less than the loop around it"]
        reason = (reasons or ["not measured"])[0].splitlines()[0][:REASON_LENGTH]
        words = reason if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        return chart.Bar(label, value, words, self.own(row))

    def _summary(self, results: Results, plot: str, mark: str) -> list[str]:
        lines = [self.where(results), "", *(f"{name}: {why}.  " for name, why in results.skipped.items()), ""]
        lines += [f"![{self.picture}]({plot})", ""] if self.picture else []
        lines += [f"{mark} Targets", "", *report.verdict_lines(self.judge(results))]
        for table, notes in self.tables(results):
            lines += ["", f"{mark} {table.title}", "", *report.markdown(table), ""]
            lines += [f"- {note}" for note in notes]
        details = [f"{cell}: {reason}" for cell, reason in results.failed.items()]
        return [*lines, "", f"{mark} Failures", "", "```text", *details, "```", ""] if details else [*lines, ""]

    def _options(self) -> argparse.Namespace:
        words = inspect.getdoc(sys.modules[type(self).__module__])
        parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
        if self.quick:
            parser.add_argument("--quick", action="store_true", help="little work, once, kept in build/bench")
        parser.add_argument(f"--{self.rounds_option}", dest="rounds", type=int, default=self.rounds, metavar="N")
        for name, known in self.choices:
            parser.add_argument(f"--{name}", help=f"of {', '.join(known)}; default: all")
        parser.add_argument("--out", type=Path, help=f"folder of the results; default: DATE-MACHINE/{self.folder}")
        parser.add_argument("--again", type=Path, metavar="FOLDER", help="make its summary again from its raw results")
        for name, default, meaning in self.sizes:
            words = f"{meaning}; default: {default}"
            parser.add_argument(f"--{name}", type=type(default), default=default, metavar="N", help=words)
        self.add_options(parser)
        options = parser.parse_args()
        options.quick = self.quick and options.quick
        if options.rounds < 1:
            raise fail(f"--{self.rounds_option} has to be 1 or more", 2)
        options.rounds = 1 if options.quick else options.rounds
        options.partial = options.rounds < self.rounds
        options.partial |= any(getattr(options, name) != default for name, default, _ in self.sizes)
        for name, known in self.choices:
            chosen = getattr(options, name)
            options.partial = options.partial or bool(chosen)
            setattr(options, name, chosen.split(",") if chosen else list(known))
            if unknown := [word for word in getattr(options, name) if word not in known]:
                raise fail(f"--{name}: unknown: {', '.join(unknown)} (known: {', '.join(known)})", 2)
        return options


def numbered(count: int, what: str = "round") -> Iterator[int]:
    """Yield the numbers of the rounds, and say where the run is."""
    for number in range(count):
        say(f"{what} {number + 1} of {count}")
        yield number


def say(words: str) -> None:
    """Print the running part: on a terminal in one line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
    else:
        print(f"    {words}", file=sys.stderr, flush=True)


def alternating(sides: Collection[Any], number: int) -> list[Any]:
    """Return the sides of a row; the one that begins changes with the round."""
    return list(sides) if number % 2 == 0 else list(reversed(list(sides)))
