"""Clients of other services, which send to the paths that they know."""

import json

import pytest

from . import sent

SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
CONFIG = (
    'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:0"\n'
    f'[access]\ntoken_sha256 = ["{SECRET}"]\n[limits]\nframe_bytes = 65536\n'
)


@pytest.fixture
def guarded(start_service, monkeypatch):
    """A service that needs a token."""
    monkeypatch.setenv("LOGSPOOL_TOKEN", "secret")
    return start_service(config=CONFIG)


@pytest.mark.parametrize("client", ["elasticsearch", "loki", "seq", "splunk"])
def test_records_sent_by_clients_of_other_services_are_found(guarded, run_sender, records_file, client):
    records = sent.records({"order": 7, "coupon": "x"})
    run_sender("doors.py", client, records_file(records), guarded.url, "secret")

    # The client has been answered: all is stored.
    rows = guarded.query("", "--limit", "1000")

    # Loki's lines have no line breaks at their ends. Splunk's form has no place for a level outside of the event.
    assert sent.in_order([(record.message, record.number) for record in records]) == sent.found(
        rows, "message", "level"
    )
    assert {"shop.cart"} == {row["logger"] for row in rows}
    for row in rows:
        fields = {**row["fields"], **row["fields"].get("fields", {})}
        assert ("7", "x") == (str(fields["order"]), fields["coupon"])


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_sent_by_opentelemetry_over_grpc_are_found(guarded, run_sender, records_file, compression):
    records = sent.records()
    for scheme, protocol in (("tcp", "http"), ("tcp", "")):
        host, port = guarded.address(scheme, protocol)
        run_sender("opentelemetry_grpc.py", records_file(records), f"{host}:{port}", compression, "secret")

    rows = guarded.query("", "--limit", "1000")

    assert sent.in_order([(record.message, record.number) for record in records] * 2) == sent.found(
        rows, "message", "level"
    )
    assert {("shop.cart", "web-1")} == {(row["logger"], row["host"]) for row in rows}
    assert all({"service.name": "shop", **sent.FIELDS}.items() <= row["fields"].items() for row in rows)


def test_calls_of_grpc_get_the_status_that_their_exporters_expect(start_service, run_sender):
    service = start_service(config=CONFIG.replace(f'[access]\ntoken_sha256 = ["{SECRET}"]\n', ""))
    guarded = start_service(config=CONFIG, folder=service.folder.parent / "guarded")
    address = service.url.removeprefix("http://")
    said, unreadable = "12052a030a0161", "12022a05"
    calls = {
        "": ["OK", ""],
        f"0a0d120b{said}{unreadable}": "OK",
        f"0a061204{unreadable}": "INVALID_ARGUMENT",
        "0a": "INVALID_ARGUMENT",
        # 2 MiB, which gzip makes small: the body may have 1 MiB.
        "2000000x00": "INVALID_ARGUMENT",
    }
    for compression in ("Gzip", "NoCompression"):
        told = json.loads(run_sender("grpc_calls.py", address, compression, *calls))
        for (message, expected), (status, answer) in zip(calls.items(), told):
            assert expected in (status, [status, answer]), (compression, message, status, answer)
        # The answer to a message with an unreadable record counts it.
        assert told[1][1].startswith("0a") and "0801" in told[1][1]
        assert "1048576 bytes" in told[4][1]
    assert 2 == service.count("not logger=logspool.undecoded")
    denied = json.loads(run_sender("grpc_calls.py", guarded.url.removeprefix("http://"), "Gzip", ""))
    assert "UNAUTHENTICATED" == denied[0][0]
