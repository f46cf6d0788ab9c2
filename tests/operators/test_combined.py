"""Operators made of operators: scaled, stacked and recomputed."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.operators import Entries, Full, RankOne
from bifactor.operators.compose import Scaled, Stacked
from bifactor.operators.gaussian import Gaussian
from bifactor.operators.linear import Linear
from bifactor.operators.recomputed import Recomputed
from bifactor.testing import check_operator

RNG = np.random.default_rng(0)
SHAPE = (5, 4)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
# Entries in no order, and intensities, which are real for any X: the two that ask for care.
ENTRIES = Entries([3, 0, 4, 1, 0], [1, 2, 0, 0, 2], SHAPE)
COMPLEX = Linear(gaussian(RNG, (7, 20), complex), SHAPE)
INTENSITY = RankOne(gaussian(RNG, (6, 4), complex))
SQUARE = Gaussian((4, 4), 9, rng=0)
ALL = {
    "real factor": Scaled(ENTRIES, -2.5),
    "complex factor": Scaled(ENTRIES, 1 - 2j),
    "NumPy factor": Scaled(Gaussian(SHAPE, 9, rng=0), np.float64(0.1)),
    "scaled twice": Scaled(Scaled(COMPLEX, 1j), 2),
    "two": Stacked(ENTRIES, Gaussian(SHAPE, 12, rng=0)),
    "real and complex": Stacked(ENTRIES, COMPLEX, Full(SHAPE)),
    "nested": Stacked(Scaled(Full(SHAPE), 0.5), Stacked(ENTRIES, ENTRIES)),
    "intensities": Stacked(INTENSITY, Scaled(INTENSITY, 0.5)),
    "intensities and complex fields": Stacked(INTENSITY, Linear(gaussian(RNG, (7, 16), complex), (4, 4)), SQUARE),
    "recomputed": Recomputed(ENTRIES),
    "recomputed twice": Recomputed(Recomputed(Gaussian(SHAPE, 9, rng=0))),
    "recomputed and scaled": Recomputed(Scaled(ENTRIES, 1 - 2j)),
    "scaled and recomputed": Scaled(Recomputed(ENTRIES), 1 - 2j),
    "recomputed stack": Recomputed(Stacked(ENTRIES, COMPLEX, Full(SHAPE))),
    "one part recomputed": Stacked(ENTRIES, Recomputed(ENTRIES), Gaussian(SHAPE, 12, rng=0)),
    "recomputed intensities": Recomputed(Stacked(INTENSITY, Scaled(INTENSITY, 0.5))),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", ALL)
def test_laws(name, dtype):
    check_operator(ALL[name], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(
    "name",
    [
        "complex factor",
        "NumPy factor",
        "two",
        "intensities and complex fields",
        "recomputed",
        "one part recomputed",
        "recomputed stack",
    ],
)
def test_laws_in_single_precision(name, dtype):
    check_operator(ALL[name], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_measurements_are_those_of_the_parts(dtype):
    U, V = gaussian(RNG, (5, 2), dtype), gaussian(RNG, (4, 2), dtype)
    parts = [ENTRIES, Scaled(COMPLEX, 2j), Full(SHAPE)]
    X = U @ V.conj().T
    z = Stacked(*parts).forward(U, V)
    wanted = np.concatenate([X[ENTRIES.rows, ENTRIES.cols], 2j * COMPLEX.forward(U, V), X.ravel()])
    np.testing.assert_allclose(z, wanted, rtol=1e-5)
    assert z.dtype == np.result_type(dtype, np.complex64)


def test_norms():
    weights = RNG.random(25)
    assert Scaled(COMPLEX, 3 - 4j).norm_squared() == pytest.approx(25 * COMPLEX.norm_squared())
    assert Scaled(Full(SHAPE), -2).norm_squared(weights[:20]) == pytest.approx(4 * weights[:20].max())
    both = Stacked(ENTRIES, Full(SHAPE))
    assert both.norm_squared() == pytest.approx(3.0)  # (0, 2) is seen twice as an entry, once in full
    assert both.mean_square(weights) == pytest.approx(weights.sum() / 20)
    assert Stacked(ENTRIES).norm_squared() == ENTRIES.norm_squared()


def test_complex_matrix_comes_from_the_parts():
    assert Scaled(ENTRIES, 2.0).complex_matrix is None
    assert Scaled(ENTRIES, 2 + 0j).complex_matrix is None
    assert Scaled(ENTRIES, 2j).complex_matrix is True
    assert Scaled(INTENSITY, 2.0).complex_matrix is True
    assert Stacked(ENTRIES, Full(SHAPE)).complex_matrix is None
    assert Stacked(ENTRIES, COMPLEX).complex_matrix is True
    assert Recomputed(ENTRIES).complex_matrix is None
    assert Recomputed(INTENSITY).complex_matrix is True


@pytest.mark.parametrize("weights", [None, RNG.random(25)])
def test_y_stays_in_the_order_of_the_parts(weights):
    U, V = RNG.standard_normal((5, 2)), RNG.standard_normal((4, 2))
    y = RNG.standard_normal(25)
    problem = bf.Problem(bf.losses.Squared(), Stacked(ENTRIES, Full(SHAPE)), y, weights)
    w = np.ones(25) if weights is None else weights
    parts = [
        bf.Problem(bf.losses.Squared(), ENTRIES, y[:5], w[:5]),
        bf.Problem(bf.losses.Squared(), Full(SHAPE), y[5:], w[5:]),
    ]
    x = Free().pair(U, V)
    wanted = [sum(values) for values in zip(*(p.f.evaluate(x)[:3] for p in parts), strict=True)]
    for got, want in zip(problem.f.evaluate(x)[:3], wanted, strict=True):
        np.testing.assert_allclose(got, want)


def test_scaled_entries_keep_their_fast_order():
    y = RNG.standard_normal(5)
    x = Free().pair(RNG.standard_normal((5, 2)), RNG.standard_normal((4, 2)))
    scaled = bf.Problem(bf.losses.Squared(), Scaled(ENTRIES, 2.0), 2 * y)
    plain = bf.Problem(bf.losses.Squared(), ENTRIES, y)
    assert scaled.f.value(x) == pytest.approx(4 * plain.f.value(x))
    np.testing.assert_array_equal(scaled.y, 2 * plain.y)


def test_a_stack_recovers_what_no_part_can():
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((12, 2)), rng.standard_normal((10, 2))
    rows, cols = np.nonzero(rng.random((12, 10)) < 0.3)
    op = Stacked(Entries(rows, cols, (12, 10)), Scaled(Gaussian((12, 10), 60, rng=0), 0.7))
    result = bf.solve(bf.Problem(bf.losses.Squared(), op, op.forward(U, V)), 2, rng=0, tol=1e-10)
    assert np.linalg.norm(result.matrix() - U @ V.T) < 1e-5 * np.linalg.norm(U @ V.T)


def test_mixed_intensities_and_fields_recover_a_state():
    rng = np.random.default_rng(2)
    U = gaussian(rng, (6, 1), complex)
    intensities, fields = RankOne(gaussian(rng, (30, 6), complex)), Linear(gaussian(rng, (20, 36), complex), (6, 6))
    op = Stacked(intensities, fields)
    result = bf.solve(bf.Problem(bf.losses.Squared(), op, op.forward(U, U)), 1, rng=0, tol=1e-10)
    assert np.linalg.norm(result.matrix() - U @ U.conj().T) < 1e-5 * np.linalg.norm(U) ** 2


BAD = {
    "not an Operator. See": lambda: Scaled(np.eye(3), 2.0),
    "operator is array": lambda: Recomputed(np.eye(3)),
    "factor=0 is not a finite number": lambda: Scaled(ENTRIES, 0),
    "factor=nan": lambda: Scaled(ENTRIES, float("nan")),
    "factor=\\(1\\+infj\\)|factor=.*inf": lambda: Scaled(ENTRIES, complex(1, float("inf"))),
    "factor='2'": lambda: Scaled(ENTRIES, "2"),
    "factor=True": lambda: Scaled(ENTRIES, True),
    "factor=array": lambda: Scaled(ENTRIES, np.ones(5)),
    "measurements of RankOne are real": lambda: Scaled(INTENSITY, 1j),
    "got no operators": lambda: Stacked(),
    "as arguments": lambda: Stacked([ENTRIES, ENTRIES]),
    "shapes \\(5, 4\\) and \\(4, 4\\)": lambda: Stacked(ENTRIES, SQUARE),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message]()


def test_the_norm_of_a_large_stack_forms_nothing():
    # 10¹⁰ entries: forming X would not fit.
    parts = [Entries([0, 1], [0, 1], (100_000, 100_000)), Entries([0], [0], (100_000, 100_000))]
    assert Stacked(*parts).norm_squared() == 2.0
