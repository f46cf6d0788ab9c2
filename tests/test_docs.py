"""Pages that show code tell the truth: their examples run, and the sources they quote are the sources."""

import ast
import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from bifactor.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("_build", "gallery", "generated")
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not set(MADE) & set(page.relative_to(DOCS).parts)]
PAGES.append(ROOT / "README.md")
EXTEND = [page for page in sorted((DOCS / "extend").glob("*.md")) if page.stem != "index"]
"""Everything on the site that is not made by building it."""

RAW = "raw.githubusercontent.com"
SOURCE = "<!-- source:"
BLOCK = re.compile(
    rf"^(?:{SOURCE} (?P<source>\S+) -->\n\s*)?^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))


def test_no_code_is_left_out():
    """Blocks of other kinds are not run: `py` is for what needs a library that the tests do not have."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    kinds = set(re.findall(r"^```(\w*)$", text, re.MULTILINE))
    assert kinds <= {"", "python", "py", "text", "bibtex"}


def test_every_kind_has_a_page():
    assert {page.stem for page in EXTEND} >= {"loss", "operator", "penalty", "solver"}


def test_every_command_has_a_section():
    sections = re.findall(r"^## (\w+)$", (DOCS / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(COMMANDS) <= set(sections)


def test_the_front_page_has_absolute_links_to_what_is_there():
    """It is read on the package index too. Addresses begin as `[project.urls]` says."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        urls = tomllib.load(file)["project"]["urls"]
    links = re.findall(r"\]\((.*?)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    for link in links:
        site, raw = f"{urls['Documentation']}/en/latest/", f"{urls['Source']}/main/".replace("github.com", RAW)
        if link.startswith(raw):
            assert (ROOT / link.removeprefix(raw)).is_file(), link
        else:
            assert link.startswith(site), link
            page = DOCS / link.removeprefix(site).partition("#")[0].replace(".html", ".md")
            assert page.exists() or page.parent.name == "gallery", link


@each_page
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files
    text = page.read_text(encoding="utf-8")
    # As a script: functions of __main__ are what numba can both find again and tell from their older versions.
    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    for block in BLOCK.finditer(text):
        if block["source"] is None:
            # Blank lines in front make a traceback point into the page.
            lines_before = text.count("\n", 0, block.start("code"))
            exec(compile("\n" * lines_before + block["code"], page, "exec"), vars(script))


def source_of(place):
    """A file of the library or, for `path#Name`, one class in it."""
    path, _, name = place.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    if not name:
        return text
    node = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    first = min(node.lineno, *(decorator.lineno for decorator in node.decorator_list))
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno]) + "\n"


@each_page
def test_quoted_sources_are_current(page):
    text = page.read_text(encoding="utf-8")
    quoted = [block for block in BLOCK.finditer(text) if block["source"] is not None]
    assert len(quoted) == text.count(SOURCE), f"{page.name}: a '{SOURCE}' comment has no python block right below it."
    for block in quoted:
        assert block["code"] == source_of(block["source"]), (
            f"{page.name} quotes an old {block['source']}: copy the file in again."
        )


@pytest.mark.parametrize("page", EXTEND, ids=lambda page: page.stem)
def test_extension_pages_import_public_names_only(page):
    """What is quoted from the library may import what it likes; an extension imports what is pinned."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        tree = ast.parse("" if block["source"] else block["code"])
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)):
            if node.module and node.module.split(".")[0] == "bifactor":
                public = importlib.import_module(node.module).__all__
                assert {alias.name for alias in node.names} <= set(public), f"line {block.start()}: {ast.unparse(node)}"


@pytest.mark.parametrize("page", EXTEND, ids=lambda page: page.stem)
def test_extension_pages_show_an_example_and_a_source(page):
    quotes = [block["source"] is not None for block in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    assert set(quotes) == {True, False}
