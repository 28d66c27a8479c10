"""How the programs of the survey are run, by the kind of their name."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import service_tools

from . import daemons
from .conftest import DEADLINE, PROGRAMS, run
from .daemons import ZONE
from .table import Sender


@dataclass
class Place:
    """The destination of a sender, and the records that have arrived there."""

    folder: Path
    service: object
    #: A socket for datagrams, as programs find one at `/dev/log`.
    socket: Path
    records: Path
    seen: "set[str]" = field(default_factory=set)

    def arguments(self) -> "list[str]":
        """Return the arguments of each program: the records, and the ports for streams, datagrams and HTTP."""
        http = self.service.url.rsplit(":")[-1]
        return [str(self.records), str(self.service.tcp[1]), str(self.service.udp[1]), http]

    def run(self, command: "list[str]", **variables: str) -> None:
        """Run a program, in a time zone of its own; it has to succeed."""
        run([*command, *self.arguments()], self.folder, TZ=ZONE, **variables)

    def look(self) -> None:
        """Mark the records that have arrived as seen."""
        self.seen.update(map(repr, self.service.query("", "--limit", "10000")))

    def new_rows(self, count: int) -> "list[dict]":
        """Wait for `count` more records; return them."""
        until = time.monotonic() + DEADLINE
        while True:
            rows = self.service.query("", "--limit", "10000")
            new = [row for row in rows if repr(row) not in self.seen]
            if len(new) >= count or time.monotonic() > until:
                return new
            time.sleep(0.02)


def find(sender: Sender) -> "Callable[[Place], None]":
    """Return the function that runs a sender.

    Raises:
        service_tools.Missing: Its program cannot be had.
    """
    name, suffix = os.path.splitext(sender.program)
    if not suffix:
        return getattr(daemons, name)
    survey = PROGRAMS / "survey"
    if suffix == ".py":
        command = [str(service_tools.python()), str(survey / sender.program)]
        return lambda place: place.run(command)
    if suffix == ".cjs":
        program, modules = service_tools.node()
        return lambda place: place.run([program, str(survey / sender.program)], NODE_PATH=str(modules))
    if suffix == ".go":
        command = [str(service_tools.go() / name)]
        return lambda place: place.run(command)
    folder = service_tools.java()
    return lambda place: place.run(["java", "-cp", f"{folder}/classes:{folder}/lib/*", name])
