"""Photographs completed from some of their pixels, on small pictures."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from PIL import Image

from bifactor_reproduce.harness.experiment import SCALES, Finished
from bifactor_reproduce.harness.items import Figure, Table
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.images.cells import (
    BEST,
    FLOW,
    OURS_RIDGED,
    RIDGED,
    SOLVERS,
    STAND_INS,
    chosen,
    fitting_rank,
    photograph,
)
from bifactor_reproduce.images.experiment import Images
from bifactor_reproduce.images.thumbnails import WIDTH, decoded, encoded
from bifactor_reproduce.noiselets.cells import CALIBRATED, PRINTED

DATA = Path(os.environ.get("BIFACTOR_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def write_picture(path, seed=0, size=(40, 60)):
    """Smooth, with a little noise, so that it is of low rank but not exactly."""
    rng = np.random.default_rng(seed)
    y, x = np.linspace(0, 1, size[0])[:, None], np.linspace(0, 1, size[1])
    waves = sum(np.sin(rng.uniform(1, 6) * x + k) * np.cos(rng.uniform(1, 6) * y) for k in range(4))
    values = 0.5 + 0.1 * waves + 0.01 * rng.standard_normal(size)
    Image.fromarray(np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two pictures, the first of which stands for one of the paper's."""
    folder = tmp_path_factory.mktemp("photos")
    write_picture(folder / "sunset_60x40.png", 1)
    write_picture(folder / "view.png", 2)
    return folder


@pytest.fixture(scope="module")
def finished(folder):
    """All algorithms on both pictures; the first choice of pixels stands for three, with its numbers a bit off."""
    sources, told = Sources(photos=folder), []
    for cell in Images().cells("quick", sources):
        if cell.seed == 1:
            outcome = Images().run(replace(cell, max_iter=150), sources)
            told.append(Finished(cell, outcome))
            if cell.method != BEST:
                off = {"psnr": outcome["psnr"] + 0.02}
                told += [Finished(replace(cell, seed=seed, shown=False), outcome | off) for seed in (2, 3)]
    return told


def altered(finished, method, **changes):
    return [Finished(c, o | changes if c.method == method else o) for c, o in finished]


def verdict(finished, words, photo="sunset"):
    found = [v for v in Images().findings(finished).verdicts if v.claim.startswith(f"{photo}: {words}")]
    assert len(found) == 1, words
    return found[0]


def test_photographs_like_the_paper_s_are_preferred(tmp_path):
    for name in ("a.png", "b.png", "c.png", "d.png"):
        write_picture(tmp_path / name)
    (tmp_path / "README.md").touch()
    assert [path.name for path in chosen(tmp_path)] == ["a.png", "b.png", "c.png"]
    for name in STAND_INS:
        write_picture(tmp_path / f"{name}_60x40.jpg")
    assert [path.name for path in chosen(tmp_path)] == [f"{name}_60x40.jpg" for name in STAND_INS]
    (tmp_path / "sunset_60x40.jpg").unlink()
    assert [path.name for path in chosen(tmp_path)] == ["a.png", "b.png", "c.png"]


@pytest.mark.parametrize("scale", SCALES)
def test_each_cell_is_there_once(folder, scale):
    sources = Sources(photos=folder)
    cells, configuration = Images().cells(scale, sources), Images().configurations[scale]
    assert len(set(cells)) == len(cells) == 2 * (1 + len(SOLVERS) * len(configuration.seeds))
    assert {(cell.photo, cell.share) for cell in cells} == {("sunset_60x40.png", 0.35), ("view.png", 0.30)}
    assert {cell.method for cell in cells if cell.ridge} == {RIDGED, OURS_RIDGED}
    assert all(cell.shown == (cell.seed == 1) for cell in cells)
    assert all(cell.method in Images().label(cell) for cell in cells)


def test_another_content_is_another_cell(tmp_path):
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        write_picture(tmp_path / str(seed) / "same.png", seed)
    one, other = (Images().cells("quick", Sources(photos=tmp_path / seed))[0] for seed in "12")
    assert one != other
    assert replace(one, content=other.content) == other


def test_data_that_are_missing_are_told(tmp_path, folder, monkeypatch):
    assert "BIFACTOR_DATA" in Images().missing(Sources())
    assert "no picture" in Images().missing(Sources(photos=tmp_path))
    (tmp_path / "words.png").write_text("no picture")
    assert "is not a supported picture" in Images().missing(Sources(photos=tmp_path))
    assert Images().missing(Sources(photos=folder)) is None
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "bifactor[plot]" in Images().missing(Sources(photos=folder))


@pytest.mark.parametrize(
    ("shape", "share", "rank"),
    [
        ((2845, 4266), 0.35, 101),
        ((3309, 4963), 0.30, 100),
        ((474, 712), 0.35, 17),
        ((10, 10), 0.01, 1),
        ((1, 5), 1.0, 1),
    ],
)
def test_the_rank_leaves_six_pixels_for_each_degree_of_freedom(shape, share, rank):
    assert fitting_rank(shape, share, 6.0) == rank


def test_large_photographs_are_made_smaller(tmp_path):
    write_picture(tmp_path / "large.png", size=(90, 120))
    cell = replace(Images().cells("quick", Sources(photos=tmp_path))[0], side=40)
    outcome = Images().run(cell, Sources(photos=tmp_path))
    assert outcome["shape"] == [30, 40]
    assert outcome["pixels"] == round(0.35 * 1200)
    assert outcome["rank"] == fitting_rank((30, 40), 0.35, 6.0)


@pytest.mark.parametrize("method", [BEST, *SOLVERS])
def test_a_cell_gives_the_same_numbers_each_time(folder, method):
    sources = Sources(photos=folder)
    cell = next(cell for cell in Images().cells("quick", sources) if cell.method == method)
    runs = []
    for _ in range(2):
        photograph.cache_clear()
        outcome = Images().run(replace(cell, max_iter=20), sources)
        assert json.loads(json.dumps(outcome, allow_nan=False)) == outcome
        for name in ("seconds", "seconds_per_iteration"):
            outcome.pop(name, None)
        outcome.get("curve", {}).pop("seconds", None)
        runs.append(outcome)
    assert runs[0] == runs[1]


def test_nothing_exceeds_the_ceiling_and_all_improve(finished):
    ceilings = {cell.photo: outcome["psnr"] for cell, outcome in finished if cell.method == BEST}
    for cell, outcome in finished:
        if cell.method != BEST and cell.seed == 1:
            assert outcome["psnr"] < ceilings[cell.photo]
            assert outcome["psnr"] > outcome["curve"]["psnr"][0]
            assert outcome["psnr"] == pytest.approx(outcome["curve"]["psnr"][-1])


def test_the_budget_ends_a_cell(folder):
    sources = Sources(photos=folder)
    cell = next(cell for cell in Images().cells("quick", sources) if cell.method == FLOW)
    assert Images().run(replace(cell, budget=1e-6), sources)["stopped"].startswith("budget")


def test_tables_have_the_paper_s_numbers_beside_ours(finished):
    photographs, times = (item for item in Images().findings(finished).items if isinstance(item, Table))
    assert [row[0] for row in photographs.rows] == ["sunset", "view"]
    assert photographs.rows[0][-2:] == ["UT Campus", "2845 × 4266"]
    assert photographs.rows[1][-2:] == [None, None]
    assert all(row[4] > 5 for row in photographs.rows)
    rows = {(row[0], row[1]): dict(zip(times.columns, row, strict=True)) for row in times.rows}
    assert len(rows) == 2 * len(SOLVERS)
    for method, seconds in (("SVP", 5224.1), (FLOW, 5383.4), (PRINTED, 4062.4), (CALIBRATED, 4062.4), ("PCG", None)):
        assert rows["sunset", method]["paper's seconds"] == seconds
        assert rows["view", method]["paper's seconds"] is None
    first = next(o for c, o in finished if c.method == "PCG" and c.photo.startswith("sunset"))
    assert rows["sunset", "PCG"]["PSNR"] == pytest.approx(first["psnr"] + 0.02)  # the median of three
    assert "3 choices" in times.caption


def test_figures_are_drawn(finished):
    figures = [item for item in Images().findings(finished).items if isinstance(item, Figure)]
    assert [figure.name for figure in figures] == ["images-psnr", "images-panels-1", "images-panels-2"]
    canvases = []
    for figure in figures:
        canvases.append(Canvas())
        figure.draw(canvases[-1])
    assert [len(axis.lines) for axis in canvases[0].axes] == [1 + len(SOLVERS)] * 2
    shown = [axis.get_title() for axis in canvases[1].axes if axis.images]
    assert shown[::2][:2] == ["original", "observed"]
    assert len(shown) == 8
    assert all(title.endswith(" dB") for title in [shown[1], *shown[3:]])


def test_the_claims_can_hold_and_fail(finished):
    level = [Finished(c, o | {"psnr": 30.0, "seconds": 8.0} if c.method != BEST else o) for c, o in finished]
    ours = altered(level, "PCG", seconds=1.0)
    for words, method, good, bad in (
        ("BFGD (calibrated step) recovers", "SVP", {"psnr": 30.4}, {"psnr": 30.6}),
        ("BFGD (calibrated step) recovers", "SVP", {"psnr": 29.6}, {"psnr": 29.4}),
        ("BFGD (calibrated step) is competitive", FLOW, {"psnr": 20.0}, {"psnr": 30.6}),
        ("Without a ridge", "SVP", {"psnr": 30.09}, {"psnr": 30.2}),
        ("Without a ridge", CALIBRATED, {"seconds": 2.1}, {"seconds": 1.9}),
        ("Without a ridge", RIDGED, {"psnr": 40.0}, {}),
        ("With the ridge", OURS_RIDGED, {"seconds": 0.4, "psnr": 35.0}, {"seconds": 5.0, "psnr": 35.0}),
        ("With the ridge", OURS_RIDGED, {"seconds": 0.4}, {"seconds": 0.4, "psnr": 29.0}),
    ):
        assert verdict(altered(ours, method, **good), words).holds is True, (words, method)
        if bad:
            told = verdict(altered(ours, method, **bad), words)
            assert told.holds is False, (words, method)
            assert told.ours == ("ridge" in words)


def test_the_faster_one_is_first_at_the_other_s_last_psnr(finished):
    rising = {"iteration": [1.0, 2.0, 3.0], "seconds": [1.0, 2.0, 3.0], "psnr": [10.0, 20.0, 30.0]}
    slow = altered(finished, FLOW, psnr=20.0, seconds=3.0, curve=rising | {"psnr": [5.0, 10.0, 20.0]})
    capped = altered(slow, CALIBRATED, curve=rising, stopped="all iterations")
    told = verdict(capped, "BFGD (calibrated step) is faster")
    assert told.holds is True
    assert "after 2 s; Procrustes Flow needs 3 s" in told.numbers
    assert "Neither stopped" in told.note
    assert not verdict(altered(capped, FLOW, stopped="converged"), "BFGD (calibrated step) is faster").note
    later = altered(slow, CALIBRATED, curve=rising | {"seconds": [3.0, 6.0, 9.0]})
    assert verdict(later, "BFGD (calibrated step) is faster").holds is False
    never = altered(slow, CALIBRATED, curve=rising | {"psnr": [1.0, 1.0, 1.0]})
    assert "0 of 3 runs" in verdict(never, "BFGD (calibrated step) is faster").numbers


def test_a_psnr_that_falls_is_explained(finished):
    fallen = altered(finished, "PCG", psnr=22.0, curve={"iteration": [1], "seconds": [1], "psnr": [28.0]})
    assert "28.00 dB on the way" in verdict(fallen, "Without a ridge").note


def test_missing_cells_leave_verdicts_open(finished):
    without = [done for done in finished if done.cell.method != "SVP"]
    holds = {v.claim.split(": ")[1][:30]: v.holds for v in Images().findings(without).verdicts}
    assert list(holds.values()).count(None) == 4
    assert holds["BFGD (calibrated step) is fast"] is not None
    for few in (finished[:1], finished[1:2], []):
        findings = Images().findings(few)
        assert all(v.holds is None for v in findings.verdicts)
        for item in findings.items:
            if isinstance(item, Figure):
                item.draw(Canvas())


def test_small_pictures_survive_being_text():
    picture = np.linspace(0, 1, 500 * 900).reshape(500, 900)
    small = decoded(encoded(picture))
    assert small.shape == (round(500 * WIDTH / 900), WIDTH)
    np.testing.assert_allclose(small[[0, -1], [0, -1]], [0, 1], atol=0.01)
    known = np.random.default_rng(0).random((20, 30)) < 0.5
    seen = decoded(encoded(np.full((20, 30), 0.2), known))
    np.testing.assert_array_equal(np.isnan(seen), ~known)
    np.testing.assert_allclose(seen[known], 0.2)


@pytest.mark.skipif(not (DATA / "photos-large").is_dir(), reason="no photos-large in the folder of BIFACTOR_DATA")
def test_the_photographs_at_hand():
    sources = Sources(photos=DATA / "photos-large")
    assert Images().missing(sources) is None
    cells = Images().cells("quick", sources)
    assert len({cell.photo for cell in cells}) == 3
    outcome = Images().run(cells[0], sources)
    assert max(outcome["shape"]) == pytest.approx(cells[0].side, rel=0.1)
    assert outcome["psnr"] > 25
