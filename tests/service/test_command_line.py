"""The commands: their output, and their answers to wrong input."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.fixture
def filled(service):
    """A service with a few records."""
    records = [
        {
            "message": "disk \x1b[31mfull\x1b[0m",
            "level": "error",
            "logger": "disk",
            "time": "2026-11-22T10:00:00Z",
            "n": 1,
        },
        {"message": "disk fine", "level": "info", "logger": "disk", "time": "2026-11-22T10:01:00Z", "n": 2},
        {
            "message": "paid",
            "level": "info",
            "logger": "shop",
            "time": "2026-11-22T10:01:30Z",
            "exception": "Trace\n  line",
        },
    ]
    body = "\n".join(map(json.dumps, records)).encode()
    assert 200 == service.post("/ingest", body, "application/x-ndjson")[0]
    return service


def test_text_shows_records_escaped_and_coloured_only_when_asked(filled):
    plain = filled.command("query", "--service", filled.url, "disk").stdout
    coloured = filled.command("query", "--service", filled.url, "disk", "--color", "always").stdout

    assert 2 == len(plain.splitlines())
    assert "\\x1b[31mfull" in plain and "\x1b" not in plain
    assert "\x1b[" in coloured and "\x1b[31mfull" not in coloured


def test_an_exception_is_shown_below_its_record(filled):
    text = filled.command("query", "--service", filled.url, "paid").stdout
    first, *rest = text.splitlines()
    assert "paid" in first
    assert ["Trace", "line"] == [line.strip() for line in rest]


def test_queries_can_print_ndjson_csv_counts_and_a_histogram(filled):
    assert [{"logger": "disk", "count": 2}, {"logger": "shop", "count": 1}] == filled.query("| count by logger")
    assert [{"time": "2026-11-22T10:00:00Z", "count": 1}, {"time": "2026-11-22T10:01:00Z", "count": 2}] == filled.query(
        "| histogram 1m"
    )
    assert ["paid", "disk fine"] == [row["message"] for row in filled.query("", "--since", "2026-11-22T10:01:00Z")]
    assert ["disk fine"] == [row["message"] for row in filled.query("n>=2")]
    csv = filled.command("query", "--service", filled.url, "logger=shop", "--format", "csv").stdout
    assert 3 == len(csv.splitlines()) and '"Trace' in csv
    bars = filled.command(
        "query", "--service", filled.url, "| histogram 1m", env={**os.environ, "COLUMNS": "60"}
    ).stdout
    assert 2 == len(bars.splitlines()) and all(len(line) <= 60 for line in bars.splitlines())


@pytest.mark.parametrize(
    ("query", "limit", "said"),
    [
        ("disk", 1, "2 records match, the newest 1 are shown (--limit 0 shows all)\n"),
        ("", 2, "3 records match, the newest 2 are shown (--limit 0 shows all)\n"),
        ("", 0, ""),
        ("", 3, ""),
        ("| count by logger", 1, "2 values, the most frequent 1 are shown (--limit 0 shows all)\n"),
        ("| last by logger", 1, "2 values, the newest 1 are shown (--limit 0 shows all)\n"),
        ("| histogram 1m", 1, "2 intervals, the newest 1 are shown (--limit 0 shows all)\n"),
    ],
)
def test_no_row_is_cut_without_a_word(filled, query, limit, said):
    for asked in (["--service", filled.url], ["--store", f"sqlite:{filled.folder}/data"]):
        done = filled.command("query", *asked, query, "--limit", str(limit), "--format", "ndjson")
        assert (limit or 3) == len(done.stdout.splitlines())
        assert said == done.stderr


@pytest.mark.parametrize(
    ("arguments", "rows", "said"),
    [
        (["mesage~disk"], 0, "no record of this time range has a field `mesage`: did you mean `message`?\n"),
        (["logger=dsk"], 0, 'no record of this time range has logger="dsk": did you mean logger="disk"?\n'),
        (["n>1"], 1, ""),
        (["n in (1, 2)"], 2, ""),
        (["", "--since", "yesterday"], 0, ""),
        (["", "--since", "1000w", "--until", "1.5h"], 3, ""),
    ],
)
def test_likely_mistakes_are_named_on_stderr(filled, arguments, rows, said):
    for asked in (["--service", filled.url], ["--store", f"sqlite:{filled.folder}/data"]):
        done = filled.command("query", *asked, *arguments, "--format", "ndjson")
        assert (rows, said) == (len(done.stdout.splitlines()), done.stderr)


def test_records_from_the_future_are_told(filled):
    later = [{"message": "ahead", "time": time.time() + 5400}] * 2
    filled.post("/ingest", "\n".join(map(json.dumps, later)).encode(), "application/x-ndjson")
    for asked in (["--service", filled.url], ["--store", f"sqlite:{filled.folder}/data"]):
        done = filled.command("query", *asked, "--format", "ndjson")
        assert (3, "2 matching records are from the future: the clock of a host is ahead (time>now shows them)\n") == (
            len(done.stdout.splitlines()),
            done.stderr,
        )
        assert 2 == len(filled.command("query", *asked, "time>now", "--format", "ndjson").stdout.splitlines())
    assert '{"future":2}' == filled.get("/api/query")[1].splitlines()[-1]


def test_an_answer_over_http_ends_with_the_number_of_missing_rows(filled):
    def last(path: str) -> str:
        return filled.get(path)[1].splitlines()[-1]

    assert '{"left_out":2}' == last("/api/query?limit=1")
    assert "3 records match, the newest 1 are shown (limit=0 shows all)" == last("/api/query?limit=1&format=text")
    assert [{"time": "2026-11-22T10:01:00Z", "count": 2}, {"left_out": 1}] == json.loads(
        last("/api/histogram?interval=1m&limit=1")
    )
    assert "left_out" not in filled.get("/api/query?limit=3")[1]


def test_a_field_named_count_can_be_counted(service):
    assert 200 == service.post("/ingest", b'{"count": "a"}\n{"count": "a"}\n{"count": "b"}', "application/json")[0]
    csv = service.command("query", "--service", service.url, "| count by count", "--format", "csv").stdout
    assert ["count,count", "a,2", "b,1"] == csv.split()


def test_a_store_can_be_queried_without_a_service(filled):
    filled.stop()
    store = f"sqlite:{filled.folder / 'data'}"
    done = filled.command("query", "--store", store, "logger=shop", "--format", "ndjson")
    assert ["paid"] == [json.loads(line)["message"] for line in done.stdout.splitlines()]


def test_tail_shows_only_matching_new_records(service):
    command = [service.binary, "tail", "--service", service.url, "level>=error", "--format", "ndjson"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        try:
            while json.loads(service.get("/api/stats")[1])["tails"] == 0:
                assert tail.poll() is None
            service.post(
                "/ingest", b'{"message":"no","level":20}\n{"message":"yes","level":40}', "application/x-ndjson"
            )
            assert "yes" == json.loads(tail.stdout.readline())["message"]
        finally:
            tail.kill()


def test_a_tail_goes_on_after_its_service_was_away_and_misses_nothing(start_service, tmp_path):
    def send(service, *messages):
        body = "\n".join(json.dumps({"message": message, "b": 1, "a": 2}) for message in messages).encode()
        assert 200 == service.post("/ingest", body, "application/x-ndjson")[0]

    first = start_service()
    port = first.address("tcp", "http")[1]
    command = [first.binary, "tail", "--service", first.url, "--format", "ndjson"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tail:
        try:
            while json.loads(first.get("/api/stats")[1])["tails"] == 0:
                assert tail.poll() is None
            send(first, "before", "same", "same")
            assert ["before", "same", "same"] == [json.loads(tail.stdout.readline())["message"] for _ in range(3)]
            first.stop()
            assert tail.stderr.readline().endswith("; connecting again ...\n")
            # Records arrive while the tail has no connection, at another address of the same store.
            folder = tmp_path / "service"
            other = start_service(folder=folder)
            send(other, "away", "same")
            other.stop()
            listen = f'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:{port}"\n'
            last = start_service(config=listen, folder=folder)
            assert "connected again\n" == tail.stderr.readline()
            assert ["away", "same"] == [json.loads(tail.stdout.readline())["message"] for _ in range(2)]
            send(last, "after")
            assert "after" == json.loads(tail.stdout.readline())["message"]
        finally:
            tail.kill()


def test_stats_show_the_state_of_the_service(filled):
    done = filled.command("stats", "--service", filled.url)
    assert 0 == done.returncode
    assert "accepted     3 records" in done.stdout and "stored       3" in done.stdout


@pytest.mark.parametrize("form", ["http://127.0.0.1:1,http://{}", "http://127.0.0.1:1,{}", "http://{}/,127.0.0.1:1"])
def test_the_first_service_of_a_list_that_can_be_reached_is_asked(filled, form):
    services = form.format(filled.url.removeprefix("http://"))
    done = filled.command("query", "--service", services, "--format", "ndjson", "logger=shop")
    assert ["paid"] == [json.loads(line)["message"] for line in done.stdout.splitlines()], done.stderr
    done = filled.command("stats", env={**os.environ, "LOGSPOOL_SERVICE": services})
    assert "accepted     3 records" in done.stdout, done.stderr


def test_an_error_names_all_services_that_were_tried(service):
    for arguments in (["query"], ["tail"], ["stats"]):
        done = service.command(*arguments, "--service", "http://127.0.0.1:1,127.0.0.1:2")
        tried = [f"cannot reach http://127.0.0.1:{port}/api/{arguments[0]}: " for port in (1, 2)]
        assert 1 == done.returncode and all(part in done.stderr for part in tried), done.stderr


@pytest.mark.parametrize(
    "arguments, code, part",
    [
        (["query", "(unclosed"], 2, "^"),
        (["query", "x", "--since", "soon"], 2, "--since"),
        (["query", "x", "--store", "mysql:x"], 2, "sqlite:FOLDER"),
        (["query", "x", "--store", "sqlite:nowhere"], 1, "nowhere"),
        (["query", "x", "--service", "http://127.0.0.1:1"], 1, "logspool serve"),
        (["query", "x", "--service", "http://127.0.0.1:1,"], 2, "an item of the list is empty (fix:"),
        (["frobnicate"], 2, "--help"),
        (["serve", "--listen", "tcp://nonsense"], 2, "HOST:PORT"),
        (["serve", "--store", "sqlite:"], 2, "no folder"),
        (["serve", "--config", "missing.toml"], 1, "missing.toml"),
        (["serve", "--listen", "tcp://0.0.0.0:0"], 1, "--insecure"),
        (["serve", "--http", "0.0.0.0:0"], 1, "--insecure"),
        (["serve", "--listen", "tls://127.0.0.1:0"], 1, "[tls]"),
        (["serve", "--listen", "tcp://127.0.0.1:9", "--http", "127.0.0.1:9"], 1, "http is 127.0.0.1:9"),
        (["serve", "--store", "sqlite:a", "--store", "sqlite:./a"], 1, "sqlite:a and sqlite:./a"),
        (["recover", "/nope"], 1, "cannot recover /nope: the folder does not exist"),
    ],
)
def test_invalid_input_is_refused_with_a_fix(logspool_binary, tmp_path, arguments, code, part):
    done = subprocess.run([logspool_binary, *arguments], capture_output=True, text=True, timeout=30, cwd=tmp_path)

    assert code == done.returncode, done.stderr
    assert part in done.stderr
    assert not (tmp_path / "logspool-data").exists()


def test_a_port_in_use_is_named(service, tmp_path):
    host, port = service.tcp
    done = service.command("serve", "--listen", f"tcp://{host}:{port}", "--http", "off", cwd=tmp_path)
    assert 1 == done.returncode
    assert f"cannot listen at tcp://{host}:{port}" in done.stderr


def test_one_folder_has_one_service(service, tmp_path):
    done = service.command(
        "serve", "--listen", "tcp://127.0.0.1:0", "--http", "off", "--store", f"sqlite:{service.folder / 'data'}"
    )
    assert 1 == done.returncode
    assert "data" in done.stderr


def test_check_config_shows_the_resulting_configuration(logspool_binary, service, tmp_path):
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(
        'listen = ["tcp://127.0.0.1:9020"]\nstore = ["postgres://me:secret@db:5432/logs"]\n[limits]\nconnections = 10\n'
    )
    bad.write_text('listen = ["tcp://127.0.0.1:9020"]\nlimit = 3\n')

    done = service.command("check-config", str(good))
    assert 0 == done.returncode and "postgres://db:5432/logs" in done.stdout and "secret" not in done.stdout
    done = service.command("check-config", str(bad))
    assert 1 == done.returncode and "line 2" in done.stderr and "limits" in done.stderr


@pytest.mark.parametrize(
    "text, part",
    [
        ("store = 3", "line 1: `store` is a number: write a list"),
        ("[retention]\ndays = 0", "retention.days is 0"),
        ("[limits]\nconnections = -1", "line 2: `limits.connections` is -1: write 0 or more"),
        ('[access]\nhosts = ["logs:9080"]', 'write the name without a port or path, "logs"'),
        ('file = "/tmp"', "file is /tmp, a folder"),
    ],
)
def test_check_config_explains_a_mistake_in_plain_words(logspool_binary, tmp_path, text, part):
    path = tmp_path / "wrong.toml"
    path.write_text(text + "\n")
    done = subprocess.run([logspool_binary, "check-config", path], capture_output=True, text=True, timeout=30)

    assert 1 == done.returncode
    assert f"{path}: " in done.stderr and part in done.stderr, done.stderr


def test_completions_are_printed(service):
    assert "logspool" in service.command("completions", "bash").stdout


def test_manual_pages_are_written_for_each_command(logspool_binary, tmp_path):
    def man(folder):
        return subprocess.run([logspool_binary, "man", folder], capture_output=True, text=True, timeout=30)

    assert man(tmp_path).returncode == 0
    commands = ("serve", "query", "tail", "stats", "check-config", "recover", "completions", "man")
    pages = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {"logspool.1", *(f"logspool-{command}.1" for command in commands)} <= set(pages)
    assert "\\-\\-store" in pages["logspool-serve.1"]

    done = man(tmp_path / "missing")
    assert done.returncode == 1
    assert f"cannot write manual pages into {tmp_path / 'missing'}: No such file" in done.stderr


def test_the_configuration_of_the_packages_is_valid(logspool_binary):
    settings = Path(__file__).parents[2] / "packaging" / "package" / "serve.toml"
    done = subprocess.run([logspool_binary, "check-config", settings], capture_output=True, text=True, timeout=30)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["stats"], ["stats", "--json"], ["check-config"], ["completions", "bash"]])
def test_an_unread_answer_causes_no_panic(service, tmp_path, arguments):
    if arguments[0] == "check-config":
        (tmp_path / "good.toml").write_text("[limits]\nconnections = 10\n")
        arguments = [*arguments, str(tmp_path / "good.toml")]
    if arguments[0] == "stats":
        arguments = [*arguments, "--service", service.url]
    unread, pipe = os.pipe()
    os.close(unread)
    with open(pipe, "wb") as closed, open("/dev/full", "wb") as full:
        for code, part, stdout in [(0, "", closed), (1, "No space left on device", full)]:
            done = service.command(*arguments, capture_output=False, stdout=stdout, stderr=subprocess.PIPE)
            assert code == done.returncode, done.stderr
            assert part in done.stderr and "panicked" not in done.stderr


def test_the_service_listens_where_it_says(service):
    for address in (service.tcp, service.address("tcp", "http")):
        socket.create_connection(address).close()


def test_python_passes_the_commands_of_the_service_to_its_program(service, logspool_binary):
    variables = {**os.environ, "PATH": f"{logspool_binary.parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "logspool", "stats", "--service", service.url, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=variables)
    assert 0 == done.returncode and 0 == json.loads(done.stdout)["records_accepted"]


def test_the_program_passes_the_commands_of_the_package_to_python(service):
    done = service.command("doctor", "--help", env={**os.environ, "PYTHON": sys.executable})
    assert 0 == done.returncode and "usage: python -m logspool doctor" in done.stdout
    done = service.command("doctor", env={**os.environ, "PYTHON": "/nonexistent/python"})
    assert 1 == done.returncode and "pip install logspool" in done.stderr
