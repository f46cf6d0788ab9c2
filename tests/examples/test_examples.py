"""The examples run, are short, and do what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
LIMITS = {"matrix_sensing": 1e-5, "phase_retrieval": 1e-5}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
@pytest.mark.parametrize("seed", [0, 1])
def test_example(path, seed, capsys):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(seed=seed) < LIMITS[path.stem]
    assert "converged" in capsys.readouterr().out
    assert len(path.read_text().splitlines()) <= 40
