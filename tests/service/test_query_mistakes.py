"""A query with a mistake is answered, or refused with the place and a fix; it is never empty without a word."""

import os
import random
import re
import time

import incident
import pytest
import query_stores
import test_query_questions

MUTATIONS = 2_000 if os.environ.get("LOGSPOOL_FAULTS") == "full" else 500

#: What people write who know other tools, with a part of the answer.
OTHER_TOOLS = [
    ("level:error", "level=error"),
    ("service:basket", "service=basket"),
    ("duration_ms:>100", "duration_ms>100"),
    ("service==basket", "quote it"),
    ("level>=error && service=basket", "conditions follow each other"),
    ("level>=error || service=basket", "write `or`"),
    ("!level=error", "not level=VALUE"),
    ("-level=error", "not level=VALUE"),
    ("error -voucher", "write not voucher"),
    ("service=~basket", "write `~` alone"),
    ("service = 'basket'", "double quotes"),
    ("level>=error | head 5", "did you mean `limit`"),
    ("level>=error | stats count() by service", "write count(FIELD)"),
    ("level>=error | stats dc(user)", "did you mean `distinct`"),
    ("level>=error | summarize count by service", "did you mean `stats`"),
    ("level>=error | sort -count", "expected a field"),
    ("level>=error | table time, host", "did you mean `fields`"),
    ("level>=error | timechart 5m", "did you mean `histogram`"),
    ("level>=error | eval x=1", "did you mean `let`"),
    ("level>=error | rex field=message", "did you mean `parse`"),
    ("level>=error | stats avg(duration_ms) group by service", "expected `|`"),
    ("level>=error | count by service order by count", "expected `|`"),
    ("level>=error | count by service having count > 5", "expected `|`"),
    ("level>=error | stats count where status=500", "expected `|`"),
    ("level>=error | stats median(duration_ms)", "did you mean `p50`"),
    ("level>=error | stats p100(duration_ms)", "unknown function"),
    ("level>=error | count by time", "by time 1m"),
    ("level>=error | where count > 5 | count", "no record of this time range has a field `count`"),
    ("level>=error | count by service | where cuont > 5", "did you mean `count`"),
    ("level>=error | count by service | sort user", "no column `user`"),
    ("* | limit", "expected a whole number"),
    ("* | limit -5", "expected a whole number"),
    ("* | top duration_ms", "expected a whole number"),
    ("* | top 5 user", "count by user"),
    ("host=node-*", "`*` is not a wildcard"),
    ("*conn", "wildcard at the end"),
    ("re?onnected*", "no record of this time range matches"),
    ("mesage~reconnected", "did you mean `message`"),
    ("sevice=basket", "did you mean `service`"),
    ("service=baskt", "did you mean"),
    ("vouchr", "no record of this time range matches"),
    ("voucher service=vault", "matches all conditions together"),
    ("request.headers.agnet~curl", "no record of this time range"),
    ("items[].sku=sku-7", "this is no path"),
    ("time of day", "no record of this time range"),
    ("user in u1, u2", "no record of this time range"),
    ("user in (u1", "write `)` at its end"),
    ("user in (level>=error)", "expected a value"),
    ("user in (level>=error | limit 5)", "end it with | fields FIELD"),
    ("billed>1", "have text in `billed`"),
    ("* | stats sum(billed)", "values that are not numbers"),
    ("* | stats sum(duraton_ms)", "did you mean `duration_ms`"),
    ("* | count by sevice, host", "did you mean `service`"),
    ("* | fields tiem, host", "no record of this time range has a field `tiem`"),
    ("SELECT * FROM logs WHERE level = 'error'", "double quotes"),
    ("* | compare yesterday by service", "expected a duration"),
    ("time>-1d | compare 1d", "since and until"),
    ("* | around 12 30s", "expected the id of a record"),
    ("* | parse message job (?<kind>.*)", "expected a regular expression"),
    ("* | parse message /job (.*)/", "no named groups"),
    ("* | parse mesage /job (?<kind>.*)/", "did you mean `message`"),
    ("* | let rate = status / ", "expected a column or a number"),
    ("* | let rate := status", "expected"),
    ("* | histogram 5", "expected a duration"),
    ("* | histogram 0.5s", "whole seconds"),
]


@pytest.fixture(scope="module")
def words():
    """Letters of a typing error."""
    return "abcdefghijklmnopqrstuvwxyz"


def judged(asked, kind: str, query: str) -> str:
    """Return the message of an answer; empty: the answer has rows and nothing to say."""
    status, rows, remarks = asked.ask(kind, query)
    place = f"{kind}: {query}\n{remarks}"
    if status == 400:
        message = remarks["error"]
        head, _, mark = message.split("\n")
        assert re.fullmatch(r" +\^", mark) and ":" in head, place
        return message
    assert status == 200, place
    said = " ".join(remarks.get("warnings", []))
    assert rows or said, f"silent: {place}"
    return said


@pytest.fixture
def asked(start_service, database, tmp_path):
    """Both stores with the same records."""
    return query_stores.start(start_service, database, tmp_path, incident.records(5, time.time(), count=600))


def test_the_languages_of_other_tools_are_recognised(asked):
    wrong = []
    for query, part in OTHER_TOOLS:
        for kind in asked.services:
            try:
                said = judged(asked, kind, query)
            except AssertionError as error:
                wrong.append(str(error))
                continue
            if part not in said:
                wrong.append(f"{kind}: {query}: no {part!r} in {said!r}")
    assert not wrong, "\n".join(wrong)


def test_a_typing_error_is_never_silent(asked, words):
    seed = int(os.environ.get("LOGSPOOL_SEED", time.time()))
    pick = random.Random(seed)
    queries = [query for _, query, _, _ in test_query_questions.questions(asked)]
    for _ in range(MUTATIONS):
        query = pick.choice(queries)
        names = list(re.finditer(r"[a-z_]{3,}", query))
        found = pick.choice(names)
        at = pick.randrange(found.start(), found.end())
        changed = pick.choice(
            [
                query[:at] + query[at + 1 :],
                query[:at] + pick.choice(words) + query[at:],
                query[:at] + query[at + 1 : at + 2] + query[at] + query[at + 2 :],
                query[:at] + pick.choice('|()"=<>~,*') + query[at:],
            ]
        )
        try:
            judged(asked, pick.choice(["sqlite", "postgres"]), changed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, from {query}\n{error}") from None
