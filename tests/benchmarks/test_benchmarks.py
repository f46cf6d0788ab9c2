"""The contract of benchmarks, their tables, and the comparison of two commits on a toy repository."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage, sparse

import bifactor as bf
from bifactor.applications.pictures.files import read_picture

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed with the library

from benchmarks.__main__ import main  # noqa: E402
from benchmarks.harness import (  # noqa: E402
    against,
    click_data,
    data,
    picture_data,
    ratings_data,
    report,
    rows,
    table,
)
from benchmarks.harness.worker import Worker  # noqa: E402
from benchmarks.rivals import clicks  # noqa: E402
from benchmarks.rivals import pictures as inpainting  # noqa: E402

RIVALS = {"clarabel", "cmfrec", "cvxpy", "cv2", "implicit", "irspack", "libmf", "pymanopt", "skimage", "surprise"}

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


def test_a_name_occurs_in_one_group():
    modules = [path for path in (ROOT / "benchmarks").glob("*/*.py") if path.parent.name in rows.GROUPS]
    found = sorted(path.stem for path in modules if path.stem != "__init__")
    assert rows.names() == sorted([*found, "bits"])


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.stem)
def test_sizes(path):
    assert len(path.read_text().splitlines()) <= 600
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
    assert row["skipped"] == "ml-100k is missing. Set BIFACTOR_DATA to the folder that holds it."


@pytest.mark.parametrize("name", ratings_data.RATINGS)
def test_ratings_that_are_not_at_hand_are_a_row(name, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "DATA", tmp_path)
    (row,) = rows.or_skipped(lambda: rows.load("posterior").data_rows(name))
    assert row["skipped"].endswith("is missing. Set BIFACTOR_DATA to the folder that holds it.")


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


@pytest.mark.parametrize("name", click_data.CLICKS)
def test_clicks_that_are_not_at_hand_are_a_row(name, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "DATA", tmp_path)
    ((row,),) = rows.load("ranking").measured([name], ["8:1:1"], ["EASE"], 3)
    assert row["skipped"].endswith("is missing. Set BIFACTOR_DATA to the folder that holds it.")


def test_users_and_items_of_a_core_have_enough_positives_and_no_more_are_taken_away():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 60, 400) * 3, rng.integers(0, 50, 400) + 7
    found = click_data.Clicks(lambda: (users, items), 5).read()
    assert found.nnz > 0
    assert set(found.data) == {1.0}
    assert min(np.diff(found.indptr).min(), np.bincount(found.indices).min()) >= 5
    kept = set(zip(*click_data.cored(users, items, 5), strict=True))
    everything = set(zip(users, items, strict=True))
    assert kept < everything
    # Pairs in any order of their going: one by one, whatever has too few.
    while True:
        counts = [[pair[side] for pair in everything] for side in (0, 1)]
        few = [pair for pair in everything if any(counts[side].count(pair[side]) < 5 for side in (0, 1))]
        if not few:
            break
        everything.remove(few[0])
    assert kept == everything
    assert click_data.cored(users, items, 100)[0].size == 0


def some_clicks(users=80, items=30, seed=0):
    """Users like items of their own group, and item 0."""
    rng = np.random.default_rng(seed)
    alike = np.arange(users)[:, None] % 3 == np.arange(items) % 3
    liked = rng.random((users, items)) < np.where(alike, 0.6, 0.05)
    liked[:, 0] = rng.random(users) < 0.8
    return sparse.csr_array(liked.astype(float))


def available(ranker):
    try:
        ranker.fit(some_clicks(), **ranker.settings[0])
    except rows.Absent:
        return False
    return True


@pytest.mark.parametrize("ranker", clicks.RANKERS, ids=lambda ranker: ranker.name)
@pytest.mark.parametrize("make", [bf.ranking.by_entry, bf.ranking.by_user], ids=["entry", "user"])
def test_a_ranker_recommends_to_its_users_and_to_strangers(ranker, make, monkeypatch):
    if not available(ranker):
        pytest.skip(f"{ranker.name} is not installed")
    split = make(some_clicks(200))
    model = ranker.fit(split.train, **ranker.settings[len(ranker.settings) // 2])
    rows_ = np.arange(10) if split.users is not None else split.known[:10]
    ids, scores = model.recommend(rows_, 7)
    assert ids.shape == scores.shape == (10, 7)
    assert np.all(np.diff(scores, axis=1) <= 0)
    seen = (split.train[rows_] if split.users is not None else rows_).toarray() > 0
    assert not np.take_along_axis(seen, ids, axis=1).any()
    np.testing.assert_array_equal(np.sum(model.recommend(rows_, 30)[0] >= 0, axis=1), 30 - seen.sum(axis=1))
    monkeypatch.setattr(clicks, "BLOCK", 100)
    np.testing.assert_array_equal(model.recommend(rows_, 7)[0], ids)
    if ranker.name == "popularity":
        assert np.all(ids[~seen[:, 0], 0] == 0)  # the item that all groups like
    else:
        popular = bf.ranking.evaluate(clicks.popularity(split.train), split)["ndcg@10"]
        assert bf.ranking.evaluate(model, split)["ndcg@10"] > popular + 0.1


def test_ease_is_a_ridge_regression_of_each_item_on_the_others():
    X = some_clicks().toarray()
    model = clicks.ease(sparse.csr_array(X), 5.0)
    scores = model.score(None, sparse.csr_array(X))
    for j in (0, 7, 29):
        others = np.delete(X, j, axis=1)
        weights = np.linalg.solve(others.T @ others + 5.0 * np.eye(29), others.T @ X[:, j])
        np.testing.assert_allclose(scores[:, j], others @ weights, rtol=1e-8)


def test_settings_are_chosen_on_the_validation_part_and_then_the_width():
    module, asked = rows.load("ranking"), []

    def fit(train, noise, width=1.0):
        """Knows the truth, blurred by less with less noise and with more width."""
        asked.append((noise, width))
        blur = noise / width * np.random.default_rng(1).random(train.shape)
        return clicks.Scorer(train, lambda users, histories: truth[users] + blur[users])

    truth = some_clicks().toarray()
    toy = clicks.Ranker("toy", fit, clicks.grid(noise=(9.0, 2.0, 5.0)), clicks.grid(width=(4.0, 0.1)))
    split = bf.ranking.by_entry(some_clicks())
    found = module.tuned(toy, module.PROTOCOLS["8:1:1"], split)
    assert asked == [(9.0, 1.0), (2.0, 1.0), (5.0, 1.0), (2.0, 4.0), (2.0, 0.1)]
    assert found.settings == {"noise": 2.0, "width": 4.0}
    assert found.trials == 5
    assert found.test["ndcg@10"] == pytest.approx(1)


def test_a_split_tells_who_is_behind_and_who_is_missing(monkeypatch):
    module = rows.load("ranking")

    def absent(train):
        raise rows.Absent("It is not installed.")

    toys = [clicks.Ranker("EASE", clicks.ease, clicks.grid(ridge=(10.0, 30.0))), *clicks.RANKERS[-1:]]
    toys.append(clicks.Ranker("nobody", absent))
    found = [
        one
        for objective in module.PROTOCOLS
        for seed in (1, 2)
        for one in module.split_rows(objective, "toy", some_clicks(200), seed, toys)
    ]
    assert sum("skipped" in one for one in found) == 4
    for one in (one for one in found if one["solver"] == "EASE"):
        assert one["behind"] == one["behind_high"] == 0
        assert one["low"] < one[module.PROTOCOLS[one["objective"]].metrics[0]] < one["high"]
        assert one["trials"] == 2
        assert one["chosen"] in ("ridge 10", "ridge 30")
    assert all(one["behind_high"] < 0 for one in found if one["solver"] == "popularity")
    lines, _ = module.summary(found)
    assert [line["metric"] for line in lines] == ["ndcg@10", "ndcg@100"]
    assert all(line["EASE"].endswith("(+0.0000, 2 of 2)") for line in lines)
    assert all(line["popularity"].endswith("0 of 2)") for line in lines)


SHARES = {"scratches": 0.03, "words": 0.1, "blocks": 0.1, "lines": 1 - 0.94**2}


@pytest.mark.parametrize("mask", picture_data.MASKS)
@pytest.mark.parametrize("shape", [(256, 256), (172, 256)])
def test_a_mask_hides_the_share_it_says_and_depends_on_its_names_and_seed(mask, shape):
    known = picture_data.known_pixels(mask, shape, 5, "boat")
    share = SHARES[mask] if mask in SHARES else float(mask.split()[0]) / 100
    assert known.shape == shape
    assert known.dtype == bool
    assert (~known).mean() == pytest.approx(share, abs=0.006)
    assert np.array_equal(known, picture_data.known_pixels(mask, shape, 5, "boat"))
    for seed, name in ((6, "boat"), (5, "moon")):
        assert not np.array_equal(known, picture_data.known_pixels(mask, shape, seed, name))


def test_blocks_are_squares_apart_and_lines_go_through():
    blocks = ~picture_data.known_pixels("blocks", (256, 256), 0, "boat")
    labels, count = ndimage.label(blocks, np.ones((3, 3)))
    assert count == 26
    assert all(blocks[place].shape == (16, 16) for place in ndimage.find_objects(labels))
    lines = ~picture_data.known_pixels("lines", (200, 100), 0, "boat")
    assert lines.all(axis=1).sum() == 12
    assert lines.all(axis=0).sum() == 6
    assert np.array_equal(lines, lines.all(axis=1)[:, None] | lines.all(axis=0))


def test_a_picture_is_cut_at_its_centre_and_reduced_to_means():
    ramp = np.arange(12 * 9, dtype=np.uint8).reshape(12, 9)
    assert np.array_equal(picture_data.centre(ramp, 4, 3), ramp[4:8, 3:6])
    assert np.array_equal(picture_data.centre(ramp, 20, 3), ramp[:, 3:6])
    colour = np.repeat(ramp[:, :, None], 3, axis=2)
    assert np.array_equal(picture_data.means(colour, 3), np.repeat(ramp[1::3, 1::3, None], 3, axis=2))
    assert np.array_equal(picture_data.means(ramp, 1), ramp)
    assert sum(picture.new for picture in picture_data.PICTURES.values()) == 11


def ramp_and_mask(channels):
    """A picture that is linear in its coordinates, with its corners known."""
    rows_, cols = np.mgrid[:24, :30]
    planes = [(k + 1) * rows_ + 3 * cols + 10 for k in range(channels or 1)]
    picture = np.stack(planes, axis=2).astype(np.uint8)
    known = picture_data.scattered(0.6)((24, 30), np.random.default_rng(2))
    known[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    return (picture if channels else picture[:, :, 0]), known


@pytest.mark.parametrize("rival", inpainting.INPAINTERS, ids=lambda rival: rival.name)
@pytest.mark.parametrize("channels", [None, 3])
def test_a_rival_keeps_known_pixels_sees_no_others_and_continues_a_constant(rival, channels):
    picture, known = ramp_and_mask(channels)
    observed, flat = np.where(known if channels is None else known[:, :, None], picture, 0), np.full_like(picture, 70)
    observed = observed.astype(np.uint8)
    for setting in rival.settings:
        try:
            values = rival.fill(observed.copy(), known, **setting)
            constant = rival.fill(flat * (observed > 0), known, **setting)
        except rows.Absent as reason:
            pytest.skip(str(reason))
        found = inpainting.completed(values, observed, known)
        assert found.dtype == np.uint8
        assert found.shape == picture.shape
        assert np.array_equal(found[known], picture[known])
        # OpenCV's Telea misses a constant by some levels, and both its methods look under the mask at the border.
        levels, mean = (8, 0.5) if rival.name.startswith("OpenCV") else (0, 0)
        assert np.abs(inpainting.completed(constant, flat, known).astype(int) - flat).max() <= levels
        assert np.abs(rival.fill(picture.copy(), known, **setting) - values.astype(float)).mean() <= mean


def test_linear_is_exact_on_a_ramp_and_an_average_reaches_far_pixels():
    picture, known = ramp_and_mask(3)
    assert np.abs(inpainting.linear(picture, known) - picture).max() < 1e-9
    alone = np.zeros((60, 80), bool)
    alone[0, 0] = True
    assert np.allclose(inpainting.gaussian_average(np.full((60, 80), 9, np.uint8), alone, 0.5), 9)


class Painter:
    """Stands in for the estimator: the mean of what is known."""

    def fit_transform(self, picture, known):
        return np.where(known if picture.ndim == 2 else known[:, :, None], picture, picture[known].mean().astype("u1"))


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.setattr(bf, "ImageCompletion", Painter, raising=False)
    return rows.load("pictures")


def test_a_completed_picture_is_measured_where_it_was_hidden(pictures):
    picture, known = ramp_and_mask(3)
    part = pictures.Cell(picture, known)
    assert not part.observed[~known].any()
    numbers, found = pictures.measured(pictures.CANDIDATES[0], part)
    error = found[~known].astype(float) - picture[~known]
    assert numbers["psnr_hidden"] == pytest.approx(-10 * np.log10(np.mean((error / 255) ** 2)))
    assert numbers["psnr"] == pytest.approx(numbers["psnr_hidden"] - 10 * np.log10((~known).mean()))
    assert numbers["seconds_per_megapixel"] == pytest.approx(numbers["seconds"] / 720e-6)
    widths = [{"width": width} for width in (0.5, 8.0)]
    average = [pictures.Inpainter("a", inpainting.gaussian_average, (w,)) for w in widths]
    both = pictures.Inpainter("both", inpainting.gaussian_average, tuple(widths))
    best = max(pictures.measured(one, part)[0]["psnr_hidden"] for one in average)
    assert pictures.measured(both, part)[0]["psnr_hidden"] == best
    exact = pictures.Inpainter("exact", lambda *_: picture)
    assert pictures.measured(exact, part)[0]["psnr_hidden"] == pictures.HIGHEST


def test_pictures_that_are_not_at_hand_are_rows(pictures, monkeypatch, tmp_path):
    module = pictures
    monkeypatch.setattr(data, "DATA", tmp_path)
    *_, skipped = module.quality(["boat"], ["lines"])
    assert skipped["skipped"] == "photos-small/boat.png is missing. Set BIFACTOR_DATA to the folder that holds it."
    first, *others = module.cell_rows("flower", "scratches")
    assert first["draw"] == "flower"
    assert all(found["new"] for found in others if "skipped" not in found)
    (lines, _) = module.summary([skipped, first, *others])
    assert [(line["mask"], line["pictures"]) for line in lines] == [("scratches", "1 in all"), ("scratches", "1 new")]


def test_the_summary_compares_with_the_best_rival_of_each_picture(pictures, tmp_path, capsys):
    def made_up(mask, picture, solver, decibels, new=False, ssim=0.5):
        return rows.row(mask, pictures.DATA, solver, draw=picture, new=new, psnr_hidden=decibels, ssim=ssim)

    found = [
        made_up("lines", "a", pictures.OURS, 30.0, ssim=0.9),
        made_up("lines", "a", "x", 28.0),
        made_up("lines", "a", "y", 29.0),
        made_up("lines", "b", pictures.OURS, 20.0, new=True, ssim=0.7),
        made_up("lines", "b", "x", 20.5, new=True, ssim=0.6),
        rows.row("lines", pictures.DATA, "y", draw="b", skipped="It is not installed."),
        made_up("blocks", "a", "x", 11.0),
        rows.row("lines", "dragonfly, 1 megapixel", f"{pictures.OURS}, 1 thread", draw=0, seconds=1.0),
    ]
    (lines, caption) = pictures.summary(found)
    assert [(line["mask"], line["pictures"]) for line in lines] == [
        *(("lines", part) for part in ("2 in all", "1 new")),
        ("blocks", "1 in all"),
        *(("all masks", part) for part in ("3 in all", "1 new")),
    ]
    means = {"x": "24.25", "y": "29.00", pictures.OURS: "25.00"}
    compared = {"gain": "+0.25 / +0.25 / -0.50", "best": "1 of 2", "SSIM": "0.550 → 0.800"}
    assert lines[0] == {"mask": "lines", "pictures": "2 in all", **means, **compared}
    assert lines[1]["y"] == "–"
    assert "gain" not in lines[2]
    path = tmp_path / "found.json"
    report.save(path, {"metadata": {}, "rows": [{"benchmark": "pictures", **row} for row in found]})
    main(["--table", str(path)])
    shown = capsys.readouterr().out
    assert "pictures, summary" in shown
    assert "+0.25 / +0.25 / -0.50" in shown
    assert pictures.summary([]) == ([], caption)


def test_a_contact_sheet_shows_pictures_pixel_for_pixel(pictures, tmp_path):
    pictures.contact_sheet(tmp_path / "sheet.png", ["china"], ["lines", "blocks"])
    sheet, part = read_picture(tmp_path / "sheet.png").pixels, pictures.cell("china", "lines")
    truth, known = part.truth, part.known
    assert sheet.shape[1] == 4 * (256 + 8) + 8
    tiles = [sheet[20 : 20 + 256, left : left + 256] for left in range(8, sheet.shape[1], 264)]
    assert np.array_equal(tiles[0], truth)
    assert np.array_equal(tiles[1][known], truth[known])
    assert (tiles[1][~known] == (255, 0, 255)).all()
    assert np.array_equal(tiles[3], pictures.ours(part.observed, known))


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
    (root / "benchmarks" / "speed").mkdir()
    (root / "benchmarks" / "speed" / "toy.py").write_text(TOY)
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
        (["nothing"], "There is no benchmark named 'nothing'. Choose from: bits, "),
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
