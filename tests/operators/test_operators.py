"""Laws of every exported operator, and how Entries reads what users have."""

import inspect
from html import escape

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import CheckError, InputError
from bifactor.factors import Free
from bifactor.operators.base import power_norm_squared
from bifactor.testing import check_operator

RNG = np.random.default_rng(0)
INSTANCES = {
    "Entries": [
        bf.operators.Entries([0, 3, 1, 1, 6], [4, 0, 2, 2, 1], (7, 5)),
        bf.operators.Entries(RNG.integers(5, size=60), RNG.integers(9, size=60), (5, 9)),
        bf.operators.Entries([0], [0], (1, 1)),
        bf.operators.Entries([0, 0], [3, 1], (1, 4)),
    ],
    "Comparisons": [
        bf.operators.Comparisons([0, 3, 1, 1, 6], [4, 0, 2, 2, 1], [1, 3, 0, 4, 2], (7, 5)),
        bf.operators.Comparisons(RNG.integers(5, size=60), RNG.integers(4, size=60), RNG.integers(4, 9, 60), (5, 9)),
        bf.operators.Comparisons([0, 0, 0, 0], [0, 1, 3, 0], [1, 2, 0, 1], (1, 4)),
        bf.operators.Comparisons([0], [1], [0], (1, 2)),
        bf.operators.Comparisons(RNG.integers(30, size=300), np.arange(300) % 10, np.arange(300) // 30 + 10, (30, 20)),
    ],
    "RankOne": [
        bf.operators.RankOne(gaussian(RNG, (12, 5), float), gaussian(RNG, (12, 4), float)),
        bf.operators.RankOne(gaussian(RNG, (9, 4), complex), gaussian(RNG, (9, 6), complex)),
        bf.operators.RankOne(gaussian(RNG, (9, 4), complex)),
        bf.operators.RankOne(gaussian(RNG, (9, 4), float)),
    ],
    "Gaussian": [
        bf.operators.Gaussian((4, 3), 10, rng=1),
        bf.operators.Gaussian((2, 5), 6, rng=1, block=4),
        bf.operators.Gaussian((1, 1), 1, rng=0),
    ],
    "Linear": [
        bf.operators.Linear(gaussian(RNG, (12, 20), float), (4, 5)),
        bf.operators.Linear(sparse.random_array((12, 20), density=0.5, rng=0), (5, 4)),
        bf.operators.Linear(gaussian(RNG, (9, 12), complex), (3, 4)),
    ],
    "Scaled": [
        bf.operators.Scaled(bf.operators.Full((4, 3)), -2.5),
        bf.operators.Scaled(bf.operators.Entries([3, 0, 1], [1, 2, 0], (4, 3)), 1 - 2j),
    ],
    "Stacked": [
        bf.operators.Stacked(
            bf.operators.Entries([3, 0, 1], [1, 2, 0], (4, 3)), bf.operators.Gaussian((4, 3), 10, rng=1)
        ),
        bf.operators.Stacked(
            bf.operators.RankOne(gaussian(RNG, (9, 4), complex)),
            bf.operators.Linear(gaussian(RNG, (7, 16), complex), (4, 4)),
        ),
    ],
    "Noiselet": [
        bf.operators.Noiselet((4, 8), 20, 0),
        bf.operators.Noiselet((8, 4), 20, 0, complex=True, normalize=True),
        bf.operators.Noiselet((2, 8), [3, 15, 0], permute=False, signs=True),
        bf.operators.Noiselet((1, 1), 1),
    ],
    "Hadamard": [
        bf.operators.Hadamard((4, 8), 20, 0),
        bf.operators.Hadamard((8, 2), [3, 15, 0], 0, permute=False, signs=True, normalize=True),
    ],
    "DCT": [bf.operators.DCT((3, 7), 20, 0), bf.operators.DCT((5, 4), [1, 19], 0, signs=True, normalize=True)],
    "Fourier": [
        bf.operators.Fourier((3, 7), 20, 0),
        bf.operators.Fourier((4, 5), 20, 0, signs=True),
        bf.operators.Fourier((3, 5), 6, 0, complex=True, normalize=True),
        bf.operators.Fourier((1, 2), 2, 0),
    ],
    "Pauli": [
        bf.operators.Pauli(1),
        bf.operators.Pauli(3, 20, 0, normalize=True),
        bf.operators.Pauli(2, ["XY", "ZZ", "XY"]),
    ],
    "Featured": [
        bf.operators.Featured(bf.operators.Entries([0, 3, 1, 1, 6], [4, 0, 2, 2, 1], (7, 5)), RNG.random((7, 3))),
        bf.operators.Featured(bf.operators.Full((3, 4)), np.eye(3), sparse.random_array((4, 2), density=0.5, rng=0)),
    ],
    "Full": [bf.operators.Full((6, 4)), bf.operators.Full((1, 3))],
    "Recomputed": [
        bf.operators.Recomputed(bf.operators.Entries([0, 3, 1, 1, 6], [4, 0, 2, 2, 1], (7, 5))),
        bf.operators.Recomputed(bf.operators.Entries(RNG.integers(5, size=60), RNG.integers(9, size=60), (5, 9))),
        bf.operators.Recomputed(bf.operators.Entries([0], [0], (1, 1))),
        bf.operators.Recomputed(bf.operators.Gaussian((4, 3), 10, rng=1)),
        bf.operators.Recomputed(bf.operators.Noiselet((8, 4), 20, 0, complex=True)),
    ],
}
ALL = [pytest.param(op, id=f"{name}{op.shape}") for name, ops in INSTANCES.items() for op in ops]


def test_every_exported_operator_is_tested():
    exported = {name: getattr(bf.operators, name) for name in bf.operators.__all__}
    operators = {name: kind for name, kind in exported.items() if isinstance(kind, type)}
    operators = {name: kind for name, kind in operators.items() if issubclass(kind, bf.operators.Operator)}
    assert {name for name, kind in operators.items() if not inspect.isabstract(kind)} == set(INSTANCES)


@pytest.mark.parametrize("operator", ALL)
def test_it_prints_what_it_is_and_not_where(operator):
    m, n = operator.shape
    text = repr(operator)
    assert text.startswith(f"{type(operator).__name__}(")
    assert " at 0x" not in text
    html = operator._repr_html_()
    assert f"{m}×{n}" in html
    assert escape(text) in html


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("operator", ALL)
def test_laws(operator, dtype):
    check_operator(operator, dtype)


@pytest.mark.parametrize("operator", ALL)
def test_norm_is_exact(operator):
    weights = np.random.default_rng(1).random(operator.size)
    np.testing.assert_allclose(operator.norm_squared(), power_norm_squared(operator), rtol=1e-3)
    np.testing.assert_allclose(
        operator.norm_squared(weights), power_norm_squared(operator, weights, steps=300), rtol=2e-2
    )


@pytest.mark.parametrize("operator", ALL)
def test_wrong_shapes_are_refused_and_not_read_past(operator):
    m, n = operator.shape
    with pytest.raises((InputError, ValueError)):
        operator.forward(np.ones((m + 1, 1)), np.ones((n, 1)))
    with pytest.raises((InputError, ValueError)):
        operator.forward(np.ones((m, 1)), np.ones((n + 1, 1)))
    G = operator.adjoint(np.ones(operator.size))
    for bad in (np.ones((n + 1, 1)), np.ones((n + 1, 2)), np.ones(n)):
        with pytest.raises(InputError, match="Pass a matrix"):
            G @ bad
    with pytest.raises((InputError, ValueError)):
        operator.adjoint(np.ones(operator.size + 3)) @ np.ones((n, 1))


def test_check_operator_finds_a_wrong_adjoint():
    class Wrong(bf.operators.Full):
        def adjoint(self, w):
            return super().adjoint(2 * w)

    with pytest.raises(CheckError, match="A\\*"):
        check_operator(Wrong((4, 3)))


@pytest.mark.parametrize("index", [np.int8, np.uint16, np.int32, np.int64, np.uint64, list])
def test_entries_takes_any_integers_in_any_order(index):
    rows, cols = np.array([3, 0, 2, 0]), np.array([1, 2, 0, 0])
    U, V = RNG.standard_normal((4, 2)), RNG.standard_normal((3, 2))
    as_given = (list(rows), list(cols)) if index is list else (rows.astype(index), cols.astype(index))
    op = bf.operators.Entries(*as_given, shape=(4, 3))
    np.testing.assert_allclose(op.forward(U, V), (U @ V.T)[rows, cols])
    np.testing.assert_array_equal(op.rows, rows)
    np.testing.assert_array_equal(op.cols, cols)


def test_entries_takes_read_only_and_strided_indices_and_factors():
    pairs = np.array([[3, 1], [0, 2], [2, 0]])
    pairs.setflags(write=False)
    op = bf.operators.Entries(pairs[:, 0], pairs[:, 1], (4, 3))
    U = np.asfortranarray(RNG.standard_normal((4, 6)))[:, ::3]
    V = RNG.standard_normal((2, 3)).T
    U.setflags(write=False)
    np.testing.assert_allclose(op.forward(U, V), (U @ V.T)[pairs[:, 0], pairs[:, 1]])


def test_duplicates_are_separate_measurements():
    op = bf.operators.Entries([1, 1, 0], [2, 2, 0], (2, 3))
    assert op.size == 3
    assert op.norm_squared() == 2.0
    assert op.norm_squared(np.array([0.5, 0.25, 0.1])) == pytest.approx(0.75)
    problem = bf.Problem(bf.losses.Squared(), op, [1.0, 3.0, 0.0])
    result = bf.solve(problem, 1, rng=0, tol=1e-12)
    assert result.predict([1], [2])[0] == pytest.approx(2.0, abs=1e-4)  # the mean of the two


def test_y_follows_the_order_of_the_coordinates():
    rows, cols = np.nonzero(np.ones((12, 8)))
    X = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    shuffle = np.random.default_rng(5).permutation(rows.size)
    a = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, X.shape), X[rows, cols])
    rows, cols = rows[shuffle], cols[shuffle]
    b = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, X.shape), X[rows, cols])
    fits = [bf.solve(p, 1, rng=0, tol=1e-10) for p in (a, b)]
    np.testing.assert_array_equal(fits[0].U, fits[1].U)
    np.testing.assert_allclose(fits[0].matrix(), X, rtol=1e-6)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.lil_matrix])
def test_from_sparse(kind):
    dense = np.array([[0, 2.0, 0], [1.0, 0, 3.0]])
    op, y = bf.operators.Entries.from_sparse(kind(dense))
    assert op.shape == (2, 3)
    got = np.zeros((2, 3))
    got[op.rows, op.cols] = y
    np.testing.assert_array_equal(got, dense)
    assert op.size == 3


def test_from_sparse_keeps_stored_zeros_and_sums_duplicates():
    S = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    op, y = bf.operators.Entries.from_sparse(S)
    assert dict(zip(zip(op.rows.tolist(), op.cols.tolist(), strict=True), y.tolist(), strict=True)) == {
        (0, 1): 3.0,
        (1, 0): 0.0,
    }
    assert S.nnz == 3  # the caller's matrix is untouched


def test_from_dense_reads_nan_masks_and_masked_arrays():
    X = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
    mask = np.array([[True, True, False], [True, False, True]])
    op, y = bf.operators.Entries.from_dense(X)
    np.testing.assert_array_equal(y, [1, 3, 4, 5])
    op, y = bf.operators.Entries.from_dense(X, mask)
    np.testing.assert_array_equal(y, [1, 4])
    op, y = bf.operators.Entries.from_dense(np.ma.masked_array(X, mask=mask))
    np.testing.assert_array_equal(y, [3, 5])
    np.testing.assert_array_equal((op.rows, op.cols), [[0, 1], [2, 1]])
    assert bf.operators.Entries.from_dense(X.astype(np.float32))[1].dtype == np.float32


BAD = {
    "different lengths": lambda E: E([0, 1], [0], (2, 2)),
    "no coordinates": lambda E: E([], [], (2, 2)),
    "0 to 1 on that side": lambda E: E([2], [0], (2, 2)),
    "runs from -1": lambda E: E([0], [-1], (2, 2)),
    "vector of integers": lambda E: E([0.0], [0], (2, 2)),
    "Pass a vector": lambda E: E([[0]], [0], (2, 2)),
    "float64 with 1": lambda E: E(np.array([np.nan]), [0], (2, 2)),
    "bool with": lambda E: E([True], [0], (2, 2)),
    "not the shape of a matrix": lambda E: E([0], [0], (2, 0)),
    "two positive integers": lambda E: E([0], [0], 4),
    "shape=\\(2.5, 2\\)": lambda E: E([0], [0], (2.5, 2)),
    "not a SciPy sparse": lambda E: E.from_sparse(np.eye(2)),
    "3 dimensions": lambda E: E.from_dense(np.ones((2, 2, 2))),
    "booleans of the same shape": lambda E: E.from_dense(np.eye(2), mask=np.ones((2, 3), bool)),
    "True where": lambda E: E.from_dense(np.eye(2), mask=np.ones((2, 2))),
    "got no coordinates": lambda E: E.from_dense(np.full((2, 2), np.nan)),
    "not an array of numbers|dtype": lambda E: E.from_dense([[1, 2], [3]]),
    "dtype object": lambda E: E.from_dense(np.array([[None, 1.0]])),
    "dtype <U1": lambda E: E.from_dense(np.array([["a", "b"]])),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    pattern = message if message != "different lengths" else "rows has 2 indices and cols has 1"
    with pytest.raises(InputError, match=pattern):
        BAD[message](bf.operators.Entries)


def test_full_takes_the_matrix_itself_as_y():
    X = RNG.standard_normal((5, 4))
    by_matrix = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), X)
    by_vector = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), X.ravel())
    U, V = RNG.standard_normal((5, 2)), RNG.standard_normal((4, 2))
    x = Free().pair(U, V)
    assert by_matrix.f.value(x) == by_vector.f.value(x) == pytest.approx(0.5 * np.sum((U @ V.T - X) ** 2))


def test_full_and_entries_agree_when_all_is_seen(loss, draw_targets):
    X = draw_targets(loss, RNG.standard_normal((6, 5)), RNG)
    full = bf.Problem(loss, bf.operators.Full((6, 5)), X)
    entries = bf.Problem(loss, *bf.operators.Entries.from_dense(X))
    x = Free().pair(RNG.standard_normal((6, 2)), RNG.standard_normal((5, 2)))
    for a, b in zip(full.f.evaluate(x)[:3], entries.f.evaluate(x)[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
