"""All cells: the sum over every entry of X, from two Gram matrices, against the sum itself."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from tests.solvers.test_wrappers import INNER

import bifactor as bf
from bifactor.arrays import gaussian, herm, inner, is_foreign, to_device_of, to_numpy
from bifactor.errors import InputError
from bifactor.factors import LONGEST, Free
from bifactor.operators import Entries, Full
from bifactor.operators.bound import DataBound
from bifactor.operators.compose import add_cells
from bifactor.penalties import Ridge
from bifactor.running.certificate import certify
from bifactor.running.holdout import Holdout
from bifactor.running.record import relative_change
from bifactor.solvers import PCG
from bifactor.solvers.growth import add_columns
from bifactor.testing import check_gradient, check_solver

SHAPE, RANK, WEIGHT = (40, 30), 3, 0.3
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])


def pair(shape=SHAPE, dtype=np.float64, weighted=False, seed=0, **options):
    """A problem with all cells, the same f as a dense one, and what f is more than that."""
    rng = np.random.default_rng(seed)
    U, V = (gaussian(rng, (k, 2), dtype) for k in shape)
    mask = rng.random(shape) < 0.3
    mask[0] = False  # of one row nothing is known
    if options.get("symmetric"):
        V, mask = U, mask | mask.T
    real = np.finfo(dtype).dtype
    Y = ((U @ herm(V) + 0.3 * gaussian(rng, shape, dtype)) * mask).astype(dtype)
    W = (mask * (0.5 + rng.random(shape))).astype(real)
    s, t = (rng.random(k) + 0.2 if weighted else np.ones(k) for k in shape)
    t = s if options.get("symmetric") else t
    i, j = np.nonzero(mask)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    plain = bf.Problem("squared", Entries(i, j, shape), Y[i, j], W[i, j], **options)
    cells = plain + (bf.all_cells(WEIGHT, s, t) if weighted else bf.all_cells(WEIGHT))
    total = W + WEIGHT * np.multiply.outer(s, t)
    target = (W * Y / total).astype(dtype)
    dense = bf.Problem("squared", Full(shape), target, total.reshape(-1).astype(real), **options)
    const = 0.5 * float(np.sum(W * np.abs(Y) ** 2) - np.sum(total * np.abs(target) ** 2))
    return cells, dense, const


def near(got, wanted, dtype=np.float64, factor=1e3):
    got, wanted = (np.asarray(to_numpy(a) if is_foreign(a) else a) for a in (got, wanted))
    assert got.shape == wanted.shape
    assert np.linalg.norm(got - wanted) <= factor * np.finfo(dtype).eps * (np.linalg.norm(wanted) + 1e-300)


def moving(problem, width=RANK, seed=5):
    rng = np.random.default_rng(seed)
    kind, arguments = problem.kind, (problem.shape, width, problem.dtype, problem.f.like)
    some = [kind.random(rng, *arguments) for _ in range(2)]
    x, d = (kind.start(one.left, one.right) for one in some)
    return x, x.gradient(d.left, d.right)


KINDS = {
    "free": {},
    "symmetric": {"symmetric": True, "shape": (30, 30)},
    "offsets": {"offsets": True},
    "fixed": {"fixed": (np.arange(40.0)[:, None] / 40, None)},
}


@each_dtype
@weighted
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_sum_over_all_entries(dtype, weighted, kind):
    problem, dense, const = pair(dtype=dtype, weighted=weighted, **KINDS[kind])
    x, d = moving(problem)
    there = x.plus(0.7, d)
    for z in (None, problem.f.measure(x)):
        got, wanted = problem.f.evaluate(x, z), dense.f.evaluate(x)
        near([got.f, const], [wanted.f + const, const], dtype)
        assert got.GV.dtype == got.GhU.dtype == dtype
        near(got.GV, wanted.GV, dtype)
        near(got.GhU, wanted.GhU, dtype)
        for ours, theirs in zip(problem.f.hessian(x, z)(d), dense.f.hessian(x)(d), strict=True):
            near(ours, theirs, dtype)
        curve, other = problem.f.curve(x, d, z), dense.f.curve(x, d)
        near(curve.quartic, other.quartic + np.array([const, 0, 0, 0, 0]), dtype)
        for a, b in zip(curve.to(0.7, there)[1:3], dense.f.evaluate(there)[1:3], strict=True):
            near(a, b, dtype)
        near(curve.at(0.7), np.add(other.at(0.7), (const, 0, 0)), dtype)
    G, H = problem.f.gradient(x), dense.f.gradient(x)
    near(G @ x.right, H @ x.right, dtype)
    near(G.H @ x.left, H.H @ x.left, dtype)
    assert G.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_gradient_is_the_derivative(dtype):
    check_gradient(pair(dtype=dtype, weighted=True)[0])


def test_sums_are_taken_in_double_precision():
    # A Gram matrix of 300,000 rows in single precision would be off by 1e-5.
    rng = np.random.default_rng(0)
    U, V = 1 + 0.1 * rng.random((300_000, 2), np.float32), 1 + rng.random((5, 2), np.float32)
    index = np.arange(5)
    problem = bf.Problem("squared", Entries(index, index, (300_000, 5)), np.zeros(5, np.float32)) + bf.all_cells(2.0)
    wanted = np.sum((U.astype(np.float64).T @ U) * (V.astype(np.float64).T @ V))
    cells = problem.f.cells[0]
    assert cells.value(Free().pair(U, V)) == pytest.approx(wanted, rel=3e-8)
    ones = add_cells(problem.f, bf.all_cells(2.0, rows=np.ones(300_000))).cells[1]
    assert ones.value(Free().pair(U, V)) == pytest.approx(wanted, rel=3e-8)


@weighted
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_curvature_is_that_of_all_entries(weighted, dtype):
    problem, dense, _ = pair(weighted=weighted, dtype=dtype)
    x, _ = moving(problem)
    W = to_numpy(dense.weights).reshape(SHAPE)
    for side, (other, curvature) in enumerate(((x.right, W), (x.left, W.T))):
        wanted = np.einsum("ij,jk,jl->ikl", curvature, other.conj(), other)
        rows = gaussian(np.random.default_rng(1), (SHAPE[side], RANK), dtype)
        product = np.einsum("ik,ikl->il", rows, wanted)
        near(problem.f.exact(x, side).divide(product), rows, factor=1e6)
        near(problem.f.exact(x, side, rows=(3, 9)).packed, problem.f.exact(x, side).packed[3:9])
    assert problem.smoothness >= W.max()
    assert problem.smoothness <= 2 * W.max()
    assert problem.scale == pytest.approx(dense.scale)
    for ours, theirs in zip(problem.f.marginals, (W.sum(axis=1), W.sum(axis=0)), strict=True):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("popular", [False, True], ids=["even", "weighted rows"])
def test_with_a_ridge_by_frequency_the_preconditioner_is_exact_in_expectation(popular):
    """ownᵢ(C + λI) + sᵢ(wVᵀV + λnwI) has three matrices and two weights."""
    problem = pair()[0]
    plain, own = problem.f.data, problem.f.data.marginals[0]
    s, n = np.random.default_rng(2).random(SHAPE[0]) + 0.1 if popular else np.ones(SHAPE[0]), SHAPE[1]
    problem = bf.Problem("squared", plain.operator, plain.fit.values, plain.fit.weights) + bf.all_cells(
        WEIGHT, rows=s if popular else None
    )
    x, _ = moving(problem)
    ridge = Ridge(0.05, rows=own + WEIGHT * n * s)
    assert own[0] == 0
    share = plain.marginals[1] / plain.marginals[1].sum()
    C, VV = x.right.T @ (share[:, None] * x.right), x.right.T @ x.right
    blocks = np.multiply.outer(own, C + 0.05 * np.eye(RANK)) + np.multiply.outer(
        s, WEIGHT * (VV + 0.05 * n * np.eye(RANK))
    )
    rows = np.random.default_rng(3).standard_normal((SHAPE[0], RANK))
    found = (problem.f.expected(x, 0) + ridge.blocks(x, 0)).divide(np.einsum("ik,ikl->il", rows, blocks))
    near(found, rows, factor=1e6)


def test_rows_without_weight_and_without_entries_do_no_harm():
    problem = pair()[0]
    s = np.ones(SHAPE[0])
    s[:3] = 0
    plain = problem.f.data
    problem = bf.Problem("squared", plain.operator, plain.fit.values) + bf.all_cells(WEIGHT, rows=s)
    result = bf.solve(problem, 2, PCG(), rng=0, max_iter=50)
    assert np.isfinite(result.objective)
    assert result.objective < result.history.objective[0]


@weighted
def test_the_spectral_start_is_that_of_the_dense_problem(weighted):
    problem, dense, _ = pair(weighted=weighted)
    ours, theirs = (bf.inits.Spectral()(p, 3, np.random.default_rng(0)) for p in (problem, dense))
    near(ours.left @ ours.right.T, theirs.left @ theirs.right.T, factor=1e11)


def test_the_certificate_is_that_of_the_dense_problem():
    problem, dense, _ = (p.penalized(Ridge(2.0)) if isinstance(p, bf.Problem) else p for p in pair(weighted=True))
    x, _ = moving(problem)
    ours, theirs = certify(problem, x), certify(dense, x)
    for name in ("gradient_norm", "relative_gradient", "dual_norm", "rho"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-7)
    assert ours.gap > theirs.gap  # the least value of a sum is known less well
    result = bf.solve(problem, 12, PCG(), rng=0, tol=1e-10)
    assert result.certificate.optimal(1e-5)
    assert result.certificate.gap < 1e-5 * result.objective


@pytest.mark.parametrize("options", [{}, {"symmetric": True, "shape": (30, 30)}], ids=["free", "symmetric"])
def test_growth_goes_where_that_of_the_dense_problem_does(options):
    problem, dense, const = pair(weighted=True, **options)
    x = bf.inits.Spectral()(problem, 1, np.random.default_rng(0))
    before = problem.f.value(x)
    for _ in range(3):
        wider = add_columns(problem, x, 1)
        assert wider.width == x.width + 1
        ours, theirs = (add_columns(p, x, 1).columns(slice(-1, None)) for p in (problem, dense))
        cosine = inner(ours.left, theirs.left) / np.sqrt(inner(ours.left, ours.left) * inner(theirs.left, theirs.left))
        assert abs(cosine) > 1 - 1e-3
        result = bf.solve(
            problem, wider.width, PCG(), bf.inits.Given(wider.left, None if options else wider.right), tol=1e-4
        )
        x = problem.kind.pair(result.U, result.V)
        assert problem.f.value(x) == pytest.approx(dense.f.value(x) + const)
        assert problem.f.value(x) < before
        before = problem.f.value(x)


def test_new_columns_are_as_long_as_all_parts_of_f_have_it():
    problem = pair(weighted=True)[0]
    x, _ = moving(problem)
    cells, data = problem.f.cells[0], problem.f.data
    squares = [np.abs(x.left) ** 2, np.abs(x.right) ** 2]
    wanted = WEIGHT * (cells.given.rows @ squares[0]) * (cells.given.cols @ squares[1])
    rows, cols = data.marginals
    wanted += (rows @ squares[0]) * (cols @ squares[1]) / rows.sum()
    np.testing.assert_allclose(problem.f.curvatures(x), wanted)


EXPLICIT = ("NuclearNorm", "SPG", "SparseApproxSDP")
PLAIN = ("GuaranteedMC", "MiFGD", "ProcrustesFlow", "SVP")
"""Those that refuse a ridge."""


@pytest.mark.parametrize("name", sorted({*INNER} - {*EXPLICIT}))
def test_every_solver_finds_the_minimum_of_the_dense_problem(name):
    options = KINDS["symmetric" if name == "FGD" else "free"]
    penalty = None if name in PLAIN else Ridge(2.0)
    problem, dense, const = (p.penalized(penalty) if isinstance(p, bf.Problem) else p for p in pair(**options))
    rank = 2 if name in PLAIN else 12
    least = bf.solve(dense, rank, bf.solvers.Newton(), rng=0, max_iter=500, tol=1e-10)
    result = bf.solve(problem, rank, INNER[name], rng=0, max_iter=3000, tol=1e-8)
    assert result.objective == pytest.approx(least.objective + const, rel=1e-6)
    assert np.linalg.norm(result.matrix() - least.matrix()) <= 1e-2 * np.linalg.norm(least.matrix())


@pytest.mark.parametrize("name", sorted({*INNER} - {*EXPLICIT}))
def test_solvers_keep_their_laws(name):
    options = KINDS["symmetric" if name == "FGD" else "free"]
    check_solver(INNER[name], pair(weighted=True, **options)[0], 2)


@pytest.mark.parametrize("name", EXPLICIT)
def test_solvers_that_work_on_the_measurements_refuse_it(name):
    options = KINDS["symmetric" if name == "SparseApproxSDP" else "free"]
    with pytest.raises(InputError, match=r"works on the measurements, but these are not stored here. Use PCG\."):
        bf.solve(pair(**options)[0].penalized(Ridge(0.1) if name == "NuclearNorm" else None), 2, INNER[name])


def test_a_posterior_refuses_it():
    with pytest.raises(InputError, match=r"not support all_cells\. Use PCG here"):
        bf.solve(pair()[0], 2, bf.solvers.Variational())


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_other_losses_have_it_beside_them(loss):
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random(SHAPE) < 0.4)
    y = np.where(rng.random(i.size) < 0.6, 1.0, -1.0) if loss == "logistic" else rng.poisson(2.0, i.size).astype(float)
    plain = bf.Problem(loss, Entries(i, j, SHAPE), y, penalty=Ridge(3.0))
    problem = plain + bf.all_cells(WEIGHT)
    assert problem.penalties == plain.penalties
    check_gradient(problem)
    dense = plain + bf.Function(lambda X: 0.5 * WEIGHT * float(np.sum(X**2)), lambda X: WEIGHT * X, SHAPE, WEIGHT)
    ours, theirs = (bf.solve(p, 20, PCG(), rng=0, tol=1e-9) for p in (problem, dense))
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-8)
    assert ours.certificate.optimal(1e-4)


@pytest.mark.parametrize("options", [{"offsets": True}, {"fixed": (np.arange(40.0)[:, None] / 40, None)}])
def test_fixed_columns_are_part_of_x(options):
    problem, dense, const = (
        p.penalized(Ridge(0.2, components=(8.0, 8.0, 1.0))) if isinstance(p, bf.Problem) else p
        for p in pair(weighted=True, **options)
    )
    ours, theirs = (bf.solve(p, 10, bf.solvers.Newton(), rng=0, tol=1e-10) for p in (problem, dense))
    assert ours.objective == pytest.approx(theirs.objective + const, rel=1e-9)
    near(ours.matrix(), theirs.matrix(), factor=1e11)
    assert bf.solve(problem, 10, rng=0, tol=1e-9).objective == pytest.approx(ours.objective, rel=1e-6)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_other_array_libraries(library, dtype):
    there = pytest.importorskip(library, reason=f"{library} is not installed here")
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random(SHAPE) < 0.4)
    y, s = gaussian(rng, i.shape, dtype), rng.random(SHAPE[0])
    plain, other = (
        bf.Problem("squared", Entries(i, j, SHAPE), values, penalty=Ridge(0.2, rows=np.arange(40) + 1.0))
        + bf.all_cells(WEIGHT, rows=s)
        for values in (y, there.asarray(y))
    )
    few = [bf.solve(p, 3, PCG(), rng=0, max_iter=10, tol=0) for p in (plain, other)]
    assert type(few[1].U) is type(there.asarray(y))
    tol = 1e-10 if dtype != np.float32 else 1e-4
    assert np.linalg.norm(to_numpy(few[1].matrix()) - few[0].matrix()) <= tol * np.linalg.norm(few[0].matrix())
    assert few[1].certificate.dual_norm == pytest.approx(few[0].certificate.dual_norm, rel=1e3 * tol)
    x, _ = moving(plain)
    foreign = Free().pair(to_device_of(x.left, other.f.like), to_device_of(x.right, other.f.like))
    near(other.f.exact(foreign, 0).packed, plain.f.exact(x, 0).packed, dtype)


def test_a_run_in_another_library_can_be_resumed(tmp_path):
    there = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed here")
    i, j = np.nonzero(np.random.default_rng(0).random(SHAPE) < 0.4)
    problem = bf.Problem("squared", Entries(i, j, SHAPE), there.asarray(np.cos(i + j))) + bf.all_cells(WEIGHT)
    whole = bf.solve(problem, 2, PCG(), rng=0, max_iter=12, tol=0)
    for iterations in (5, 12):
        resumed = bf.solve(problem, 2, PCG(), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(to_numpy(whole.U), to_numpy(resumed.U))


def test_measurements_are_held_out_and_all_cells_stay():
    problem = pair(weighted=True)[0]
    holdout = Holdout.at_random(problem, np.random.default_rng(0))
    train = holdout.train
    assert isinstance(train, bf.Problem)
    assert isinstance(train.f, DataBound)
    x, _ = moving(problem)
    assert train.f.cells[0].value(x) == problem.f.cells[0].value(x)
    assert train.f.data.value(x) < problem.f.data.value(x)
    near(train.f.data.marginals[0].sum() + np.sum(holdout.weights), problem.f.data.marginals[0].sum())
    result = bf.solve(problem, "auto", rng=0)
    assert result.problem.f.cells
    data = holdout.problem.f.data
    assert result.misfit == pytest.approx(
        (data.value(Free().pair(result.U, result.V)) / data.value(problem.zero())) ** 0.5
    )
    path = result.rank_search
    assert path["train"][0] > path["train"][-1] > 0


def test_what_it_adds_to():
    problem = pair()[0]
    data = problem.f.data
    plain = bf.Problem("squared", data.operator, data.fit.values, data.fit.weights)
    x, _ = moving(problem)
    value, cells = plain.f.value(x), problem.f.cells[0].value(x)
    for total in (plain + bf.all_cells(WEIGHT), bf.all_cells(WEIGHT) + plain):
        assert isinstance(total, bf.Problem)
        assert total.f.value(x) == pytest.approx(value + cells)
        assert total.loss == plain.loss
    twice = problem + bf.all_cells(2 * WEIGHT)
    assert isinstance(twice, bf.Problem)
    assert twice.f.value(x) == pytest.approx(value + 3 * cells)
    assert "all_cells(0.3) + all_cells(0.6)" in repr(twice)
    both = plain + plain + bf.all_cells(WEIGHT)
    other = problem + plain
    for total in (both, other):
        assert not isinstance(total, bf.Problem)
        assert total.f.value(x) == pytest.approx(2 * value + cells)
        for side in (0, 1):
            ours, theirs = (p.f.expected(x, side).divide((x.left, x.right)[side]) for p in (both, other))
            near(ours, theirs)
    function = bf.Objective(bf.Function(lambda X: float(np.sum(X)), np.ones_like, SHAPE, 1.0)) + bf.all_cells(1.0)
    result = bf.solve(function, 2, rng=0)
    np.testing.assert_allclose(result.matrix(), -np.ones(SHAPE), atol=1e-4)
    recomputed = bf.Problem("squared", bf.operators.Recomputed(data.operator), data.fit.values, data.fit.weights)
    assert (recomputed + bf.all_cells(WEIGHT)).f.value(x) == pytest.approx(value + cells)
    near(
        bf.solve(recomputed + bf.all_cells(WEIGHT), 2, PCG(), rng=0, max_iter=5, tol=0).U,
        bf.solve(problem, 2, PCG(), rng=0, max_iter=5, tol=0).U,
        factor=1e7,
    )
    for wrong in (1.0, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            bf.all_cells(1.0) + wrong


def test_problems_with_different_cells_are_told_apart():
    data = pair()[0].f.data
    plain = bf.Problem("squared", data.operator, data.fit.values)
    many = [
        bf.all_cells(1.0),
        bf.all_cells(2.0),
        bf.all_cells(1.0, rows=np.ones(40)),
        bf.all_cells(1.0, cols=np.ones(30)),
    ]
    assert len({plain.fingerprint, *((plain + one).fingerprint for one in many)}) == 5


def test_memory_counts_what_is_there():
    problem = pair()[0]
    data = problem.f.data
    plain = bf.Problem("squared", data.operator, data.fit.values, data.fit.weights)
    for solver in (PCG(), bf.solvers.Newton(), bf.solvers.AltMin()):
        assert problem.memory(3, solver).run >= plain.memory(3, solver).run
    weights = bf.all_cells(1.0, rows=np.ones(40), cols=np.ones(30))
    assert (plain + weights).memory(3).data >= plain.memory(3).data + 8 * 70


def test_one_row_and_one_column():
    for shape in ((1, 5), (5, 1), (1, 1)):
        rows, cols = np.nonzero(np.ones(shape))
        y = np.arange(1.0, rows.size + 1)
        problem = bf.Problem("squared", Entries(rows, cols, shape), y) + bf.all_cells(1.0)
        near(bf.solve(problem, 1, PCG(), rng=0, tol=1e-12).matrix().ravel(), y / 2, factor=1e9)


@pytest.mark.parametrize("penalty", [None, Ridge(0.1)])
def test_nothing_but_zeros(penalty):
    rows, cols = np.nonzero(np.ones((5, 4)))
    problem = bf.Problem("squared", Entries(rows, cols, (5, 4)), np.zeros(20), penalty=penalty) + bf.all_cells(1.0)
    result = bf.solve(problem, 2, PCG(), rng=0)
    assert result.status.converged
    assert result.objective == 0


def test_fitted_parameters_and_pickles_keep_it():
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random(SHAPE) < 0.5)
    y = rng.standard_normal(i.size) + 20 * (rng.random(i.size) < 0.1)
    problem = bf.Problem("huber", Entries(i, j, SHAPE), y) + bf.all_cells(WEIGHT)
    result = bf.solve(problem, 2, bf.solvers.Refitted(), rng=0)
    assert result.problem.loss != problem.loss
    assert result.problem.f.cells[0].weight == WEIGHT
    x = Free().pair(result.U, result.V)
    assert pickle.loads(pickle.dumps(problem)).objective(x) == problem.objective(x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "weight=0.0 is not a finite number > 0"),
        ((-1.0,), "weight=-1.0"),
        ((np.nan,), "weight=nan"),
        ((np.inf,), "weight=inf"),
        (("1",), "weight='1'"),
        ((True,), "weight=True"),
        ((1.0, [1.0, -1.0]), "rows must be a vector of finite weights ≥ 0"),
        ((1.0, [1.0, np.nan]), "rows must be"),
        ((1.0, [0.0, 0.0]), "rows must be"),
        ((1.0, None, np.ones((2, 2))), "cols must be"),
        ((1.0, None, []), "cols must be"),
    ],
)
def test_mistakes_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        bf.all_cells(*arguments)


def test_weights_of_another_shape_are_refused():
    problem = pair()[0]
    with pytest.raises(InputError, match=r"all_cells has 30 weights in rows, but X is 40×30\. Pass one for each"):
        problem + bf.all_cells(1.0, rows=np.ones(30))
    with pytest.raises(InputError, match="40 weights in cols"):
        problem + bf.all_cells(1.0, cols=np.ones(40))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@weighted
def test_steps_are_measured_by_grams_that_are_carried_along(dtype, weighted):
    cells, _, _ = pair(dtype=dtype, weighted=weighted)
    seen = []
    bf.solve(cells, RANK, PCG(), rng=0, tol=0, max_iter=40, callback=lambda _, state: seen.append(state.point.x))
    ages = [x.carried for x in seen]
    assert set(ages) == ({0} if weighted else {*range(LONGEST)} & {*ages})
    assert weighted or max(ages) == LONGEST - 1  # and then they are computed anew
    eps = float(np.finfo(dtype).eps)
    for old, new in pairwise(seen):
        for carried, computed in zip(new.wide_grams, new.fresh.wide_grams, strict=True):
            np.testing.assert_allclose(carried, computed, atol=100 * eps * np.abs(computed).max())
        change, size, _ = relative_change(old, new, new)
        again, as_large, _ = relative_change(old.fresh, new.fresh, new)
        assert size == pytest.approx(as_large, rel=100 * eps)
        assert change == pytest.approx(again, rel=1e-3, abs=100 * eps)


def test_a_run_with_carried_grams_is_resumed_to_the_last_bit(tmp_path):
    cells, _, _ = pair(dtype=np.float32)
    whole = bf.solve(cells, RANK, PCG(), rng=0, tol=0, max_iter=20)
    for most in (7, 20):
        found = bf.solve(cells, RANK, PCG(), rng=0, tol=0, max_iter=most, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(found.U, whole.U)
    np.testing.assert_array_equal(found.history.objective, whole.history.objective)
