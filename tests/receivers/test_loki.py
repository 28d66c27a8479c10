"""What only Loki has: labels, structured metadata, and lines that it refuses."""

import json
import time
from collections import Counter

import pytest
from routes import ROUTES

import sender
from suite.waiting import until

pytestmark = [pytest.mark.real]

SECONDS = 60


def select(server, query):
    """Return the labels, with the metadata, and the line of each record that a query of Loki finds."""
    now = time.time_ns()
    limits = {"limit": 5000, "start": now - 3600 * 10**9, "end": now + 60 * 10**9}
    found = json.loads(server.ask("/loki/api/v1/query_range", query=query, **limits))["data"]["result"]
    return [(stream["stream"], entry[1]) for stream in found for entry in stream["values"]]


def test_labels_and_structured_metadata_are_found_by_a_query(tmp_path, queue_dir, server_of):
    server = server_of(ROUTES["loki-to-loki"]).start()
    options = {"labels": "app=shop,env=prod", "logger_label": True, "structured_metadata": True, "line": "message"}
    with sender.Sender(tmp_path, queue_dir, f"loki+http://127.0.0.1:{server.ports['http']}", **options) as program:
        program.ask("log", 200)
        assert program.ask("flush", SECONDS) is True
        everything = '{app="shop", env="prod", logger="shop.cart"}'
        until(lambda: len(select(server, everything)) == 200, SECONDS, "200 records")
        ((labels, line),) = select(server, '{level="warning"} | order="15"')
        errors = select(server, '{level="error"}')

    assert line == sender.message(15)
    assert (labels["shop"], labels["ratio"], json.loads(labels["items"])) == (
        sender.FIELDS["shop"],
        "0.25",
        sender.FIELDS["items"],
    )
    assert [labels["order"] for labels, _ in errors] == ["199", "99"]
    first = f"{sender.message(199)}\nTraceback (most recent call last):\n"
    assert errors[0][1].startswith(first) and errors[0][1].endswith("ValueError: broken 199")


def test_a_line_that_loki_refuses_is_dropped_alone(tmp_path, queue_dir, server_of, pair):
    route = ROUTES["loki-to-loki"]
    server = server_of(route).start()
    with sender.Sender(tmp_path, queue_dir, route.to(server, pair[0]), **route.options) as program:
        program.ask("log", 100)
        # Loki takes lines of at most 256 kB.
        program.ask("long", 300_000)
        program.ask("log", 100)
        assert program.ask("flush", SECONDS) is True
        stats = program.ask("stats")
        until(lambda: len(set(route.numbers(server))) == 200, SECONDS, "200 records")
        found = Counter(route.numbers(server))

    expected = Counter(range(201))
    del expected[100]
    assert found == expected
    assert (stats["accepted_for_sink"], stats["written"], stats["dropped"]) == (201, 200, 1)
