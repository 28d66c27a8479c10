"""Folders of `tests/python` in which most tests can differ from interpreter to interpreter."""

#: The matrix runs all their tests but those marked `one_interpreter`; `make test PYTHON=...` runs the others, too.
EVERY_INTERPRETER = ("stdlib", "endings", "formatting", "pool", "releases", "surprises", "tracebacks")
