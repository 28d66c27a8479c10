"""Makes source texts of modules whose functions call each other and finally raise.

Each module has functions `f0` to `fN`. A function takes `nxt`, a list of functions; it calls the first with the rest.
"""

import random

#: Bodies of a function, separated by dashes; `{call}` calls the next one. The lines have carets, anchors and widths of
#: all kinds.
CALLS = """\
    return {call}
---
    return {call} + 1
---
    value = {call}
    return value
---
    return [{call} for _ in range(1)][0]
---
    return sorted([1], key=lambda _: {call})
---
    return list(map(lambda _: {call}, [1]))
---
    return (lambda: {call})()
---
    return {{'a': {{'b': 1}}}}['a']['b'] + {call} * 2
---
    return {{'ключ': [1, {call}]}}['ключ'][1]
---
    größe = '日本語の文字列' and {call}
    return größe
---
    x = 1; y = 2; return x + y + {call}; z = 3
---
    return {call}    # a comment after it
---
    return max(
        1,
        {call},
        3,
    )
---
    return (
        1 +
        2 +
        {call} +
        4 +
        5 +
        6
    )
---
    return {call} \\
        + 1
---
    if True:
\treturn {call}
---
    for _ in (i for i in [{call}]):
        pass
---
    def inner(depth):
        if depth:
            return inner(depth - 1)
        return {call}
    return inner({depth})
---
    def even(depth):
        return odd(depth - 1) if depth else {call}
    def odd(depth):
        return even(depth - 1) if depth else {call}
    return even({depth})
---
    def rest():
        yield 1
        yield {call}
    return list(rest())
---
    def outer():
        return (yield from inner())
    def inner():
        yield {call}
    return next(outer())
---
    async def wait():
        return {call}
    async def both():
        return await wait()
    both().send(None)
---
    class Local:
        @property
        def value(self):
            return {call}
    return Local().value
---
    class Local:
        def __getitem__(self, key):
            return {call}
    return Local()[0]
---
    class Local:
        def __add__(self, other):
            return {call}
    return Local()   +   (1)
---
    class Local:
        def __enter__(self):
            return self
        def __exit__(self, *_):
            {call}
    with Local():
        pass
---
    class Body:
        value = {call}
---
    exec('{call}')
---
    return eval('1 + {call}')
---
    exec(compile('def made():\\n    return {call}\\nmade()', '<made {number}>', 'exec'), dict(globals(), nxt=nxt))
---
    import functools
    return functools.partial(lambda a: {call}, 1)()
---
    try:
        return {call}
    finally:
        print(end='')
---
    try:
        return {call}
    except BaseException:
        raise
---
    try:
        return {call}
    except BaseException as error:
        raise RuntimeError('outer') from error
---
    try:
        return {call}
    except BaseException as error:
        raise LookupError from error
---
    try:
        return {call}
    except BaseException:
        raise ValueError('while it was handled')
---
    try:
        return {call}
    except BaseException:
        raise ValueError('alone') from None
---
    try:
        return {call}
    except BaseException as error:
        raise error.with_traceback(error.__traceback__.tb_next)
---
    try:
        return {call}
    except BaseException as error:
        caught = error
    raise caught
---
    try:
        return {call}
    finally:
        [][7]
---
    assert {call} == 1, 'message'
---
    return f'{{{call}!r}} and more'
---
    return not {call} and -{call}
---
    return {call}.attribute.other
---
    return 1 if {call} else 2
---
    del {call}.attribute
---
    a, b = {call}
---
\treturn {call}
---
    return  {call}\x20\x20\x20
---
    return '''a
b''' + {call}
""".split("---\n")

#: The last statement of a chain.
LEAVES = """\
    return 1 / 0
---
    return 1 / (0   +  0)
---
    return [][0]
---
    return {}['k']\x20
---
    return {'a': 1}['ключ']
---
    return int('日本語')
---
    return None.attribute
---
    return [].appendd(1)
---
    return undefined_name
---
    nxx = 1
    return nxy
---
    return math.pi
---
    import no_such_module_here
---
    from os import pathh
---
    return open('/no/such/file')
---
    return 'text' + 1
---
    return len(1, 2, 3)
---
    return (1)(2)
---
    return b'\\xff'.decode('utf-8')
---
    assert False
---
    assert 1 == 2, ('a', 1)
---
    raise ValueError
---
    raise ValueError()
---
    raise ValueError('')
---
    raise ValueError('text')
---
    raise ValueError('two\\nlines\\n')
---
    raise ValueError('a', 1)
---
    raise ValueError(None)
---
    raise KeyError('k')
---
    raise OSError(2, 'No such file', 'name')
---
    raise AttributeError('text')
---
    raise NameError('text', name='prnt')
---
    raise SystemExit(3)
---
    raise StopIteration(1)
---
    raise GeneratorExit
---
    compile('a = (1', 'made.py', 'exec')
---
    compile('größe = = 1', 'made.py', 'exec')
---
    exec('if 1:\\n  a\\n b')
---
    eval('1 +')
---
    raise SyntaxError('only text')
---
    raise SyntaxError('all', ('file.py', 3, 5, '  text here\\n', 3, 9))
---
    raise SyntaxError('odd', ('file.py', 3, None, None))
---
    import json
    return json.loads('{')
---
    import re
    return re.compile('(')
---
    def endless():
        return endless()
    return endless()
---
    raise odd.{name}
""".split("---\n")
LEAVES += 5 * ["    raise odd.{name}\n"] + ["    return odd.call({number})\n"] + 5 * ["    raise odd.made({number})\n"]


def function(rng: random.Random, number: int, names: list[str]) -> str:
    """Return the source of a function."""
    head = f"def f{number}(nxt):\n"
    if rng.random() < 0.15:
        head = f"@decorated\n{head}"
    if rng.random() < 0.1:
        head = "\n" * rng.randrange(4) + head
    body = rng.choice(CALLS).format(
        call=rng.choice(["nxt[0](nxt[1:])", "nxt[0]( nxt[1:] )"]),
        depth=rng.choice([0, 1, 3, 4, 5, 9, 40]),
        number=number,
    )
    leaf = rng.choice(LEAVES).replace("{name}", rng.choice(names)).replace("{number}", str(rng.randrange(10**6)))
    # The last call is in a function of its own, because tabs and spaces cannot be mixed in one block.
    return f"{head}    if not nxt:\n        return g{number}()\n{_consistent(body)}\ndef g{number}():\n{leaf}\n"


def _consistent(body: str) -> str:
    if body.startswith("\t"):
        return "    if True:\n\t" + body
    if "\n\t" in body:
        return body.replace("\n\t", "\n    \t")
    return body


HEADER = '''"""Made for a test."""

import odd


def decorated(function):
    def wrapper(*args):
        return function(*args)
    return wrapper


'''


def module(rng: random.Random, functions: int, names: list[str]) -> str:
    """Return the source of a module with this number of functions."""
    header = rng.choice(["", "# -*- coding: utf-8 -*-\n", "\n\f\n"]) + HEADER
    source = header + "\n".join(function(rng, number, names) for number in range(functions))
    return source if rng.random() < 0.9 else source.rstrip("\n")
