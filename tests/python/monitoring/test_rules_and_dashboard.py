"""The alert rules and the dashboard in packaging/ name only metrics that logspool exports, and the rules fire."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from suite import tools

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "packaging" / "monitoring"
RULES = SHIPPED / "alerts.yaml"
DASHBOARD = json.loads((SHIPPED / "grafana-dashboard.json").read_text())
CASES = Path(__file__).parent / "alerts_test.yaml"

#: Exports every metric family of logspool: it has outputs, a deferred formatter, and a pool.
PROGRAM = """\
import logging
import logspool
from logspool.pool import Pool

class Own(logging.Formatter):
    def format(self, record):
        return "own"

handler = logging.FileHandler("app.log")
handler.setFormatter(logspool.deferred(Own()))
logging.basicConfig(level=logging.INFO, handlers=[handler, logging.FileHandler("plain.log")])
logspool.install()
logging.info("one")
logspool.flush()
with Pool(1) as pool:
    pool.submit(len, "one").result()
    print(logspool.metrics_text())
"""

#: Metrics that are exported only after records were dropped on their way to a deferred formatter.
AFTER_A_LOSS = {"logspool_deferred_records_dropped_total"}


def named(text: str) -> set[str]:
    """Return the names of metrics in a text."""
    return set(re.findall(r"\blogspool_[a-z0-9_]+", text))


def expressions() -> "list[str]":
    found = re.findall(r"expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)", RULES.read_text())
    return [block or line for block, line in found]


def panels() -> "list[str]":
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


@pytest.mark.real
def test_every_named_metric_is_exported(run_program):
    outcome, _ = run_program(PROGRAM)
    exported = named(outcome.expect_success().out.decode())
    used = {metric for text in (*expressions(), *panels()) for metric in named(text)}

    assert len(expressions()) == RULES.read_text().count("alert: ") and len(panels()) > 20
    assert used - exported == AFTER_A_LOSS
    variables = [named(str(variable.get("query"))) for variable in DASHBOARD["templating"]["list"]]
    assert {metric for metrics in variables for metric in metrics} <= exported


def test_a_deferred_loss_is_exported_under_the_name_in_the_rules(run_program):
    outcome, _ = run_program(
        "from logspool import _native\n"
        "import logging, logspool\n"
        "logging.basicConfig(filename='app.log')\nlogspool.install()\nlogging.error('one')\n"
        "print(_native.metrics_text('3', [], [('queue_full', 2)]))\n"
    )

    assert b'logspool_deferred_records_dropped_total{reason="queue_full"} 2\n' in outcome.expect_success().out


def test_every_alert_has_a_text_and_a_case():
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    tested = re.findall(r"alertname: (\w+)", CASES.read_text())

    assert alerts and sorted(set(alerts)) == sorted(alerts)
    assert set(alerts) == set(tested)
    for field in ("summary: ", "description: ", "severity: "):
        assert RULES.read_text().count(field) == len(alerts), field


def test_the_panels_of_the_dashboard_do_not_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        tools.missing("there is no program promtool on the PATH (in Debian's package prometheus)")
    return found


def test_promtool_accepts_the_rules(promtool):
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{RULES.read_text().count('alert: ')} rules found" in done.stdout


def test_each_alert_fires_when_it_should_and_only_then(promtool, tmp_path):
    # promtool also compares the annotations of alerts; the cases have none, so they are removed from the rules.
    rules, texts = re.subn(r" {8}annotations:\n(?: {10}.*\n)+", "", RULES.read_text())
    (tmp_path / RULES.name).write_text(rules)
    (tmp_path / CASES.name).write_text(CASES.read_text())
    done = subprocess.run([promtool, "test", "rules", CASES.name], cwd=tmp_path, capture_output=True, text=True)

    assert texts == rules.count("alert: ")
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_expressions_of_the_dashboard(promtool, tmp_path):
    variables = {"$__rate_interval": "5m", "$job": "a", "$instance": "b"}
    lines = ["groups:", "  - name: dashboard", "    rules:"]
    for number, text in enumerate(panels()):
        for name, value in variables.items():
            text = text.replace(name, value)
        lines += [f"      - record: panel:{number}", f"        expr: {json.dumps(text)}"]
    rules = tmp_path / "rules.yaml"
    rules.write_text("\n".join(lines) + "\n")
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
