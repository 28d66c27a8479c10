"""Records of twelve services over two days with an incident, for tests of queries."""

import datetime
import json
import random

SERVICES = [
    "basket",
    "billing",
    "catalog",
    "courier",
    "finder",
    "gateway",
    "inbox",
    "ledger",
    "mailer",
    "quota",
    "stock",
    "vault",
]
HOSTS = ["node-1", "node-2", "node-3", "node-4", "node-5", "node-6"]
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
HOUR = 3600.0

#: Time of the deployment that causes the incident, in seconds before the end.
INCIDENT = 9 * HOUR

TRACEBACK = """Traceback (most recent call last):
  File "/srv/{service}/views.py", line {line}, in handle
    total = price["{key}"]
KeyError: '{key}'"""


def records(seed: int, end: float, count: int = 3_000) -> "list[dict]":
    """Return records as a sender sends them, oldest first; no two have the same time."""
    pick = random.Random(seed)
    begin = end - 48 * HOUR
    made = [_record(pick, when, end) for when in _times(pick, begin, end - 60, count)]
    for name, hours in (("basket", 40), ("finder", 30), ("gateway", 20), ("basket", INCIDENT / HOUR)):
        text = f"deployed {name} 2.{int(50 - hours)}"
        made.append(_base(end - hours * HOUR + 0.5, "info", name, "node-1", text, logger="deploy"))
    for number in range(30):
        when = end - INCIDENT + number * 600 + 7.25
        user = f"u{number % 11}"
        made.append(
            _base(when, "error", "basket", HOSTS[number % 2], f"voucher {number} rejected", logger="basket.cart")
            | {"user": user, "status": 500, "version": "2.41", "duration_ms": 40 + number, "trace_id": f"trace{number}"}
            | {"exception": TRACEBACK.format(service="basket", line=40 + number, key=f"voucher{number}")}
        )
    made.append(_base(end - 5 * HOUR + 0.1, "warning", "stock", "node-5", "x" * 5_000 + " finalmark7"))
    made.append(_base(end - 4 * HOUR + 0.2, "info", "catalog", "node-4", "商品を追加しました"))
    made.sort(key=lambda record: record["time"])
    for record in made:
        record["time"] = _text(record["time"])
    return made


def lines(made: "list[dict]") -> bytes:
    """Return the records as lines of JSON."""
    return "\n".join(map(json.dumps, made)).encode()


def nanoseconds(text: str) -> int:
    """Return the time of a record in nanoseconds since 1970."""
    whole, _, part = text.rstrip("Z").partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * 1_000_000_000 + int((part or "0").ljust(9, "0"))


def _text(when: float) -> str:
    micros = round(when * 1_000_000)
    whole = datetime.datetime.fromtimestamp(micros // 1_000_000, datetime.timezone.utc)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{micros % 1_000_000:06}Z"


def _times(pick: random.Random, begin: float, end: float, count: int) -> "list[float]":
    known: dict[int, float] = {}
    while len(known) < count:
        when = pick.uniform(begin, end)
        known.setdefault(round(when * 1_000_000), when)
    return list(known.values())


def _base(when: float, level: str, service: str, host: str, message: str, **more: object) -> dict:
    return {"time": when, "level": level, "service": service, "host": host, "message": message, **more}


def _record(pick: random.Random, when: float, end: float) -> dict:
    service = pick.choice(SERVICES)
    # One host has gone silent.
    hosts = HOSTS[:5] if when > end - 6 * HOUR else HOSTS
    host = pick.choice(hosts)
    kind = pick.random()
    user = f"u{pick.randrange(40)}"
    if kind < 0.55:
        slow = 3 if service == "finder" and host == "node-3" else 1
        status = pick.choice([200, 200, 200, 201, 404, 500, 503])
        level = "error" if status >= 500 else "info"
        duration = round(pick.lognormvariate(4, 1) * slow, pick.choice([0, 1, 3]))
        made = _base(
            when, level, service, host, f"{pick.choice(['GET', 'POST'])} /{service}/{pick.randrange(9)} {status}"
        )
        made |= {"logger": f"{service}.web", "user": user, "status": status, "duration_ms": duration}
        made |= {"bytes": pick.randrange(100, 90_000), "path": f"/{service}/{pick.randrange(9)}"}
        made |= {
            "request": {
                "method": "GET",
                "headers": {"agent": pick.choice(["curl/8.5", "Mozilla/5.0", "python-httpx/0.27"])},
            }
        }
        if pick.random() < 0.6:
            made["trace_id"] = f"trace{pick.randrange(300)}"
        return made
    if kind < 0.65:
        items = [
            {"sku": f"sku-{pick.randrange(90)}", "count": pick.randrange(1, 4)} for _ in range(pick.randrange(1, 4))
        ]
        return _base(when, "info", "basket", host, "order placed", logger="basket.order") | {
            "user": user,
            "items": items,
        }
    if kind < 0.75:
        job = pick.choice(["mail", "report", "sync"])
        return _base(
            when, "warning", service, host, f"retry of job {job} after {pick.randrange(1, 90)} s", logger="jobs"
        )
    if kind < 0.85:
        return _base(when, "debug", service, host, "queue", logger="queue") | {"queue_ms": pick.randrange(0, 5_000)}
    if kind < 0.9:
        text = pick.choice(["reconnecting to db", "reconnected", "connection lost", "out of memory", "disk full"])
        return _base(when, "warning", service, host, text, logger="net") | {
            "billed": pick.choice([5, "7", "none", 2.5])
        }
    if kind < 0.93:
        made = _base(when, "error", service, host, f"cannot read '{pick.randrange(900)}'", logger=f"{service}.io")
        return made | {
            "exception": TRACEBACK.format(service=service, line=pick.randrange(90), key=f"k{pick.randrange(9)}")
        }
    return _base(when, pick.choice(["debug", "info"]), service, host, f"tick {pick.randrange(99)}")
