"""The memory words that show a change of a stream are found on this Python, and each change of a stream alters one."""

import ctypes
import io
import os

import pytest

from logspool.adoption import _streams

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]


def _opened(kind, path):
    return {
        "appended": lambda: open(path, "a"),
        "read and written": lambda: open(path, "w+"),
        "unbuffered": lambda: io.TextIOWrapper(io.FileIO(path, "w"), write_through=True),
    }[kind]()


def _close_below(stream):
    stream.buffer.close()


def _close_file(stream):
    getattr(stream.buffer, "raw", stream.buffer).close()


def _patch(stream):
    stream.write = print


def _patch_below(stream):
    stream.buffer.write = print


CHANGES = {
    "closed": io.TextIOWrapper.close,
    "closed below": _close_below,
    "file closed": _close_file,
    "detached": io.TextIOWrapper.detach,
    "encoding": lambda stream: stream.reconfigure(encoding="utf-16"),
    "errors": lambda stream: stream.reconfigure(errors="replace"),
    "newline": lambda stream: stream.reconfigure(newline="\r\n"),
    "write patched": _patch,
    "write below patched": _patch_below,
}


@pytest.mark.parametrize("kind", ["appended", "read and written", "unbuffered"])
@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_of_a_stream_changes_a_watched_word(tmp_path, kind, change):
    stream = _opened(kind, tmp_path / "file")
    watched = _streams.watched(stream)
    for _ in range(2):
        stream.write("text\n")
        stream.flush()

    assert watched
    assert _as_they_were(watched)
    below = stream.buffer
    CHANGES[change](stream)
    assert not _as_they_were(watched)
    below.close()


def _as_they_were(watched):
    # The word for a dict may be outside the object's struct.
    def word(layer, offset):
        return ctypes.c_uint64.from_address((id(layer) + offset) % 2**64).value

    return all(mask == 0 or word(layer, offset) & mask == value for layer, offset, mask, value in watched)


def test_a_stream_without_a_file_is_not_watched():
    assert _streams.watched(io.StringIO()) == ()
    assert _streams.watched(io.TextIOWrapper(io.BytesIO())) == ()


def test_a_closed_or_detached_stream_is_not_watched(tmp_path):
    closed = open(tmp_path / "file", "a")
    closed.close()
    detached = open(tmp_path / "file", "a")
    detached.detach().close()

    assert _streams.watched(closed) == () == _streams.watched(detached)
    assert os.path.getsize(tmp_path / "file") == 0
