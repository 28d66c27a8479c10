"""The site has every page in one order, and links that leave their page lead somewhere: on the site and on PyPI."""

import base64
import hashlib
import importlib
import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import build_site
import logspool
import long_description
import repository_links

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]
REPOSITORY = repository_links.REPOSITORY


def _pages(entries):
    """Return the pages of the navigation in their order."""
    for _, value in entries:
        yield from _pages(value) if isinstance(value, list) else [value]


def test_the_navigation_has_every_page_of_the_site():
    inside = [page for page in _pages(build_site.navigation()) if not page.startswith("../")]
    pages = {str(path.relative_to(build_site.DOCS)) for path in build_site.DOCS.rglob("*.md")} | set(
        build_site.api_pages()
    )

    assert pages == set(inside)
    assert len(inside) == len(set(inside)), "a page is twice in docs/README.md"


def test_a_user_who_reads_from_the_first_page_installs_before_all_else():
    titles = [title for title, _ in build_site.navigation()]

    assert ["Start", "Begin", "Fit it into a program"] == titles[:3]
    assert ["how-to/install.md", "tutorial.md"] == list(_pages(build_site.navigation()))[1:3]


def test_groups_of_a_line_are_sections_of_the_navigation():
    entries = build_site._entries(
        "- [Use it](a.md): [`x`](b.md), [y](c.md)\n\nComing from [z](d.md).\n- [one](e.md), [two](f.md)\n"
    )

    assert list(entries) == [
        ("Use it", [("Use it", "a.md"), ("X", "b.md"), ("Y", "c.md")]),
        ("Coming from", [("Z", "d.md")]),
        ("One", "e.md"),
        ("Two", "f.md"),
    ]


def test_each_public_name_has_a_page_of_the_api():
    pages = build_site.api_pages()

    assert logspool.__all__ == build_site.public_names()["logspool"]
    for module, names in build_site.public_names().items():
        assert importlib.util.find_spec(module), module
        assert [] == [name for name in names if f"{module}.{name}" not in pages[f"api/{module}.{name}.md"]]


@pytest.mark.parametrize("path", sorted(build_site.DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_link_of_the_site_leaves_it_by_a_path(path):
    # A link that leads to no file, or to no function of one, ends the rewriting with an error.
    targets = repository_links.targets(build_site.page(path))
    inside = [target.partition("#")[0] for target in targets if repository_links.is_relative(target)]

    assert [] == [name for name in inside if not (path.parent / name).resolve().is_relative_to(build_site.DOCS)]


def _anchors(path):
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", sorted(build_site.DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_to_a_part_of_a_page_leads_to_one_of_its_headings(path):
    for target in repository_links.targets(path.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        page = (path.parent / name) if name else path
        if anchor and ":" not in name and page.suffix == ".md":
            assert anchor in _anchors(page), target


def test_a_link_that_names_a_test_leads_to_its_line():
    page = ROOT / "docs" / "tutorial.md"
    here = "../tests/python/surface/test_site.py"
    line = Path(__file__).read_text(encoding="utf-8").splitlines().index("def _pages(entries):") + 1

    assert repository_links.address(f"{here}#_pages", page).endswith(f"/tests/python/surface/test_site.py#L{line}")
    with pytest.raises(SystemExit, match="has no function test_gone"):
        repository_links.address(f"{here}#test_gone", page)
    with pytest.raises(SystemExit, match="leads to no file"):
        repository_links.address("../tests/gone.py", page)


def test_a_link_in_code_is_no_link():
    text = "`[a](b)` [c](d)\n```\n[e](f)\n```\n[1]: g\n[![p](q.svg)](h)\n"

    assert repository_links.targets(text) == ["d", "g", "q.svg", "h"]
    assert repository_links.rewrite(text, str.upper) == "`[a](b)` [c](D)\n```\n[e](f)\n```\n[1]: G\n[![p](Q.SVG)](H)\n"


def test_the_readme_on_pypi_has_no_link_by_a_path():
    text = long_description.page()
    targets = repository_links.targets(text)
    pictures = [target for target in targets if target.endswith(".svg")]

    assert [] == [target for target in targets if repository_links.is_relative(target)]
    assert len(pictures) == 4
    service = (ROOT / "packaging" / "service" / "README.md").read_text(encoding="utf-8")
    assert [] == [target for target in repository_links.targets(service) if repository_links.is_relative(target)]
    assert all(target.startswith(f"{REPOSITORY}/raw/v{repository_links.VERSION}/bench/runs/") for target in pictures)
    assert "<!--" not in text


def test_a_wheel_gets_the_readme_with_links_that_work_on_pypi(tmp_path):
    metadata = (
        b"Metadata-Version: 2.4\nName: logspool\nDescription-Content-Type: text/markdown\n\n# Old\n\n[a](docs/b.md)\n"
    )
    record = b"logspool/__init__.py,sha256=abc,1\nlogspool-0.1.0.dist-info/METADATA,"
    record += long_description._recorded(metadata).partition(b",")[2] + b"\nlogspool-0.1.0.dist-info/RECORD,,\n"
    wheel = tmp_path / "logspool-0.1.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("logspool/__init__.py", "1")
        archive.writestr("logspool-0.1.0.dist-info/METADATA", metadata)
        archive.writestr(zipfile.ZipInfo("logspool-0.1.0.dist-info/RECORD", (2026, 1, 2, 3, 4, 6)), record)

    long_description.put_into(wheel)

    with zipfile.ZipFile(wheel) as archive:
        names = [entry.filename for entry in archive.infolist()]
        changed = archive.read("logspool-0.1.0.dist-info/METADATA")
        listed = archive.read("logspool-0.1.0.dist-info/RECORD").decode().splitlines()
        assert archive.getinfo("logspool-0.1.0.dist-info/RECORD").date_time == (2026, 1, 2, 3, 4, 6)
    assert names[0] == "logspool/__init__.py" and len(names) == 3
    head, _, body = changed.partition(b"\n\n")
    assert head == metadata.partition(b"\n\n")[0]
    assert body.decode() == long_description.page()
    digest = base64.urlsafe_b64encode(hashlib.sha256(changed).digest()).rstrip(b"=").decode()
    assert listed[0] == "logspool/__init__.py,sha256=abc,1"
    assert listed[1] == f"logspool-0.1.0.dist-info/METADATA,sha256={digest},{len(changed)}"


def test_every_place_that_names_the_repository_has_the_address_of_pyproject():
    places = ("Cargo.toml", "packaging/service/pyproject.toml", "packaging/conan/conanfile.py")
    for name in (*places, "packaging/vcpkg/ports/logspool/vcpkg.json"):
        found = re.findall(
            r'(?i)(?:repository|homepage)"?\s*[=:]\s*"([^"]+)"', (ROOT / name).read_text(encoding="utf-8")
        )
        assert found == [REPOSITORY], name
    for name, url in repository_links.PROJECT["urls"].items():
        assert name == "Documentation" or url.startswith(REPOSITORY), name
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        assert "repository.workspace = true" in manifest.read_text(encoding="utf-8"), manifest


def test_the_switch_of_versions_lists_the_versions_of_a_published_site(tmp_path):
    for name in ("0.9", "0.10", "1.0", "assets", "0.10.1"):
        (tmp_path / name).mkdir()

    assert build_site.write_versions(tmp_path) == ["1.0", "0.10", "0.9"]
    rows = json.loads((tmp_path / "versions.json").read_text())
    assert [row["version"] for row in rows] == ["1.0", "0.10", "0.9"]
    assert "url=1.0/" in (tmp_path / "index.html").read_text()
