"""A worker of Celery writes each record once, with each of its pools, and if it or the program configures logging."""

import contextlib
import importlib.util
import re
import signal
import subprocess
from collections import Counter

import pytest

from frameworks import recipes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("celery") is None, reason="needs Celery"),
]

ORDERS = range(20)

#: By default the filesystem broker polls for messages every second, and a worker waits for other workers.
QUICK, ALONE = '"polling_interval": 0.02,', "--without-mingle --without-gossip --without-heartbeat"

#: The program of the page without a line for logspool.
PLAIN = """\
import logging

from celery import Celery
from celery.utils.log import get_task_logger

{configure}
app = Celery("plain", broker="filesystem://")
app.conf.broker_transport_options = {{
    "data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "broker/control",
    {quick}
}}
app.conf.worker_hijack_root_logger = {hijack}
log = get_task_logger("plain")


@app.task
def order(number):
    log.info("order %d", number)
"""


@pytest.fixture
def recipe(tmp_path, queue_dir):
    (tmp_path / "broker" / "control").mkdir(parents=True)
    recipe = recipes.Recipe("celery.md", tmp_path, queue_dir)
    recipe.change("shop.py", '"broker/control",', f'"broker/control", {QUICK}')
    return recipe


def _work(recipe, start, module, name, options=""):
    """Send all orders, let a worker do them, end it, and return the text of its log."""
    send = f"import {module}\nfor number in range({len(ORDERS)}):\n    {module}.order.delay(number)\n"
    recipe.call(["-c", send])
    with recipe.serving(start, options=f"{options} {ALONE}", has_port=False) as server:
        server.wait_for(name, r"succeeded in ", len(ORDERS))
        queues = server.queues()
        assert server.stop() == 0, server.text("err.txt")
    assert queues >= 1
    assert server.queues() == 0
    return server.text(name)


def _check(text, module):
    assert list(ORDERS) == recipes.numbers(text)
    received = re.findall(rf"Task {module}.order\[([-0-9a-f]+)\] received", text)
    succeeded = re.findall(rf"Task {module}.order\[([-0-9a-f]+)\] succeeded", text)
    assert len(ORDERS) == len(received) == len(set(received))
    assert sorted(received) == sorted(succeeded)
    assert 1 == text.count(" ready.")


def test_each_record_is_written_once(recipe):
    text = _work(recipe, "celery -A shop worker", "shop", "shop.log")

    _check(text, "shop")
    tasks = re.findall(r"^\[.*: INFO/[-\w]+\] shop.order\[[-0-9a-f]+\]: order \d+$", text, re.MULTILINE)
    assert len(ORDERS) == len(tasks)


def test_children_replaced_after_two_tasks_lose_and_duplicate_no_record(recipe):
    send = f"import shop\nfor number in range({len(ORDERS)}):\n    shop.order.delay(number)\n"
    recipe.call(["-c", send])
    options = f"--max-tasks-per-child 2 {ALONE}"
    with recipe.serving("celery -A shop worker", options=options, has_port=False) as server:
        # Every record is in the file before the last children end; the other children have ended already.
        server.wait_for("shop.log", r": order \d+\n", len(ORDERS))
        server.wait_for("shop.log", r"succeeded in ", len(ORDERS))
        # The pool of Celery 5.7 sometimes hangs at its end, with stock logging too; then it is killed.
        server.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(5)
    text = server.text("shop.log")

    _check(text, "shop")
    tasks = re.findall(r"^\[.*: INFO/ForkPoolWorker-(\d+)\] shop.order\[[-0-9a-f]+\]: order \d+$", text, re.MULTILINE)
    assert len(ORDERS) == len(tasks)
    # The last two children may have had one task each.
    assert max(Counter(tasks).values()) == 2 and len(set(tasks)) >= len(ORDERS) // 2, tasks


@pytest.mark.parametrize(("hijack", "options"), [(True, ""), (False, "--pool threads")])
def test_a_worker_started_by_run_writes_each_record_once(recipe, hijack, options):
    configure = "" if hijack else 'logging.basicConfig(filename="shop.log", level="INFO", format="%(message)s")'
    recipe.write("plain.py", PLAIN.format(quick=QUICK, configure=configure, hijack=hijack))

    _check(_work(recipe, "python -m logspool run -- celery", "plain", "shop.log", options), "plain")
