"""`python -m logspool recover`: deliver the records that ended processes left in their queues."""

from __future__ import annotations

import sys

from logspool.commands import _messages

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Deliver the records, and print how many were delivered where. Returns the exit code."""
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        return _messages.usage("recover", f"takes one folder at most, not {' '.join(arguments)!r} (fix: --help)")
    from logspool import recover

    path = arguments[0] if arguments else None
    try:
        report = recover(path)
    except OSError as error:
        where = path or error.filename or "the queue folder"
        why = error.strerror or error
        return _messages.failed(
            "recover", f"cannot read {where!r}: {why} (fix: name the folder that LOGSPOOL_QUEUE_DIR named then)"
        )
    for file, records in report.delivered.items():
        print(f"{_messages.counted(records, 'record')} written to {file}")
    if report.discarded:
        print(f"{_messages.counted(report.discarded, 'record')} dropped: for terminals and pipes that are gone")
    if report.refused:
        print(f"{_messages.counted(report.refused, 'record')} dropped: their receiver refuses them")
    if report.torn_lines:
        print(f"{_messages.counted(report.torn_lines, 'line')} torn by a kill ended: their rest is unknown")
    if not report.delivered and not report.discarded and not report.refused and not report.kept:
        print("nothing to deliver")
    sys.stdout.flush()
    code = 0
    for name, reasons in report.kept.items():
        code = _messages.failed("recover", f"{name} stays: {'; '.join(reasons)}")
    return code
