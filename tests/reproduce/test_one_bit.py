"""1-bit completion over noise levels and numbers of entries, in miniature."""

from dataclasses import replace

import numpy as np
import pytest

from bifactor_reproduce.harness.experiment import SCALES, Finished
from bifactor_reproduce.harness.items import Figure, Table
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.one_bit import cells as one_bit
from bifactor_reproduce.one_bit.cells import (
    BALL,
    BOUND,
    EARLY,
    LATE,
    OWN,
    VALIDATED,
    BestHeldOut,
    OneBitCell,
    debiased,
    draw,
    run_cell,
)
from bifactor_reproduce.one_bit.noise import OneBitNoise
from bifactor_reproduce.one_bit.samples import OneBitSamples
from bifactor_reproduce.one_bit.series import ORDER, estimates

LEVELS = (0.0316, 0.1778, 3.1623)


def tiny(cell):
    return replace(cell, size=16, max_iter=min(cell.max_iter, 40))


@pytest.fixture(scope="module")
def over_noise():
    cells = [tiny(cell) for cell in OneBitNoise().cells("quick", Sources()) if cell.seed == 1 and cell.noise in LEVELS]
    assert len(cells) == 3 * 6
    return [Finished(cell, run_cell(cell)) for cell in cells]


@pytest.fixture(scope="module")
def over_shares():
    cells = OneBitSamples().cells("quick", Sources())
    kept = [tiny(cell) for cell in cells if cell.rank < 10 and cell.share in (0.3, 0.4)]
    return [Finished(cell, run_cell(cell)) for cell in kept]


def altered(finished, test, **changes):
    """The same with other numbers for what `test` picks by cell and name."""
    told = []
    for cell, outcome in finished:
        parts = {"raw": cell.method, "debiased": debiased(cell.method)}
        new = {
            part: {**outcome[part], **changes} for part, name in parts.items() if part in outcome and test(cell, name)
        }
        told.append(Finished(cell, outcome | new))
    return told


def verdict(findings, words):
    found = [v for v in findings.verdicts if words in v.claim]
    assert len(found) == 1, words
    return found[0]


def without_times(outcome):
    if isinstance(outcome, dict):
        times = ("seconds", "seconds_per_iteration", "choosing_seconds")
        return {key: without_times(value) for key, value in outcome.items() if key not in times}
    return outcome


@pytest.mark.parametrize("experiment", [OneBitNoise(), OneBitSamples()])
@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_each_once_and_have_names(experiment, scale):
    cells = experiment.cells(scale, Sources())
    assert len(set(cells)) == len(cells)
    assert all(cell.method in experiment.label(cell) for cell in cells)
    assert {cell.method for cell in cells} == set(one_bit.RUNS)


def test_the_paper_s_protocol():
    noisy = OneBitNoise().cells("paper", Sources())
    assert {(cell.size, cell.rank, cell.share) for cell in noisy} == {(100, 1, 0.25)}
    assert (min(cell.noise for cell in noisy), max(cell.noise for cell in noisy)) == (0.0316, 3.1623)
    few = OneBitSamples().cells("paper", Sources())
    assert {(cell.size, cell.noise) for cell in few} == {(200, 0.244)}
    assert {cell.rank for cell in few} == {3, 5, 10}
    assert {cell.max_iter for cell in (*noisy, *few) if cell.method == LATE} == {4000}


def test_the_draw_is_the_same_for_all_methods_and_its_matrix_for_all_noise():
    cell = OneBitCell(BALL, 30, 2, 0.25, 0.1, 4, 10, 0.0)
    one, other, noisier = (draw(c) for c in (cell, replace(cell, method=OWN), replace(cell, noise=1.0)))
    np.testing.assert_array_equal(one.problem.y, other.problem.y)
    np.testing.assert_array_equal(one.U, noisier.U)
    assert np.any(one.problem.y != noisier.problem.y)
    assert one.problem.y.size == 225
    assert np.max(np.abs(one.U @ one.V.T)) == pytest.approx(1)
    assert one.problem.smoothness == pytest.approx(1 / 0.1**2)
    assert not np.array_equal(one.U, draw(replace(cell, seed=5)).U)


def test_signs_follow_the_matrix_where_there_is_hardly_noise():
    drawn = draw(OneBitCell(BALL, 40, 1, 0.5, 1e-9, 1, 10, 0.0))
    np.testing.assert_array_equal(np.sign(drawn.problem.operator.forward(drawn.U, drawn.V)), drawn.problem.y)


def test_the_truth_has_no_error_and_no_wrong_sign():
    drawn = draw(OneBitCell(BALL, 20, 2, 0.5, 0.1, 1, 10, 0.0))
    assert drawn.judged(drawn.U, drawn.V) == {"error": pytest.approx(0.0, abs=1e-12), "wrong_signs": 0.0}
    assert drawn.judged(drawn.U, -drawn.V) == {"error": pytest.approx(2.0), "wrong_signs": 1.0}


@pytest.mark.parametrize("method", one_bit.RUNS)
def test_an_outcome_is_the_same_each_time(method):
    cell = OneBitCell(method, 20, 1, 0.4, 0.2, 3, 30, 1e-3 if "SPG" in method else 0.0)
    assert without_times(run_cell(cell)) == without_times(run_cell(cell))


@pytest.mark.parametrize("method", [VALIDATED, OWN])
def test_what_is_chosen_does_not_depend_on_the_truth(method):
    cell = OneBitCell(method, 20, 1, 0.5, 0.2, 3, 30, 1e-5 if method == OWN else 0.0)
    drawn = draw(cell)
    blind = replace(drawn, U=np.ones_like(drawn.U), V=np.ones_like(drawn.V))
    seen, unseen = (one_bit.RUNS[method](cell, which) for which in (drawn, blind))
    assert seen["chosen"] == unseen["chosen"]
    assert seen["iterations"] == unseen["iterations"]
    assert seen["raw"]["error"] != unseen["raw"]["error"]


def test_the_search_for_the_best_iteration_goes_on_for_a_while():
    class Held:
        losses_left = [3.0, 2.0, 1.0, *[2.0] * 300]  # noqa: RUF012

        def losses(self, U, V):
            return self.losses_left.pop(0)

        def mean(self, losses):
            return losses

    class State:
        U = V = None

    watch = BestHeldOut(Held())
    stopped = next(k for k in range(1, 300) if watch(k, State()))
    assert (watch.iteration, stopped) == (3, one_bit.SOONEST)


def test_only_spg_is_debiased_and_the_bound_is_kept(over_noise):
    for cell, outcome in over_noise:
        assert len(estimates(cell, outcome)) == (2 if cell.method in (BALL, BOUND) else 1)
        assert cell.method != BOUND or outcome["largest"] <= 1 + 1e-9
        assert cell.method not in (EARLY, LATE) or outcome["curve"]["error"][-1] == outcome["raw"]["error"]


@pytest.mark.parametrize(
    ("experiment", "data"), [(OneBitNoise(), "over_noise"), (OneBitSamples(), "over_shares")], ids=["noise", "samples"]
)
def test_items_are_complete_and_survive_missing_cells(experiment, data, request):
    finished = request.getfixturevalue(data)
    for runs in (finished, [], *([d for d in finished if d.cell.method != m] for m in one_bit.RUNS), finished[:1]):
        findings = experiment.findings(runs)
        tables = [item for item in findings.items if isinstance(item, Table)]
        assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
        assert all(set(table.formats) <= set(table.columns) for table in tables)
        assert len({item.name for item in findings.items}) == len(findings.items)
        assert runs or all(v.holds is None for v in findings.verdicts)
    tables = [item for item in experiment.findings(finished).items if isinstance(item, Table)]
    assert [row[0] for row in tables[0].rows] == list(ORDER)


@pytest.mark.parametrize(
    ("experiment", "data", "panels"), [(OneBitNoise(), "over_noise", [2, 1, 1]), (OneBitSamples(), "over_shares", [2])]
)
def test_figures_can_be_drawn(experiment, data, panels, request):
    from matplotlib.figure import Figure as Canvas

    for runs in (request.getfixturevalue(data), []):
        counts = []
        for item in experiment.findings(runs).items:
            if isinstance(item, Figure):
                canvas = Canvas(layout="constrained")
                item.draw(canvas)
                canvas.draw_without_rendering()
                counts.append(len(canvas.axes))
        assert not runs or counts == panels


def test_medians_are_over_draws(over_noise):
    more = [
        Finished(replace(cell, seed=seed), outcome | {"raw": {"error": float(seed), "wrong_signs": 0.1}})
        for cell, outcome in over_noise
        for seed in (1, 2, 9)
    ]
    table = next(item for item in OneBitNoise().findings(more).items if item.name == "one-bit-noise-errors")
    assert {number for row in table.rows if "debiased" not in row[0] for number in row[1:-1]} == {2.0}


def test_claims_about_errors_under_noise_hold_and_fail_by_the_numbers(over_noise):
    raw, lower = altered(over_noise, lambda c, name: name in (BALL, BOUND), error=1.0), "Without debias, BFGD has"
    near = altered(raw, lambda c, name: name in (VALIDATED, EARLY), error=0.8)
    assert verdict(OneBitNoise().findings(near), lower).holds is True
    assert verdict(OneBitNoise().findings(near), "at least 30% lower").holds is False
    oracle = verdict(
        OneBitNoise().findings(altered(near, lambda c, name: name == EARLY, error=0.5)), "at least 30% lower"
    )
    assert oracle.holds is False
    assert "oracle" in oracle.note
    far = altered(raw, lambda c, name: name == VALIDATED, error=1.1)
    assert verdict(OneBitNoise().findings(far), lower).holds is False
    cut = altered(near, lambda c, name: "debiased" in name, error=0.75)
    assert verdict(OneBitNoise().findings(cut), "comparable").holds is True
    assert verdict(OneBitNoise().findings(cut), "slightly better").holds is True
    cut = altered(near, lambda c, name: "debiased" in name, error=0.95)
    assert verdict(OneBitNoise().findings(cut), "comparable").holds is False
    assert verdict(OneBitNoise().findings(cut), "slightly better").holds is False
    for error, holds in ((0.9, True), (1.5, False)):
        runs = altered(raw, lambda c, name: name == LATE, error=error)
        assert verdict(OneBitNoise().findings(runs), "without a stopping rule").holds is holds
        runs = altered(altered(raw, lambda c, name: name == VALIDATED, error=1.0), lambda c, n: n == OWN, error=error)
        assert verdict(OneBitNoise().findings(runs), "no worse than BFGD").holds is holds


def test_the_error_is_lowest_between_the_ends(over_noise):
    words = "poorly when the noise is too small or too large"
    bent = altered(over_noise, lambda c, name: True, error=1.0)
    bent = altered(bent, lambda c, name: c.noise == LEVELS[1], error=0.5)
    assert verdict(OneBitNoise().findings(bent), words).holds is True
    straight = altered(bent, lambda c, name: c.noise == LEVELS[0] and name == VALIDATED, error=0.4)
    assert verdict(OneBitNoise().findings(straight), words).holds is False


def test_claims_about_signs_hold_and_fail_by_the_numbers(over_noise):
    signs = altered(over_noise, lambda c, name: True, wrong_signs=0.2)
    better = altered(signs, lambda c, name: name == VALIDATED, wrong_signs=0.1)
    assert verdict(OneBitNoise().findings(signs), "sign pattern").holds is False
    assert verdict(OneBitNoise().findings(better), "sign pattern").holds is True
    assert verdict(OneBitNoise().findings(signs), "points more signs right").holds is False
    assert verdict(OneBitNoise().findings(better), "points more signs right").holds is True


def test_claims_about_entries_hold_and_fail_by_the_numbers(over_shares):
    def judged(runs, words):
        return verdict(OneBitSamples().findings(runs), words).holds

    level = altered(over_shares, lambda c, name: True, error=0.6)
    assert judged(level, "All approaches do poorly") is True
    assert judged(altered(level, lambda c, name: c.share == 0.3 and name == VALIDATED, error=0.4), "All appr") is False
    for error, holds in ((0.4, True), (0.7, False)):
        runs = altered(level, lambda c, name: name in (VALIDATED, LATE), error=error)
        assert judged(runs, "outperforms SPG as it is") is holds
        assert judged(runs, "outperforms SPG debiased") is holds
        assert judged(runs, "more reasonable solutions") is holds
        assert judged(runs, "without a stopping rule") is holds
        assert judged(runs, "no worse than BFGD") is not holds


def test_the_limit_of_entries_without_noise(over_shares):
    words = "information-theoretic limit"
    small = [Finished(replace(cell, size=16), outcome) for cell, outcome in over_shares]
    large = [Finished(replace(cell, size=200), outcome) for cell, outcome in over_shares]
    assert verdict(OneBitSamples().findings(small), words).holds is True
    assert verdict(OneBitSamples().findings(large), words).holds is False


def test_time_is_compared_where_all_runs_are_there(over_noise):
    words = "takes less processor time than SPG"
    for seconds, holds in ((1e-9, True), (1e9, False)):
        runs = [
            Finished(c, o | {"seconds": seconds, "choosing_seconds": 0.0} if c.method == OWN else o)
            for c, o in over_noise
        ]
        assert verdict(OneBitNoise().findings(runs), words).holds is holds
    assert verdict(OneBitNoise().findings(over_noise[6:] + over_noise[:5]), words).holds is None
