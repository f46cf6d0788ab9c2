"""Noiselets from random and from better starts, in miniature."""

from dataclasses import replace

import numpy as np
import pytest

from bifactor_reproduce.harness.experiment import SCALES, Finished
from bifactor_reproduce.harness.items import Figure, Table
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.noiselets import cells as noiselets
from bifactor_reproduce.noiselets.cells import CALIBRATED, COMPLETION, PRINTED, SensingCell, draw, run_cell
from bifactor_reproduce.noiselets.sensing import METHODS, PAPER, Sensing
from bifactor_reproduce.noiselets.starts import Starts

TINY = {"shape": (32, 32), "rank": 2, "max_iter": 200}


@pytest.fixture(scope="module")
def random_starts():
    """All algorithms from random starts, at three C."""
    cells = [replace(cell, **TINY) for cell in Sensing().cells("quick", Sources()) if cell.seed == 1]
    cells = list(dict.fromkeys(cells))
    return [Finished(cell, run_cell(cell)) for cell in cells]


@pytest.fixture(scope="module")
def better_starts():
    cells = [cell for cell in Starts().cells("quick", Sources()) if cell.seed == 1 and cell.shape == (128, 128)]
    cells = [replace(cell, shape=(32, 32), rank=min(cell.rank, 3), max_iter=200) for cell in cells]
    return [Finished(cell, run_cell(cell)) for cell in cells]


def altered(finished, test, **changes):
    return [Finished(c, {**o, **changes} if test(c) else o) for c, o in finished]


def verdict(findings, words):
    found = [v for v in findings.verdicts if words in v.claim]
    assert found, words
    return found[0]


@pytest.mark.parametrize("experiment", [Sensing(), Starts()])
@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_each_once_and_have_names(experiment, scale):
    cells = experiment.cells(scale, Sources())
    assert len(set(cells)) == len(cells)
    assert all(cell.method in experiment.label(cell) for cell in cells)
    assert all(cell.method in noiselets.METHODS for cell in cells)
    sizes = {cell.shape for cell in cells}
    assert scale == "quick" or sizes == {(1024, 1024), (2048, 4096)}


def test_the_problem_is_the_same_for_all_algorithms():
    one, other = (draw(SensingCell((32, 64), 2, 5, method, "random", 3, 10, 1e-6, 1.0)) for method in ("SVP", "PCG"))
    np.testing.assert_array_equal(one.problem.y, other.problem.y)
    assert one.problem.y.size == 5 * 64 * 2
    assert one.problem.scale == pytest.approx(640 / 2048)  # what the calibrated step takes for ρ
    assert np.linalg.norm(one.U @ one.V.T) == pytest.approx(1)


def test_an_outcome_is_the_same_each_time():
    cell = SensingCell((32, 32), 2, 5, CALIBRATED, "random", 1, 60, 5e-8, 60.0)
    one, other = run_cell(cell), run_cell(cell)
    assert one["error"] == other["error"]
    assert one["curve"]["error"] == other["curve"]["error"]


def test_the_calibrated_step_needs_fewer_iterations_than_the_printed_one(random_starts):
    its = {c.method: o["iterations"] for c, o in random_starts if c.ratio == 10}
    assert its[CALIBRATED] < its[PRINTED]


def test_tables_hold_all_rows_beside_the_paper_s(random_starts):
    findings = Sensing().findings(random_starts)
    tables = [item for item in findings.items if isinstance(item, Table)]
    assert [table.name for table in tables] == ["sensing-table-1", "sensing-table-3"]
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
    assert len(tables[0].rows) == 3 * len(METHODS)
    beside = {(row[0], row[1]): row[3] for row in tables[0].rows}
    assert beside[3, "SVP"] == PAPER["SVP"][0][2][0]
    assert beside[10, CALIBRATED] == beside[10, PRINTED] == 7.0830e-07
    assert beside[5, "PCG"] is None


def test_figures_can_be_drawn(random_starts):
    from matplotlib.figure import Figure as Canvas

    for item in Sensing().findings(random_starts).items:
        if isinstance(item, Figure):
            canvas = Canvas(layout="constrained")
            item.draw(canvas)
            assert len(canvas.axes) == 3
            assert len(canvas.axes[0].lines) == len(METHODS)


def test_verdicts_hold_and_fail_by_the_numbers(random_starts):
    words = "less time in total than SVP"
    slow = altered(random_starts, lambda c: c.method == CALIBRATED, seconds=1e6)
    fast = altered(random_starts, lambda c: c.method == CALIBRATED, seconds=1e-9)
    assert verdict(Sensing().findings(slow), words).holds is False
    assert verdict(Sensing().findings(fast), words).holds is True
    words = "reaches the errors of the paper's tables"
    near = altered(random_starts, lambda c: c.method == CALIBRATED, error=5e-7)
    assert verdict(Sensing().findings(near), words).holds is True
    far = altered(near, lambda c: c.method == CALIBRATED and c.ratio == 5, error=5e-6)
    assert verdict(Sensing().findings(far), words).holds is False
    words = "ends in a local minimum"
    stuck = altered(random_starts, lambda c: c.method == "GuaranteedMC", error=0.9)
    assert verdict(Sensing().findings(stuck), words).holds is True
    assert verdict(Sensing().findings(random_starts), "as if A*(y)").holds is True


def test_runs_that_a_budget_has_cut_short_are_judged_by_what_they_show(random_starts):
    cut = {"stopped": "budget of 9 s", "seconds": 9.0}
    both = altered(random_starts, lambda c: c.method in ("SVP", CALIBRATED) and c.ratio == 3, **cut)
    words = "less time in total than SVP"
    near = altered(both, lambda c: c.method == CALIBRATED, error=1e-7, seconds=1e-9)
    assert verdict(Sensing().findings(altered(near, lambda c: c.ratio == 3, **cut)), words).holds is True
    far = altered(near, lambda c: c.method == CALIBRATED and c.ratio == 3, error=10.0, **cut)
    assert verdict(Sensing().findings(far), words).holds is False
    assert "cut short" in verdict(Sensing().findings(far), words).numbers
    flow = altered(random_starts, lambda c: c.method == "Procrustes Flow" and c.ratio == 5, **cut)
    assert verdict(Sensing().findings(flow), "Procrustes Flow is still far away").holds is None


def test_claims_that_miss_a_cell_are_left_open(random_starts):
    few = [done for done in random_starts if done.cell.method != "SVP" or done.cell.ratio != 3]
    findings = Sensing().findings(few)
    assert verdict(findings, "less time in total than SVP").holds is None
    assert verdict(findings, "GuaranteedMC, run as if").holds is not None
    assert len(next(iter(findings.items)).rows) == 3 * len(METHODS) - 1


@pytest.mark.parametrize("experiment", [Sensing(), Starts()])
def test_without_any_cell_there_is_nothing_to_tell(experiment):
    findings = experiment.findings([])
    assert all(v.holds is None for v in findings.verdicts)


def test_medians_are_over_seeds(random_starts):
    more = [Finished(replace(c, seed=seed), {**o, "error": seed * 1.0}) for c, o in random_starts for seed in (1, 2, 9)]
    table = Sensing().findings(more).items[0]
    assert {row[2] for row in table.rows} == {2.0}


def test_better_starts(better_starts):
    findings = Starts().findings(better_starts)
    common, own = findings.items
    assert all(len(row) == len(common.columns) for row in common.rows)
    assert all(len(row) == len(own.columns) for row in own.rows)
    assert {row[1] for row in common.rows} >= {"Procrustes Flow", "GuaranteedMC", CALIBRATED, "PCG", COMPLETION}
    assert {"Procrustes Flow, κ known", "Procrustes Flow, κ unknown"} <= {row[2] for row in own.rows}
    words = "error below 10⁻⁵, in both tables"
    near = altered(better_starts, lambda c: c.method == CALIBRATED, error=1e-7)
    assert verdict(Starts().findings(near), words).holds is True
    far = altered(better_starts, lambda c: c.method == CALIBRATED and c.rank == 2, error=1e-4)
    assert verdict(Starts().findings(far), words).holds is False
    without = [done for done in better_starts if done.cell.method != "PCG"]
    assert verdict(Starts().findings(without), "PCG").holds is None
