"""The options of `ForwardHandler`: values that it refuses, and secrets that no text shows."""

import pytest

import logspool

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("error", "text", "option"),
    [
        (ValueError, "is no tag (fix: ", {"tag": ""}),
        (ValueError, "chunk_bytes must be 1024 to 1048576 bytes, not 5", {"chunk_bytes": 5}),
        (ValueError, "gather_seconds must be 0 to 60 seconds, not -1", {"gather_seconds": -1}),
        (ValueError, "no secret may have", {"shared_key": "hunter 2"}),
        (TypeError, "shared_key must be text, not bytes", {"shared_key": b"hunter2"}),
        (TypeError, "the nearest one is 'shared_key'", {"shard_key": "hunter2"}),
        (ValueError, "are for tls://HOST:PORT", {"server_name": "logs"}),
    ],
)
def test_invalid_options_are_refused_with_a_fix_that_hides_the_key(error, text, option):
    with pytest.raises(error) as raised:
        logspool.ForwardHandler("tcp://127.0.0.1:1", **option)

    assert text in str(raised.value) and "hunter" not in str(raised.value)


def test_the_text_of_a_handler_never_shows_its_key():
    handler = logspool.ForwardHandler("tcp://127.0.0.1:1", shared_key="hunter2")

    assert repr(handler) == "<ForwardHandler tcp://127.0.0.1:1 (NOTSET)>"
    assert (handler.address, handler.sink) == ("tcp://127.0.0.1:1", "service")
