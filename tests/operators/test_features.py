"""Side information: rows and columns with features, against the same matrix written out."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from tests.solvers.test_wrappers import INNER

import bifactor as bf
from bifactor.arrays import gaussian, herm, to_device_of, to_numpy
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.inits import Spectral
from bifactor.operators import (
    Comparisons,
    Entries,
    Featured,
    Full,
    Gaussian,
    Linear,
    Noiselet,
    RankOne,
    Recomputed,
    Scaled,
    Stacked,
    pattern,
)
from bifactor.operators.curves import WrappedCurve
from bifactor.operators.features import features_of
from bifactor.penalties import Ridge
from bifactor.running.certificate import certify
from bifactor.running.holdout import Holdout
from bifactor.solvers import PCG
from bifactor.solvers.growth import add_columns
from bifactor.testing import check_gradient, check_operator, check_solver

SHAPE = (8, 6)
RNG = np.random.default_rng(0)
F = sparse.random_array((8, 3), density=0.4, rng=1, data_sampler=lambda size: np.random.default_rng(1).random(size))
G = RNG.standard_normal((6, 2))
SEEN = np.nonzero(RNG.random(SHAPE) < 0.6)
ENTRIES = Entries(*(side[::-1] for side in SEEN), SHAPE)
BASES = {
    "Entries": ENTRIES,
    "Full": Full(SHAPE),
    "Gaussian": Gaussian(SHAPE, 20, rng=0),
    "Linear": Linear(gaussian(RNG, (12, 48), complex), SHAPE),
    "Noiselet": Noiselet((8, 8), 20, 0),
    "RankOne": RankOne(gaussian(RNG, (12, 8), float), gaussian(RNG, (12, 6), float)),
    "Comparisons": Comparisons(RNG.integers(8, size=30), RNG.integers(3, size=30), RNG.integers(3, 6, 30), SHAPE),
    "Scaled": Scaled(ENTRIES, 1 - 2j),
    "Stacked": Stacked(ENTRIES, Gaussian(SHAPE, 12, rng=0)),
    "Recomputed": Recomputed(ENTRIES),
    "Featured": Featured(ENTRIES, RNG.standard_normal((8, 1))),
}
SIDES = {"both": (True, True), "rows": (True, False), "columns": (False, True)}


def featured(operator, left=True, right=True):
    m, n = operator.shape
    rows, cols = (RNG.standard_normal((k, 2)) * (RNG.random((k, 2)) < 0.6) for k in (m, n))
    return Featured(operator, rows if left else None, sparse.coo_array(cols) if right else None)


def written_out(operator, left, right):
    """[I F] and [I G], dense."""
    dense = [None if side is None else side.toarray() if sparse.issparse(side) else side for side in (left, right)]
    return [np.eye(k) if side is None else np.hstack([np.eye(k), side]) for k, side in zip(SHAPE, dense, strict=True)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("base", BASES)
def test_laws(base, sides, dtype):
    check_operator(featured(BASES[base], *SIDES[sides]), dtype)


@pytest.mark.parametrize("wrapped", [Recomputed, lambda A: Scaled(A, 2.0), lambda A: Stacked(A, A)])
def test_laws_within_other_operators(wrapped):
    check_operator(wrapped(Featured(ENTRIES, F, G)))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_it_measures_the_matrix_with_features(dtype):
    operator = Featured(ENTRIES, F, G)
    L, R = written_out(ENTRIES, F, G)
    U, V = gaussian(RNG, (11, 2), dtype), gaussian(RNG, (8, 2), dtype)
    assert operator.shape == (11, 8)
    np.testing.assert_allclose(operator.forward(U, V), (L @ U @ herm(R @ V))[ENTRIES.rows, ENTRIES.cols])
    for got, wanted in zip(operator.effective(U, V), (L @ U, R @ V), strict=True):
        np.testing.assert_allclose(got, wanted)


def dense_pair(loss="squared", left=F, right=G, **options):
    """A problem with features, and the same one written out as a linear map of X′."""
    L, R = written_out(ENTRIES, left, right)
    rng = np.random.default_rng(3)
    y = rng.poisson(1.0, ENTRIES.size).astype(float)
    if loss in ("logistic", "probit"):
        y = np.where(y > 0, 1.0, -1.0)
    rows = np.stack([np.kron(L[i], R[j]) for i, j in zip(ENTRIES.rows, ENTRIES.cols, strict=True)])
    weights = rng.random(ENTRIES.size) + 0.5
    wide = Linear(rows, (L.shape[1], R.shape[1]))
    return bf.Problem(loss, Featured(ENTRIES, left, right), y, weights, **options), bf.Problem(
        loss, wide, y, weights, **options
    )


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "probit", "poisson"])
def test_every_loss(loss):
    problem, dense = dense_pair(loss)
    check_gradient(problem)
    rng = np.random.default_rng(1)
    x, d = (0.3 * Free().random(rng, problem.shape, 2, np.float64) for _ in range(2))
    for z in (None, problem.f.measure(x)):
        for got, wanted in zip(problem.f.evaluate(x, z)[:3], dense.f.evaluate(x)[:3], strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-12)
        curve, other = problem.f.curve(x, d, z), dense.f.curve(x, d)
        np.testing.assert_allclose(curve.at(0.7), other.at(0.7))
        assert (curve.quartic is None) == (other.quartic is None)
    for got, wanted in zip(problem.f.hessian(x)(d), dense.f.hessian(x)(d), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12)


PLAIN = ("GuaranteedMC", "MiFGD", "ProcrustesFlow", "SVP")


@pytest.mark.parametrize("name", sorted({*INNER} - {"FGD", "SparseApproxSDP", "SPG"}))
def test_every_solver_finds_the_minimum_of_the_same_problem_written_out(name):
    penalty = None if name in PLAIN else Ridge(0.7)
    problem, dense = dense_pair(penalty=penalty)
    rank = 2 if name in PLAIN else 5
    least = bf.solve(dense, rank, bf.solvers.Newton(), rng=0, max_iter=500, tol=1e-10)
    result = bf.solve(problem, rank, INNER[name], rng=0, max_iter=5000, tol=1e-9)
    if name in PLAIN:  # local minima, and features that leave factors open
        assert result.objective < problem.f.value(problem.zero())
    else:
        assert result.objective == pytest.approx(least.objective, rel=1e-6)


@pytest.mark.parametrize("name", sorted(INNER))
def test_solvers_keep_their_laws(name):
    symmetric = name in ("FGD", "SparseApproxSDP")
    rng = np.random.default_rng(5)
    shape, features = (9, 9), rng.standard_normal((9, 2))
    rows, cols = np.nonzero(rng.random(shape) < 0.8)
    A, penalty = Entries(rows, cols, shape), Ridge(0.5) if name == "NuclearNorm" else None
    U, V = rng.standard_normal((9, 2)), rng.standard_normal((9, 2))
    y = A.forward(U, U if symmetric else V)
    operator = Featured(A, features, features)
    check_solver(INNER[name], bf.Problem("squared", operator, y, None, penalty, symmetric=symmetric), 2)


def test_a_posterior_refuses_it():
    with pytest.raises(InputError, match=r"squared errors of real observed entries\. Use PCG here"):
        bf.solve(dense_pair()[0], 2, bf.solvers.Variational())


def test_the_start_the_growth_and_the_certificate_are_those_of_the_problem_written_out():
    problem, dense = dense_pair(penalty=Ridge(0.5))
    ours, theirs = (Spectral()(p, 2, np.random.default_rng(0)) for p in (problem, dense))
    np.testing.assert_allclose(ours.left @ ours.right.T, theirs.left @ theirs.right.T, atol=1e-3)
    one, other = certify(problem, ours), certify(dense, ours)
    assert one.dual_norm == pytest.approx(other.dual_norm, rel=1e-6)
    assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-6)
    new, wanted = (add_columns(p, ours, 1).columns(slice(-1, None)) for p in (problem, dense))
    cosine = np.sum(new.left * wanted.left) / (np.linalg.norm(new.left) * np.linalg.norm(wanted.left))
    assert abs(cosine) > 1 - 1e-6
    result = bf.solve(problem, 6, PCG(), rng=0, tol=1e-10)
    assert result.certificate.optimal(1e-5)


@pytest.mark.parametrize("cells", [False, True])
def test_curvature_to_expect(cells):
    problem = dense_pair()[0]
    problem = problem + bf.all_cells(0.3, rows=RNG.random(8) + 0.1) if cells else problem
    x = Free().random(np.random.default_rng(0), problem.shape, 2, np.float64)
    inner, there = problem.f.bound, problem.f.at(x)
    for side, (count, features) in enumerate(zip(SHAPE, problem.f.sides, strict=True)):
        ours, theirs = problem.f.expected(x, side), inner.expected(there, side)
        squares = np.asarray((F.multiply(F) if side == 0 else sparse.csr_array(G**2)).T.todense())
        for (a, B), (b, C) in zip(ours.pairs, theirs.pairs, strict=True):
            own = np.broadcast_to(b, count)
            np.testing.assert_allclose(a, np.concatenate([own, features.joint * (squares @ own)]))
            np.testing.assert_allclose(B, C)
        assert problem.f.exact(x, side) is None
    np.testing.assert_allclose(problem.f.curvatures(x), inner.curvatures(there))


FEATURES = {
    "independent": RNG.standard_normal((300, 40)),
    "of one sign": RNG.random((300, 40)),
    "opposite": (lambda half: np.hstack([half, -half]))(RNG.random((300, 20))),
    "groups": np.eye(40)[RNG.integers(40, size=300)],
    "patterns": pattern(
        *np.nonzero(RNG.random((300, 40)) < RNG.random((300, 1)) * RNG.random(40)), (300, 40)
    ).toarray(),
    "of many sizes": RNG.standard_normal((300, 40)) * 10.0 ** RNG.integers(-6, 7, size=40),
    "one in common": RNG.standard_normal((300, 40)) + 100.0,
}


@pytest.mark.parametrize("name", FEATURES)
def test_twice_the_diagonal_of_features_bounds_what_they_do_together(name):
    given = FEATURES[name].copy()
    given[:, 7] = 0  # a feature that no row has
    joint, H = features_of(given, 300, "left").joint, given.T @ given
    diagonal = np.where(np.diag(H) > 0, np.diag(H), 1.0)
    alone = np.linalg.eigvalsh(H / np.sqrt(np.outer(diagonal, diagonal)))[-1]
    sizes = joint * diagonal + (joint == 0)
    assert np.linalg.eigvalsh(H / np.sqrt(np.outer(sizes, sizes)))[-1] <= 2.0
    assert np.all(joint <= 1.001 * alone)  # no more than needed: independent features hardly disturb each other


@pytest.mark.parametrize("penalty", [None, Ridge(0.5)])
def test_features_that_no_observed_row_has(penalty):
    left = np.hstack(
        [G[[0, 1, 2, 3, 4, 5, 0, 1]], np.zeros((8, 1)), np.eye(8)[:, :1]]
    )  # one of nobody, one of a cold row
    rows, cols = (side[ENTRIES.rows > 0] for side in (ENTRIES.rows, ENTRIES.cols))
    problem = bf.Problem(
        "squared", Featured(Entries(rows, cols, SHAPE), left), np.arange(rows.size) - 5.0, penalty=penalty
    )
    result = bf.solve(problem, 2, PCG(), rng=0, tol=1e-8, max_iter=300)
    assert result.status is not bf.Status.DIVERGED
    assert result.objective < 0.9 * problem.f.value(problem.zero())


def test_rows_without_features_keep_their_exact_blocks():
    problem = dense_pair(left=None)[0]
    x = Free().random(np.random.default_rng(0), problem.shape, 2, np.float64)
    np.testing.assert_allclose(problem.f.exact(x, 0).packed, problem.f.bound.exact(problem.f.at(x), 0).packed)
    assert problem.f.exact(x, 1) is None


@pytest.mark.parametrize("wrapped", [lambda A: A, lambda A: Scaled(A, 2.0), Recomputed])
def test_all_cells_are_those_of_the_matrix_that_is_measured(wrapped):
    L, R = written_out(ENTRIES, F, G)
    s, t = RNG.random(8), RNG.random(6)
    plain = bf.Problem("squared", wrapped(Featured(ENTRIES, F, G)), np.ones(ENTRIES.size))
    problem = plain + bf.all_cells(0.4, s, t) + bf.all_cells(0.2)
    assert isinstance(problem, bf.Problem)
    assert repr(problem).endswith("+ all_cells(0.4, rows=…, cols=…) + all_cells(0.2)")
    x = Free().random(np.random.default_rng(0), (11, 8), 3, np.float64)
    X = (L @ x.left) @ (R @ x.right).T
    more = 0.2 * np.sum(np.multiply.outer(s, t) * X**2) + 0.1 * np.sum(X**2)
    assert problem.f.value(x) == pytest.approx(plain.f.value(x) + more)
    assert problem.f.data.value(x) == pytest.approx(plain.f.value(x))
    check_gradient(problem)
    train = Holdout.at_random(problem, np.random.default_rng(0)).train
    assert train.f.cells[0].given is problem.f.cells[0].given


def test_all_cells_are_not_added_to_a_sum_of_functions_with_features():
    A = Featured(ENTRIES, F, G)
    with pytest.raises(InputError, match=r"wrap all operators in one Featured\."):
        bf.Problem("squared", Stacked(A, A), np.ones(2 * A.size)) + bf.all_cells(0.1)
    around = bf.Problem("squared", Featured(Stacked(ENTRIES, ENTRIES), F, G), np.ones(2 * A.size)) + bf.all_cells(0.1)
    check_gradient(around)


@pytest.mark.parametrize("options", [{"offsets": True}, {"fixed": (np.arange(8.0)[:, None], np.ones((6, 2)))}])
def test_columns_that_are_fixed_are_those_of_the_matrix_that_is_measured(options):
    problem = dense_pair(penalty=Ridge(0.3))[0]
    problem = bf.Problem("squared", problem.operator, problem.y, None, problem.penalties, **options)
    k, both = (1, 2) if "offsets" in options else (1, 3)
    result = bf.solve(problem, 2, rng=0, tol=1e-9)
    U, V = problem.operator.effective(result.U, result.V)
    wanted = (np.ones((8, 1)), np.ones((6, 1))) if "offsets" in options else options["fixed"]
    np.testing.assert_array_equal(U[:, :k], wanted[0])
    np.testing.assert_array_equal(V[:, k:both], wanted[1])
    assert np.all(result.U[8:, :k] == 0)
    assert np.any(result.U[8:, k] != 0)  # effects have features, too
    assert result.status.converged
    with pytest.raises(InputError, match="Pass 8 rows"):
        bf.Problem("squared", problem.operator, problem.y, fixed=(np.ones((11, 1)), None))


def test_rows_and_columns_that_were_never_observed_are_found_from_their_features():
    rng = np.random.default_rng(0)
    m, n, k, rank = 60, 50, 8, 2
    left, right = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    X = (left @ rng.standard_normal((k, rank))) @ (right @ rng.standard_normal((k, rank))).T
    seen = rng.random((m, n)) < 0.5
    seen[:6], seen[:, :5] = False, False
    i, j = np.nonzero(seen)
    # Large features have small coefficients, which a ridge hardly feels: it leaves nothing to the rows themselves.
    operator = Featured(Entries(i, j, (m, n)), 1e3 * left, 1e3 * right)
    problem = bf.Problem("squared", operator, X[i, j], penalty=Ridge(1e-5))
    result = bf.solve(problem, rank, rng=0, tol=1e-12, max_iter=3000)
    U, V = problem.operator.effective(result.U, result.V)
    assert np.linalg.norm(U @ V.T - X) <= 1e-3 * np.linalg.norm(X)
    cold = (U @ V.T - X)[:6]
    assert np.linalg.norm(cold) <= 1e-3 * np.linalg.norm(X[:6])


@pytest.mark.parametrize("none", [None, np.zeros((8, 2)), sparse.csr_array((8, 3)), np.zeros((8, 0))])
def test_features_that_say_nothing_change_nothing(none):
    plain = bf.Problem("squared", ENTRIES, np.arange(float(ENTRIES.size)), penalty=Ridge(2.0))
    problem = bf.Problem("squared", Featured(ENTRIES, none), np.arange(float(ENTRIES.size)), penalty=Ridge(2.0))
    one, other = (bf.solve(p, 2, PCG(), rng=0, tol=1e-10) for p in (plain, problem))
    assert other.objective == pytest.approx(one.objective, rel=1e-9)
    U, V = problem.operator.effective(other.U, other.V)
    np.testing.assert_allclose(U @ V.T, one.matrix(), atol=1e-6)


@pytest.mark.parametrize("form", ["coo", "csc", "csr", "lil", "dense", "unsorted", "repeated", "int64", "integers"])
def test_features_may_come_in_any_form(form):
    dense = np.round(3 * F.toarray()) if form == "integers" else F.toarray()
    given = {"dense": dense, "integers": dense.astype(np.int8)}.get(form)
    if given is None:
        coo = sparse.coo_array(dense)
        i, j, w = coo.row[::-1], coo.col[::-1], coo.data[::-1]
        if form == "repeated":
            i, j, w = np.tile(i, 2), np.tile(j, 2), np.tile(w / 2, 2)
        if form == "int64":
            i, j = i.astype(np.int64), j.astype(np.int64)
        given = sparse.coo_array((w, (i, j)), shape=dense.shape)
        if form == "unsorted":
            csr = sparse.csr_array(dense)
            order = np.concatenate(
                [np.arange(a, b)[::-1] for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)]
            )
            given = sparse.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=dense.shape)
        elif form in ("coo", "csc", "csr", "lil"):
            given = given.asformat(form)
    U, V = RNG.standard_normal((11, 2)), RNG.standard_normal((6, 2))
    np.testing.assert_allclose(
        Featured(ENTRIES, given).forward(U, V), ENTRIES.forward(U[:8] + dense @ U[8:], V), atol=1e-12
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones((7, 2)), "left has 7 rows, but that side of X has 8"),
        (np.ones(8), "left has 1 dimension"),
        (np.full((8, 1), np.nan), "left holds 8 NaN or infinite values"),
        (sparse.csr_array(np.full((8, 1), np.inf)), "left holds 8 NaN or infinite values"),
        (np.full((8, 1), "a"), "left has dtype"),
        (np.ones((8, 1), complex), "left holds complex numbers"),
        ([[1], [2, 3]], "left is not an array of numbers"),
    ],
)
def test_what_are_no_features_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        Featured(ENTRIES, given)


def test_other_mistakes():
    with pytest.raises(InputError, match="not an Operator"):
        Featured(F)
    damaged = sparse.csr_array(np.eye(8))
    damaged.indices[0] = 99
    with pytest.raises(InputError, match="damaged sparse matrix"):
        Featured(ENTRIES, damaged)
    with pytest.raises(InputError, match="A factor has shape"):
        Featured(ENTRIES, F).forward(np.ones((8, 1)), np.ones((6, 1)))
    with pytest.raises(InputError, match="square"):
        bf.Problem("squared", Featured(Full((4, 4)), np.ones((4, 1))), np.eye(4), symmetric=True)


def test_curves_know_whether_second_derivatives_are_cheap():
    table = bf.operators.FullTable("poisson", np.arange(12.0).reshape(3, 4))
    for bound in (table, Featured(ENTRIES).bind(bf.losses.DataFit.of("squared", np.ones(ENTRIES.size)))):
        x = Free().pair(*(np.ones((k, 1)) for k in bound.shape))
        curves = bound.curve(x, x), WrappedCurve(bound.curve(x, x), lambda a, there, f=bound: f.evaluate(there))
        assert [curve.bends for curve in curves] == [bound is not table] * 2


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_array_libraries(library, dense, dtype):
    there = pytest.importorskip(library, reason=f"{library} is not installed here")
    y = gaussian(np.random.default_rng(0), (ENTRIES.size,), dtype)
    left = np.random.default_rng(1).random((8, 40)) * (1 if dense else np.arange(40) % 7 == 0)
    plain, other = (
        bf.Problem("squared", Featured(ENTRIES, left), values, penalty=Ridge(0.5)) + bf.all_cells(0.1)
        for values in (y, there.asarray(y))
    )
    few = [bf.solve(p, 3, PCG(), rng=0, max_iter=10, tol=0) for p in (plain, other)]
    assert type(few[1].U) is type(there.asarray(y))
    tol = 1e-9 if dtype == np.float64 else 1e-3
    assert np.linalg.norm(to_numpy(few[1].matrix()) - few[0].matrix()) <= tol * np.linalg.norm(few[0].matrix())
    x = Free().random(np.random.default_rng(0), plain.shape, 2, dtype)
    foreign = Free().pair(*(to_device_of(side, other.f.like) for side in (x.left, x.right)))
    np.testing.assert_allclose(to_numpy(other.f.evaluate(foreign).GV), plain.f.evaluate(x).GV, rtol=1e-3)


def test_it_can_be_kept_and_told_apart():
    problem, other = dense_pair()[0], dense_pair(left=2 * F)[0]
    assert problem.fingerprint != other.fingerprint
    again = pickle.loads(pickle.dumps(problem))
    assert again.fingerprint == problem.fingerprint
    assert problem.memory(2).run > 0
    rated = bf.solve(problem, "auto", rng=0)
    assert np.isfinite(rated.objective)


def test_a_pattern_is_normalised_by_row():
    rows, cols = [0, 0, 0, 2, 0], [1, 2, 1, 0, 0]
    found = pattern(rows, cols, (4, 3))
    third = 3**-0.5
    np.testing.assert_allclose(found.toarray(), [[third, third, third], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
