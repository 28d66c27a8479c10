"""JSON as programs really write it: faults, levels on several scales, and the service's own output."""

import json

from test_limits import LISTEN
from test_protocols import send

#: Faults of one line, and the field `a` that they give.
FAULTS = {
    b'{"message":"m","a":NaN}': "NaN",
    b'{"message":"m","a":-Infinity}': "-Infinity",
    b'{"message":"m","a":1e400}': "1e400",
    b'{"message":"m","a":18446744073709551616}': "18446744073709551616",
    b'{"message":"m","a":"\\ud800x"}': "\ufffdx",
    b'{"message":"m","a":"caf\xe9"}': "caf\ufffd",
    b'{"message":"m","a":"x\ty\x1b[0m"}': "x\ty\x1b[0m",
}


def test_invalid_json_is_read_in_lines_and_in_a_list(service):
    expected = [*FAULTS.values()] * 2
    lines = b"\xef\xbb\xbf" + b"\n".join(FAULTS)
    listed = b"[" + b",".join([*FAULTS, b"{broken}"]) + b"]"
    for body, kind in ((lines, "application/x-ndjson"), (listed, "application/json")):
        status, answer = service.post("/ingest", body, kind)
        assert (200, len(FAULTS)) == (status, json.loads(answer)["records"])

    assert expected == [row["fields"]["a"] for row in reversed(service.query("message=m"))]
    (row,) = service.query("logger=logspool.undecoded")
    assert "{broken}" == row["fields"]["frame"]


def test_a_truncated_list_over_tcp_loses_only_itself(service):
    lines = [b'{"message":"line %d"}' % number for number in range(100)]
    lines[3:3] = [b'[{"message":"in a list"},', b'{"message":"cut off']
    send(service.tcp, b'{"message":"first"}\n' + b"\n".join(lines) + b"\n")

    service.wait_for(103)
    assert 1 == service.count("logger=logspool.undecoded")


def test_pino_levels_are_recognised_and_a_listener_can_have_another_scale(start_service):
    service = start_service(config='listen = ["tcp://127.0.0.1:0?levels=pino"]\nhttp = "127.0.0.1:0"\n')
    pino = b'{"level":%d,"time":1790000000000,"pid":7,"hostname":"h","msg":"%d"}'
    body = b"\n".join(pino % (level, level) for level in range(10, 70, 10))
    assert 200 == service.post("/ingest", body + b'\n{"level":40,"message":"python"}', "application/x-ndjson")[0]
    send(service.tcp, b'{"level":50,"message":"of the listener"}\n{"level":40,"message":"warning"}\n')

    service.wait_for(9)
    found = {row["message"] for row in service.query("level>=error")}
    assert {"50", "60", "python", "of the listener"} == found


def test_the_output_of_a_query_gives_the_same_records_when_it_is_sent_again(start_service, tmp_path):
    first, second = (start_service(config=f"{LISTEN}store = ['sqlite:{tmp_path}/{name}']\n") for name in "ab")
    body = {
        "time": "2026-09-21T14:13:20.123456789Z",
        "level": "WARNING",
        "logger": "shop",
        "message": "m",
        "host": "h",
        "pid": 7,
        "hostname": "other",
        "exception": "E",
        "user": {"level": "x"},
        "log": "y",
        "big": 2**64,
    }
    assert 200 == first.post("/ingest", json.dumps(body).encode(), "application/json")[0]
    sent = first.query()
    lines = first.command("query", "--service", first.url, "--format", "ndjson").stdout
    assert 200 == second.post("/ingest", lines.encode(), "application/x-ndjson")[0]

    def without_arrival(rows):
        return [{name: value for name, value in row.items() if not name.startswith("arrived")} for row in rows]

    again = second.query()
    assert without_arrival(sent) == without_arrival(again) and again[0]["arrived_ns"] > sent[0]["arrived_ns"]
