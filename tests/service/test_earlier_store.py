"""The store that an earlier version left is read, and takes new records."""

import pytest

from earlier import make_files
from earlier.kept import VERSIONS, unpacked


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_an_earlier_version_answers_and_takes_new_records(version, tmp_path, start_service):
    unpacked(version, "store", tmp_path / "store")
    service = start_service("--store", f"sqlite:{tmp_path / 'store'}")
    since = ("--since", "2026-11-01T00:00:00Z")

    rows = service.query("", *since)

    assert [row["message"] for row in rows] == [sent["message"] for sent in reversed(make_files.SENT)]
    assert [(row["level"], row["host"]) for row in service.query("payment", *since)] == [(40, "web1")]
    assert [row["message"] for row in service.query("商品", *since)] == ["商品を追加しました"]
    new = b'{"message": "a new one", "time": "2026-11-22T11:00:00Z"}'
    assert service.post("/ingest", new, "application/x-ndjson")[0] == 200
    assert service.query("", *since)[0]["message"] == "a new one"
    assert not [line for line in service.said if "cannot" in line or "quarantine" in line]
