"""One record for a request to a language model, instead of one for each token.

    with logspool.llm.request(model="llama-8b", input_tokens=len(prompt)) as request:
        for token in engine.generate(prompt):
            request.token()

The record has the number of tokens, the time to the first one and the times between them. It is written when the block
is left, also by an exception or a client that has gone.
"""

from __future__ import annotations

import logging
import time
import traceback
from array import array

from logspool import _bind

# Importing `typing` takes 5 ms. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
    from types import TracebackType
    from typing import Any, TypeVar

    _Item = TypeVar("_Item")

__all__ = ["Request", "request"]

#: Times that one request keeps. Chosen: longer answers are rare, and these take 512 KiB. Percentiles of a longer answer
#: are of its first tokens.
MAX_TIMES = 65_536

#: Names of the fields that a record has by itself.
_OWN = (
    "model",
    "outcome",
    "seconds",
    "input_tokens",
    "output_tokens",
    "first_token_seconds",
    "tokens_per_second",
    "token_gap_p50_seconds",
    "token_gap_p99_seconds",
    "token_gap_max_seconds",
    "token_seconds",
)

#: The record shows the line of the program that leaves the block: the callers of `log` are `_end` and `__exit__`.
_FROM_BLOCK = 3

#: Digits of seconds in a record: microseconds.
_DIGITS = 6


def request(
    *,
    model: str | None = None,
    input_tokens: int | None = None,
    logger: str | logging.Logger = "logspool.llm",
    level: int | str = logging.INFO,
    timings: bool = False,
    **fields: Any,
) -> Request:
    """Measure a request from now on; its record is written at the end of the `with` block.

    Args:
        model: the model's name.
        input_tokens: number of tokens of the prompt; also an attribute that may be set later.
        logger: the logger of the record, or its name.
        level: level of the record; a request that fails is an ERROR at least.
        timings: whether the record has `token_seconds`, a list of the seconds from the beginning to each call of
            `token()`.
        **fields: further fields of the record.

    Returns:
        The request. Use it in a `with` block, also in a coroutine.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: a name of `fields` is one of the record's own, or there is no such level.
    """
    if model is not None and not isinstance(model, str):
        raise TypeError(f"model must be a name, not {model!r}")
    if input_tokens is not None:
        input_tokens = _count("input_tokens", input_tokens)
    if not isinstance(logger, (str, logging.Logger)):
        raise TypeError(f"logger takes a name or a logging.Logger, not {logger!r}")
    # Raises TypeError or ValueError, as for a level of `logging`.
    number = logging._checkLevel(level)  # type: ignore[attr-defined]
    _check_names(fields)
    chosen = logging.getLogger(logger) if isinstance(logger, str) else logger
    return Request(model, input_tokens, chosen, number, keeps_timings=bool(timings), fields=fields)


class Request:
    """A request that runs, as `request()` returns it. One thread at a time may call its methods.

    Attributes:
        input_tokens: number of tokens of the prompt, or None.
        output_tokens: number of tokens so far.
    """

    def __init__(
        self,
        model: str | None,
        input_tokens: int | None,
        logger: logging.Logger,
        level: int,
        *,
        keeps_timings: bool,
        fields: dict[str, Any],
    ) -> None:
        self.input_tokens, self.output_tokens = input_tokens, 0
        self._model, self._logger, self._level, self._keeps_timings = model, logger, level, keeps_timings
        self._fields = dict(fields)
        self._times = array("d")
        self._last = 0.0
        self._first_tokens = 0
        self._largest_gap = 0.0
        self._is_over = False
        self._began = time.perf_counter()

    def token(self, count: int = 1) -> None:
        """Note that `count` tokens have been made since the last call. Calls after the end change nothing."""
        now = time.perf_counter()
        if self._is_over:
            return
        if self.output_tokens == 0:
            self._first_tokens = count
        elif now - self._last > self._largest_gap:
            self._largest_gap = now - self._last
        self.output_tokens += count
        self._last = now
        if len(self._times) < MAX_TIMES:
            self._times.append(now)

    def each(self, stream: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items of `stream`, each of which counts as one token."""
        for item in stream:
            self.token()
            yield item

    async def each_async(self, stream: AsyncIterable[_Item]) -> AsyncIterator[_Item]:
        """Yield the items of an asynchronous `stream`, each of which counts as one token."""
        async for item in stream:
            self.token()
            yield item

    def add(self, **fields: Any) -> None:
        """Add fields to the record, such as the reason why the model has stopped.

        Raises:
            ValueError: a name is one of the record's own.
        """
        _check_names(fields)
        self._fields.update(fields)

    def __enter__(self) -> Request:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end("done", None)
        elif isinstance(error, Exception):
            self._end("failed", error)
        else:
            # The task was cancelled, the generator was closed, or the program ends: that is no fault of the request.
            self._end("cancelled", None)

    def _end(self, outcome: str, error: Exception | None) -> None:
        if self._is_over:
            return
        seconds = time.perf_counter() - self._began
        self._is_over = True
        fields = {**self._fields, "outcome": outcome, "seconds": round(seconds, _DIGITS), **self._measured()}
        if self._model is not None:
            fields["model"] = self._model
        if self.input_tokens is not None:
            fields["input_tokens"] = self.input_tokens
        level = self._level if error is None else max(self._level, logging.ERROR)
        first = fields.get("first_token_seconds")
        try:
            if first is None:
                self._logger.log(
                    level,
                    "%s %s: no token in %.3f s",
                    self._model or "request",
                    outcome,
                    seconds,
                    extra=fields,
                    stacklevel=_FROM_BLOCK,
                    exc_info=error,
                )
            else:
                self._logger.log(
                    level,
                    "%s %s: %d tokens in %.3f s, the first after %.3f s",
                    self._model or "request",
                    outcome,
                    self.output_tokens,
                    seconds,
                    first,
                    extra=fields,
                    stacklevel=_FROM_BLOCK,
                    exc_info=error,
                )
        except Exception:
            # A filter or a handler of the program raised. The request must not fail because of its log.
            if logging.raiseExceptions:
                traceback.print_exc()

    def _measured(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"output_tokens": self.output_tokens}
        if not self._times:
            return fields
        fields["first_token_seconds"] = round(self._times[0] - self._began, _DIGITS)
        since_first = self._last - self._times[0]
        if since_first > 0:
            fields["tokens_per_second"] = round((self.output_tokens - self._first_tokens) / since_first, 3)
        gaps = sorted(after - before for before, after in zip(self._times, self._times[1:]))
        if gaps:
            for name, share in (("token_gap_p50_seconds", 0.5), ("token_gap_p99_seconds", 0.99)):
                fields[name] = round(gaps[min(int(len(gaps) * share), len(gaps) - 1)], _DIGITS)
            fields["token_gap_max_seconds"] = round(self._largest_gap, _DIGITS)
        if self._keeps_timings:
            fields["token_seconds"] = [round(each - self._began, _DIGITS) for each in self._times]
        return fields


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{name} must be a number of tokens, not {value!r}")
    return value


def _check_names(fields: dict[str, Any]) -> None:
    taken = [name for name in fields if name in _OWN or name in _bind.reserved_names()]
    if taken:
        raise ValueError(f"{', '.join(sorted(taken))}: the record has that already; give the field another name")
