"""Each preset loads with `dictConfig`, writes the lines of the framework's own configuration, and no line twice."""

import importlib.util
import json
import re

import pytest

from logspool import presets
from suite import programs

pytestmark = pytest.mark.real

SECONDS = 120

#: Writes records with the framework's loggers, the root logger, and a logger that existed before the configuration.
SPEAK = """\
import json, logging, logging.config, sys
early = logging.getLogger("early.bird")
__CONFIGURE__
def speak(*names):
    for name in names:
        log = logging.getLogger(name)
        for level in (10, 20, 30, 40):
            log.log(level, "%s %d", name or "root", level)
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("failed")
assert not early.disabled
__SPEAK__
"""

#: For each preset: packages, the code with which the framework configures logging, and the loggers that are compared.
OWN = {
    "uvicorn": (
        ("uvicorn",),
        "from uvicorn.config import LOGGING_CONFIG\nlogging.config.dictConfig(LOGGING_CONFIG)",
        "speak('uvicorn', 'uvicorn.error', '', 'early.bird')\n"
        "logging.getLogger('uvicorn.access').info('%s - \"%s %s HTTP/%s\" %d', '1.2.3.4:5', 'GET', '/a', '1.1', 200)",
    ),
    "gunicorn": (
        ("gunicorn",),
        "from gunicorn import config, glogging\ncfg = config.Config()\ncfg.set('accesslog', '-')\nglogging.Logger(cfg)",
        "speak('gunicorn.error')\nlogging.getLogger('gunicorn.access').info('GET /a')",
    ),
    "celery": (
        ("celery",),
        "import celery\napp = celery.Celery('shop', set_as_current=True)\n"
        "app.log.setup_logging_subsystem(loglevel='INFO', colorize=False)",
        "speak('celery', 'celery.worker', '', 'early.bird')\n"
        "@app.task\ndef order(number):\n    celery.utils.log.get_task_logger('shop').warning('order %d', number)\n"
        "from celery._state import _task_stack\nimport celery.utils.log\n"
        "app.conf.task_always_eager = True\norder.apply((7,), task_id='the-id')",
    ),
    "sglang": (
        (),
        "logging.basicConfig(level='INFO', format='[%(asctime)s] %(message)s', datefmt='%Y-%m-%d %H:%M:%S',\n"
        "    force=True)",
        "speak('sglang.srt.server', '', 'early.bird')",
    ),
    "vllm": (
        (),
        "from vllm.logging_utils import NewLineFormatter\n"
        "handler = logging.StreamHandler(sys.stdout)\n"
        "handler.setFormatter(NewLineFormatter("
        "'%(levelname)s %(asctime)s [%(fileinfo)s:%(lineno)d] %(message)s', '%m-%d %H:%M:%S'))\n"
        "log = logging.getLogger('vllm')\nlog.addHandler(handler)\nlog.setLevel('INFO')\nlog.propagate = False",
        "speak('vllm', 'vllm.engine')",
    ),
    "ray": (
        (),
        "handler = logging.StreamHandler()\n"
        "format = '%(asctime)s\\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s'\n"
        "handler.setFormatter(logging.Formatter(format))\n"
        "log = logging.getLogger('ray')\nlog.addHandler(handler)\nlog.setLevel('INFO')\nlog.propagate = False",
        "speak('ray', 'ray.data')",
    ),
}

#: vLLM is larger than 200 MB; its formatter repeats the prefix before each line of a message, and adds a field.
STAND_IN_OF_VLLM = """\
import logging

class NewLineFormatter(logging.Formatter):
    def __init__(self, fmt, datefmt=None, style="%"):
        super().__init__(fmt, datefmt, style)

    def format(self, record):
        record.fileinfo = record.filename = record.pathname.rpartition("/")[2]
        text = super().format(record)
        start = text.partition(record.message)[0] if record.message else ""
        return text.replace("\\n", "\\r\\n" + start)
"""

PRESET = "import logspool.presets\nlogging.config.dictConfig(json.loads(json.dumps(logspool.presets.preset('{}'))))"
TIMES = re.compile(
    rb"\d{2,4}-\d\d(-\d\d)?[ T]\d\d:\d\d:\d\d([,.]\d+)?|(?<=\[)\d+(?=\] \[)|0x[0-9a-f]+"
    rb"|line \d+|program.py:\d+|(?<=in )[\d.]+s"
)


def _needs(name):
    missing = [module for module in OWN[name][0] if importlib.util.find_spec(module) is None]
    return [pytest.mark.skip(reason=f"needs {', '.join(missing)}")] if missing else []


def _run(run_program, name, configure, **variables):
    _, _, speak = OWN[name]
    text = SPEAK.replace("__CONFIGURE__", configure).replace("__SPEAK__", speak)
    return run_program(text, side=programs.STOCK, deadline_seconds=SECONDS, **variables)[0].expect_success()


@pytest.mark.parametrize("name", [pytest.param(name, marks=_needs(name)) for name in OWN])
def test_the_lines_equal_those_of_the_frameworks_own_configuration(run_program, tmp_path, name):
    if name == "vllm":
        (tmp_path / "vllm").mkdir()
        (tmp_path / "vllm" / "__init__.py").write_text("")
        (tmp_path / "vllm" / "logging_utils.py").write_text(STAND_IN_OF_VLLM)
    own = _run(run_program, name, OWN[name][1])
    configure = PRESET.format(name)
    if name == "celery":
        configure = "import celery\napp = celery.Celery('shop', set_as_current=True)\n" + configure
    ours = _run(run_program, name, configure + "\nassert logspool.stats().installed")
    off = _run(run_program, name, configure + "\nassert not logspool.stats().installed", LOGSPOOL="off")

    for found in (ours, off):
        assert TIMES.sub(b"<t>", own.out).splitlines() == TIMES.sub(b"<t>", found.out).splitlines()
        assert TIMES.sub(b"<t>", own.err).splitlines() == TIMES.sub(b"<t>", found.err).splitlines()
    assert len(own.out + own.err) > 200


@pytest.mark.skipif(importlib.util.find_spec("django") is None, reason="needs Django")
@pytest.mark.parametrize("debug", [True, False])
def test_django_writes_each_line_once_and_mails_errors_as_before(run_program, debug):
    outcome, _ = run_program(
        "import logging, logging.config, sys\nfrom django.conf import settings\nimport django, logspool.presets\n"
        "admins = [('a', 'a@b.c')] if django.VERSION < (6,) else ['a@b.c']\n"
        f"settings.configure(DEBUG={debug}, SECRET_KEY='key', ADMINS=admins,\n"
        "    EMAIL_BACKEND='django.core.mail.backends.locmem.EmailBackend', LOGGING=logspool.presets.django())\n"
        "django.setup()\n"
        "logging.getLogger('django.request').warning('Not Found: %s', '/a')\n"
        "logging.getLogger('django').error('broken')\n"
        "logging.getLogger('shop').info('order %d', 7)\n"
        "server = logging.getLogger('django.server')\n"
        "server.info('%s', 'GET /', extra={'server_time': 'now', 'status_code': 200})\n"
        "from django.core import mail\nprint(len(getattr(mail, 'outbox', [])), logspool.stats().installed)\n",
        side=programs.STOCK,
        deadline_seconds=SECONDS,
    )
    outcome.expect_success()

    assert f"{0 if debug else 1} True\n" == outcome.out.decode()
    assert [
        b"WARNING <t> django.request Not Found: /a",
        b"ERROR <t> django broken",
        b"INFO <t> shop order 7",
        b"[now] GET /",
    ] == TIMES.sub(b"<t>", outcome.err).splitlines()


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_keeps_existing_loggers_and_installs(name):
    found = presets.preset(name)

    assert found["disable_existing_loggers"] is False
    assert 1 == found["version"]
    own = [handler for handler in found["handlers"].values() if "AdminEmail" not in handler.get("class", "")]
    assert {"logspool.presets.stream_handler"} == {handler["()"] for handler in own}
    loggers = [*found.get("loggers", {}).values(), *([found["root"]] if "root" in found else [])]
    assert {handler for each in loggers for handler in each.get("handlers", ())} == set(found["handlers"])
    assert found is not presets.preset(name)


@pytest.mark.parametrize("name", ["uvicorn", "gunicorn", "vllm", "sglang", "ray", "celery"])
def test_json_lines_in_a_file(run_program, name):
    outcome, folder = run_program(
        "import logging, logging.config\nimport logspool.presets\n"
        f"logging.config.dictConfig(logspool.presets.preset({name!r}, json=True, file='out.log', level='WARNING'))\n"
        f"for name in ({name + '.error'!r}, 'celery.task', 'vllm', 'sglang'):\n"
        "    logging.getLogger(name).warning('n %d', 1)\n    logging.getLogger(name).info('n %d', 2)\n",
        side=programs.STOCK,
        deadline_seconds=SECONDS,
    )
    outcome.expect_success()
    lines = [json.loads(line) for line in (folder / "out.log").read_text().splitlines()]

    assert lines
    assert {"n 1"} == {line["message"] for line in lines}
    assert len(lines) == len({line["logger"] for line in lines})


def test_the_options_of_the_program_override_the_preset(run_program):
    run_program(
        "import logging.config\nimport logspool, logspool.presets\n"
        "logging.config.dictConfig(logspool.presets.sglang())\n"
        "logspool.install(flush_records=3)\n"
        "logging.config.dictConfig(logspool.presets.sglang())\n"
        "from logspool.watch import _stats\nassert _stats.options_in_force()['flush_records'] == 3\n",
        side=programs.STOCK,
    )[0].expect_success()


@pytest.fixture
def command(tmp_path, queue_dir):
    def run(*arguments):
        return programs.run(
            ["-m", "logspool", "preset", *arguments],
            env=programs.environment(programs.STOCK, queue_dir),
            folder=tmp_path,
            deadline_seconds=60,
        )

    return run


@pytest.mark.parametrize("name", presets.PRESETS)
def test_the_command_prints_the_preset_as_json(command, tmp_path, name):
    plain = command(name).expect_success()
    changed = command(name, "--file", "out.log", "--json", "--level=DEBUG").expect_success()

    assert presets.preset(name) == json.loads(plain.out)
    assert presets.preset(name, file=tmp_path / "out.log", json=True, level="DEBUG") == json.loads(changed.out)


def test_the_command_lists_all_presets(command):
    listed = command().expect_success().out.decode().splitlines()

    assert list(presets.PRESETS) == [line.split()[0] for line in listed]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["uvicon"], "no preset is named 'uvicon'; the nearest one is 'uvicorn' (fix: "),
        (["uvicorn", "--jsn"], "no option is named '--jsn'; the nearest one is '--json'"),
        (["uvicorn", "--file"], "--file needs a value"),
        (["uvicorn", "--level", "INF"], "no level is named 'INF'; the nearest one is 'INFO'"),
    ],
)
def test_an_invalid_command_line_exits_with_status_2(command, arguments, expected):
    outcome = command(*arguments)

    assert (2, b"") == (outcome.status, outcome.out)
    assert expected in outcome.err.decode()


def test_the_error_for_an_unknown_name_or_option_suggests_the_nearest():
    with pytest.raises(ValueError, match="no preset is named 'celry'; the nearest one is 'celery'"):
        presets.preset("celry")
    with pytest.raises(TypeError, match=r"uvicorn\(\) has no option 'levle'; the nearest one is 'level'"):
        presets.preset("uvicorn", levle="INFO")
