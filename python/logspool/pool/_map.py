"""`Pool.map`: submits the items in chunks, with one future for each chunk."""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, TimeoutError
from typing import TYPE_CHECKING, Any

from logspool.base import _options

if TYPE_CHECKING:
    from typing import Protocol

    class _Pool(Protocol):
        """What a map needs of a pool."""

        _max_workers: int

        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]: ...


# Number of chunks into which a worker's share of the remaining items is divided. Chosen: 2 spreads the last items
# evenly. 4 would make twice as many chunks, which costs 4 % of a map over the cheapest function.
_PARTS = 2

#: The items of a chunk, one column for each iterable. Emptying the first column ends the chunk after its current item.
Chunk = tuple[Any, ...]
Outcome = tuple[list[Any], "BaseException | None"]


def run(
    pool: _Pool,
    fn: Callable[..., Any],
    iterables: tuple[Iterable[Any], ...],
    timeout: float | None,
    chunksize: int | None,
    buffersize: int | None,
    ordered: bool,
) -> Iterator[Any]:
    """Begin a map and return the iterator over its results; see `Pool.map`."""
    _options.check_callable("map", fn)
    if chunksize is not None and _options.whole("chunksize", chunksize) < 1:
        raise ValueError(f"chunksize is {chunksize}, expected 1 or more")
    # The texts begin as those of `concurrent.futures`, whose tests compare them.
    if buffersize is not None and not isinstance(buffersize, int):
        raise TypeError(f"buffersize must be an integer or None, not {buffersize!r}")
    if buffersize is not None and buffersize < 1:
        raise ValueError(f"buffersize must be None or > 0, not {buffersize}")
    deadline = None if timeout is None else time.monotonic() + _options.seconds("timeout", timeout)
    if buffersize is None:
        chunks = _whole_chunks(iterables, chunksize, pool._max_workers)
        ahead = None
    else:
        size = chunksize or max(1, buffersize // (_PARTS * pool._max_workers))
        chunks = _read_chunks(iterables, size)
        ahead = max(1, buffersize // size)
    begun = _Results(pool, fn, chunks, deadline, ahead, ordered)
    results = _Iterator.from_iterable(begun.lists())
    results.close = begun.close  # type: ignore[attr-defined]
    return results


class _Iterator(itertools.chain):  # type: ignore[type-arg]
    """The iterator that `Pool.map` returns. Going to the next result runs in C."""

    #: The method `_Results.close`.
    close: Callable[[], None]


def _chunk(fn: Callable[..., Any], columns: Chunk) -> Outcome:
    """Run the items of a chunk in a worker; return the results up to the first exception, and the exception."""
    results: list[Any] = []
    try:
        # Loops are used instead of `map`. From 3.11 on, the interpreter calls a Python function from a loop without a C
        # call. And in a loop a StopIteration raised by `fn` is an exception like any other.
        if len(columns) == 1:
            for item in columns[0]:
                results.append(fn(item))
        else:
            for row in zip(*columns):
                results.append(fn(*row))
    except BaseException as error:
        return results, error
    return results, None


def _whole_chunks(iterables: tuple[Iterable[Any], ...], chunksize: int | None, workers: int) -> Iterator[Chunk]:
    """Read the whole input at once and cut it into chunks."""
    columns = [each if isinstance(each, (list, tuple, range)) else list(each) for each in iterables]
    count = min(map(len, columns), default=0)
    begin = 0
    while begin < count:
        # Guided self-scheduling (Polychronopoulos and Kuck, 1987): chunks get smaller towards the end. See `_PARTS`.
        size = chunksize or -(-(count - begin) // (_PARTS * workers))
        first, *others = (column[begin : min(begin + size, count)] for column in columns)
        # The slice of a list is a new list.
        yield (first if isinstance(first, list) else list(first), *others)
        begin += size


def _read_chunks(iterables: tuple[Iterable[Any], ...], size: int) -> Iterator[Chunk]:
    """Cut the input into chunks while reading it."""
    rows = zip(*iterables)
    while chunk := list(itertools.islice(rows, size)):
        first, *others = zip(*chunk)
        yield (list(first), *others)


class _Results:
    """The submitted chunks of a map, and the iterator over their results."""

    def __init__(
        self,
        pool: _Pool,
        fn: Callable[..., Any],
        chunks: Iterator[Chunk],
        deadline: float | None,
        ahead: int | None,
        ordered: bool,
    ) -> None:
        self._pool: _Pool | None = pool
        self._fn, self._chunks, self._deadline = fn, chunks, deadline
        self._ready: queue.SimpleQueue[Future[Outcome]] | None = None if ordered else queue.SimpleQueue()
        self._begun: dict[Future[Outcome], Chunk] = {}
        for _ in itertools.islice(iter(self._begin, False), ahead):
            pass

    def _begin(self) -> bool:
        columns = next(self._chunks, None)
        if columns is None or self._pool is None:
            # The pool is not referenced any more: a reference to the results must not keep the pool alive.
            self._pool = None
            return False
        future = self._pool.submit(_chunk, self._fn, columns)
        self._begun[future] = columns
        if self._ready is not None:
            future.add_done_callback(self._ready.put)
        return True

    def _next_outcome(self) -> Outcome:
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        if self._ready is None:
            future = next(iter(self._begun))
            outcome = future.result(left)
        else:
            try:
                future = self._ready.get(timeout=left)
            except queue.Empty:
                raise TimeoutError from None
            outcome = future.result()
        del self._begun[future]
        return outcome

    def lists(self) -> Generator[Iterable[Any]]:
        """Yield the results, chunk by chunk."""
        try:
            while self._begun:
                results, error = self._next_outcome()
                self._begin()
                # Keep no reference to a single result while the caller works with it. A larger chunk is kept as a
                # whole.
                yield results if len(results) != 1 else map(results.pop, (0,))
                if error is not None:
                    try:
                        raise error
                    finally:
                        # The exception's traceback refers to this frame, so deleting the name breaks a reference cycle.
                        del error
        finally:
            self.close()

    def close(self) -> None:
        """Cancel the items that have not begun. The iterator yields no more results."""
        self._pool = None
        for future, columns in self._begun.items():
            if not future.cancel():
                # The chunk runs, or has ended. The loop over a list that is emptied ends.
                columns[0].clear()
        self._begun.clear()
