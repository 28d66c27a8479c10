"""Fields that every record of a context carries."""

from __future__ import annotations

import functools
from contextvars import ContextVar

from logspool.adoption._bound_fields import fields, reserved_names

# Importing `typing` and `inspect` takes longer than importing all of logspool. Type checkers recognise a variable of
# this name without them.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

#: A linked list of the `bind` blocks that the current context has entered, the innermost first. An element has the
#: `bind`, the fields outside of its block, and the element of the next outer block.
_blocks: ContextVar[tuple[bind, dict[str, Any] | None, Any] | None] = ContextVar("logspool_blocks", default=None)

_SCALARS = (str, int, float, bool, bytes, type(None))


def _by_name(initializer: _Function) -> _Function:
    """Decorate `bind.__init__`: a positional argument is an error that says how to name a field."""

    @functools.wraps(initializer)
    def call(self: Any, /, *given: Any, **values: Any) -> None:
        if given:
            raise TypeError(f"bind takes fields by name, as bind(request_id=1), not {given[0]!r}")
        initializer(self, **values)

    return call  # type: ignore[return-value]


class bind:
    """Add fields to every record logged inside the block or the decorated function.

    Fields belong to the call, not to the thread: they follow `await`, and tasks and threads started with a copy of
    the context take them along. Inner blocks add to outer ones and win over them. They appear in JSON output, in
    `%(field)s` of formats, and as attributes of every LogRecord. A value that is no str, int, float, bool, bytes or
    None is shown by its `str()` at the time of binding. One object may be entered in several threads and tasks. A
    decorated generator has the fields while its own code runs.

    Args:
        **values: the fields; a name that LogRecord uses itself is a `ValueError`.

    Example:
        with logspool.bind(request_id=request.id):
            logger.info("started")
    """

    @_by_name
    def __init__(self, /, **values: Any) -> None:
        taken = reserved_names().intersection(values)
        if taken:
            names = ", ".join(sorted(taken))
            raise ValueError(f"bind: {names}: LogRecord has an attribute of that name; give the field another one")
        self._values = {name: _snapshot(value) for name, value in values.items()}

    def __enter__(self) -> bind:
        _carry()
        outer = fields.get()
        _blocks.set((self, outer, _blocks.get()))
        fields.set({**outer, **self._values} if outer else dict(self._values))
        return self

    def __exit__(self, *_: object) -> None:
        block: Any = _blocks.get()
        while block is not None and block[0] is not self:
            block = block[2]
        # `block` is None if the block was entered in another context, which keeps its fields. Leaving the block in this
        # context must not raise.
        if block is not None:
            _, outer, others = block
            fields.set(outer)
            _blocks.set(others)

    def __call__(self, function: _Function) -> _Function:
        import inspect

        if not callable(function):
            raise TypeError(f"bind(...) decorates a function, not {function!r}")
        values = self._values
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def bound_coroutine(*args: Any, **kwargs: Any) -> Any:
                with bind(**values):
                    return await function(*args, **kwargs)

            return bound_coroutine  # type: ignore[return-value]
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def bound_generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from _BoundGenerator(values, function(*args, **kwargs)))

            return bound_generator  # type: ignore[return-value]
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def bound_asynchronous(*args: Any, **kwargs: Any) -> Any:
                generator, context = function(*args, **kwargs), _GeneratorFields(values)
                step, argument = generator.asend, None
                try:
                    while True:
                        with context:
                            try:
                                item = await step(argument)
                            except StopAsyncIteration:
                                return
                        try:
                            step, argument = generator.asend, (yield item)
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            step, argument = generator.athrow, error
                finally:
                    with context:
                        await generator.aclose()

            return bound_asynchronous  # type: ignore[return-value]

        @functools.wraps(function)
        def bound(*args: Any, **kwargs: Any) -> Any:
            with bind(**values):
                return function(*args, **kwargs)

        return bound  # type: ignore[return-value]


class _GeneratorFields:
    """The fields of a decorated generator: bound while its code runs, and not while the code that uses it runs.

    Blocks that the generator has entered stay entered until it goes on.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._block: bind | None = block_of(values)
        self._inside: Any = None
        self._outside: Any = None

    def __enter__(self) -> None:
        self._outside = fields.get(), _blocks.get()
        if self._block is not None:
            self._block.__enter__()
            self._block = None
        else:
            fields.set(self._inside[0])
            _blocks.set(self._inside[1])

    def __exit__(self, *_: object) -> None:
        self._inside = fields.get(), _blocks.get()
        fields.set(self._outside[0])
        _blocks.set(self._outside[1])


class _BoundGenerator:
    """What `yield from` drives in place of a decorated generator."""

    def __init__(self, values: dict[str, Any], generator: Any) -> None:
        self._generator = generator
        self._context = _GeneratorFields(values)

    def __iter__(self) -> _BoundGenerator:
        return self

    def __next__(self) -> Any:
        with self._context:
            return next(self._generator)

    def send(self, value: Any) -> Any:
        with self._context:
            return self._generator.send(value)

    def throw(self, *error: Any) -> Any:
        with self._context:
            return self._generator.throw(*error)

    def close(self) -> None:
        with self._context:
            self._generator.close()


def block_of(values: dict[str, Any]) -> bind:
    """Return a `bind` of values that are known to be scalars, under names that no LogRecord uses itself."""
    block = bind.__new__(bind)
    block._values = values
    return block


def _snapshot(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    return str(value)


#: The table of replaced methods and the key of the one that carries fields, after the first use of `bind`.
_carrying: tuple[dict[Any, Any], tuple[type, str]] | None = None


def _carry() -> None:
    """Make records of the stock path carry the bound fields, too. `uninstall()` takes that back."""
    global _carrying
    if _carrying is not None and _carrying[1] in _carrying[0]:
        return
    import logging

    from logspool.adoption._carrying import carry_fields
    from logspool.base import _stock_classes

    carry_fields()
    _carrying = (_stock_classes.replaced, (logging.Logger, "makeRecord"))
