"""Features of Loki alone: labels, structured metadata, and lines that it refuses."""

import json
from collections import Counter

import pytest
from routes import ROUTES

import sender
from suite.waiting import until

pytestmark = [pytest.mark.real]

SECONDS = 60

#: Most records of an answer.
LIMIT = 5000


def test_labels_and_structured_metadata_are_found_by_a_query(tmp_path, queue_dir, server_of):
    server = server_of(ROUTES["loki-to-loki"]).start()
    options = {"labels": "app=shop,env=prod", "logger_label": True, "structured_metadata": True, "line": "message"}
    with sender.Sender(tmp_path, queue_dir, f"loki+http://127.0.0.1:{server.ports['http']}", **options) as program:
        program.ask("log", 200)
        assert program.ask("flush", SECONDS) is True
        everything = '{app="shop", env="prod", logger="shop.cart"}'
        until(lambda: len(server.select(everything, LIMIT)) == 200, SECONDS, "200 records")
        ((labels, _, line),) = server.select('{level="warning"} | order="15"', LIMIT)
        errors = server.select('{level="error"}', LIMIT)

    assert line == sender.message(15)
    assert (labels["shop"], labels["ratio"], json.loads(labels["items"])) == (
        sender.FIELDS["shop"],
        "0.25",
        sender.FIELDS["items"],
    )
    assert [labels["order"] for labels, _, _ in errors] == ["199", "99"]
    first = f"{sender.message(199)}\nTraceback (most recent call last):\n"
    assert errors[0][2].startswith(first) and errors[0][2].endswith("ValueError: broken 199")


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
