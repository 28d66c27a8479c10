"""Random queries have the same answers on SQLite, on PostgreSQL, and in plain Python."""

import json
import os
import re
import time

import incident
import query_model
import query_stores

RECORDS = 400
QUERIES = 100_000 if os.environ.get("LOGSPOOL_FAULTS") == "full" else 1_000


#: A count by one field at the end is the work of the store: it groups by the text of a value.
STORED_COUNT = re.compile(r"[^|]*(\| where [^|]*)*\| count by [^|, ]+")


def by_text(rows: "list[dict]") -> "list[dict]":
    """Return counts with the values as text, in the order of a store."""

    def text(value: object) -> object:
        return value if value is None or isinstance(value, str) else json.dumps(value)

    made = [{key: value if key == "count" else text(value) for key, value in row.items()} for row in rows]
    return sorted(made, key=lambda row: (-row["count"], [query_model.order(value) for value in row.values()]))


def is_same(one: object, two: object) -> bool:
    """Compare values of answers."""
    if isinstance(one, (int, float)) and isinstance(two, (int, float)) and not isinstance(one, bool):
        return one == two or abs(one - two) <= 1e-9 * max(abs(one), abs(two))
    return one == two


def test_random_queries_have_the_same_answers_on_both_stores_and_in_python(start_service, database, tmp_path):
    seed = int(os.environ.get("LOGSPOOL_SEED", time.time()))
    made = incident.records(seed, end=time.time(), count=RECORDS)
    asked = query_stores.start(start_service, database, tmp_path, made)
    maker = query_model.Maker(seed, query_model.stored(made))
    for number in range(QUERIES):
        text, answer, kind = maker.query()
        expected = answer()
        for store in asked.services:
            status, rows, remarks = asked.ask(store, text)
            place = f"seed {seed}, query {number}, {store}: {text}"
            assert status == 200, f"{place}\n{remarks}"
            found = [query_stores.flat(row) for row in rows]
            if STORED_COUNT.fullmatch(text):
                expected, found = by_text(expected), by_text(found)
            wanted = [{key: row.get(key) for key in found[0]} for row in expected] if found else expected
            assert len(wanted) == len(found), f"{place}\n{wanted[:3]}\n{found[:3]}"
            for one, two in zip(wanted, found):
                assert all(is_same(one[key], two.get(key)) for key in one), f"{place}\nexpected {one}\nfound    {two}"
            if found and kind == "rows":
                assert set(expected[0]) == set(found[0]), place
