"""Find out where CPython's text streams keep the state that native code needs, by examining sample streams.

The C structs of `TextIOWrapper` and `BufferedWriter` show whether a stream holds unwritten text, translates newlines
and is open, and which object is below it. This module finds the byte offsets of these fields: it changes samples and
looks for the word that changes with them. It assumes nothing about the layout. If no word changes, or more than one
word, native code uses the slower or stricter way. Before native code watches the words of a stream, they are compared
with the stream's attributes.
"""

from __future__ import annotations

import io
import os

from logspool import _native

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

#: Parts of words: object, byte offset into the object, mask, value. A mask of 0 only keeps the object alive.
Watched = tuple[tuple[object, int, int, int], ...]

_WORD = 8
_WHOLE = (1 << 64) - 1
_HALF = (1 << 32) - 1

_newline_word: int | None = None
#: Indexes of the words that hold the layer under a stream, its encoding, its errors, and the raw file's descriptor.
_buffer_word: int | None = None
_encoding_word: int | None = None
_errors_word: int | None = None
_raw_word: int | None = None
_descriptor_word: int | None = None
_learnt = False


class _DevNullStream:
    """A text stream that writes to /dev/null, with its layers."""

    def __init__(self, newline: str | None = None) -> None:
        self.raw = io.FileIO(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), "w")
        self.buffer = io.BufferedWriter(self.raw)
        self.text = io.TextIOWrapper(self.buffer, encoding="utf-8", newline=newline)

    def words(self) -> list[int]:
        return _native.object_words(self.text)

    def buffer_words(self) -> list[int]:
        return _native.object_words(self.buffer)

    def close(self) -> None:
        self.raw.close()


def _following(steps: list[tuple[list[int], int]]) -> list[int]:
    """Return the indexes of the words that had the expected value at every step."""
    length = len(steps[0][0])
    return [index for index in range(length) if all(words[index] == value for words, value in steps)]


def learn() -> None:
    """Find the offsets once and pass them to native code."""
    global _learnt, _newline_word
    if _learnt:
        return
    _learnt = True
    sample = _DevNullStream()
    try:
        pending = [(sample.words(), 0)]
        sample.text.write("abc")
        pending.append((sample.words(), 3))
        sample.text.write("defg")
        pending.append((sample.words(), 7))
        sample.text.flush()
        pending.append((sample.words(), 0))
        end = [(sample.buffer_words(), -1)]
        sample.buffer.write(b"abc")
        end.append((sample.buffer_words(), 3))
        sample.buffer.write(b"defg")
        end.append((sample.buffer_words(), 7))
        sample.buffer.flush()
        end.append((sample.buffer_words(), -1))
    finally:
        sample.close()
    text_words, buffer_words = _following(pending), _following(end)
    if len(text_words) == 1 and len(buffer_words) == 1:
        _native.set_stream_offsets(text_words[0] * _WORD, buffer_words[0] * _WORD)
    _newline_word = _learn_newline()
    _learn_layers()


def _learn_newline() -> int | None:
    plain = [_DevNullStream(newline) for newline in (None, "\n", "")]
    translating = [_DevNullStream(newline) for newline in ("\r\n", "\r")]
    try:
        zero = [sample.words() for sample in plain]
        other = [sample.words() for sample in translating]
        found = [
            index
            for index in range(len(zero[0]))
            if all(words[index] == 0 for words in zero) and all(words[index] != 0 for words in other)
        ]
    finally:
        for sample in plain + translating:
            sample.close()
    return found[0] if len(found) == 1 else None


def _learn_layers() -> None:
    global _buffer_word, _encoding_word, _errors_word, _raw_word, _descriptor_word
    sample = _DevNullStream()
    text = sample.text
    try:
        below = [(sample.words(), id(sample.buffer))]
        encoding = [(sample.words(), id(text.encoding))]
        errors = [(sample.words(), id(text.errors))]
        text.reconfigure(encoding="latin-1", errors="replace")
        encoding.append((sample.words(), id(text.encoding)))
        errors.append((sample.words(), id(text.errors)))
        raw = [(sample.buffer_words(), id(sample.raw))]
        descriptor = [(_low_halves(sample.raw), sample.raw.fileno())]
        text.detach()
        below.append((sample.words(), 0))
        sample.buffer.detach()
        raw.append((sample.buffer_words(), 0))
    finally:
        sample.close()
    descriptor.append((_low_halves(sample.raw), _HALF))
    _buffer_word, _encoding_word, _errors_word, _raw_word, _descriptor_word = (
        found[0] if len(found) == 1 else None for found in map(_following, (below, encoding, errors, raw, descriptor))
    )


def _low_halves(layer: Any) -> list[int]:
    return [word & _HALF for word in _native.object_words(layer)]


def translates_newlines(stream: Any) -> bool:
    """Return whether an exact `TextIOWrapper` writes `\\n` as something else; true if that is not known."""
    learn()
    return _newline_word is None or _native.object_words(stream)[_newline_word] != 0


def replaced_attribute(layer: Any) -> str | None:
    """Return the name of an instance attribute that hides a class attribute, on a stream or a layer below it."""
    return next((name for name in vars(layer) if hasattr(type(layer), name)), None)


def watched(stream: Any) -> Watched:
    """Return the words that change when an exact `TextIOWrapper` is closed, detached, reconfigured or patched.

    Return an empty tuple for other streams, for closed or detached streams, and if this Python's layout is not known.
    """
    learn()
    if type(stream) is not io.TextIOWrapper:
        return ()
    known = (_buffer_word, _encoding_word, _errors_word, _newline_word, _raw_word, _descriptor_word)
    if _newline_word is None or None in known:
        return ()
    newline = _native.object_words(stream)[_newline_word]
    try:
        buffer = stream.buffer
        raw = buffer if type(buffer) is io.FileIO else buffer.raw
        if type(raw) is not io.FileIO or type(buffer) not in (io.BufferedWriter, io.BufferedRandom, io.FileIO):
            return ()
        found = [
            _word(stream, _buffer_word, id(buffer)),
            _word(stream, _encoding_word, id(stream.encoding)),
            _word(stream, _errors_word, id(stream.errors)),
            _word(stream, _newline_word, newline),
            _word(raw, _descriptor_word, raw.fileno(), _HALF),
            # While `encoding` and `errors` are kept alive, no other object can get their addresses.
            (stream.encoding, 0, 0, 0),
            (stream.errors, 0, 0, 0),
        ]
        if buffer is not raw:
            found.append(_word(buffer, _raw_word, id(raw)))
        for layer in {id(layer): layer for layer in (stream, buffer, raw)}.values():
            attributes = vars(layer)
            if _native.object_words(layer)[type(layer).__dictoffset__ // _WORD] != id(attributes):
                return ()
            found.append(_native.dict_word(attributes))
    except (AttributeError, ValueError, IndexError, _Unexpected):
        return ()
    return tuple(found)


class _Unexpected(Exception):
    """A word differs from the value of the attribute."""


def _word(layer: Any, index: Any, value: int, mask: int = _WHOLE) -> tuple[Any, int, int, int]:
    if _native.object_words(layer)[index] & mask != value & mask:
        raise _Unexpected
    return layer, index * _WORD, mask, value & mask
