"""Loggers of other libraries pass their records on to logspool."""

import json
from pathlib import Path

import pytest

HAS_SPDLOG = Path("/usr/include/spdlog/spdlog.h").exists()


def test_inference_runtimes_log_through_logspool(run_cpp, tmp_path):
    """Small headers replace the headers of ONNX Runtime and TensorRT: this tests the calls, not the runtimes."""
    run_cpp("inference", tmp_path / "a.log")

    lines = [json.loads(line) for line in (tmp_path / "a.log").read_text().splitlines()]
    onnx = [line for line in lines if line["logger"] == "onnxruntime"]
    place = {"category": "onnxruntime", "log_id": "model", "place": "session.cc:1 Run"}
    levels = ["INFO", "WARNING", "ERROR", "CRITICAL"]
    assert [{"level": level, "logger": "onnxruntime", "message": "{} ready"} | place for level in levels] == onnx[:4]
    assert ["(null)"] == [line["message"] for line in onnx[4:]]
    assert [("CRITICAL", "built {}"), ("ERROR", "built {}"), ("WARNING", "built {}"), ("INFO", "built {}")] + [
        ("DEBUG", "built {}")
    ] == [(line["level"], line["message"]) for line in lines if line["logger"] == "tensorrt"]


@pytest.mark.skipif(not HAS_SPDLOG, reason="spdlog is not installed: apt-get install libspdlog-dev")
def test_spdlog_logs_through_logspool(run_cpp, tmp_path):
    run_cpp("spdlog", tmp_path / "a.log", flags=("-DSPDLOG_FMT_EXTERNAL", "-lfmt"))

    assert [
        *(
            "DEBUG shop  d 1",
            "INFO shop  i   1",
            "WARNING shop  w {{}}",
            "ERROR shop  e bad \ufffd",
            "CRITICAL shop  c",
        ),
        "INFO shop spdlog.cpp placed 2.5",
    ] == (tmp_path / "a.log").read_text().splitlines()
