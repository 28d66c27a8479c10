"""`python -m logspool top`: the queues, outputs and rates of running processes, seen from outside."""

from __future__ import annotations

import sys
import time

from logspool.commands import _messages
from logspool.commands._top_options import Options
from logspool.commands._top_view import View, plain
from logspool.watch import _observe

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Seconds between the two looks of `--once`. Chosen: a program of 100 records a second shows its rate.
ONCE_SECONDS = 0.5


def main(arguments: Sequence[str]) -> int:
    """Show the table until Ctrl-C. Returns the exit code."""
    try:
        options = Options(arguments)
    except ValueError as error:
        return _messages.usage("top", str(error))
    live: Any = None
    if not options.once and sys.stdout.isatty():
        try:
            from logspool.commands import _top_live

            live = _top_live
        except ImportError:
            return _messages.failed(
                "top",
                "the live view needs the package rich (fix: pip install 'logspool[top]'; --once prints one plain table "
                "without it)",
            )
    view = View(options)
    try:
        view.look()
        if live is not None:
            return int(live.show(view, options.interval))
        return _print_tables(view, options)
    except _observe.NotObserved as error:
        return _messages.failed("top", str(error))
    except KeyboardInterrupt:
        return 0


def _print_tables(view: View, options: Options) -> int:
    while True:
        time.sleep(ONCE_SECONDS if options.once else options.interval)
        view.look()
        sys.stdout.write(plain(view) if options.once else plain(view) + "\n")
        sys.stdout.flush()
        if options.once:
            return 0
