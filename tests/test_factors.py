"""Points, directions and gradients are vectors of one space, whatever its kind."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.factors import Factors, Fixed, Free, Symmetric, kind_of

SHAPE = (9, 9)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def kinds(dtype=np.float64):
    rng = np.random.default_rng(0)
    L, R = gaussian(rng, (9, 2), dtype), gaussian(rng, (9, 1), dtype)
    return [Free(), Symmetric(), Fixed(L, R), Fixed(L, R[:, :0]), Fixed(L[:, :0], R)]


ALL = pytest.mark.parametrize("which", range(5))


def vectors(kind, count, dtype, rank=3, seed=1):
    """Directions: what is fixed is zero in them."""
    rng = np.random.default_rng(seed)
    width = rank + kind.fixed_columns
    for _ in range(count):
        yield kind.gradient(gaussian(rng, (9, width), dtype), gaussian(rng, (9, width), dtype))


def same(x, y, tol=1e-12):
    for a, b in ((x.left, y.left), (x.right, y.right)):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@ALL
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_a_vector_space_with_an_inner_product(which, dtype):
    kind = kinds(dtype)[which]
    x, y, z = vectors(kind, 3, dtype)
    tol = 1e3 * float(np.finfo(dtype).eps)
    same(x + y, y + x, tol)
    same(2.0 * (x + y) - x, x + 2.0 * y, tol)
    same(x.plus(-0.5, y), x - 0.5 * y, tol)
    same(-x, -1.0 * x, tol)
    assert x.inner(y) == pytest.approx(y.inner(x), rel=tol)
    assert (x + 2.0 * z).inner(y) == pytest.approx(x.inner(y) + 2 * z.inner(y), rel=100 * tol, abs=100 * tol)
    assert x.norm() ** 2 == pytest.approx(x.inner(x), rel=tol)
    for part in (x + y, 3.0 * x, x.plus(0.1, y), -x, x.columns(slice(2)), x.joined(y), x.padded(8)):
        assert isinstance(part, Factors)
        assert part.kind is kind
        assert part.dtype == dtype


@ALL
def test_the_inner_product_counts_both_sides(which):
    kind = kinds()[which]
    x, y = vectors(kind, 2, np.float64)
    assert x.inner(y) == pytest.approx(np.vdot(x.left, y.left) + np.vdot(x.right, y.right))
    W = np.vstack([x.left, x.right])
    assert x.spectral_norm_squared() == pytest.approx(np.linalg.norm(W, 2) ** 2)
    assert x.product_norm() == pytest.approx(np.linalg.norm(x.left @ x.right.T))


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_gradient_is_that_of_the_space(which, dtype):
    """For every direction d of the space, Re⟨gradient, d⟩ is the derivative along d."""
    kind = kinds(dtype)[which]
    rng = np.random.default_rng(3)
    target = gaussian(rng, SHAPE, dtype)
    start = kind.start(gaussian(rng, (9, 3), dtype), gaussian(rng, (9, 3), dtype))

    def f(x):
        return 0.5 * np.linalg.norm(x.left @ herm(x.right) - target) ** 2

    G = start.left @ herm(start.right) - target
    gradient = start.gradient(G @ start.right, herm(G) @ start.left)
    (d,) = vectors(kind, 1, dtype, seed=5)
    h = 1e-6
    assert gradient.inner(d) == pytest.approx((f(start.plus(h, d)) - f(start.plus(-h, d))) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_fixed_columns_never_move(dtype):
    rng = np.random.default_rng(0)
    L, R = gaussian(rng, (12, 2), dtype), gaussian(rng, (10, 1), dtype)
    rows, cols = np.nonzero(rng.random((12, 10)) < 0.8)
    y = gaussian(rng, rows.shape, dtype)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (12, 10)), y, fixed=(L, R))
    for solver in (None, bf.solvers.PCG(), bf.solvers.Newton(), bf.solvers.BFGD(bf.steps.Backtracking())):
        result = bf.solve(problem, 2, solver, rng=0, max_iter=15)
        assert result.U.shape == (12, 5)
        np.testing.assert_array_equal(result.U[:, :2], L)
        np.testing.assert_array_equal(result.V[:, 2:3], R)


def test_covariates_explain_what_they_made():
    """X = LCᵀ + BRᵀ + a matrix of rank 1 is found exactly, where without L and R it would take rank 4."""
    rng = np.random.default_rng(1)
    L, R = rng.standard_normal((60, 2)), rng.standard_normal((50, 1))
    X = L @ rng.standard_normal((2, 50)) + rng.standard_normal((60, 1)) @ R.T
    X += rng.standard_normal((60, 1)) @ rng.standard_normal((1, 50))
    operator, y = bf.operators.Entries.from_dense(X, mask=rng.random(X.shape) < 0.5)
    result = bf.solve(bf.Problem(bf.losses.Squared(), operator, y, fixed=(L, R)), 1, rng=0, tol=1e-10)
    np.testing.assert_allclose(result.matrix(), X, atol=1e-6)


def test_offsets_are_fixed_columns_of_ones(make_problem):
    plain = make_problem(20, 15)
    ones = np.ones((20, 1)), np.ones((15, 1))
    a = bf.solve(bf.Problem(plain.loss, plain.operator, plain.y, offsets=True), 2, rng=0)
    b = bf.solve(bf.Problem(plain.loss, plain.operator, plain.y, fixed=ones), 2, rng=0)
    np.testing.assert_array_equal(a.U, b.U)
    covariate = np.arange(20.0)[:, None]
    both = bf.Problem(plain.loss, plain.operator, plain.y, offsets=True, fixed=(covariate, None))
    result = bf.solve(both, 2, rng=0, max_iter=5)
    np.testing.assert_array_equal(result.U[:, :2], np.hstack([ones[0], covariate]))
    np.testing.assert_array_equal(result.V[:, 2:3], ones[1])
    assert result.U.shape == (20, 5)


@ALL
def test_another_factorisation_of_the_same_X(which):
    kind = kinds()[which]
    rng = np.random.default_rng(2)
    x = kind.start(rng.standard_normal((9, 3)), rng.standard_normal((9, 3)))
    X = x.left @ x.right.T
    y = x.balanced()
    np.testing.assert_allclose(y.left @ y.right.T, X, atol=1e-12)
    A, s, B = x.triplets()
    np.testing.assert_allclose((A * s) @ B.T, X, atol=1e-12)
    if isinstance(kind, Free):
        np.testing.assert_allclose(*y.grams(), atol=1e-12)
        np.testing.assert_allclose(*x.times(*x.balancing()).grams(), atol=1e-12)
    else:
        assert x.balancing() is None
        same(x, y)


def test_unknowns_are_the_degrees_of_freedom():
    """The rank of the derivative of the factors ↦ X."""
    rng = np.random.default_rng(0)
    for kind in kinds():
        x = kind.start(rng.standard_normal((9, 2)), rng.standard_normal((9, 2)))
        in_U, in_V = kind.unknown(x.width)
        tangents = []
        for side, columns in ((0, in_U), (1, in_V)):
            for row in range(9):
                for column in columns:
                    parts = [np.zeros_like(x.left), np.zeros_like(x.right)]
                    parts[side][row, column] = 1
                    d = kind.gradient(*parts)
                    tangents.append((d.left @ x.right.T + x.left @ d.right.T).ravel())
        dimension = np.linalg.matrix_rank(np.array(tangents), tol=1e-8)
        # Effects and the rest overlap: b1ᵀ is also a matrix of low rank, so that the count is an upper bound there.
        assert dimension <= kind.unknowns(SHAPE, 2)
        if not kind.fixed_columns:
            assert dimension == kind.unknowns(SHAPE, 2)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("symmetric=1 is not a boolean", {"symmetric": 1}),
        ("offsets='yes' is not a boolean", {"offsets": "yes"}),
        ("Choose one", {"symmetric": True, "offsets": True}),
        ("Choose one", {"symmetric": True, "fixed": (None, None)}),
        ("is not a pair", {"fixed": np.ones((9, 2))}),
        ("is not a pair", {"fixed": (np.ones((9, 1)),)}),
        ("Pass 9 rows", {"fixed": (np.ones((8, 1)), None)}),
        ("Pass a finite matrix", {"fixed": (np.ones(9), None)}),
        ("Pass a finite matrix", {"fixed": (None, np.full((9, 1), np.nan))}),
        ("Pass a finite matrix", {"fixed": (None, np.array([["a"]] * 9))}),
        ("is complex, but X is real", {"fixed": (1j * np.ones((9, 1)), None)}),
    ],
)
def test_what_is_no_kind_is_refused(message, options):
    with pytest.raises(InputError, match=message):
        kind_of(SHAPE, np.float64, **{"symmetric": False, "offsets": False, "fixed": None, **options})


def test_no_fixed_columns_at_all_are_none():
    assert kind_of(SHAPE, np.float64, False, False, (None, None)) == Free()
    assert kind_of(SHAPE, np.float64, False, False, (np.ones((9, 0)), None)) == Free()


def test_a_start_with_other_fixed_columns_is_refused(make_problem):
    plain = make_problem(9, 8)
    problem = bf.Problem(plain.loss, plain.operator, plain.y, offsets=True)
    with pytest.raises(InputError, match="fixed columns of the start"):
        bf.solve(problem, 2, init=bf.inits.Given(np.zeros((9, 4)), np.zeros((8, 4))))
    symmetric = make_problem(9, symmetric=True)
    with pytest.raises(InputError, match="different from U"):
        bf.solve(symmetric, 2, init=bf.inits.Given(np.ones((9, 2)), np.zeros((9, 2))))


def test_read_only_and_strided_columns_are_fine(make_problem):
    plain = make_problem(9, 8)
    wide = np.asfortranarray(np.random.default_rng(0).standard_normal((9, 4)))[:, ::2]
    wide.setflags(write=False)
    problem = bf.Problem(plain.loss, plain.operator, plain.y, fixed=(wide, None))
    result = bf.solve(problem, 1, rng=0, max_iter=5)
    np.testing.assert_array_equal(result.U[:, :2], wide)
