"""The samples of docs/how-to/senders.md send the records that the page says."""

import pytest

import service_tools

from .conftest import run, tool
from .page import addressed, sample

#: The logger, the message and the fields that a sample sends, and whether it says the level.
PYTHON = {
    "Python's standard library": ("shop", {"customer": 42}),
    "fluent-logger for Python": ("shop.cart", {"customer": 42, "tag": "shop"}),
    "OpenTelemetry for Python": ("shop.cart", {"customer": 42, "service.name": "shop"}),
    "graypy": ("shop", {"customer": 42}),
}


@pytest.mark.parametrize("heading", PYTHON)
def test_a_sample_in_python_sends_its_record(service, tmp_path, heading):
    python = tool(service_tools.python)
    (tmp_path / "sample.py").write_text(addressed(sample(heading), service))
    run([str(python), "sample.py"], tmp_path)

    (row,) = service.wait_for(1)

    name, fields = PYTHON[heading]
    assert ("order 7 paid", 20, name) == (row["message"], row["level"], row["logger"])
    assert fields.items() <= row["fields"].items()


def test_the_sample_for_node_sends_its_record(service, node, tmp_path):
    program, variables = node
    (tmp_path / "sample.cjs").write_text(addressed(sample("@fluent-org/logger for Node.js"), service))
    run([program, "sample.cjs"], tmp_path, **variables)

    # It ends when its record is acknowledged.
    (row,) = service.query()

    assert ("order 7 paid", 20, "shop.cart", {"customer": 42}) == (
        row["message"],
        row["level"],
        row["logger"],
        row["fields"],
    )


def test_the_samples_for_logger_send_their_records(service, logger, tmp_path):
    commands = [line[2:] for line in sample("logger").splitlines() if line.startswith("$ ")]
    for command in commands:
        # Not every machine has a journal.
        command = command.replace("journalctl --output=cat --lines=1000", "printf 'one\\ntwo\\n'")
        run(["bash", "-e", "-o", "pipefail", "-c", addressed(command, service)], tmp_path)

    rows = service.wait_for(5)

    assert ["one", *["order 7 paid"] * 3, "two"] == sorted(row["message"] for row in rows)
    assert {"shop", "journal"} == {row["logger"] for row in rows}
    assert [{"customer": "42"}] == [row["fields"]["order@32473"] for row in rows if "order@32473" in row["fields"]]
