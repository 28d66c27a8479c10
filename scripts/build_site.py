"""Build the site of the pages into build/site/public/VERSION; a warning ends it with an error.

The pages are those of docs/, and one for each public name of the package, made from its signature and its docstring.
The navigation is made from docs/README.md. A link to a file that is not in docs/ leads to the repository.

`--into FOLDER` adds the version to a published site; the switch between versions lists all folders there.
"""

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import interpreters
import repository_links
import terminal
from environment import BUILD, REQUIREMENTS, ROOT, Environment, read_requirements

DOCS = ROOT / "docs"
PACKAGE = ROOT / "python" / "logspool"
WORK = BUILD / "site"
#: Where a version of the site has the pages of the API.
API = "api"

#: A title with a page or, in a section, with more titles.
Entry = tuple[str, "str | list[Entry]"]

_LINKED = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def public_names() -> dict[str, list[str]]:
    """Return the public names of each public module, as `__all__` of its source lists them."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        if "._" in module:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[module] = list(ast.literal_eval(node.value))
    return found


def api_pages() -> dict[str, str]:
    """Return the text of each page of the API by its path: one for each public name, and an index."""
    pages = {}
    index = ["# All public names\n"]
    for module, names in public_names().items():
        index.append(f"\n## `{module}`\n")
        others = _from_others(module)
        for name in names:
            full = f"{module}.{name}"
            text = _of_others(full, others[name]) if name in others else f"::: {full}\n"
            pages[f"{API}/{full}.md"] = f"---\ntitle: {name}\n---\n\n{text}"
            index.append(f"- [`{full}`]({full}.md)")
    return pages | {f"{API}/index.md": "\n".join(index) + "\n"}


def _source(module: str) -> Path:
    """Return the file of a module."""
    place = PACKAGE.parent.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _from_others(module: str) -> dict[str, str]:
    """Return the modules of the standard library that a module's public names come from."""
    found = {}
    for node in ast.walk(ast.parse(_source(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not str(node.module).startswith("logspool"):
            found |= {alias.asname or alias.name: str(node.module) for alias in node.names}
    return found


def _of_others(full: str, module: str) -> str:
    """Return the text of the page of a name of the standard library."""
    name = f"{module}.{full.rpartition('.')[2]}"
    address = f"https://docs.python.org/3/library/{module}.html#{name}"
    return f"# `{full}` {{: #{full} }}\n\n[`{name}`]({address}) of the standard library.\n"


def navigation() -> list[Entry]:
    """Return the sections of docs/README.md with their pages, in its order, then the pages of the API."""
    sections: list[Entry] = [("Start", "README.md")]
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        sections.append((title, list(_entries(body))))
    names = [("All names", f"{API}/index.md")]
    for module, members in public_names().items():
        names.append((module, [(name, f"{API}/{module}.{name}.md") for name in members]))
    sections.insert(-1, ("API", names))
    return sections


def _entries(body: str) -> Iterator[Entry]:
    """Return the entries of a section; a line that names a group, or begins with `page: `, is a section in it."""
    for line in body.splitlines():
        links = [(_title(text), _pages(target)) for text, target in _LINKED.findall(line)]
        if not links:
            continue
        before = line.removeprefix("- ").partition("[")[0].strip()
        after = line.partition(")")[2]
        if before:
            yield before, links
        elif after.startswith(": ") and len(links) > 1:
            yield links[0][0], links
        else:
            yield from links


def _pages(target: str) -> "str | list[Entry]":
    """Return the target of a link, or the pages that it lists."""
    return decisions() if target == "decisions/README.md" else target


def _title(text: str) -> str:
    plain = text.replace("`", "")
    return plain[0].upper() + plain[1:]


def decisions() -> list[Entry]:
    """Return the pages of the decisions, in the order of their list."""
    text = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.+?)\]\(([\w-]+\.md)\) ", text, flags=re.MULTILINE)
    return [("All decisions", "decisions/README.md"), *((title, f"decisions/{page}") for title, page in rows)]


def _toml(entries: list[Entry]) -> str:
    """Return entries as an array of TOML."""
    return "[" + ", ".join(f"{{ {json.dumps(title)} = {_value(value)} }}" for title, value in entries) + "]"


def _value(value: "str | list[Entry]") -> str:
    if isinstance(value, list):
        return _toml(value)
    return json.dumps(_outside(value, DOCS / "README.md"))


def _outside(target: str, page: Path) -> str:
    """Return the address in the repository for a link that leaves docs/; other links stay."""
    if not repository_links.is_relative(target):
        return target
    if (page.parent / target.partition("#")[0]).resolve().is_relative_to(DOCS):
        return target
    return repository_links.address(target, page)


def page(path: Path) -> str:
    """Return the text of a page for the site."""
    return repository_links.rewrite(path.read_text(encoding="utf-8"), lambda target: _outside(target, path))


def prepare(version: str) -> Path:
    """Write the pages and the configuration; return the configuration."""
    shutil.rmtree(WORK / "docs", ignore_errors=True)
    texts = {str(path.relative_to(DOCS)): page(path) for path in sorted(DOCS.rglob("*.md"))} | api_pages()
    for name, text in texts.items():
        target = WORK / "docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    urls = repository_links.PROJECT["urls"]
    own = {
        "site_url": f"{urls['Documentation']}{version}/",
        "repo_url": urls["Repository"],
        "docs_dir": "docs",
        "site_dir": "made",
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()] + [f"nav = {_toml(navigation())}"]
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    text = text.replace("[project]\n", "[project]\n" + "\n".join(lines) + "\n", 1)
    text += f"\n[project.plugins.mkdocstrings.handlers.python]\npaths = [{json.dumps(str(PACKAGE.parent))}]\n"
    configuration = WORK / "zensical.toml"
    configuration.write_text(text, encoding="utf-8")
    return configuration


def build(site: Path, version: str) -> None:
    """Build one version of the site; end the script where the generator warns."""
    environment = Environment(interpreters.running(), "site").ensure()
    environment.install("site", read_requirements(REQUIREMENTS / "site.txt"))
    configuration = prepare(version)
    program = str(environment.folder / "bin" / "zensical")
    command = [program, "build", "--clean", "--strict", "--config-file", str(configuration)]
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0 or re.search(r"\bwarning|\berror", said, flags=re.IGNORECASE):
        sys.stderr.write(said)
        raise terminal.fail("the site has warnings")
    shutil.rmtree(site, ignore_errors=True)
    site.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(WORK / "made", site)


def missing_names(site: Path) -> list[str]:
    """Return the public names without a page of their own that describes them."""
    wanted = [f"{module}.{name}" for module, names in public_names().items() for name in names]
    return [name for name in wanted if f'id="{name}"' not in _read(site / API / name / "index.html")]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def write_versions(public: Path) -> list[str]:
    """Write the list of versions that a site has, and a first page that leads to the newest; return the versions."""
    names = [path.name for path in public.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    names.sort(key=lambda name: tuple(map(int, name.split("."))), reverse=True)
    rows = [{"version": name, "title": name, "aliases": []} for name in names]
    (public / "versions.json").write_text(json.dumps(rows, indent=1) + "\n")
    newest = f"{names[0]}/"
    refresh = f'<meta http-equiv="refresh" content="0; url={newest}">'
    text = f'<!doctype html><meta charset="utf-8">{refresh}<title>logspool</title><a href="{newest}">{newest}</a>\n'
    (public / "index.html").write_text(text)
    return names


def main() -> None:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=WORK / "public", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument(
        "--list", type=Path, metavar="FOLDER", help="build nothing: list the versions of a published site"
    )
    options = parser.parse_args()
    if options.list:
        print("versions:", *write_versions(options.list))
        return
    public = options.into.resolve()
    version = ".".join(repository_links.VERSION.split(".")[:2])
    terminal.step(f"site of version {version}")
    build(public / version, version)
    if missing := missing_names(public / version):
        raise terminal.fail(f"{len(missing)} public names have no page: {', '.join(missing)}")
    pages = len(list((public / version).rglob("index.html")))
    names = sum(map(len, public_names().values()))
    versions = write_versions(public)
    print(f"{public / version}: {pages} pages, no warning, a page for each of {names} public names")
    print(f"versions: {', '.join(versions)}. To read it: python -m http.server --directory {public}")


if __name__ == "__main__":
    main()
