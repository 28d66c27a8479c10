"""Options of `install()` from the environment and from a TOML file.

An argument of `install()` comes first, then the variable `LOGSPOOL_<OPTION>`, then the file, then the default. The file
is the one that `LOGSPOOL_CONFIG` names, or `pyproject.toml` in the current folder if it has a table `[tool.logspool]`.

Nobody named the `pyproject.toml`. So it is ignored, with one line on standard error, if another user can have written
it (`_found_file`) or if it is broken.
"""

from __future__ import annotations

import functools
import os
import re
import sys

from logspool.base import _interpreter, _options
from logspool.process import _found_file, _install_options

# Importing `typing` is slow. Type checkers recognise a variable of this name without it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

PREFIX = "LOGSPOOL_"

#: Names the file.
FILE_VARIABLE = "LOGSPOOL_CONFIG"

#: Names the file that `run` has reported as ignored, so that the program and its children do not repeat the line.
IGNORED_VARIABLE = "LOGSPOOL_IGNORED"

#: Variables of the package that are no options.
OTHER_VARIABLES = (
    FILE_VARIABLE,
    IGNORED_VARIABLE,
    "LOGSPOOL_INSTALL",
    "LOGSPOOL_KEPT",
    "LOGSPOOL_PACKAGE",
    "LOGSPOOL_REPORT",
)

PROJECT = "pyproject.toml"

_SWITCHES = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}

# Chosen: one wrong, missing or surplus letter in a name of eight. Variables of other purposes are less similar.
_NEAR = 0.85


class Setting:
    """An option that a variable or a file sets.

    Attributes:
        name: the option.
        value: as `install()` takes it.
        place: the variable, or the file with the line.
        is_variable: whether `place` is a variable.
    """

    def __init__(self, name: str, value: Any, place: str, *, is_variable: bool) -> None:
        self.name, self.value, self.place, self.is_variable = name, value, place, is_variable


class Fault:
    """A variable, a file or a value that cannot be used.

    Attributes:
        text: the place and the fault.
        fix: the action to take.
    """

    def __init__(self, text: str, fix: str) -> None:
        self.text, self.fix = text, fix

    def __str__(self) -> str:
        return f"{self.text} (fix: {self.fix})"


class Configuration:
    """All settings of the environment and of a file, and the faults in them.

    Attributes:
        settings: the usable settings by the name of the option.
        faults: everything that cannot be used.
        file: the path of the file; None if there is none.
        is_set_by_file: whether the file sets an option, perhaps one that a variable overrides.
        ignored: why `pyproject.toml` is ignored; None if it is not.
    """

    def __init__(self) -> None:
        self.settings: dict[str, Setting] = {}
        self.faults: list[Fault] = []
        self.file: str | None = None
        self.is_set_by_file = False
        self.ignored: Fault | None = None

    def check(self) -> None:
        """Move settings whose values `install()` refuses from `settings` to `faults`."""
        while self.settings:
            values = {name: setting.value for name, setting in self.settings.items()}
            try:
                _install_options.checked(values)
                return
            except (TypeError, ValueError) as error:
                text = str(error)
            match = re.match(r"\w+", text)
            wrong = self.settings.get(match[0]) if match else None
            if wrong is None:
                # No single setting is at fault.
                places = ", ".join(setting.place for setting in self.settings.values())
                self.faults.append(Fault(f"{places}: {text}", "change one of them"))
                self.settings.clear()
                return
            del self.settings[wrong.name]
            self.faults.append(_refused(wrong, text))


def _refused(setting: Setting, text: str) -> Fault:
    default = _row(setting.name)["default"]
    default = "none" if default is None else literal(default).strip('"')
    if setting.is_variable:
        # The error of the option begins with its name.
        return Fault(setting.place + text[len(setting.name) :], f"unset {setting.place} for the default, {default}")
    return Fault(f"{setting.place}: {text}", f"remove the line for the default, {default}")


def completed(function: _Function) -> _Function:
    """Decorate `install()`: options that the call does not pass come from the environment and the file."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if os.environ.get("LOGSPOOL") == "off":
            return function(*given, **options)
        _interpreter.check_promises(options)
        settings = in_force(options)
        if not settings:
            return function(*given, **options)
        try:
            return function(*given, **{**{name: setting.value for name, setting in settings.items()}, **options})
        except (TypeError, ValueError) as error:
            # Each setting alone is correct, so an argument rules it out.
            concerned = [setting for setting in settings.values() if re.search(rf"\b{setting.name}\b", str(error))]
            if not concerned:
                raise
            places = ", ".join(f"{setting.name} is set by {setting.place}" for setting in concerned)
            raise type(error)(f"{error} ({places})") from None

    return call  # type: ignore[return-value]


def in_force(given: Collection[str] = ()) -> dict[str, Setting]:
    """Return the settings of this process, checked, without the options that are `given` as arguments.

    Raises:
        ValueError: a variable, the file or a value in it cannot be used.
    """
    configuration = read()
    _report_ignored(configuration)
    for name in given:
        configuration.settings.pop(name, None)
    configuration.check()
    if configuration.faults:
        raise ValueError(str(configuration.faults[0]))
    return configuration.settings


def text_of(name: str) -> str | None:
    """Return the unchecked text of an option from the environment or the file; None if neither sets it as text."""
    setting = read().settings.get(name)
    return None if setting is None or type(setting.value) is not str else setting.value


def read() -> Configuration:
    """Read the environment and the file. The values are not checked yet."""
    configuration = Configuration()
    path = os.environ.get(FILE_VARIABLE) or None
    if path is not None:
        _read_file(configuration, os.path.abspath(path), f"{FILE_VARIABLE}: ")
    else:
        _read_found_file(configuration)
    _read_environment(configuration)
    return configuration


def _read_found_file(configuration: Configuration) -> None:
    """Read `pyproject.toml` of the current folder, if only this user and root can have written it."""
    try:
        path = os.path.join(os.getcwd(), PROJECT)
    except OSError:
        # The current folder is deleted, or out of reach.
        return
    try:
        if b"logspool" not in _found_file.content(path):
            configuration.file = path
            return
        _read_table(configuration, path, _found_file.trusted_content(path))
    except FileNotFoundError:
        return
    except OSError as error:
        why, fix = f"it cannot be read: {error.strerror or error}", "change its mode, or remove it"
    except _found_file.Refusal as refusal:
        why, fix = refusal.why, refusal.fix
    else:
        return
    configuration.ignored = Fault(f"{path} is ignored: {why}", f"{fix}; or name a file in {FILE_VARIABLE}")


_reported: set[str] = set()


def _report_ignored(configuration: Configuration) -> None:
    """Write one line about an ignored file, once in a process."""
    if configuration.ignored is None:
        return
    text = str(configuration.ignored)
    if text in _reported or text == os.environ.get(IGNORED_VARIABLE):
        return
    _reported.add(text)
    if sys.stderr is not None:
        # Another user may have chosen the path, so it must not begin a line.
        shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
        sys.stderr.write(f"logspool: {shown}\n")


def read_file(path: str) -> Configuration:
    """Read only a file. The values are not checked yet."""
    configuration = Configuration()
    _read_file(configuration, os.path.abspath(path), "")
    return configuration


def _row(name: str) -> dict[str, Any]:
    return next(row for row in _install_options.rows() if row["name"] == name)


def _read_environment(configuration: Configuration) -> None:
    options = _install_options.shapes()
    for variable, text in os.environ.items():
        if not variable.startswith(PREFIX) or not text or variable in OTHER_VARIABLES:
            continue
        name = variable[len(PREFIX) :].lower()
        if variable != PREFIX + name.upper() or name not in options:
            near = _near_variable(variable)
            if near:
                text = f"the environment variable {variable} is no option; the nearest one is {near}"
                configuration.faults.append(Fault(text, f"rename it to {near}, or unset it"))
            continue
        try:
            value = from_text(_row(name), text)
        except ValueError as error:
            setting = Setting(name, text, variable, is_variable=True)
            configuration.faults.append(_refused(setting, f"{name} {error}"))
            configuration.settings.pop(name, None)
            continue
        configuration.settings[name] = Setting(name, value, variable, is_variable=True)


def _near_variable(variable: str) -> str | None:
    """Return the variable of an option of which this one is a misspelling."""
    import difflib

    known = [PREFIX + name.upper() for name in _install_options.shapes()]
    rest = [name[len(PREFIX) :] for name in known]
    near = difflib.get_close_matches(variable[len(PREFIX) :].upper(), rest, n=1, cutoff=_NEAR)
    return PREFIX + near[0] if near else None


def from_text(row: dict[str, Any], text: str) -> Any:
    """Return the value that a text means for an option with this row in the core's table.

    Raises:
        ValueError: the text means none; the error continues a text that begins with the name of the option.
    """
    shape = row["shape"]
    if shape != "path" and text.lower() == "none" and row["optional"]:
        return None
    if shape == "switch":
        if text.lower() not in _SWITCHES:
            raise ValueError(f"must be on or off, not {text!r}")
        return _SWITCHES[text.lower()]
    if shape == "levels":
        return _levels(text.split(","))
    if shape == "texts":
        return _texts(text)
    kind = {"whole": (int, "a whole number"), "seconds": (float, "a number of seconds")}.get(shape)
    if kind is None:
        return text
    try:
        return kind[0](text)
    except ValueError:
        raise ValueError(f"must be {kind[1]}, not {text!r}") from None


def _texts(text: str) -> list[str]:
    """Return the texts of a JSON list, or those between semicolons."""
    if text.lstrip().startswith("["):
        import json

        try:
            texts = json.loads(text)
        except ValueError:
            # A regular expression may begin with a bracket, too.
            texts = None
        if isinstance(texts, list):
            return texts
    return [part for part in map(str.strip, text.split(";")) if part]


def _levels(words: list[str]) -> list[int | str]:
    return [int(word) if word.isdecimal() else word for word in map(str.strip, words) if word]


def _read_file(configuration: Configuration, path: str, source: str) -> None:
    configuration.file = path
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        text = f"{source}cannot read {path!r}: {error.strerror or error}"
        fix = f"name a TOML file, or unset {FILE_VARIABLE}" if source else "name a TOML file"
        configuration.faults.append(Fault(text, fix))
        return
    try:
        _read_table(configuration, path, data)
    except _found_file.Refusal as refusal:
        configuration.faults.append(Fault(f"{path}: {refusal.why}", refusal.fix))


def _read_table(configuration: Configuration, path: str, data: bytes) -> None:
    """Read the options from the bytes of a file.

    Raises:
        _found_file.Refusal: the bytes cannot be parsed.
    """
    configuration.file = path
    is_project = os.path.basename(path) == PROJECT
    if is_project and b"logspool" not in data:
        return
    try:
        table = dict(_parsed(data, is_project=is_project))
    except (ValueError, RecursionError) as error:
        # One line, whatever the parser quotes.
        raise _found_file.Refusal(
            " ".join(str(error).split()), "repair the file: https://toml.io describes its form"
        ) from None
    except ImportError:
        raise _found_file.Refusal(
            "this Python cannot read TOML, because tomllib came with Python 3.11",
            f"pip install tomli, or set the options by variables, as {PREFIX}QUEUE_BYTES",
        ) from None
    lines = data.decode("utf-8", "replace").splitlines()
    for name, value in table.items():
        _read_entry(configuration, path, lines, name, value, is_project=is_project)


def _parser() -> Any:
    """Return the module that parses TOML; None if this Python has none."""
    import importlib

    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


@functools.lru_cache(maxsize=4)
def _parsed(data: bytes, *, is_project: bool) -> dict[str, Any]:
    """Return the table with the options.

    Raises:
        ImportError: no parser is installed.
        ValueError: the file is no TOML, or the table is no table.
    """
    parser = _parser()
    if parser is None:
        if is_project and not re.search(rb"^\s*\[\s*tool\s*\.\s*logspool\b", data, re.MULTILINE):
            # It only names logspool, for example as a dependency.
            return {}
        raise ImportError
    table: Any = parser.loads(data.decode("utf-8"))
    for name in ("tool", "logspool") if is_project else ():
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{name} must be a table, not {table!r}")
    return table  # type: ignore[no-any-return]


def _read_entry(
    configuration: Configuration, path: str, lines: list[str], name: str, value: Any, *, is_project: bool
) -> None:
    options = _install_options.shapes()
    place = f"{path}:{_line_of(lines, name, is_project=is_project)}"
    if name not in options:
        if not is_project and name == "tool":
            fix = f"write the options without a table; only a file called {PROJECT} has them in [tool.logspool]"
        else:
            fix = "rename the key, or remove it"
        text = f"{place}: install() has no option {name!r}; {_options.meant(name, options)}"
        configuration.faults.append(Fault(text, fix))
        return
    shape = options[name]
    if isinstance(value, str):
        if shape == "path":
            value = os.path.join(os.path.dirname(path), os.path.expanduser(value))
        elif value == "none" and _row(name)["optional"]:
            value = None
    configuration.settings[name] = Setting(name, value, place, is_variable=False)
    configuration.is_set_by_file = True


def _line_of(lines: list[str], name: str, *, is_project: bool) -> int:
    """Return the number of the line that sets a key; of its table if the key is written in another form."""
    table = 1
    is_inside = not is_project
    for number, line in enumerate(lines, 1):
        if is_project and re.match(r"\s*\[", line):
            is_inside = re.match(r"\s*\[\s*tool\s*\.\s*logspool\s*\]", line) is not None
            table = number if is_inside else table
        if is_inside and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*[=.]|\s*\[\s*{re.escape(name)}\b""", line):
            return number
    return table


def literal(value: Any) -> str:
    """Return a value of an option as a TOML file has it."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        import json

        # A JSON text is a TOML text, too.
        return json.dumps(value, ensure_ascii=False)
    return f"[{', '.join(map(literal, value))}]"
