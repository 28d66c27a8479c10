"""The forty questions of an engineer on call, over HTTP and by the command, on both kinds of stores."""

import csv
import io
import json
import os
import re
import subprocess
import time

import incident
import pytest
import query_model
import query_stores

from suite import pages

HOUR = 3_600_000_000_000
END = time.time()


@pytest.fixture
def asked(start_service, database, tmp_path):
    """Both stores with the records of an incident that ended a minute ago."""
    return query_stores.start(start_service, database, tmp_path, incident.records(7, END, count=1_500))


class Facts:
    """The records, and the answers that a loop finds in them."""

    def __init__(self, made):
        """Keep the records, oldest first."""
        self.rows = query_model.stored(made)[::-1]
        self.now = time.time_ns()
        self.vouchers = [row for row in self.rows if "voucher" in query_model.words(row["message"])]

    def count(self, rows, *keys):
        """Count rows by keys, as `count by` sorts them."""
        found = {}
        for row in rows:
            values = [row.get(key) for key in keys]
            found.setdefault(tuple(map(query_model.order, values)), [values, 0])[1] += 1
        made = [dict(zip(keys, values)) | {"count": count} for _, (values, count) in sorted(found.items())]
        return sorted(made, key=lambda row: -row["count"])

    def errors(self, since=0):
        """Return the errors from a time on."""
        return [row for row in self.rows if row["level"] >= 40 and row["time"] >= since]


def questions(asked) -> "list[tuple[int, str, dict, object]]":
    """Return number, query, parameters and expected rows of each question that is one request."""
    facts = Facts(asked.made)
    rows, vouchers = facts.rows, facts.vouchers
    # The range begins at a time that no record has, so that a second more or less does not matter.
    hour, day = (facts.now // 1_000_000_000 - span for span in (3_600, 86_400))
    of_hour = {"since": _text(hour)}
    of_day = {"since": _text(day)}
    hour, day = hour * 1_000_000_000, day * 1_000_000_000
    finder = [row for row in rows if row["service"] == "finder" and "duration_ms" in row]
    trace = next(row["trace_id"] for row in rows if row.get("trace_id"))
    traced = [row for row in rows if row.get("trace_id") == trace]
    user = "u7"
    words = query_model.words
    base = [row for row in rows if row["service"] == "basket"]
    requests_of_hour = [row for row in rows if "status" in row and row["time"] >= hour]

    def share(service):
        own = [row for row in requests_of_hour if row["service"] == service]
        return sum(row["status"] >= 500 for row in own) / len(own)

    def per(rows, key):
        return sorted({row[key] for row in rows if row.get(key) is not None})

    def numbers(rows, key, share):
        return query_model.percentile(rows, key, share)

    longest = max((row for row in rows if "queue_ms" in row), key=lambda row: row["queue_ms"])
    hosts = per(finder, "host")
    ages = facts.errors(facts.now - 48 * HOUR)
    now_errors = [row for row in ages if row["time"] >= day]
    before = [row for row in ages if day - 24 * HOUR <= row["time"] < day]
    kinds = {}
    for row in rows:
        found = re.search(r"job (\w+)", row["message"])
        if found:
            kinds[found[1]] = kinds.get(found[1], 0) + 1
    with_sku = [row for row in rows if any(item["sku"] == "sku-7" for item in row.get("items", []))]
    silent = {row["host"]: row["time"] for row in rows}
    return [
        (1, "| count", {}, [{"count": len(rows)}]),
        (2, "level>=error | count", of_hour, [{"count": len(facts.errors(hour))}]),
        (3, "| count by level", {}, facts.count(rows, "level")),
        (4, "level>=error | count by service", {}, facts.count(facts.errors(), "service")),
        (5, "level>=error | count by service, host", {}, facts.count(facts.errors(), "service", "host")),
        (6, "voucher | stats distinct(user) as users", {}, [{"users": len(per(vouchers, "user"))}]),
        (
            7,
            "level>=error user=* | count by user | limit 5",
            of_day,
            facts.count([row for row in now_errors if "user" in row], "user")[:5],
        ),
        (
            8,
            "bytes=* | stats sum(bytes) as sent by service",
            {},
            [
                {"service": name, "sent": sum(row.get("bytes", 0) for row in rows if row["service"] == name)}
                for name in per([row for row in rows if "bytes" in row], "service")
            ],
        ),
        (
            9,
            "duration_ms=* | stats p50(duration_ms) as a, p95(duration_ms) as b, p99(duration_ms) as c by service",
            {},
            [
                {"service": name}
                | {
                    key: numbers([row for row in rows if row["service"] == name], "duration_ms", share)
                    for key, share in (("a", 50), ("b", 95), ("c", 99))
                }
                for name in per([row for row in rows if "duration_ms" in row], "service")
            ],
        ),
        (
            10,
            "service=finder | top 10 duration_ms | fields duration_ms",
            {"since": _text((facts.now - 10 * HOUR) // 1_000_000_000)},
            [
                {"duration_ms": value}
                for value in sorted(
                    (row["duration_ms"] for row in finder if row["time"] >= facts.now - 10 * HOUR), reverse=True
                )[:10]
            ],
        ),
        (
            11,
            "service=finder duration_ms=* | stats avg(duration_ms) as mean by host | sort mean desc",
            {},
            sorted(
                (
                    {
                        "host": host,
                        "mean": query_model.mean([row for row in finder if row["host"] == host], "duration_ms"),
                    }
                    for host in hosts
                ),
                key=lambda row: -row["mean"],
            ),
        ),
        (
            12,
            "| top 1 queue_ms | fields time, queue_ms",
            {},
            [{"time": longest["time"], "queue_ms": longest["queue_ms"]}],
        ),
        (
            13,
            "service=finder duration_ms>500 | histogram 1h",
            {},
            _series([row for row in finder if row["duration_ms"] > 500], HOUR),
        ),
        (14, "voucher | stats min(time) as first", {}, [{"first": vouchers[0]["time"]}]),
        (15, "voucher | stats max(time) as last", {}, [{"last": vouchers[-1]["time"]}]),
        (16, "voucher | histogram 10m", {}, _series(vouchers, HOUR // 6)),
        (17, "voucher | count by version", {}, facts.count(vouchers, "version")),
        (
            18,
            "level>=error | stats count by time 1h, service",
            {},
            sorted(
                facts.count([{**row, "time": row["time"] // HOUR * HOUR} for row in facts.errors()], "time", "service"),
                key=lambda row: (row["time"], row["service"]),
            ),
        ),
        (
            19,
            "level>=error | compare 1d by service",
            of_day,
            sorted(
                (
                    {
                        "service": name,
                        "now": (a := sum(row["service"] == name for row in now_errors)),
                        "before": (b := sum(row["service"] == name for row in before)),
                        "change": a - b,
                    }
                    for name in per(now_errors + before, "service")
                ),
                key=lambda row: (-row["now"], -row["before"], row["service"]),
            ),
        ),
        (
            23,
            "logger=deploy | order asc | fields message",
            {},
            [{"message": row["message"]} for row in rows if row["logger"] == "deploy"],
        ),
        (24, f"| trace {trace} | fields time", {}, [{"time": row["time"]} for row in traced]),
        (
            25,
            f"| trace {trace} | stats first(time) as since by service",
            {},
            [
                {"service": name, "since": min(row["time"] for row in traced if row["service"] == name)}
                for name in per(traced, "service")
            ],
        ),
        (
            26,
            f"user={user} path=* | order asc | fields path, status",
            {},
            [
                {"path": row["path"], "status": row["status"]}
                for row in rows
                if row.get("user") == user and "path" in row
            ],
        ),
        (27, "商品 | count", {}, [{"count": 1}]),
        (
            28,
            "reconn* | count",
            {},
            [{"count": sum(any(word.startswith("reconn") for word in words(row["message"])) for row in rows)}],
        ),
        (29, "items[*].sku=sku-7 | count", {}, [{"count": len(with_sku)}]),
        (
            30,
            "request.headers.agent~^curl | count",
            {},
            [
                {
                    "count": sum(
                        row.get("request", {}).get("headers", {}).get("agent", "").startswith("curl") for row in rows
                    )
                }
            ],
        ),
        (
            31,
            r"retry | parse message /job (?<kind>\w+)/ | count by kind",
            {},
            sorted(
                ({"kind": kind, "count": count} for kind, count in kinds.items()),
                key=lambda row: (-row["count"], row["kind"]),
            ),
        ),
        (
            32,
            "user in (u1, u2, u3) | count by user",
            {},
            facts.count([row for row in rows if row.get("user") in ("u1", "u2", "u3")], "user"),
        ),
        (
            33,
            "level>=error not trace_id exists | count by service",
            {},
            facts.count([row for row in facts.errors() if "trace_id" not in row], "service"),
        ),
        (34, "finalmark7 | fields service", {}, [{"service": "stock"}]),
        (
            36,
            "| stats max(time) as last by host | sort last",
            {},
            [{"host": host, "last": last} for host, last in sorted(silent.items(), key=lambda pair: pair[1])],
        ),
        (
            37,
            "service=basket level>=error | histogram 1h | where count > 5",
            {},
            [row for row in _series([row for row in base if row["level"] >= 40], HOUR) if row["count"] > 5],
        ),
        (
            40,
            "status exists | stats share(status>=500) as failed by service",
            of_hour,
            [{"service": name, "failed": share(name)} for name in per(requests_of_hour, "service")],
        ),
    ]


def _text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _series(rows, length) -> "list[dict]":
    times = [row["time"] // length * length for row in rows]
    return [
        {"time": begin, "count": times.count(begin)}
        for begin in (range(min(times), max(times) + 1, length) if times else ())
    ]


def _plain(rows) -> "list[dict]":
    """Return rows with times as nanoseconds."""
    is_time = lambda value: isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value)  # noqa: E731
    return [
        {key: incident.nanoseconds(value) if is_time(value) else value for key, value in row.items()} for row in rows
    ]


def _command(asked, kind, query, parameters, form="ndjson", by_service=True) -> str:
    place = ["--service", asked.services[kind].url] if by_service else ["--store", asked.addresses[kind]]
    options = [part for name, value in parameters.items() for part in (f"--{name}", str(value))]
    done = asked.services[kind].command("query", *place, query, *options, "--format", form)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_request_answers_a_question(asked):
    for number, query, parameters, expected in questions(asked):
        for kind in asked.services:
            status, rows, remarks = asked.ask(kind, query, **parameters)
            by_command = [json.loads(line) for line in _command(asked, kind, query, parameters).splitlines()]
            place = f"question {number} on {kind}: {query} {remarks}"
            assert status == 200, place
            for found in (_plain(rows), _plain(by_command)):
                assert len(expected) == len(found), f"{place}\n{expected}\n{found}"
                for one, two in zip(expected, found):
                    assert set(one) == set(two), place
                    assert all(_is_same(one[key], two[key]) for key in one), f"{place}\n{one}\n{two}"


def _is_same(one, two) -> bool:
    return one == two or (isinstance(one, float) and abs(one - two) <= 1e-9 * abs(one))


def test_neighbours_of_a_record_are_found_by_its_id(asked):
    facts = Facts(asked.made)
    first, last = facts.vouchers[0], facts.vouchers[-1]
    for kind in asked.services:
        ids = [row["id"] for row in asked.ask(kind, "voucher | order asc")[1]]
        near = [row for row in facts.rows if row["host"] == first["host"] and abs(row["time"] - first["time"]) <= 30e9]
        for query in (f"| around {ids[0]} 30s by host", f"host={first['host']} | around {ids[0]} 30s"):
            assert [row["time"] for row in near] == [row["time_ns"] for row in asked.ask(kind, query)[1]]
        of_host = [row["time"] for row in facts.rows if row["host"] == last["host"]]
        at = of_host.index(last["time"])
        found = asked.ask(kind, f"| around {ids[-1]} 10 by host")[1]
        assert of_host[max(at - 10, 0) : at + 11] == [row["time_ns"] for row in found]
        assert len({row["id"] for row in found}) == len(found)
        status, _, remarks = asked.ask(kind, "| around 5-0123456789ab 30s")
        assert status == 400 and "no record has the id 5-0123456789ab" in remarks["error"]
    assert len({tuple(row["id"] for row in asked.ask(kind, "voucher")[1]) for kind in asked.services}) == 1


def test_kinds_of_errors_are_found_and_those_that_are_new(asked):
    for kind in asked.services:
        found = {row["pattern"]: row["count"] for row in asked.ask(kind, "| errors")[1]}
        assert found["KeyError: '<*>' (File \"/srv/basket/views.py\", in handle)"] >= 30
        assert sum(found.values()) == len(Facts(asked.made).errors())
        everything = asked.ask(kind, "exception exists | errors", since="3h")[1]
        new = asked.ask(kind, "exception exists | errors new", since="3h")[1]
        known = {row["pattern"] for row in asked.ask(kind, "exception exists | errors", since="6h", until="3h")[1]}
        assert {row["pattern"] for row in new} == {row["pattern"] for row in everything} - known


def test_an_inner_query_gives_the_values_of_a_list(asked):
    facts = Facts(asked.made)
    failed = {row["user"] for row in facts.errors() if "user" in row}
    fine = {row["user"] for row in facts.rows if row.get("status") == 404}
    query = (
        "user in (level>=error | fields user) user not in (status=404 | count by user | fields user) | count by user"
    )
    expected = facts.count([row for row in facts.rows if row.get("user") in failed - fine], "user")
    for kind in asked.services:
        assert expected == asked.ask(kind, query)[1]
        status, _, remarks = asked.ask(kind, "level in (| fields bytes) user in (level>=error)")
        assert status == 400 and "expected" in remarks["error"]


def test_a_table_for_the_ticket_has_a_column_for_each_field(asked):
    facts = Facts(asked.made)
    expected = [[row["host"], row.get("user", ""), str(row["status"]), "ERROR"] for row in facts.vouchers[::-1]]
    for kind in asked.services:
        for by_service in (True, False):
            text = _command(asked, kind, "voucher | fields time, host, user, status, level", {}, "csv", by_service)
            head, *rows = csv.reader(io.StringIO(text))
            assert ["time", "host", "user", "status", "level"] == head
            assert expected == [row[1:] for row in rows]
            assert [row["time"] for row in facts.vouchers[::-1]] == [incident.nanoseconds(row[0]) for row in rows]


def test_a_table_is_shown_in_columns(asked):
    text = _command(
        asked, "sqlite", "service in (finder, vault) | stats count as n, p50(duration_ms) by service, level", {}, "text"
    )
    head, *rows = text.splitlines()
    assert ["service", "level", "n", "p50(duration_ms)"] == head.split()
    assert {"finder", "vault"} == {row.split()[0] for row in rows} and "ERROR" in text


def test_too_many_groups_are_an_error_with_place_and_fix(service):
    body = "\n".join(json.dumps({"message": "m", "n": number}) for number in range(10_001)).encode()
    assert service.post("/ingest", body, "application/x-ndjson")[0] == 200
    service.wait_for(0, "never")
    for query in ("| count by n, host", "| stats max(n) by n", "| histogram 1h by n"):
        status, body = service.get(f"/api/query?q={query.replace(' ', '+')}")
        assert status == 400 and "more than 10000 groups: use fewer fields" in body, body
        done = service.command("query", "--service", service.url, query)
        assert done.returncode == 2 and "^" in done.stderr.splitlines()[2]
    rows = service.query("| count by n")
    assert len(rows) == 10_001


def test_a_cut_answer_of_stages_says_how_many_rows_are_missing(asked):
    for kind in asked.services:
        every = asked.ask(kind, "| let x = status + 1")[1]
        for query, limit, all_rows in (
            ("| let x = status + 1", 10, len(every)),
            ("| sort duration_ms", 10, len(every)),
            ("| count by service, host", 5, len(asked.ask(kind, "| count by service, host")[1])),
            ("| histogram 1h by level", 7, len(asked.ask(kind, "| histogram 1h by level")[1])),
        ):
            whole = asked.ask(kind, query)[1]
            _, rows, remarks = asked.ask(kind, query, limit=limit)
            assert limit == len(rows) and {"left_out": all_rows - limit} == remarks
            assert rows == (whole[-limit:] if "histogram" in query else whole[:limit])


def test_values_that_are_no_numbers_are_counted(asked):
    facts = Facts(asked.made)
    wrong = sum(row.get("billed") == "none" for row in facts.rows)
    for kind in asked.services:
        _, _, remarks = asked.ask(kind, "billed exists | stats sum(billed)")
        assert [f"sum(billed) leaves out values that are not numbers: {wrong}"] == remarks["warnings"]
        _, rows, remarks = asked.ask(kind, "| top 3 user")
        assert rows == [] and "count by user" in remarks["warnings"][0]


def test_the_commands_of_the_how_to_are_answered(service, tmp_path):
    made = incident.records(3, time.time(), count=500)
    for record in made:
        record["message"] = record["message"].replace("voucher", "coupon")
    assert service.post("/ingest", incident.lines(made), "application/x-ndjson")[0] == 200
    service.wait_for(len(made))
    blocks = pages.blocks(pages.ROOT / "docs" / "how-to" / "find-a-cause.md")
    commands = [command for block in blocks for command, _ in pages.commands(block)]
    first = service.query("coupon level>=error | order asc | limit 1")[0]
    known = [("1795341600000000000-0a1b2c3d4e5f", first["id"]), ("4bf92f3577b34da6a3ce929d0e0e4736", first["trace_id"])]
    variables = {**os.environ, "PATH": f"{service.binary.parent}:{os.environ['PATH']}", "LOGSPOOL_SERVICE": service.url}
    assert len(commands) >= 10
    for command in commands:
        for example, found in known:
            command = command.replace(example, found)
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout or (tmp_path / "errors.csv").exists(), command


def test_facets_and_fields_show_what_can_be_asked(asked):
    facts = Facts(asked.made)
    services = facts.count(facts.rows, "service")
    for kind in asked.services:
        status, body = asked.services[kind].get("/api/facets?q=level%3E%3Ddebug")
        rows = [json.loads(line) for line in body.splitlines()]
        found = [{"service": row["value"], "count": row["count"]} for row in rows if row.get("field") == "service"]
        assert status == 200 and services[:10] == found
        assert {"field", "records", "values", "value", "count"} == set(rows[0])
        place = ["--service", asked.services[kind].url]
        text = asked.services[kind].command("fields", *place).stdout
        assert {"level", "host", "service"} <= {line.split()[0] for line in text.splitlines()[1:]}
        text = asked.services[kind].command("fields", "service", *place, "--format", "csv").stdout
        assert [["service", "count"], *([row["service"], str(row["count"])] for row in services)] == list(
            csv.reader(io.StringIO(text))
        )


def test_a_tail_begins_with_the_records_since_a_time(service):
    lines = [{"message": "old"}, {"message": "older"}]
    service.post("/ingest", "\n".join(map(json.dumps, lines)).encode(), "application/x-ndjson")
    service.wait_for(2)
    tail = subprocess.Popen(
        [service.binary, "tail", "--service", service.url, "--since", "5m", "--format", "ndjson"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    shown = {json.loads(tail.stdout.readline())["message"] for _ in range(2)}
    service.post("/ingest", b'{"message": "new"}', "application/x-ndjson")
    shown.add(json.loads(tail.stdout.readline())["message"])
    tail.kill()
    tail.wait()
    tail.stdout.close()
    assert {"old", "older", "new"} == shown
