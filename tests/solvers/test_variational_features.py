"""Features of rows and columns as the mean of the prior: the bound, cold rows, and features that are of no use."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.describe import describe
from bifactor.errors import FileError, InputError
from bifactor.solvers import Variational
from bifactor.solvers.variational import features as regression
from bifactor.solvers.variational.moments import EntrySums

SHAPE = (60, 40)


def planted(seed=0, shape=SHAPE, told=1.0, apart=0.5, noise=0.5, share=0.4, cold=(0, 0), **options):
    """Entries of UVᵀ with U = FA + apart, where the last rows and columns have none, and F, G and the matrix."""
    rng = np.random.default_rng(seed)
    sides, features = [], []
    for rows in shape:
        F = rng.standard_normal((rows, 3)) * (rng.random((rows, 3)) < 0.7)
        features.append(F)
        sides.append(told * F @ rng.standard_normal((3, 2)) + apart * rng.standard_normal((rows, 2)))
    X = sides[0] @ sides[1].T
    seen = rng.random(shape) < share
    seen[shape[0] - cold[0] :] = seen[:, shape[1] - cold[1] :] = False
    i, j = np.nonzero(seen)
    y = X[i, j] + noise * rng.standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, shape), y, **options), *features, X


def run(problem, F, G, iterations=60, rank=3, noise="one", prior="separate", implicit=False, **options):
    solver = Variational(noise, prior, tol=0, row_features=F, column_features=G, implicit=implicit)
    return bf.solve(problem, rank, solver, rng=0, max_iter=iterations, tol=0, **options)


# The bound


@pytest.mark.parametrize("noise", ["one", "both", "student"])
@pytest.mark.parametrize("prior", ["separate", "shared"])
@pytest.mark.parametrize("kind", ["rows", "columns", "both", "many", "implicit"])
@pytest.mark.parametrize("offsets", [True, False])
def test_the_bound_never_falls(noise, prior, kind, offsets, monkeypatch):
    if kind in ("many", "implicit"):
        monkeypatch.setattr(regression, "MAX_JOINT_FEATURES", 2)
    problem, F, G, _ = planted(offsets=offsets, cold=(3, 2))
    given = (None if kind == "columns" else F, None if kind == "rows" else G)
    history = run(problem, *given, noise=noise, prior=prior, implicit=kind == "implicit").history
    assert np.all(np.diff(history.objective) <= 1e-9 * np.abs(history.objective[0]))


@pytest.mark.parametrize("noise", ["one", "both", "student"])
@pytest.mark.parametrize("implicit", [False, True])
def test_its_gradient_is_that_of_the_bound(noise, implicit):
    problem, F, G, _ = planted(offsets=True, cold=(2, 3))
    solver, states = Variational(noise, tol=0, row_features=F, column_features=G, implicit=implicit), []
    bf.solve(problem, 3, solver, rng=0, max_iter=4, tol=0, callback=lambda t, state: states.append(state))
    state, rng, h = states[-1], np.random.default_rng(0), 1e-5
    at, x = solver.current(problem, state), state.point.x
    d = x.gradient(rng.standard_normal(x.left.shape), rng.standard_normal(x.right.shape))
    slope = (at.objective(x.plus(h, d)) - at.objective(x.plus(-h, d))) / (2 * h)
    assert state.point.value == pytest.approx(at.objective(x), rel=1e-11)
    assert state.point.gradient.inner(d) == pytest.approx(slope, rel=1e-5)


def test_evidence_is_for_features_that_tell_and_against_those_that_do_not():
    problem, F, G, _ = planted(apart=0.2)
    rng = np.random.default_rng(9)
    plain = run(problem, None, None).objective
    assert run(problem, F, G).objective < plain - 50
    assert run(problem, rng.standard_normal(F.shape), rng.standard_normal(G.shape)).objective > plain


def test_features_without_anything_in_them_change_no_bit():
    problem, F, G, _ = planted(offsets=True)
    plain, none = run(problem, None, None, 10), run(problem, 0 * F, sparse.csr_array(G.shape), 10)
    assert np.array_equal(plain.U, none.U)
    assert np.array_equal(plain.V, none.V)
    assert plain.objective == none.objective


def test_weights_of_orthogonal_features_are_independent_anyway(monkeypatch):
    problem, F, G, _ = planted(share=1.0)
    F, G = (np.linalg.qr(np.c_[np.ones(len(part)), part])[0][:, 1:] for part in (F, G))
    whole = run(problem, F, G, 30)
    monkeypatch.setattr(regression, "MAX_JOINT_FEATURES", 0)
    apart = run(problem, F, G, 30)
    assert apart.objective == pytest.approx(whole.objective, rel=1e-8)
    np.testing.assert_allclose(apart.matrix(), whole.matrix(), atol=1e-5)


# What they are for


@pytest.mark.parametrize("many", [False, True])
def test_cold_rows_and_columns_are_found_exactly_where_features_tell_all(many, monkeypatch):
    if many:
        monkeypatch.setattr(regression, "MAX_JOINT_FEATURES", 0)
    problem, F, G, X = planted(apart=0.0, noise=1e-3, cold=(10, 8))
    result = run(problem, F, G, 300, rank=2)
    assert np.linalg.norm(result.matrix() - X) <= 0.01 * np.linalg.norm(X)


@pytest.mark.parametrize("offsets", [True, False])
def test_intervals_of_cold_rows_and_columns_hold(offsets):
    held = {"row": [], "column": [], "neither": []}
    for seed in range(6):
        problem, F, G, X = planted(seed, (150, 100), apart=0.7, cold=(50, 30), share=0.3, offsets=offsets)
        posterior = run(problem, F, G, 60, rank=2).posterior
        y = X + 0.5 * np.random.default_rng(seed + 50).standard_normal(X.shape)
        i, j = np.indices(X.shape).reshape(2, -1)
        low, high = (end.reshape(X.shape) for end in posterior.interval(i, j, 0.9))
        inside = (low <= y) & (y <= high)
        for name, part in (("row", inside[100:, :70]), ("column", inside[:100, 70:]), ("neither", inside[100:, 70:])):
            held[name].append(part.mean())
    for name, shares in held.items():
        assert 0.85 <= np.mean(shares) <= 0.95, name


def test_features_of_no_use_do_little_harm():
    problem, F, G, X = planted(1, (150, 100), share=0.15, noise=1.0)
    rng = np.random.default_rng(3)
    useless = [rng.standard_normal((len(part), 40)) for part in (F, G)]
    hidden = np.ones(X.shape, bool)
    hidden[problem.operator.rows, problem.operator.cols] = False
    errors = {
        name: np.linalg.norm((run(problem, *given, rank=2).matrix() - X)[hidden])
        for name, given in (("none", (None, None)), ("useless", useless), ("told", (F, G)))
    }
    both = run(problem, np.c_[F, useless[0]], np.c_[G, useless[1]], rank=2)
    assert errors["told"] < 0.9 * errors["none"]
    assert errors["useless"] < 1.05 * errors["none"]
    assert np.linalg.norm((both.matrix() - X)[hidden]) < 1.05 * errors["told"]


def test_which_entries_are_known_may_tell():
    """Rows with much of the first component are known in the first half of the columns."""
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal(200), rng.standard_normal(60)
    chance = np.where(np.arange(60) < 30, 1 / (1 + np.exp(-3 * u[:, None])), 1 / (1 + np.exp(3 * u[:, None])))
    i, j = np.nonzero(rng.random((200, 60)) < 0.3 * chance)
    y = u[i] * v[j] + rng.standard_normal(i.size)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, (200, 60)), y)
    errors = [
        np.linalg.norm(run(problem, None, None, 80, 1, implicit=on).matrix() - np.outer(u, v)) for on in (0 > 1, 1 > 0)
    ]
    assert errors[1] < 0.9 * errors[0]


def entries_of(rows, cols, weights=None):
    problem = bf.Problem("squared", bf.operators.Entries(rows, cols, (4, 4)), np.ones(len(rows)), weights)
    return EntrySums(problem.f)


@pytest.mark.parametrize("side", [0, 1])
def test_an_entry_that_is_measured_twice_is_one_known_column(side):
    """SVD++: the pattern of a row is the set of its known columns, whatever the solver."""
    rows, cols = [0, 0, 2, 2, 2], [1, 3, 0, 1, 2]
    found = entries_of([*rows, 0, 0, 2], [*cols, 3, 3, 1]).pattern(side).toarray()
    np.testing.assert_array_equal(found, entries_of(rows, cols).pattern(side).toarray())
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1)
    across = (cols, rows) if side else (rows, cols)
    np.testing.assert_array_equal(found, bf.operators.pattern(*across, (4, 4)).toarray())


def test_a_pattern_has_lines_of_length_one_and_no_entries_of_weight_zero():
    rows, cols, known = [0, 0, 2, 2, 2], [1, 3, 0, 1, 2], np.array([1.0, 2.0, 0.0, 1.0, 1.0])
    data = entries_of(rows, cols, known)
    wanted = np.zeros((4, 4))
    wanted[0, [1, 3]] = wanted[2, [1, 2]] = 0.5**0.5
    np.testing.assert_allclose(data.pattern(0).toarray(), wanted)
    across = data.pattern(1).toarray()
    np.testing.assert_allclose(across[1, [0, 2]], 0.5**0.5)
    assert across[3, 0] == across[2, 2] == 1
    assert not across[0].any()


# New rows


@pytest.mark.parametrize("noise", ["one", "both"])
@pytest.mark.parametrize("implicit", [False, True])
def test_rows_of_the_fit_found_anew_are_those_of_the_fit(noise, implicit):
    problem, F, G, _ = planted(noise=0.4, share=0.6, offsets=True)
    posterior = run(problem, F, G, 600, noise=noise, implicit=implicit).posterior
    for side, features in enumerate((F, G)):
        found, first = posterior.fold_in(problem, side, features), (posterior.rows, posterior.cols)[side]
        np.testing.assert_allclose(found.means, first.means, atol=1e-3 * np.abs(first.means).max())
        np.testing.assert_allclose(found.covariance, first.covariance, atol=5e-3 * np.abs(first.covariance).max())


@pytest.mark.parametrize("implicit", [False, True])
def test_new_rows_without_entries_are_as_cold_ones_of_the_fit(implicit):
    problem, F, G, _ = planted(offsets=True, cold=(4, 3))
    posterior = run(problem, F, G, 30, implicit=implicit).posterior
    one = bf.Problem("squared", bf.operators.Entries([0], [0], (5, 40)), [1.0], offsets=True)
    found, cold = posterior.fold_in(one, 0, F[55:]), posterior.rows.take(np.arange(56, 60))
    np.testing.assert_allclose(found.means[1:], cold.means, atol=1e-12)
    np.testing.assert_allclose(found.covariance[1:], cold.covariance, rtol=1e-9, atol=1e-12)
    unknown = posterior.fold_in(one)
    assert np.ptp(unknown.means[1:], axis=0).max() == 0
    widths = [part.covariance[1:, part.places.diagonal].sum() for part in (unknown, found)]
    assert widths[0] > widths[1]  # less is known
    np.testing.assert_allclose(posterior.rows.padded(62).means[60:], unknown.means[1:3])


def test_new_columns_count_as_no_feature_of_later_rows():
    problem, F, G, _ = planted()
    posterior = run(problem, F, G, 10, implicit=True).posterior
    wider = replace(posterior, cols=posterior.cols.padded(42))
    entries = bf.operators.Entries([0, 0], [3, 41], (1, 42))
    found = wider.fold_in(bf.Problem("squared", entries, [1.0, 2.0]), 0, F[:1])
    assert np.all(np.isfinite(found.means))


# Edges


@pytest.mark.parametrize("implicit", [False, True])
def test_features_may_be_constant_or_duplicates_or_of_any_size(implicit):
    problem, F, G, X = planted(offsets=True)
    base = run(problem, F, G).matrix()
    F = np.c_[np.ones(60), F, F, 1e4 * F[:, :1] + 1e4]
    result = run(problem, F, np.c_[G, 1e-4 * G], implicit=implicit)
    assert np.all(np.diff(result.history.objective) <= 1e-8 * np.abs(result.history.objective[0]))
    if not implicit:
        assert np.linalg.norm(result.matrix() - base) <= 0.15 * np.linalg.norm(X)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (3, 3)])
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("implicit", [False, True])
def test_little_data(shape, rank, implicit):
    i, j = np.indices(shape).reshape(2, -1)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, shape), np.arange(1.0, i.size + 1), offsets=True)
    result = run(problem, np.arange(1.0, shape[0] + 1)[:, None], np.eye(shape[1]), 30, rank, implicit=implicit)
    assert np.all(np.isfinite(result.matrix()))
    assert np.all(np.isfinite(result.posterior.std(i, j)))


def test_effects_alone_are_told_by_features():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((80, 2))
    b, c = F @ [2.0, -1.0], rng.standard_normal(30)
    i, j = np.nonzero(rng.random((80, 30)) < 0.5)
    i, j = i[i < 70], j[i < 70]
    y = b[i] + c[j] + 0.1 * rng.standard_normal(i.size)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, (80, 30)), y, offsets=True)
    result = run(problem, F, None, 100, rank=0)
    assert np.abs(result.matrix() - (b[:, None] + c))[70:].max() < 0.2


def test_single_precision_is_close_to_double():
    problem, F, G, _ = planted(offsets=True, cold=(3, 3))
    single = bf.Problem("squared", problem.operator, problem.y.astype(np.float32), offsets=True)
    a = run(problem, F, G, 20, noise="both", implicit=True)
    b = run(single, F.astype(np.float32), G.astype(np.float32), 20, noise="both", implicit=True)
    assert b.U.dtype == np.float32
    assert np.linalg.norm(a.matrix() - b.matrix()) <= 1e-2 * np.linalg.norm(a.matrix())


def test_a_run_goes_on_where_it_was_left(tmp_path):
    problem, F, G, _ = planted(offsets=True)
    whole = run(problem, F, G, 12, implicit=True)
    for iterations in (5, 12):
        parts = run(problem, F, G, iterations, implicit=True, checkpoint=tmp_path / "run")
    assert np.array_equal(parts.U, whole.U)
    assert parts.objective == whole.objective
    with pytest.raises(FileError, match="another problem"):
        run(problem, F + (F != 0) * 1e-9, G, 12, implicit=True, checkpoint=tmp_path / "run")
    assert describe(sparse.csr_array(F)) != describe(sparse.csr_array(2 * F))


def test_mistakes():
    problem, F, G, _ = planted()
    for given, words in (
        (F[:5], "row_features has 5 lines, but that side of the data has 60"),
        (np.where(F > 1, np.nan, F), "row_features has NaN or infinite values"),
        (sparse.csr_array(np.where(F > 1, np.inf, F)), "row_features has NaN or infinite values"),
        (F[:, 0], "row_features is not a table of real numbers"),
        ([[1.0], [1.0, 2.0]], "row_features is not a table"),
        (F.astype(str), "row_features is not a table"),
        (F + 1j, "row_features is not a table"),
    ):
        with pytest.raises(InputError, match=words):
            run(problem, given, None)
    with pytest.raises(InputError, match="implicit='yes' is not a boolean"):
        Variational(implicit="yes")
    posterior = run(problem, F, None, 3).posterior
    for side, features, words in (
        (0, F[:3], "row_features has 3 lines"),
        (0, F[:, :2], "row_features has 2 columns, but the fit had 3"),
        (1, G, "The fit had no column_features"),
    ):
        with pytest.raises(InputError, match=words):
            posterior.fold_in(problem, side, features)
