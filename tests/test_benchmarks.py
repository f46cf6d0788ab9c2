"""The contract of benchmarks, their tables, and the comparison of two commits on a toy repository."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed with the library

from benchmarks.__main__ import main  # noqa: E402
from benchmarks.harness import against, data, ratings_data, report, rows, table  # noqa: E402
from benchmarks.harness.worker import Worker  # noqa: E402

RIVALS = {"clarabel", "cmfrec", "cvxpy", "libmf", "pymanopt", "surprise"}

TOY = """
from benchmarks.harness.rows import Case, Absent

def absent():
    raise Absent("The data are not at hand. Fetch them.")

def prepare():
    import bifactor
    return lambda: print("noise") or {"seconds": bifactor.SECONDS, "iterations": bifactor.ITERATIONS}

CASES = [Case("f", "tiny", "ours", prepare), Case("f", "nowhere", "ours", absent)]
"""


@pytest.mark.parametrize("name", rows.names())
def test_a_benchmark_has_a_title_and_rows_and_imports_no_rival(name):
    module = rows.load(name)
    assert module.__doc__
    assert callable(module.run)
    assert all(isinstance(case, rows.Case) and all(case.nouns.values()) for case in getattr(module, "CASES", []))
    assert len({tuple(case.nouns.values()) for case in getattr(module, "CASES", [])}) == len(
        getattr(module, "CASES", [])
    )
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names}
    imported |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not RIVALS & {other.split(".")[0] for other in imported}


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.stem)
def test_sizes(path):
    assert len(path.read_text().splitlines()) <= 300
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    assert all(node.end_lineno - node.body[0].lineno < 40 for node in functions)


def sample(solver, seconds, **more):
    pairs = enumerate(seconds)
    return [{"benchmark": "toy", **rows.row("f", "tiny", solver, draw=k, seconds=s, **more)} for k, s in pairs]


def test_ratios_are_taken_draw_by_draw():
    ours, theirs = sample("ours", [1.0, 2.0, None]), sample("theirs", [3.0, None, 5.0])
    assert table.ratios(theirs, ours, "seconds") == [3.0]
    lone = [rows.row("f", "tiny", "slow", seconds=6.0)]
    assert table.ratios(lone, ours, "seconds") == [4.0]
    assert table.ratios(sample("never", [None]), ours, "seconds") == []


def test_scores_are_averaged_and_differ_by_draw():
    ours, theirs = (
        [rows.row("f", "d", name, draw=k, rmse=e + k) for k in range(3)] for name, e in (("a", 1), ("b", 2))
    )
    assert table.plain_lines(ours + theirs)[1]["difference"] == "+1.0000 ± 0.0000"
    assert table.plain_lines(ours)[0]["rmse"] == "2.0000"
    covered = [rows.row("f", "d", "a", draw=k, cover90=share) for k, share in enumerate((0.5, 0.5, 0.8))]
    assert table.plain_lines(covered)[0]["cover90"] == "0.6000"


def test_a_saved_file_gives_the_same_table(tmp_path, capsys):
    found = sample("ours", [0.5, 0.25], recovered=True) + sample("theirs", [1.0, 1.0], recovered=False)
    path = tmp_path / "found.json"
    report.save(path, {"metadata": report.metadata(), "rows": found})
    main(["--table", str(path)])
    shown = capsys.readouterr().out
    assert "3 (2 to 4)" in shown
    assert "2 of 2" in shown
    assert "0 of 2" in shown
    text = path.read_text()
    assert str(ROOT) not in text
    assert {"commit", "date", "threads", "python", "numpy", "numba"} <= set(json.loads(text)["metadata"])


def test_what_is_not_at_hand_is_a_row(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "DATA", tmp_path)
    (row,) = rows.or_skipped(rows.load("ratings").run)
    assert row["skipped"] == "ml-100k is not at hand. Set BIFACTOR_DATA to the folder that holds it."


@pytest.mark.parametrize("name", ratings_data.RATINGS)
def test_ratings_that_are_not_at_hand_are_a_row(name, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "DATA", tmp_path)
    (row,) = rows.or_skipped(lambda: rows.load("posterior").data_rows(name))
    assert row["skipped"].endswith("is not at hand. Set BIFACTOR_DATA to the folder that holds it.")


def some_ratings(size):
    rng = np.random.default_rng(3)
    return rng.integers(0, 40, size) * 7 + 100, rng.integers(0, 30, size) * 3, rng.standard_normal(size)


def test_what_is_hidden_is_of_rows_and_columns_that_are_shown_and_keeps_its_value():
    triples = some_ratings(60)  # few, so that some rows and columns are hidden whole
    part = ratings_data.split(triples, 0)
    value_at = dict(zip(triples[2], zip(*triples[:2], strict=True), strict=True))
    for side in (0, 1):
        shown, hidden = part.shown[side], part.hidden[side]
        assert np.array_equal(np.unique(shown), np.arange(part.shape[side]))
        assert set(hidden) <= set(shown)
        names = {k: value_at[y][side] for k, y in zip(shown, part.shown[2], strict=True)}
        assert all(names[k] == value_at[y][side] for k, y in zip(hidden, part.hidden[2], strict=True))
    assert not set(part.shown[2]) & set(part.hidden[2])
    assert part.shown[2].size + part.hidden[2].size < 60


def test_the_posterior_is_measured_where_it_tells_intervals():
    module = rows.load("posterior")
    part = ratings_data.split(some_ratings(900), 0)
    found = module.measured(lambda train: module.posterior(train, "one", "shared"), part)
    assert set(found) == {"rmse", "cover80", "cover90", "cover95", "length90", "seconds"}
    assert found["rmse"] == pytest.approx(np.std(part.hidden[2]), rel=0.2)  # noise alone, which none can tell
    assert 0.5 < found["cover80"] <= found["cover90"] <= found["cover95"]
    assert set(module.measured(module.ridge, part)) == {"rmse", "seconds"}


def test_a_rival_has_the_settings_that_do_best_on_what_is_hidden():
    module = rows.load("posterior")
    parts = [ratings_data.split(some_ratings(900), seed) for seed in (0, 1)]
    guess = lambda part, rank, at: lambda i, j: np.full(i.size, at)  # noqa: E731
    toy = module.Recommender("toy", guess, [{"at": at} for at in (np.nan, -2.0, 0.0, 2.0)])
    setting, found = module.tuned(toy, parts)
    assert setting == {"at": 0.0}
    assert [numbers["rmse"] for numbers in found] == [np.sqrt(np.mean(part.hidden[2] ** 2)) for part in parts]


@pytest.fixture
def repository(tmp_path):
    """Two commits of a library that tells its own speed, the first of them without benchmarks."""
    root = tmp_path / "toy"
    library = root / "src" / "bifactor" / "__init__.py"
    library.parent.mkdir(parents=True)

    def commit(text):
        library.write_text(text)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
            subprocess.run(["git", *identity, *command], cwd=root, check=True, capture_output=True)

    commit("SECONDS, ITERATIONS = 2.0, 10")
    shutil.copytree(ROOT / "benchmarks" / "harness", root / "benchmarks" / "harness")
    (root / "benchmarks" / "__init__.py").touch()
    (root / "benchmarks" / "toy.py").write_text(TOY)
    commit("SECONDS, ITERATIONS = 1.0, 7")
    return root


@pytest.mark.parametrize(("other", "old"), [("HEAD~1", (2.0, 10)), ("HEAD", (1.0, 7))])
def test_two_trees_in_turns(repository, other, old):
    (_, found), *_ = list(against.compare(["toy"], other, 3, repository))
    *timed, skipped = found
    assert [row["side"] for row in timed] == ["new", "old", "old", "new", "new", "old"]
    assert {(row["seconds"], row["iterations"]) for row in timed if row["side"] == "old"} == {old}
    assert {(row["seconds"], row["iterations"]) for row in timed if row["side"] == "new"} == {(1.0, 7)}
    assert skipped["skipped"] == "The data are not at hand. Fetch them."
    (line, _) = table.against_lines(found)
    assert line["ratio"] == table.number(1 / old[0])
    assert line["iterations, new : old"] == f"7 : {old[1]}"


def test_a_tree_must_use_its_own_library(repository):
    (repository / "src" / "bifactor" / "__init__.py").unlink()
    with pytest.raises(rows.Mistake, match=r"does not use its own library|ended by itself"):
        list(against.compare(["toy"], "HEAD", 1, repository))


def test_a_worker_reports_an_error_and_lives_on():
    worker = Worker()
    assert "no benchmark named" in worker.answer({"do": "list", "benchmark": "none"})["error"]
    assert len(worker.answer({"do": "list", "benchmark": "small_solve"})["cases"]) == 2
    assert worker.answer({"do": "drop"}) == {"dropped": True}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["nothing"], "There is no benchmark named 'nothing'. Choose from: choose, "),
        (["small_solve", "--against", "no-such"], "'no-such' is not a commit of this repository. Give a hash"),
        (["choose", "--against", "HEAD"], "choose has no cases to time on two commits. Choose from: "),
        (["--table", "absent.json"], "absent.json holds no results. Give a file that --output has written."),
        (["small_solve", "--rounds", "0"], "--rounds is 0. Give a number from 1."),
    ],
)
def test_a_mistake_is_one_sentence_and_advice(given, sentence):
    with pytest.raises(rows.Mistake) as caught:
        main(given)
    assert str(caught.value).startswith(sentence)
