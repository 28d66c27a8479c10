"""Every exported name is listed, documented, and known to type checkers."""

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import logspool

pytestmark = [pytest.mark.real, pytest.mark.every_interpreter]

SOURCE = ast.parse(Path(logspool.__file__).read_text(encoding="utf-8"))


MEMBERS = {name: getattr(logspool, name) for name in logspool.__all__}
CLASSES = sorted(name for name, member in MEMBERS.items() if inspect.isclass(member))
RESULTS = sorted(name for name, member in MEMBERS.items() if dataclasses.is_dataclass(member))
WITH_OPTIONS = sorted(
    name for name, member in MEMBERS.items() if name not in CLASSES and inspect.signature(member).parameters
)


def _imported_for_checkers():
    """Return the names that the `if TYPE_CHECKING` block of the package imports from itself."""
    for node in SOURCE.body:
        if isinstance(node, ast.If):
            return {
                alias.asname or alias.name
                for statement in node.body
                if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("logspool.")
                for alias in statement.names
            }
    raise AssertionError("the package imports nothing for type checkers")


def test_all_is_sorted_and_without_repetition():
    assert sorted(set(logspool.__all__)) == logspool.__all__


def test_type_checkers_know_exactly_the_exported_names():
    assert {*logspool.__all__, "__version__"} == _imported_for_checkers()


def test_every_exported_name_has_a_known_module():
    assert set(logspool.__all__) == set(logspool._HOMES)


@pytest.mark.parametrize("name", logspool.__all__)
def test_every_exported_member_exists_and_is_documented(name):
    member = MEMBERS[name]

    assert inspect.getdoc(member)
    assert not str(inspect.getdoc(member)).startswith(f"{name}(")


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_are_documented(name):
    member = MEMBERS[name]
    undocumented = [
        attribute
        for attribute, value in vars(member).items()
        if not attribute.startswith("_")
        and inspect.isfunction(value)
        and not inspect.getdoc(getattr(member, attribute))
    ]

    assert not undocumented


@pytest.mark.parametrize("name", RESULTS)
def test_every_field_of_a_result_is_explained(name):
    member = MEMBERS[name]
    text = inspect.getdoc(member)

    assert not [field.name for field in dataclasses.fields(member) if f"\n    {field.name}: " not in text]


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_every_option_is_explained(name):
    member = MEMBERS[name]
    text = inspect.getdoc(member)

    assert not [option for option in inspect.signature(member).parameters if f"\n    {option}: " not in text]


@pytest.mark.parametrize("name", logspool.__all__)
def test_a_line_explains_one_parameter(name):
    arguments = str(inspect.getdoc(MEMBERS[name])).partition("\nArgs:\n")[2].partition("\n\n")[0]

    assert [] == re.findall(r"^    \w+, .+: ", arguments, flags=re.MULTILINE)


def test_dir_shows_the_exported_names():
    assert not set(logspool.__all__) - set(dir(logspool))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="instal"):
        logspool.instal  # noqa: B018


def test_the_package_is_marked_as_typed():
    assert Path(logspool.__file__).with_name("py.typed").exists()
