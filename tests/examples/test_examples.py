"""Examples are short, have a title and a picture, and need no other host; the fast ones run and do what they say.

All of them are run by `make docs`.
"""

import ast
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*/*.py"))
LIMITS = {"matrix_sensing": 1e-5, "phase_retrieval": 1e-5}

each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def test_there_is_a_gallery():
    assert len(EXAMPLES) >= 15
    assert len({path.stem for path in EXAMPLES}) == len(EXAMPLES)


@each_example
def test_form(path):
    text = path.read_text(encoding="utf-8")
    title, line, *rest = ast.get_docstring(ast.parse(text)).splitlines()
    assert title
    assert line == "=" * len(title)
    assert any(rest)
    assert "import matplotlib.pyplot as plt" in text
    assert "http" not in text.replace("https://doi.org", "")
    assert "fetch_" not in text  # scikit-learn's word for a download
    assert len(text.splitlines()) <= 120


@pytest.mark.parametrize("name", LIMITS)
def test_fast_examples(name, capsys):
    path = next(path for path in EXAMPLES if path.stem == name)
    pytest.importorskip("matplotlib").use("Agg")
    found = runpy.run_path(str(path))
    found["plt"].close("all")
    assert found["error"] < LIMITS[name]
    assert "converged" in capsys.readouterr().out
