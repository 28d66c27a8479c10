"""Services whose stores have the same records, one service for each kind of store."""

import dataclasses
import json
import time
import urllib.parse

import incident
import query_model

Rows = query_model.Rows


@dataclasses.dataclass
class AskedStores:
    """The services by kind of store, the records, and the address of each store."""

    services: dict
    made: "list[dict]"
    addresses: "dict[str, str]"

    def ask(self, kind: str, query: str, **parameters: object) -> "tuple[int, Rows, dict]":
        """Return the status of an answer over HTTP, its rows, and the remarks on it."""
        encoded = urllib.parse.urlencode({"q": query, "limit": 0, **parameters})
        status, body = self.services[kind].get(f"/api/query?{encoded}")
        if status != 200:
            return status, [], json.loads(body)
        rows = [json.loads(line) for line in body.splitlines()]
        is_remark = bool(rows) and set(rows[-1]) <= {"left_out", "future", "warnings", "error"}
        remarks = rows.pop() if is_remark else {}
        return status, rows, remarks


def start(start_service, database, tmp_path, made: "list[dict]") -> AskedStores:
    """Send the records to a service with both kinds of stores; a second service reads PostgreSQL."""
    folder = tmp_path / "both"
    sqlite = f"sqlite:{folder / 'data'}"
    first = start_service("--store", sqlite, "--store", database.url(), folder=folder)
    status, body = first.post("/ingest", incident.lines(made), "application/x-ndjson")
    assert status == 200, body
    second = start_service("--store", database.url(), folder=tmp_path / "reader")
    asked = AskedStores({"sqlite": first, "postgres": second}, made, {"sqlite": sqlite, "postgres": database.url()})
    until = time.monotonic() + 60
    for kind in asked.services:
        while asked.ask(kind, "| count")[1] != [{"count": len(made)}]:
            assert time.monotonic() < until, kind
            time.sleep(0.05)
    return asked


def flat(row: dict) -> dict:
    """Return a row as the model has it: the keys of a record beside each other, times as nanoseconds."""
    if "time_ns" in row:
        return {"time": row["time_ns"], "message": row["message"], "logger": row["logger"], "level": row["level"]}
    return {key: incident.nanoseconds(value) if key == "time" and value else value for key, value in row.items()}
