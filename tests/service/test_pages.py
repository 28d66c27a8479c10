"""Blocks of the pages that need a running service print what the pages show."""

import json
import os
import re
import socket
import subprocess
import sys
import time

from tools import tool

import service_tools
from conftest import DEADLINE
from suite import pages

HOW_TO = pages.ROOT / "docs" / "how-to"


def _blocks(page, test):
    """Return the blocks of a page that name a test of this file."""
    found = [block for block in pages.blocks(page) if (block.value("run by") or "").endswith(f"test_pages.py::{test}")]
    assert found
    return found


def _addressed(text, service):
    """Put the ports of a service in place of the default ports of a page."""
    ports = {"9020": service.tcp[1], "9021": service.udp[1], "9080": service.url.rsplit(":")[-1]}
    return re.sub(r"\b(9020|9021|9080)\b", lambda port: str(ports[port[0]]), text)


def _shell(command, service, folder):
    """Run a command of a page; return its standard output and standard error."""
    path = f"{service.binary.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LOGSPOOL_SERVICE": service.url}
    command = ["bash", "-c", _addressed(command, service)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    printed = done.stdout + done.stderr
    # A terminal shows the next prompt on a line of its own.
    return printed if not printed or printed.endswith("\n") else printed + "\n"


def _check_commands(block, service, folder):
    """Run the commands of a block, except commands without an end; compare their output."""
    for command, shown in pages.commands(block):
        if not command.startswith(("logspool serve", "logspool tail")):
            output = pages.Block(block.page, 0, "text", "", shown)
            checked = pages.Block(block.page, block.line, "console", "", command, output)
            checked.check(_shell(command, service, folder))


def _run_python(program, service, queue_dir, folder):
    """Run a program of a page; return its standard output."""
    variables = {**os.environ, "LOGSPOOL_QUEUE_DIR": str(queue_dir)}
    command = [sys.executable, "-c", _addressed(program, service)]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_of_the_how_to_print_the_output_on_the_page(service, queue_dir, tmp_path):
    page = HOW_TO / "collect-records.md"
    start, program, find = _blocks(page, "test_the_commands_of_the_how_to_print_the_output_on_the_page")
    ((_, shown),) = pages.commands(start)
    store = f"sqlite:{service.folder / 'data'}"
    said = "\n".join(service.said).replace(store, "sqlite:logspool-data") + "\n"
    pages.Block(page, start.line, "", "", "", pages.Block(page, 0, "", "", _addressed(shown, service))).check(said)

    # The handler takes its port from the standard library, whose default is the service's default port.
    port = f"import logging.handlers\nlogging.handlers.DEFAULT_TCP_LOGGING_PORT = {service.tcp[1]}\n"
    assert "" == _run_python(port + program.text, service, queue_dir, tmp_path)
    service.wait_for(2)
    _check_commands(find, service, tmp_path)


def test_the_queries_about_senders_print_the_output_on_the_page(service, tmp_path):
    (block,) = _blocks(HOW_TO / "collect-records.md", "test_the_queries_about_senders_print_the_output_on_the_page")
    two_hours_ago = time.time() - 7200
    lines = [
        {"message": "disk full", "level": "warning", "host": "web-1", "time": two_hours_ago},
        {"message": "started", "level": "info", "host": "web-2"},
        "{not JSON}",
        {"message": "disk replaced", "level": "info", "host": "web-3", "time": "2106-02-07T06:28:15Z"},
    ]
    for number, line in enumerate(lines, 1):
        with socket.create_connection(service.tcp, timeout=DEADLINE) as connection:
            connection.sendall((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
        # One after the other, since they are shown in the order of their arrival.
        service.wait_for(number)

    _check_commands(block, service, tmp_path)


def test_the_commands_of_the_readme_find_the_record(service, run_python, tmp_path):
    host, port = service.tcp
    run_python(
        "import logging, logging.handlers\n"
        f"logging.getLogger('shop').addHandler(logging.handlers.SocketHandler({host!r}, {port}))\n"
        "logging.getLogger('shop').error('payment of order %d failed', 7)\n"
    )
    service.wait_for(1)
    (block,) = _blocks(pages.ROOT / "README.md", "test_the_commands_of_the_readme_find_the_record")

    _check_commands(block, service, tmp_path)


def test_the_handler_on_the_page_reports_its_record_as_stored(service, queue_dir, tmp_path):
    page = HOW_TO / "send-to-a-service.md"
    (block,) = _blocks(page, "test_the_handler_on_the_page_reports_its_record_as_stored")

    block.check(_run_python(block.text, service, queue_dir, tmp_path))
    (row,) = service.wait_for(1)
    assert ("order 7 took 0.250 ms", {"customer": {"name": "Ada"}}) == (row["message"], row["fields"])


def test_the_blocks_about_two_services_work_with_one_of_them(start_service, database, queue_dir, tmp_path):
    page = HOW_TO / "two-services.md"
    first, second = (start_service("--store", database.url(), folder=tmp_path / name) for name in "ab")
    for block in _blocks(page, "test_the_blocks_about_two_services_work_with_one_of_them"):
        text = re.sub(r"\blogs-[ab]:", "127.0.0.1:", block.text)
        # The first port of the list is of the first service.
        text = re.sub(r",127.0.0.1:(9020|9080)", lambda port: ",127.0.0.1:" + _addressed(port[1], second), text)
        block.text = text
        if block.language == "python":
            block.check(_run_python(block.text, first, queue_dir, tmp_path))
            assert 0 == first.stop()
        else:
            _check_commands(block, first, tmp_path)


def test_the_commands_for_curl_print_the_output_on_the_page(service, tmp_path):
    tool(service_tools.curl)
    (tmp_path / "records.ndjson").write_text('{"message": "order 6 paid"}\n')
    (block,) = _blocks(HOW_TO / "senders.md", "test_the_commands_for_curl_print_the_output_on_the_page")

    # curl reports its progress on standard error unless that is a terminal.
    block.text = block.text.replace("$ curl ", "$ curl --silent ")
    _check_commands(block, service, tmp_path)
    assert ["order 6 paid", "order 7 paid", "order 7 paid", "order 8 paid"] == sorted(
        row["message"] for row in service.wait_for(4)
    )
