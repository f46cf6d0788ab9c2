"""The API reference has every public name, and an example of each that runs."""

import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bifactor as bf

API = Path(__file__).parents[1] / "docs" / "api"
PAGES = sorted(API.glob("*.rst"))
EXAMPLES = sorted((API / "examples").glob("*.py"))
OPTIONAL = ("anndata", "distributed")
"""Libraries that some parts need; these are left out where a library is not installed."""
MARK = re.compile(r"^# --- (\w+) ---\n", re.MULTILINE)

sys.path.insert(0, str(Path(__file__).parent))
from test_architecture import PUBLIC  # noqa: E402


def listed() -> dict[str, object]:
    """Full names on the pages, and what they stand for."""
    found = {}
    for page in PAGES:
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split()[-1]
            elif name := re.fullmatch(r"(?:   |\.\. py:data:: )(\w+)", line):
                found[f"{module}.{name[1]}"] = getattr(importlib.import_module(module), name[1])
    return found


def parts(path: Path) -> tuple[str, dict[str, str]]:
    shared, *rest = MARK.split(path.read_text(encoding="utf-8"))
    return shared, dict(zip(rest[::2], rest[1::2], strict=True))


@pytest.mark.parametrize("module", [*PUBLIC, "bifactor.errors"])
def test_every_public_name_is_in_the_reference(module):
    namespace = importlib.import_module(module)
    things = list(listed().values())
    for name in PUBLIC.get(module, " ".join(n for n, e in vars(bf.errors).items() if inspect.isclass(e))).split():
        thing = getattr(namespace, name)
        if inspect.ismodule(thing):
            assert (API / f"{thing.__name__}.rst").exists(), f"docs/api has no page of {thing.__name__}."
        else:
            assert any(thing is one for one in things), f"{module}.{name} is on no page of docs/api."


def test_every_name_of_the_reference_has_an_example_that_uses_it():
    for full in listed():
        module, name = full.rsplit(".", 1)
        _, found = parts(API / "examples" / f"{module}.py")
        assert name in found, f"docs/api/examples/{module}.py has no part '# --- {name} ---'."
        assert re.search(rf"\b{name}\b", found[name]), f"The example of {full} does not use it."


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    importlib.import_module("matplotlib").use("Agg")
    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    shared, found = parts(path)
    for text in [shared, *found.values()]:
        if all(importlib.util.find_spec(name) for name in OPTIONAL if f"from {name} import" in text):
            exec(compile(text, path, "exec"), vars(script))
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
