"""A store that cannot be used, or only in part: the service's reports, and the parts that still work."""

import http.client
import json
import os
import shutil
import signal
import stat
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

DEADLINE = 30.0
#: The user of a query that may not write to the folder; only root can start such a query.
NOBODY = 65534


def post(service, *messages: str) -> None:
    body = "\n".join(json.dumps({"message": message}) for message in messages).encode()
    assert 200 == service.post("/ingest", body, "application/x-ndjson")[0]


def day_file(service) -> Path:
    (path,) = (service.folder / "data").glob("????-??-??.sqlite")
    return path


def ready(service, wanted) -> str:
    """Wait until `/readyz` answers as wanted; return its text."""
    until = time.monotonic() + DEADLINE
    while True:
        status, said = service.get("/readyz")
        if wanted(status, said):
            return said
        assert time.monotonic() < until, f"{status}: {said}"
        time.sleep(0.05)


def scribble(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 512)


def test_an_emptied_day_file_is_reported_and_records_are_still_stored_and_found(start_service):
    service = start_service()
    post(service, "before")
    assert 0 == service.stop()
    path = day_file(service)
    path.write_bytes(b"")

    service = start_service(folder=service.folder)
    said = ready(service, lambda status, said: status == 200)
    assert str(path.relative_to(service.folder)) in said and "it is empty; restore it from a backup" in said
    service.wait_said("it is empty; restore it", 1)
    assert "it is empty" in service.command("stats", "--service", service.url).stdout
    post(service, "after")
    assert ["after"] == [row["message"] for row in service.query("", "--limit", "1")]
    done = service.command("query", "--service", service.url, "--limit", "100")
    assert 1 == done.returncode and "it is empty" in done.stderr, done
    path.rename(path.with_name("away"))
    ready(service, lambda status, said: (status, said) == (200, "ok\n"))
    assert ["after"] == [row["message"] for row in service.query()]


def test_a_query_over_damaged_pages_names_the_file_and_the_reason(start_service):
    service = start_service()
    # More than one piece of an answer, and each record on a page of its own.
    for number in range(10):
        post(service, *(f"record {number * 10 + place} {'x' * 3000}" for place in range(10)))
    assert 0 == service.stop()
    path = day_file(service)
    scribble(path, path.read_bytes().index(b"record 20 ") // 4096 * 4096)

    service = start_service(folder=service.folder)
    for form in ("text", "ndjson", "csv"):
        done = service.command("query", "--service", service.url, "--limit", "100", "--format", form)
        assert 1 == done.returncode
        assert f"{path.name}: database disk image is malformed; restore it" in done.stderr, done.stderr
        assert "broke off" not in done.stderr and "record 99 " in done.stdout
    for form in ("text", "ndjson", "csv"):
        with urllib.request.urlopen(f"{service.url}/api/query?limit=100&format={form}", timeout=DEADLINE) as answer:
            # The body has no end: no client takes it for a complete answer.
            with pytest.raises(http.client.IncompleteRead) as broken:
                answer.read()
        rows = broken.value.partial.splitlines()
        assert b"malformed" in rows[-1] and b"error" in rows[-1], rows[-1]
    assert "malformed" in ready(service, lambda status, said: status == 200 and said != "ok\n")


def test_transactions_lost_by_a_damaged_log_are_reported(start_service):
    service = start_service()
    for number in range(20):
        post(service, f"record {number}")
    path = day_file(service)
    log = path.with_name(path.name + "-wal")
    service.stop(signal.SIGKILL)
    scribble(log, log.stat().st_size // 2)
    # A log that was just written to is not checked.
    os.utime(log, (1, 1))
    done = service.command("query", "--store", f"sqlite:{path.parent}")
    assert 0 == done.returncode and f"warning: {log}" in done.stderr and "acknowledged are lost" in done.stderr

    service = start_service(folder=service.folder)
    said = ready(service, lambda status, said: status == 200)
    assert f"{log.name} is damaged: the records of at least" in said and "acknowledged are lost" in said
    service.wait_said("acknowledged are lost", 1)


def test_a_folder_that_others_can_open_is_closed_to_them(start_service, tmp_path):
    folder = tmp_path / "service" / "data"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    service = start_service("--file", str(tmp_path / "text.log"))
    post(service, "secret")

    service.wait_said("other users could open", 1)
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in [*folder.iterdir(), tmp_path / "text.log"]}


def test_a_store_that_cannot_be_opened_leaves_the_other_one_working_and_is_used_later(start_service, tmp_path):
    holder = start_service(folder=tmp_path / "holder")
    text = tmp_path / "text.log"
    service = start_service("--store", f"sqlite:{holder.folder / 'data'}", "--file", str(text))

    assert any("not ready: store sqlite: cannot write to" in line for line in service.said), service.said
    said = ready(service, lambda status, said: status == 503)
    assert f"process {holder.process.pid} does; give each service its own folder" in said
    host, port = service.tcp
    with subprocess.Popen(["bash", "-c", f'echo \'{{"message": "a"}}\' > /dev/tcp/{host}/{port}']) as sender:
        assert 0 == sender.wait(DEADLINE)
    until = time.monotonic() + DEADLINE
    while " a " not in text.read_text():
        assert time.monotonic() < until, text.read_text()
        time.sleep(0.02)
    assert 0 == holder.stop()
    assert "ok\n" == ready(service, lambda status, said: status == 200)
    assert 0 == service.stop(), service.said


def read_only_by_rights(folder: Path):
    """Run a command as a user who can read the folder and not write to it."""
    for path in folder.iterdir():
        os.chown(path, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o500)
    return [], {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def read_only_by_mount(folder: Path):
    """Run a command for which the folder is mounted read-only, in a mount namespace of its own."""
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(folder)], {}


@pytest.mark.parametrize("place", [read_only_by_rights, read_only_by_mount])
@pytest.mark.parametrize("end", ["stopped", "killed", "killed, no -shm"])
def test_a_store_can_be_queried_on_a_read_only_disk(start_service, logspool_binary, place, end):
    if os.geteuid() != 0:
        pytest.skip("only root can run a query as somebody else, or mount")
    if place is read_only_by_mount and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    service = start_service()
    post(service, "a", "b")
    service.stop(signal.SIGTERM if end == "stopped" else signal.SIGKILL)
    # In a folder that every user may read, so that only the rights of the store count.
    parent = Path(subprocess.check_output(["mktemp", "-d", "/tmp/logspool-XXXXXX"], text=True).strip())
    try:
        parent.chmod(0o755)
        binary = Path(shutil.copy(logspool_binary, parent / "logspool"))
        folder = parent / "data"
        shutil.copytree(service.folder / "data", folder)
        if end == "killed, no -shm":
            for path in folder.glob("*-shm"):
                path.unlink()
        before, options = place(folder)
        for expression, expected in [("", ["b", "a"]), ("b", ["b"])]:
            command = [*before, binary, "query", "--store", f"sqlite:{folder}", "--format", "ndjson", expression]
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, **options)
            assert 0 == done.returncode, done.stderr
            assert expected == [json.loads(line)["message"] for line in done.stdout.splitlines()]
    finally:
        shutil.rmtree(parent)
