"""basicConfig, dictConfig and fileConfig before and after install, again and again."""

import io
import sys

from differential.staging import NATIVE, STOCK, UNSAID, expect, note, scenario, speak, warm
from suite import side


def _dictionary(folder, name="app.log", level="DEBUG", **more):
    return {
        "version": 1,
        "formatters": {"short": {"format": "%(levelname)s %(name)s %(message)s"}},
        "handlers": {
            "file": {
                "class": "logging.FileHandler",
                "filename": str(folder / name),
                "formatter": "short",
                "level": level,
            },
            "console": {"class": "logging.StreamHandler", "formatter": "short", "stream": "ext://sys.stdout"},
        },
        "loggers": {"quiet": {"level": "ERROR", "propagate": True}},
        "root": {"level": "DEBUG", "handlers": ["file", "console"]},
        **more,
    }


@scenario(NATIVE)
def dict_config(logging, folder):
    logging.config.dictConfig(_dictionary(folder))
    speak(logging.getLogger("a.b"))
    speak(logging.getLogger("quiet"))


@scenario(NATIVE)
def second_dict_config_loses_and_misdirects_nothing(logging, folder):
    log = logging.getLogger("early")
    for turn in range(5):
        logging.config.dictConfig(_dictionary(folder, f"{turn}.log", disable_existing_loggers=False))
        for number in range(300):
            log.info("turn %d line %d", turn, number)


@scenario(UNSAID)
def dict_config_disables_existing_loggers(logging, folder):
    early = logging.getLogger("early")
    logging.config.dictConfig(_dictionary(folder, "first.log"))
    early.info("disabled")
    kept = logging.getLogger("kept")
    warm(kept, 100)
    logging.config.dictConfig(_dictionary(folder, "second.log"))
    kept.info("disabled now")
    logging.getLogger("new").info("new")
    note((early.disabled, kept.disabled))


@scenario(NATIVE)
def incremental_dict_config(logging, folder):
    dictionary = _dictionary(folder)
    logging.config.dictConfig(dictionary)
    log = logging.getLogger("quiet")
    warm(log, 100)
    logging.config.dictConfig(
        {
            "version": 1,
            "incremental": True,
            "handlers": {"file": {"level": "ERROR"}, "console": {"level": "CRITICAL"}},
            "loggers": {"quiet": {"level": "INFO"}},
        }
    )
    speak(log)


@scenario(UNSAID)
def dict_config_with_factories_and_filters(logging, folder):
    class Tagging(logging.Filter):
        def __init__(self, tag):
            self.tag = tag

        def filter(self, record):
            record.tag = self.tag
            return True

    def make(name):
        return logging.FileHandler(folder / name)

    dictionary = _dictionary(folder)
    dictionary["filters"] = {"tagging": {"()": Tagging, "tag": "t1"}}
    dictionary["formatters"]["tagged"] = {"()": "logging.Formatter", "fmt": "{tag} {message}", "style": "{"}
    dictionary["handlers"]["made"] = {
        "()": make,
        "name": "made.log",
        "formatter": "tagged",
        "filters": ["tagging"],
    }
    dictionary["root"]["handlers"] = ["made", "file"]
    logging.config.dictConfig(dictionary)
    speak(logging.getLogger("a"))


@scenario(NATIVE)
def dict_config_with_rotating_and_external_objects(logging, folder):
    dictionary = _dictionary(folder)
    dictionary["handlers"]["rotating"] = {
        "class": "logging.handlers.RotatingFileHandler",
        "filename": str(folder / "rotating.log"),
        "maxBytes": 200,
        "backupCount": 2,
        "formatter": "short",
        ".": {"terminator": "\n--\n"},
    }
    dictionary["root"]["handlers"].append("rotating")
    dictionary["handlers"]["console"]["stream"] = "cfg://streams.error"
    dictionary["streams"] = {"error": sys.stderr}
    logging.config.dictConfig(dictionary)
    for _ in range(5):
        speak(logging.getLogger("a"))


@scenario(UNSAID)
def dict_config_errors(logging, folder):
    for wrong in (
        {},
        {"version": 2},
        {"version": 1, "handlers": {"x": {"class": "logging.NoSuchHandler"}}},
        {"version": 1, "root": {"handlers": ["missing"]}},
        {"version": 1, "handlers": {"x": {"class": "logging.FileHandler", "filename": "/nonexistent/dir/file"}}},
        {"version": 1, "root": {"level": "LOUD"}},
    ):
        try:
            logging.config.dictConfig(wrong)
        except Exception as error:
            cause = error.__cause__
            note((type(error).__name__, str(error), type(cause).__name__, str(cause)))


@scenario(NATIVE)
def file_config(logging, folder):
    (folder / "logging.ini").write_text(
        f"""[loggers]
keys=root,deep
[handlers]
keys=file
[formatters]
keys=short
[logger_root]
level=DEBUG
handlers=file
[logger_deep]
level=ERROR
handlers=
propagate=1
qualname=a.deep
[handler_file]
class=FileHandler
level=NOTSET
formatter=short
args=({str(folder / "app.log")!r}, 'w')
[formatter_short]
format=%(levelname)s %(name)s %(message)s
"""
    )
    logging.config.fileConfig(folder / "logging.ini")
    speak(logging.getLogger("a"))
    speak(logging.getLogger("a.deep"))
    (folder / "logging.ini").unlink()


@scenario(NATIVE)
def basic_config_twice_and_forced(logging, folder):
    logging.basicConfig(filename=folder / "first.log", level=logging.INFO, format="%(message)s")
    warm(logging.getLogger("a"), 100)
    logging.basicConfig(filename=folder / "ignored.log", level=logging.DEBUG)
    logging.info("in the first")
    logging.basicConfig(filename=folder / "second.log", level=logging.DEBUG, force=True, style="{", format="{message}!")
    logging.debug("in the second")


@scenario(UNSAID)
def basic_config_errors(logging, folder):
    for wrong in (
        {"filename": "x", "stream": sys.stderr},
        {"handlers": [], "filename": "x"},
        {"nonsense": 1},
        {"style": "?"},
        {"level": "LOUD"},
    ):
        try:
            logging.basicConfig(**wrong, force=True)
        except Exception as error:
            note((type(error).__name__, str(error)))


@scenario(NATIVE)
def first_call_without_configuration(logging, folder):
    logging.warning("basicConfig is called by the first call of a module function")
    logging.info("too low")
    note(len(logging.getLogger().handlers))


@scenario(UNSAID, installed=False)
def installed_over_a_running_configuration(logging, folder):
    logging.config.dictConfig(_dictionary(folder))
    log = logging.getLogger("a")
    handlers = list(logging.getLogger().handlers)
    speak(log)
    side.install()
    with expect(NATIVE):
        speak(log)
    note((logging.getLogger().handlers == handlers, [type(each).__name__ for each in handlers]))
    side.uninstall()
    speak(log)
    note(logging.getLogger().handlers == handlers)
    side.install()
    with expect(NATIVE):
        speak(log)
    side.uninstall()


@scenario(UNSAID, installed=False)
def installed_twice_and_uninstalled_twice(logging, folder):
    logging.config.dictConfig(_dictionary(folder))
    log = logging.getLogger("a")
    side.install()
    side.install()
    speak(log)
    side.uninstall()
    speak(log)
    side.uninstall()
    speak(log)


@scenario(UNSAID, installed=False)
def methods_bound_before_install_and_after_uninstall(logging, folder):
    logging.config.dictConfig(_dictionary(folder))
    info = logging.getLogger("a").info
    warning = logging.warning
    info("before")
    side.install()
    info("by a method bound before install")
    warning("by a function bound before install")
    bound = logging.getLogger("a").info
    side.uninstall()
    bound("by a method bound while installed")
    info("by the first again")


@scenario(UNSAID, installed=False)
def subclasses_made_before_install(logging, folder):
    class Quiet(logging.Logger):
        pass

    class Loud(logging.FileHandler):
        def format(self, record):
            return super().format(record).upper()

    logging.setLoggerClass(Quiet)
    log = logging.getLogger("quiet")
    log.setLevel(10)
    log.addHandler(Loud(folder / "loud.log"))
    log.addHandler(logging.FileHandler(folder / "plain.log"))
    side.install()
    speak(log)
    side.uninstall()
    speak(log)


@scenario(STOCK)
def handlers_with_python_streams_stay_as_they_are(logging, folder):
    memory = io.StringIO()
    logging.basicConfig(stream=memory, level=10, format="%(message)s")
    for number in range(50):
        logging.info("number %d", number)
        note(memory.getvalue()[-10:])


@scenario(UNSAID)
def class_attributes_look_as_before(logging, folder):
    import inspect

    log = logging.getLogger("looks")
    log.setLevel(15)
    note((log.level, log.propagate, log.disabled, log.parent.name, list(log.handlers), list(log.filters)))
    note((logging.Logger.info.__name__, callable(logging.Logger.info), inspect.isroutine(logging.Logger.info)))
    note(inspect.getdoc(logging.Logger.info)[:20])
    handler = logging.StreamHandler()
    note((handler.level, handler.formatter, handler.terminator, list(handler.filters), handler.name))
    note(
        (logging.StreamHandler.terminator, logging.Formatter.default_msec_format, logging.Formatter.default_time_format)
    )
    handler.level = 30
    note((handler.level, repr(handler)))
    formatter = logging.Formatter("%(message)s", "%H")
    note((formatter._fmt, formatter.datefmt, formatter.usesTime()))
