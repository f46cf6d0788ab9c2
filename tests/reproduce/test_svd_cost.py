"""Truncated SVDs beside two products, on matrices that take milliseconds."""

import json
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from bifactor_reproduce.harness.experiment import Finished
from bifactor_reproduce.harness.items import Figure, Table
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.svd.routines import ARPACK, LOBPCG, OWN, PROPACK, RANDOMIZED, ROUTINES, WHOLE
from bifactor_reproduce.svd.svd_cost import PAPER, Configuration, SvdCost

TINY = Configuration((60, 80), (120, 2000), 4, 60, (2, 4, 8), (1, 2), repeats=2)
LARGEST = 120
NOWHERE = Sources()


class Tiny(SvdCost):
    configurations = MappingProxyType({"quick": TINY, "paper": TINY})


def large(cell):
    """A stand-in for the matrix of 2000 rows, which would take seconds."""
    return replace(cell, m=min(cell.m, LARGEST))


@pytest.fixture(scope="module")
def finished():
    known = {}
    for cell in Tiny().cells("quick", NOWHERE):
        if large(cell) not in known:
            known[large(cell)] = Tiny().run(large(cell), NOWHERE)
    return [Finished(cell, known[large(cell)]) for cell in Tiny().cells("quick", NOWHERE)]


def altered(finished, change):
    """Outcomes with what `change(cell, outcome)` gives put in."""
    return [Finished(cell, outcome | change(cell, outcome)) for cell, outcome in finished]


def verdict(finished, start):
    found = [v for v in Tiny().findings(finished).verdicts if v.claim.startswith(start)]
    assert len(found) == 1
    return found[0]


def tables(finished):
    return {item.name: item for item in Tiny().findings(finished).items if isinstance(item, Table)}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_each_cell_is_there_once(scale):
    cells = SvdCost().cells(scale, NOWHERE)
    assert len(cells) == len(set(cells))
    assert {cell.routine for cell in cells} == set(ROUTINES)
    assert all(cell.r < cell.m for cell in cells)


def test_the_paper_scale_has_the_sizes_of_the_paper():
    cells = SvdCost().cells("paper", NOWHERE)
    assert {(m, 100) for m in PAPER["PROPACK"]} <= {(cell.m, cell.r) for cell in cells if cell.routine == PROPACK}
    assert len({cell.r for cell in cells if cell.m == 5000}) > 2


@pytest.mark.parametrize("routine", ROUTINES)
def test_a_cell_gives_the_same_numbers_each_time(routine):
    cell = next(cell for cell in Tiny().cells("quick", NOWHERE) if cell.routine == routine)
    one, other = (Tiny().run(cell, NOWHERE) for _ in range(2))
    for name in ("values", "residual", "said"):
        assert one[name] == other[name]
    assert json.loads(json.dumps(one, allow_nan=False)) == one
    assert str(cell.m) in Tiny().label(cell)


def test_all_routines_find_the_leading_singular_values(finished):
    for cell, outcome in finished:
        X = np.random.default_rng(cell.seed).spawn(2)[0].standard_normal((large(cell).m,) * 2)
        exact = np.linalg.svd(X, compute_uv=False)[: cell.r]
        tolerance = 0.1 if cell.routine == RANDOMIZED else 1e-8
        np.testing.assert_allclose(outcome["values"], exact, rtol=tolerance)
        assert outcome["residual"] <= (0.5 if cell.routine == RANDOMIZED else 10 * cell.tol)
        assert min(outcome["seconds"], outcome["products_seconds"]) > 0


@pytest.mark.parametrize(
    ("routine", "change", "said"),
    [(PROPACK, {"lanczos_vectors": 9}, "failed: "), (LOBPCG, {"max_iter": 1}, "warned: ")],
)
def test_a_routine_without_success_says_so(finished, routine, change, said):
    cells = [cell for cell in Tiny().cells("quick", NOWHERE) if cell.routine == routine and cell.m == 80]
    outcome = Tiny().run(replace(cells[0], **change), NOWHERE)
    assert outcome["said"].startswith(said)
    assert len(outcome["said"]) > len(said)
    assert (outcome["values"] is None) == (said == "failed: ")
    told = tables(altered(finished, lambda cell, _: outcome if cell in cells else {}))["svd-times"]
    assert [row[-1] for row in told.rows if row[:3] == [80, 4, routine]] == [outcome["said"]]


def test_numbers_that_are_not_finite_are_a_failure(monkeypatch):
    cell = Tiny().cells("quick", NOWHERE)[0]
    broken = lambda X, r, cell, rng: (np.full((len(X), r), np.nan), np.ones(r), np.ones((len(X), r)))  # noqa: E731
    monkeypatch.setitem(ROUTINES, cell.routine, broken)
    outcome = Tiny().run(cell, NOWHERE)
    assert outcome["said"] == "failed: its numbers are not finite"
    assert outcome["values"] is None


def test_the_tables_hold_all_routines_and_the_paper_s(finished):
    errors, times = tables(finished)["svd-errors"], tables(finished)["svd-times"]
    assert [row[:2] for row in errors.rows[: len(ROUTINES)]] == [[routine, "here"] for routine in ROUTINES]
    paper = {row[0]: dict(zip(errors.columns, row, strict=True)) for row in errors.rows if row[1] == "paper"}
    assert paper["irbla"]["m = 10000"] == 7.29e-04
    assert paper["irbla"]["m = 80"] is None
    shapes = {(cell.m, cell.r) for cell, _ in finished}
    assert len(times.rows) == len(shapes) * len(ROUTINES) + len(TINY.sizes)  # the products, and all but LAPACK
    for table in (errors, times):
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_the_reference_is_arpack_and_its_own_is_lapack(finished):
    def shift(name):
        return altered(
            finished, lambda cell, o: {"values": [2 * s for s in o["values"]]} if cell.routine == name else {}
        )

    def errors(finished):
        return {row[0]: row[2] for row in tables(finished)["svd-errors"].rows if row[1] == "here"}

    assert errors(shift(PROPACK))[PROPACK] == pytest.approx(1)
    assert errors(shift(WHOLE))[ARPACK] == pytest.approx(0.5)
    assert errors(shift(ARPACK))[OWN] == pytest.approx(0.5)


@pytest.mark.parametrize(("times", "holds"), [(150, True), (50, False)])
@pytest.mark.parametrize("panel", ["Left", "Middle", "Right"])
def test_two_orders_of_magnitude(finished, panel, times, holds):
    told = altered(finished, lambda cell, o: {"seconds": times * o["products_seconds"]})
    assert verdict(told, f"{panel} panel").holds is holds
    assert verdict(told, "The weaker form").holds is True
    one = altered(told, lambda cell, o: {"seconds": 10 * o["products_seconds"]} if cell.routine == PROPACK else {})
    assert verdict(one, f"{panel} panel").holds is False
    assert f"{PROPACK} 10×, {ARPACK} {times}×" in verdict(one, f"{panel} panel").numbers
    assert verdict(one, "The weaker form").holds is False


def test_what_is_fast_and_rough_is_not_counted(finished):
    told = altered(
        finished, lambda cell, o: {"seconds": (1 if cell.routine == RANDOMIZED else 150) * o["products_seconds"]}
    )
    rough = altered(
        told, lambda cell, o: {"values": [1.01 * s for s in o["values"]]} if cell.routine == RANDOMIZED else {}
    )
    assert verdict(rough, "Middle panel").holds is True
    assert verdict(rough, "What is faster").holds is True
    exact = {(cell.m, cell.r, cell.seed): o["values"] for cell, o in finished if cell.routine == ARPACK}
    fine = altered(told, lambda cell, o: {"values": exact[cell.m, cell.r, cell.seed]})
    assert verdict(fine, "Middle panel").holds is False
    assert verdict(fine, "What is faster").holds is False


@pytest.mark.parametrize(("power", "holds"), [(0.5, True), (-0.5, False)])
def test_whether_the_ratio_grows_with_the_rank(finished, power, holds):
    told = altered(finished, lambda cell, o: {"seconds": 40 * cell.r**power * o["products_seconds"]})
    assert verdict(told, "The ratio grows").holds is holds
    assert f"power {power:.2f}" in verdict(told, "The ratio grows").numbers


def test_accuracy_and_our_own_routine(finished):
    assert verdict(finished, "ARPACK and PROPACK").holds is True
    assert verdict(finished, "bifactor's block Krylov").holds is True
    for name, start in ((PROPACK, "ARPACK and PROPACK"), (OWN, "bifactor's block Krylov")):
        off = altered(
            finished,
            lambda cell, o, name=name: {"values": [1.1 * s for s in o["values"]]} if cell.routine == name else {},
        )
        assert verdict(off, start).holds is False
    for seconds, holds in ((1.0, True), (3.0, False)):
        told = altered(finished, lambda cell, _, s=seconds: {"seconds": s if cell.routine == OWN else 2.0})
        assert verdict(told, "On dense matrices").holds is holds
        assert verdict(told, "On dense matrices").ours


def test_missing_cells_leave_verdicts_open(finished):
    some = [done for done in finished if done.cell.routine not in (ARPACK, WHOLE)]
    findings = Tiny().findings(some)
    assert all(v.holds is None for v in findings.verdicts if "grows" in v.claim or "accurate" in v.claim)
    draw(findings)
    for few in (finished[:1], finished[-1:], []):
        findings = Tiny().findings(few)
        draw(findings)
        assert [v.holds for v in findings.verdicts].count(True) == 0


def draw(findings):
    canvas = Canvas()
    next(item for item in findings.items if isinstance(item, Figure)).draw(canvas)
    return canvas


def test_the_figure_has_the_paper_s_three_panels(finished):
    left, middle, right = draw(Tiny().findings(finished)).axes
    assert len(left.lines) == len(ROUTINES) + 1
    assert len(middle.lines) == len(right.lines) == len(ROUTINES)
    assert list(right.lines[0].get_xdata()) == list(TINY.ranks)
