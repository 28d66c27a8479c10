"""The table of senders in docs/how-to/senders.md, made from the last recorded run.

`LOGSPOOL_SENDERS=record` before the tests of `test_survey.py` records what arrives, and
`PYTHONPATH=tests/service:scripts python -m senders.survey_page` writes the table.
"""

import json
from pathlib import Path

from .kinds import ASPECTS, KINDS
from .page import HOW_TO
from .table import SENDERS, Sender

#: What arrived in the last run of `make test-senders`, by the program of a sender.
RECORDED = Path(__file__).parent / "survey.json"

PAGE = HOW_TO / "senders.md"
BEGIN = "<!-- Written by tests/service/senders/survey_page.py from the last run of `make test-senders`. -->\n"
END = "<!-- The end of what is written. -->\n"


def recorded() -> "dict[str, dict]":
    """Return the recorded outcomes."""
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def table() -> str:
    """Return the table, and below it the reasons for the differences."""
    outcomes = recorded()
    lines = [f"| sender | version | sent as | {' | '.join(ASPECTS)} |\n", "|---" * (3 + len(ASPECTS)) + "|\n"]
    reasons: dict[str, list[str]] = {}
    total = wrong = records = 0
    for sender in SENDERS:
        outcome = outcomes[sender.program]
        cells = [cell(aspect, sender, outcome) for aspect in ASPECTS]
        lines.append(f"| {sender.name} | {outcome['version']} | {sender.protocol} | {' | '.join(cells)} |\n")
        for what, reason in [*used(sender, outcome), *((f"no {name}", why) for name, why in sender.without.items())]:
            reasons.setdefault(f"{what}: {reason}", []).append(sender.name)
        records += len(KINDS) - len(sender.without)
        total += 2 * (len(KINDS) - len(sender.without))
        wrong += sum(len(outcome["differing"].get(aspect, [])) for aspect in ("level", "time"))
    counts = f"\n{records} records: of their {total} levels and times, {total - wrong} arrived as they were sent.\n"
    lines += [counts, "What differs, and why:\n\n"]
    lines += [f"- {reason} ({', '.join(dict.fromkeys(names))})\n" for reason, names in reasons.items()]
    return "".join(lines)


def cell(aspect: str, sender: Sender, outcome: dict) -> str:
    """Return the table's text for an aspect of a sender's records."""
    names = outcome["differing"].get(aspect, [])
    sent = [kind for kind in KINDS if kind.name not in sender.without]
    concerned = {
        "fields": [kind.name for kind in sent if kind.fields],
        "traceback": [kind.name for kind in sent if kind.raises],
    }.get(aspect, [kind.name for kind in sent])
    if not concerned or set(names) >= set(concerned):
        return "no"
    if names:
        return "not " + ", ".join(names)
    return outcome["time"] if aspect == "time" else "yes"


def used(sender: Sender, outcome: dict) -> "list[tuple[str, str]]":
    """Return the reasons of a sender that its outcome needs, each with the difference that it explains."""
    found = []
    for what, reason in sender.differs.items():
        aspect, _, name = what.partition(" of ")
        if name in outcome["differing"].get(aspect, []) or (not name and aspect in outcome["differing"]):
            found.append((what, reason))
    return found


def written(text: str) -> str:
    """Return the text of the page with the table of now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
