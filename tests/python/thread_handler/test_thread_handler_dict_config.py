import logging
import logging.config

import pytest

from logspool.thread._handler import ThreadHandler


@pytest.fixture(autouse=True)
def restore_logging():
    yield
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})


def config(tmp_path, wrapped_handler, name="queued", **options):
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"short": {"format": "%(levelname)s %(message)s"}},
        "handlers": {
            "file": {
                "class": "logging.FileHandler",
                "filename": str(tmp_path / "out"),
                "formatter": "short",
            },
            name: {
                "()": "logspool.thread._handler.ThreadHandler",
                "wrapped_handler": wrapped_handler,
                **options,
            },
        },
        "loggers": {"configured": {"handlers": [name], "level": "INFO", "propagate": False}},
    }


@pytest.mark.parametrize("wrapped_handler", ["file", "cfg://handlers.file"])
@pytest.mark.parametrize("name", ["later_queued", "zz_queued"])
def test_dict_config_wraps_a_handler_by_name_or_reference(wrapped_handler, name, tmp_path):
    options = {"queue_size": 50, "blocking_levels": ["INFO"], "level": "INFO"}
    logging.config.dictConfig(config(tmp_path, wrapped_handler, name, **options))
    logger = logging.getLogger("configured")
    for number in range(200):
        logger.info("%d", number)
    handler = logger.handlers[0]
    handler.flush()

    assert type(handler) is ThreadHandler
    assert handler.level == logging.INFO
    assert (tmp_path / "out").read_text() == "".join(f"INFO {n}\n" for n in range(200))


@pytest.mark.parametrize("wrapped_handler", ["file", "cfg://handlers.file"])
def test_a_handler_that_dict_config_builds_later_is_refused_with_a_fix(wrapped_handler, tmp_path):
    with pytest.raises(ValueError) as caught:
        logging.config.dictConfig(config(tmp_path, wrapped_handler, "a_queued"))

    assert "give the ThreadHandler a later name" in str(caught.value.__cause__)


def test_dict_config_builds_a_handler_described_inside(tmp_path):
    description = {"class": "logging.FileHandler", "filename": str(tmp_path / "in"), "formatter": "short"}
    settings = config(tmp_path, description, "a_queued")
    del settings["handlers"]["file"]
    logging.config.dictConfig(settings)
    logger = logging.getLogger("configured")
    logger.error("x")
    logger.handlers[0].flush()

    assert (tmp_path / "in").read_text() == "ERROR x\n"


def test_an_unknown_name_is_reported_with_the_nearest():
    # A logger uses the handler; otherwise a garbage collection could free it.
    handlers = {"file": {"class": "logging.NullHandler"}}
    logging.config.dictConfig({"version": 1, "handlers": handlers, "loggers": {"configured": {"handlers": ["file"]}}})
    with pytest.raises(ValueError, match="no handler is named 'fil'; the nearest one is 'file'"):
        ThreadHandler("fil")


def test_a_second_dict_config_drains_the_first(tmp_path):
    logging.config.dictConfig(config(tmp_path, "file", blocking_levels=["INFO"]))
    logger = logging.getLogger("configured")
    for number in range(500):
        logger.info("%d", number)
    other = tmp_path / "other"
    other.mkdir()
    logging.config.dictConfig(config(other, "file"))
    logger.info("second")
    logger.handlers[0].flush()

    assert len((tmp_path / "out").read_text().splitlines()) == 500
    assert (other / "out").read_text() == "INFO second\n"


def test_a_formatter_set_on_the_thread_handler_is_set_on_the_wrapped_handler(tmp_path):
    settings = config(tmp_path, "file", formatter="short")
    del settings["handlers"]["file"]["formatter"]
    logging.config.dictConfig(settings)
    logger = logging.getLogger("configured")
    logger.error("x")
    logger.handlers[0].flush()

    assert (tmp_path / "out").read_text() == "ERROR x\n"


def test_basic_config_gives_its_format_to_the_wrapped_handler(tmp_path):
    root = logging.Logger("root")
    handler = ThreadHandler(logging.FileHandler(tmp_path / "out"))
    saved, logging.root.handlers = logging.root.handlers, []
    try:
        logging.basicConfig(handlers=[handler], format="basic %(message)s")
    finally:
        logging.root.handlers = saved
    root.addHandler(handler)
    root.error("x")
    handler.close()

    assert (tmp_path / "out").read_text() == "basic x\n"
