"""Senders of other projects each send twenty kinds of record to one service; the page has what arrived as what.

Every run sends with a sample of them. `make test-senders` sends with all. Both compare what arrives with the recorded
run that the page shows.
"""

import json
import os
import time

import pytest
from tools import tool

import service_tools
from conftest import Service

from . import kinds, runners
from .kinds import ASPECTS, KINDS
from .survey_page import PAGE, RECORDED, recorded, written
from .table import SENDERS

# The senders share a service, which counts their records.
pytestmark = pytest.mark.xdist_group("survey")

WANTED = os.environ.get("LOGSPOOL_SENDERS", "sample")
CHOSEN = [sender for sender in SENDERS if sender.sample or WANTED != "sample"]


@pytest.fixture(scope="module")
def place(logspool_binary, tmp_path_factory):
    """One service for all senders, with the rows that were seen."""
    folder = tmp_path_factory.mktemp("survey")
    socket = folder / "log.sock"
    service = Service(logspool_binary, folder / "service", ["--listen", f"unix://{socket}?kind=datagram"], None)
    yield runners.Place(folder, service, socket, kinds.write(folder / "records.json"))
    assert 0 == service.stop(), service.said
    assert not any("panicked" in line for line in service.said), "\n".join(service.said)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sender", CHOSEN, ids=lambda sender: sender.program)
def test_records_of_each_sender_arrive_as_the_page_says(place, sender):
    run = tool(lambda: runners.find(sender))
    version = tool(lambda: service_tools.version_of(sender.package))
    place.look()
    began = time.time()
    run(place)
    sent = [kind for kind in KINDS if kind.name not in sender.without]

    rows = place.new_rows(len(sent))

    ended = time.time()
    found = kinds.by_kind(rows)
    assert [] == found.pop(""), "records of no kind"
    assert {kind.name: 1 for kind in sent} == {name: len(of) for name, of in found.items() if of}
    differing: dict[str, list[str]] = {aspect: [] for aspect in ASPECTS}
    for kind in sent:
        for aspect in kinds.differing(kind, found[kind.name][0], began, ended):
            differing[aspect].append(kind.name)
    unnamed = {
        f"{aspect} of {name}": str(found[name][0])[:2000]
        for aspect, names in differing.items()
        for name in names
        if not {aspect, f"{aspect} of {name}"} & set(sender.differs)
    }
    if unnamed:
        # pytest would compare the texts for minutes.
        pytest.fail(f"not as it was sent: {json.dumps(unnamed, indent=1)}", pytrace=False)
    outcome = {"version": version, "time": kinds.precision(rows)}
    outcome |= {"differing": {aspect: names for aspect, names in differing.items() if names}}
    if WANTED == "record":
        RECORDED.write_text(json.dumps({**recorded(), sender.program: outcome}, indent=1, sort_keys=True) + "\n")
    else:
        # Another version is no other outcome.
        shown = recorded()[sender.program]
        assert {**shown, "version": ""} == {**outcome, "version": ""}


def test_the_page_has_the_table_of_the_recorded_run():
    text = PAGE.read_text()
    assert written(text) == text, "write it: PYTHONPATH=tests/service:scripts python -m senders.survey_page"
