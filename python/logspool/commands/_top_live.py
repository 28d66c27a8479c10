"""The live view of `python -m logspool top`, by rich."""

from __future__ import annotations

import signal
import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from logspool.commands import _top_view

#: Signals that end the view.
_ENDING = (signal.SIGINT, signal.SIGTERM)


def show(view: _top_view.View, interval: float) -> int:
    """Show a view until a signal ends it, and return the exit code. The terminal is as before in any case.

    Raises:
        NotObserved: there is nothing to look at any more.
    """
    # The signals are blocked and asked for. An exception in the middle of rich's output would leave its buffers and the
    # terminal in a state that nothing restores.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with Live(_table(view), console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                ended = signal.sigtimedwait(_ENDING, interval)
                if ended is not None:
                    # Ctrl-C is how this command ends; SIGTERM has the exit code of a shell.
                    return 0 if ended.si_signo == signal.SIGINT else 128 + ended.si_signo
                view.look()
                live.update(_table(view), refresh=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _table(view: _top_view.View) -> Group:
    table = Table(title=f"logspool {time.strftime('%H:%M:%S')}, Ctrl-C ends", expand=True)
    for name in _top_view.COLUMNS:
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
