"""The live view of `python -m logspool top`, by rich."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from logspool import _top


def show(view: _top.View, interval: float) -> None:
    """Show a view until Ctrl-C or until there is nothing to look at. The terminal is as before in any case.

    Raises:
        NotObserved: the process has ended, for example.
    """
    console = Console()
    with Live(_table(view), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            view.look()
            live.update(_table(view), refresh=True)


def _table(view: _top.View) -> Group:
    table = Table(title=f"logspool {time.strftime('%H:%M:%S')}, Ctrl-C ends", expand=True)
    for name in _top.COLUMNS:
        left = name in ("output", "queue")
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for row in view.rows:
        cells = [Text(cell) for cell in row]
        for index in (6, 7):
            if row[index] != "0":
                cells[index].stylize("bold red")
        if row[5] != "0":
            cells[5].stylize("yellow")
        table.add_row(*cells)
    return Group(table, Text("\n".join(view.notes)))
