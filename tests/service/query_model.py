"""The query language on a list of records, in plain Python: a second opinion on the answers of a service.

A part of a query is its text and a function. The function of a condition says whether a row matches; the function of a
stage makes other rows of rows. A row is a dictionary; times are nanoseconds since 1970.
"""

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

from incident import LEVELS, nanoseconds

Row = dict[str, Any]
Condition = tuple[str, Callable[[Row], bool]]
Rows = list[Row]
StagePart = tuple[str, Callable[[Rows], Rows]]

#: Fields that a record has outside the keys of its sender.
RECORD_FIELDS = {"time", "level", "logger", "message", "host", "trace_id", "exception"}

TEXT_FIELDS = {"logger", "message", "host", "trace_id", "exception"}

JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


def stored(made: "list[dict]") -> Rows:
    """Return the records as a store has them, newest first."""
    rows = []
    for number, record in enumerate(made):
        row = {**record, "time": nanoseconds(record["time"]), "level": LEVELS[record["level"]], "number": number}
        rows.append({"logger": "", **row})
    return sorted(rows, key=lambda row: (-row["time"], -row["number"]))


def number(value: object) -> "int | float | None":
    """Return the number that a value is; a text that is written as a number counts as one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and JSON_NUMBER.fullmatch(value):
        return json.loads(value)
    return None


def order(value: object) -> tuple:
    """Return the key that sorts values of all types: missing ones, booleans, numbers, text, others."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value)
    if isinstance(value, str):
        return (3, value.encode())
    return (4, json.dumps(value, sort_keys=True))


def compare(row: Row, field: str, sign: str, wanted: object) -> bool:
    """Compare the value of a field; a value of another type, or none, is only unequal."""
    value = row.get(field)
    kinds = [type(each) if isinstance(each, (bool, str)) else float for each in (value, wanted)]
    is_comparable = value is not None and kinds[0] is kinds[1] and not isinstance(value, (list, dict))
    if sign == "!=":
        return not is_comparable or value != wanted
    if not is_comparable:
        return False
    one, two = (each.encode() if isinstance(each, str) else each for each in (value, wanted))
    return {"=": one == two, "<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[sign]


def words(text: str) -> "list[str]":
    """Return the words of an ASCII text."""
    return re.findall(r"[a-z0-9]+", text.lower())


class Maker:
    """Makes random queries for some records."""

    def __init__(self, seed: int, rows: Rows):
        """Choose by this seed."""
        self.pick = random.Random(seed)
        self.rows = rows
        self.fields = sorted(
            {name for row in rows for name in row} - {"number", "message", "exception", "items", "request"}
        )

    def query(self) -> "tuple[str, Callable[[], Rows], str]":
        """Return the text of a query, a function that finds its answer, and the kind of its rows."""
        pick = self.pick
        condition, holds = self.condition(2) if pick.random() < 0.8 else ("*", lambda _: True)
        stages: list[StagePart] = []
        columns: list[str] | None = None
        for _ in range(pick.choice([0, 1, 1, 2, 2, 3])):
            stage, columns = self.stage(columns)
            stages.append(stage)
        text = " ".join([condition, *(f"| {text}" for text, _ in stages)])

        def answer() -> Rows:
            rows = [dict(row) for row in self.rows if holds(row)]
            for _, run in stages:
                rows = run(rows)
            return rows

        return text, answer, "records" if columns is None else "rows"

    def condition(self, depth: int, columns: "list[str] | None" = None) -> Condition:
        """Return a condition."""
        kind = self.pick.random()
        if depth > 0 and kind < 0.3:
            (one, is_one), (two, is_two) = self.condition(depth - 1, columns), self.condition(depth - 1, columns)
            if self.pick.random() < 0.5:
                return f"({one} or {two})", lambda row: is_one(row) or is_two(row)
            return f"({one} {two})", lambda row: is_one(row) and is_two(row)
        if depth > 0 and kind < 0.4:
            inner, is_inner = self.condition(depth - 1, columns)
            return f"not ({inner})", lambda row: not is_inner(row)
        if columns is None and kind < 0.5:
            wanted = words(self.pick.choice(self.rows)["message"]) or ["tick"]
            phrase = wanted[: self.pick.randrange(1, 3)]
            quoted = '"' + " ".join(phrase) + '"'

            def has_words(row: Row) -> bool:
                found = words(row["message"])
                return any(found[at : at + len(phrase)] == phrase for at in range(len(found)))

            return quoted, has_words
        return self.comparison(columns)

    def comparison(self, columns: "list[str] | None") -> Condition:
        """Return a comparison of a field or column."""
        if columns is not None:
            field = self.pick.choice(columns)
            wanted = self.pick.choice([0, 1, 2, 5, 20, 60.5, 500])
            if field in TEXT_FIELDS or field in ("level", "time"):
                return (
                    f'{name(field)}!=""'
                    if field in TEXT_FIELDS
                    else "level>=10"
                    if field == "level"
                    else "time>2000-01-01",
                    {
                        True: lambda row: row.get(field) != "",
                        False: lambda row: row.get(field) is not None and row[field] >= 10,
                    }[field in TEXT_FIELDS],
                )
        else:
            field = self.pick.choice([name for name in self.fields if name != "time"])
            wanted = self.pick.choice(self.rows).get(field)
            if wanted is None:
                wanted = {"level": 30}.get(field, "x" if field in TEXT_FIELDS else 7)
        sign = self.pick.choice(["=", "!=", "<", "<=", ">", ">="])
        text = json.dumps(wanted, ensure_ascii=False)
        return f"{name(field)}{sign}{text}", lambda row: compare(row, field, sign, wanted)

    def field(self, columns: "list[str] | None") -> str:
        """Return a field for groups or sums."""
        if columns is not None:
            return self.pick.choice(columns)
        return self.pick.choice([name for name in self.fields if name != "time"])

    def stage(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Return a stage after rows with these columns (`None`: records), and the columns of its rows."""
        kinds = [self.group, self.where, self.sort, self.top, self.limit, self.fields_stage, self.let]
        weights = [8, 2, 2, 2, 1, 1, 2]
        if columns is None:
            kinds, weights = [*kinds, self.histogram, self.parse], [*weights, 3, 1]
        return self.pick.choices(kinds, weights)[0](columns)

    def where(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Keep rows."""
        text, holds = self.condition(1, columns)
        return (f"where {text}", lambda rows: [row for row in rows if holds(row)]), columns

    def sort(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Sort rows; missing values come last."""
        field, is_descending = self.field(columns), self.pick.random() < 0.5

        def run(rows: Rows) -> Rows:
            known = [row for row in rows if row.get(field) is not None]
            missing = [row for row in rows if row.get(field) is None]
            known.sort(key=lambda row: order(row[field]), reverse=is_descending)
            if is_descending:  # a reversed sort of Python keeps the order of equal rows, too
                return known + missing
            return known + missing

        return (f"sort {name(field)}{' desc' if is_descending else ''}", run), columns

    def top(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Keep the rows with the largest numbers."""
        field, most = self.field(columns), self.pick.randrange(1, 9)
        by = self.field(columns) if self.pick.random() < 0.3 else None

        def run(rows: Rows) -> Rows:
            found = [row for row in rows if number(row.get(field)) is not None]
            found.sort(key=lambda row: -number(row[field]))
            kept: dict[tuple, int] = {}
            result = []
            for row in found:
                group = order(row.get(by)) if by else ()
                kept[group] = kept.get(group, 0) + 1
                if kept[group] <= most:
                    result.append(row)
            return result

        return (f"top {most} {name(field)}{f' by {name(by)}' if by else ''}", run), columns

    def limit(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Keep the first rows."""
        most = self.pick.randrange(1, 30)
        return (f"limit {most}", lambda rows: rows[:most]), columns

    def fields_stage(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Keep columns."""
        chosen = list(dict.fromkeys(self.field(columns) for _ in range(self.pick.randrange(1, 4))))

        def run(rows: Rows) -> Rows:
            return [{field: row.get(field) for field in chosen} for row in rows]

        return (f"fields {', '.join(map(name, chosen))}", run), chosen

    def let(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Add a column."""
        fields = [self.field(columns), self.field(columns)]
        sign = self.pick.choice("+-*/")

        def run(rows: Rows) -> Rows:
            for row in rows:
                one, two = (number(row.get(field)) for field in fields)
                result = None
                if one is not None and two is not None and not (sign == "/" and two == 0):
                    one, two = float(one), float(two)
                    result = {"+": one + two, "-": one - two, "*": one * two, "/": one / two if two else 0.0}[sign]
                row["made"] = result
            return rows

        made = None if columns is None else [*(each for each in columns if each != "made"), "made"]
        return (f"let made = {name(fields[0])} {sign} {name(fields[1])}", run), made

    def parse(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Add the groups of an expression to records; they are used by the next group."""
        source, pattern = (
            r"(?<verb>GET|POST|job) (?<rest>[a-z\/]+)(?<digits>\d*)",
            re.compile(r"(?P<verb>GET|POST|job) (?P<rest>[a-z/]+)(?P<digits>\d*)"),
        )

        def run(rows: Rows) -> Rows:
            for row in rows:
                found = pattern.search(row["message"])
                for key in ("verb", "rest", "digits"):
                    text = found and found[key]
                    value = number(text)
                    row[key] = text if value is None else value
            groups: dict[tuple, Row] = {}
            for row in rows:
                group = groups.setdefault(
                    (order(row["verb"]), order(row["digits"])),
                    {"verb": row["verb"], "digits": row["digits"], "count": 0},
                )
                group["count"] += 1
            return sorted(
                groups.values(), key=lambda group: (-group["count"], order(group["verb"]), order(group["digits"]))
            )

        return (f"parse message /{source}/ | count by verb, digits", run), ["verb", "digits", "count"]

    def histogram(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Count by intervals; those between the first and the last are never missing."""
        minutes = self.pick.choice([60, 600])
        length = minutes * 60_000_000_000
        by = self.pick.choice([None, "level", "service", "status"])

        def run(rows: Rows) -> Rows:
            counts: dict[tuple, int] = {}
            values = {order(row.get(by)): row.get(by) for row in rows} if by else {(): None}
            for row in rows:
                key = (row["time"] // length * length, order(row.get(by)) if by else ())
                counts[key] = counts.get(key, 0) + 1
            if not counts:
                return []
            times = [time for time, _ in counts]
            return [
                {"time": time, **({by: value} if by else {}), "count": counts.get((time, key), 0)}
                for time in range(min(times), max(times) + 1, length)
                for key, value in sorted(values.items())
            ]

        return (f"histogram {minutes}m{f' by {by}' if by else ''}", run), ["time", *([by] if by else []), "count"]

    def group(self, columns: "list[str] | None") -> "tuple[StagePart, list[str] | None]":
        """Group rows."""
        keys = list(dict.fromkeys(self.field(columns) for _ in range(self.pick.choice([0, 1, 1, 1, 2]))))
        keys = [key for key in keys if key != "time"]
        buckets: dict[str, int] = {}
        if columns is None and self.pick.random() < 0.2:
            keys, buckets = [*keys, "time"], {"time": 3_600_000_000_000}
        elif keys and keys[0] in ("duration_ms", "queue_ms", "bytes", "count"):
            buckets = {keys[0]: 500}
        is_count = self.pick.random() < 0.3
        parts = [("count", "count", len)] if is_count else self.aggregates(columns, keys)
        free = next(each for each in ("n", "m", "o") if each not in keys)
        parts = [part for part in parts if part[1] not in keys] or [(f"count as {free}", free, len)]
        written = {"time": "time 1h"} | {key: f"{name(key)} 500" for key in buckets if key != "time"}
        by = (
            f" by {', '.join(written.get(key, name(key)) if key in buckets else name(key) for key in keys)}"
            if keys
            else ""
        )
        is_count = is_count and parts[0][0] == "count"

        def run(rows: Rows) -> Rows:
            groups: dict[tuple, tuple[list, Rows]] = {}
            if not keys:
                groups[()] = ([], [])
            for row in rows:
                values = [bucket(row.get(key), buckets.get(key)) for key in keys]
                groups.setdefault(tuple(map(order, values)), (values, []))[1].append(row)
            made = [
                dict(zip(keys, values)) | {column: calculate(members) for _, column, calculate in parts}
                for values, members in groups.values()
            ]
            made.sort(key=lambda row: [order(row[key]) for key in keys])
            if "time" in buckets:
                made.sort(key=lambda row: row["time"])
            elif is_count:
                made.sort(key=lambda row: -row["count"])
            return made

        text = "count" if is_count else f"stats {', '.join(text for text, _, _ in parts)}"
        return (f"{text}{by}", run), [*keys, *(column for _, column, _ in parts)]

    def aggregates(
        self, columns: "list[str] | None", keys: "list[str]"
    ) -> "list[tuple[str, str, Callable[[Rows], object]]]":
        """Return the text, the column and the calculation of some aggregates."""
        made = []
        for _ in range(self.pick.randrange(1, 4)):
            function, field = self.pick.choice(sorted(AGGREGATES)), self.field(columns)
            if field == "time":
                continue
            calculate = AGGREGATES[function]
            text = f"{function}({name(field)})"
            column = f"a{len(made)}"
            made.append(
                (f"{text} as {column}", column, lambda rows, calculate=calculate, field=field: calculate(rows, field))
            )
        text, holds = self.condition(1, columns)
        made.append((f"share({text}) as part", "part", lambda rows: share(rows, holds)))
        return made


def name(field: str) -> str:
    """Write the name of a field."""
    return field if re.fullmatch(r"[\w.]+", field) else json.dumps(field)


def bucket(value: object, length: "int | None") -> object:
    """Return the begin of the interval of a value."""
    if length is None:
        return int(value) if isinstance(value, float) and value.is_integer() else value
    found = number(value)
    return (
        None
        if found is None
        else math.floor(found / length) * length
        if isinstance(found, float)
        else found // length * length
    )


def numbers(rows: Rows, field: str) -> list:
    """Return the numbers of a field."""
    return [found for row in rows if (found := number(row.get(field))) is not None]


def total(rows: Rows, field: str) -> object:
    """Add numbers."""
    found = numbers(rows, field)
    whole = sum(each for each in found if isinstance(each, int))
    doubles = [each for each in found if isinstance(each, float)]
    if not doubles:
        return whole if found else None
    result = 0.0
    for each in doubles:  # since Python 3.12, `sum` rounds less than a loop
        result += each
    return whole + result


def mean(rows: Rows, field: str) -> object:
    """Divide the sum by the count."""
    found = numbers(rows, field)
    return total(rows, field) / len(found) if found else None


def extreme(rows: Rows, field: str, choose: Callable) -> object:
    """Return the smallest or largest number, or else text."""
    found = numbers(rows, field)
    if found:
        return choose(found)
    others = [row[field] for row in rows if row.get(field) is not None]
    return choose(others, key=order) if others else None


def percentile(rows: Rows, field: str, share: int) -> object:
    """Return the smallest number that is not less than this share."""
    found = sorted(numbers(rows, field))
    return found[max(math.ceil(len(found) * share / 100), 1) - 1] if found else None


def by_time(rows: Rows, field: str, last: bool) -> object:
    """Return the value of the oldest or newest row that has one. Rows without a time are in order."""
    found = [row for row in rows if row.get(field) is not None]
    if not found:
        return None
    if "number" in found[0]:
        chosen = sorted(found, key=lambda row: (row["time"], row["number"]))
        return chosen[-1 if last else 0][field]
    if "time" in found[0]:
        times = [row["time"] for row in found]
        wanted = max(times) if last else min(times)
        return [row for row in found if row["time"] == wanted][-1 if last else 0][field]
    return found[-1 if last else 0][field]


def share(rows: Rows, holds: Callable[[Row], bool]) -> "float | None":
    """Return the share of rows that match."""
    return sum(map(holds, rows)) / len(rows) if rows else None


AGGREGATES: "dict[str, Callable[[Rows, str], object]]" = {
    "count": lambda rows, field: sum(row.get(field) is not None for row in rows),
    "sum": total,
    "avg": mean,
    "min": lambda rows, field: extreme(rows, field, min),
    "max": lambda rows, field: extreme(rows, field, max),
    "p50": lambda rows, field: percentile(rows, field, 50),
    "p95": lambda rows, field: percentile(rows, field, 95),
    "p99": lambda rows, field: percentile(rows, field, 99),
    "distinct": lambda rows, field: len({order(row[field]) for row in rows if row.get(field) is not None}),
    "first": lambda rows, field: by_time(rows, field, last=False),
    "last": lambda rows, field: by_time(rows, field, last=True),
}
