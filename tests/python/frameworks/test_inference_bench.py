"""The benchmark of an inference server counts correctly, attributes a stall to the logger, and runs at a small size."""

import asyncio
import fcntl
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / "bench"
NEEDED = ("fastapi", "uvicorn", "onnxruntime", "onnx", "numpy")


@pytest.fixture
def load(monkeypatch):
    """Return a function that imports a module of the benchmark. The modules are forgotten after the test."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith((str(BENCH), str(ROOT / "scripts"))):
            del sys.modules[name]


def run(*arguments):
    command = [sys.executable, str(BENCH / "inference"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_records_are_counted_by_number_in_text_and_in_json(load):
    sinks = load("inference.sinks")

    found = sinks.counted(b'INFO seq=0 a\n{"event": "b", "seq": 1}\n{"seq":12}\nseq=1 again\n3 records dropped\n')

    assert sinks.Received(lines=5, records=3, doubled=1) == found


@pytest.mark.parametrize(
    ("changed", "exact"),
    [({}, True), ({"written": 8}, False), ({"dropped": 1}, False), ({"accepted": 10}, False), ({"refused": 0}, False)],
)
def test_an_account_is_exact_only_if_it_counts_every_record(load, changed, exact):
    cell, sinks = load("inference.cell"), load("inference.sinks")
    finished = {"offered": 12, "accepted": 11, "written": 9, "dropped": 2, "refused": 1, **changed}

    found = cell._accounted(finished, sinks.Received(lines=9, records=9, doubled=0))

    assert exact is (found["exact"] == "yes"), found


def test_lines_of_an_access_log_are_part_of_the_account(load):
    cell, sinks = load("inference.cell"), load("inference.sinks")

    def account(lines):
        finished = {"offered": 10, "accepted": 15, "written": 15, "dropped": 0, "refused": 0}
        return cell._accounted(finished, sinks.Received(lines=lines, records=10, doubled=0))["exact"]

    assert "yes" == account(15)
    assert "yes" != account(14)


def test_a_duplicated_record_makes_the_account_inexact(load):
    cell, sinks = load("inference.cell"), load("inference.sinks")
    finished = {"offered": 2, "accepted": 2, "written": 2, "dropped": 0, "refused": 0}

    assert "yes" != cell._accounted(finished, sinks.Received(lines=3, records=2, doubled=1))["exact"]


@pytest.mark.parametrize("kind", ["slow", "stalled", "choked", "frozen"])
def test_a_sink_passes_on_every_line_after_it_recovers(load, tmp_path, kind):
    sinks = load("inference.sinks")
    sink = sinks.Sink(kind, tmp_path)
    try:
        sink.be("bad")
        flags = fcntl.fcntl(sink.descriptor, fcntl.F_GETFL)
        fcntl.fcntl(sink.descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        sent, refused = 0, 0
        while not refused:  # the pipe holds one page, and the reader does not keep up
            try:
                os.write(sink.descriptor, b"seq=%d\n" % sent)
                sent += 1
            except BlockingIOError:
                refused += 1
        fcntl.fcntl(sink.descriptor, fcntl.F_SETFL, flags)
        sink.be("healthy")
        os.write(sink.descriptor, b"seq=%d\n" % sent)
        sink.server_has_it()

        assert sinks.Received(sent + 1, sent + 1, 0) == sink.finish()
    finally:
        sink.kill()


@pytest.mark.parametrize("rate", [0, 200])
def test_the_waiting_time_of_requests_to_a_stalled_server_is_counted(load, rate):
    client = load("inference.client")

    async def measure():
        handlers = []

        async def never_answer(reader, writer):
            handlers.append(asyncio.current_task())
            await reader.read()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
        load_ = client.Load("/")
        await load_.connect(server.sockets[0].getsockname()[1], 2)
        found = await load_.run(0.5, rate, 2)
        for connection in (*load_.busy, *load_.idle):
            connection.transport.close()
        await asyncio.gather(*handlers)
        server.close()
        await server.wait_closed()
        return found

    found = asyncio.run(measure())

    assert 0 == found["requests"]
    # In the closed loop two requests wait, in the open loop all requests that were due.
    assert 2 == found["unanswered"] if rate == 0 else 50 <= found["unanswered"] <= 101
    assert found["max_ms"] >= 499


def test_a_missed_target_and_a_wrong_account_are_named(load):
    plan, results = load("inference.plan"), load("results").Results({})
    judge = load("inference.__main__").Inference().judge
    good = {"ratio": 0.97, "added_us": 10.0, "p99_ratio": 1.2, "exact": "yes"}
    for workload, kind in [("tokens", "file"), ("classify", "file"), *(("classify", kind) for kind in plan.sinks.BAD)]:
        results.add("logspool", plan.case(workload, kind), 0, good)
    assert all(verdict.met for verdict in judge(results))

    results.cells["logspool"]["classify file"][0] |= {"ratio": 0.969}
    results.cells["logspool"]["classify frozen"][0] |= {"p99_ratio": 1.21, "exact": "one is missing"}

    assert [
        "classify: requests a second, of none",
        "classify, pipe that nobody reads: p99 at a fixed rate, of none",
        "logspool, classify frozen: accepted = written + dropped, and what was written has arrived",
    ] == [verdict.what for verdict in judge(results) if verdict.met is False]


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_the_loop_on_a_gpu_says_that_it_needs_torch():
    done = run("--gpu")

    assert (0, "not measured: torch is not installed. Nothing is judged.\n") == (done.returncode, done.stdout)


def test_a_server_is_measured_and_its_account_is_exact(tmp_path):
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the server needs {', '.join(missing)}, which `make bench-inference` installs")

    choice = ["--modes", "logspool", "--workloads", "classify,tokens", "--sinks", "file,frozen"]
    done = run("--quick", *choice, "--out", str(tmp_path))

    assert 0 == done.returncode, done.stdout + done.stderr
    results = json.loads((tmp_path / "raw.json").read_text())
    assert {} == results["failed"]
    assert {"classify file", "classify frozen", "tokens file"} == set(results["cells"]["logspool"])
    for (figures,) in results["cells"]["logspool"].values():
        assert "yes" == figures["exact"]
        assert figures["offered"] == figures["received"] + figures["counts"]["dropped"] + figures["counts"]["refused"]
        assert figures["received"] > 100
    assert "## Targets" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "plot.svg").exists()


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(tmp_path):
    pytest.importorskip("onnxruntime")
    done = run("--quick", "--sinks", "fozen", "--out", str(tmp_path))

    assert 2 == done.returncode
    assert "unknown: fozen (known: file, slow, stalled, choked, frozen)" in done.stderr
