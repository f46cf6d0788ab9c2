"""What Problem lets in, and the gradient of every loss on every operator."""

import pickle

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import CheckError, InputError, SmoothnessError
from bifactor.factors import Free
from bifactor.testing import check_gradient

OP = bf.operators.Entries([0, 1, 2], [1, 0, 1], (3, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient_of_every_loss(make_problem, loss, dtype):
    check_gradient(make_problem(12, 9, loss=loss, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.5)], ids=["Squared", "Huber"])
@pytest.mark.parametrize("shape", [(12, 9), (9, 12)])
def test_gradient_for_complex_data(make_problem, loss, dtype, shape):
    check_gradient(make_problem(*shape, loss=loss, dtype=dtype))


def test_weights_act_like_repeated_measurements():
    y = np.array([1.0, -2.0, 0.5])
    weighted = bf.Problem(bf.losses.Huber(1.0), OP, y, weights=[1, 3, 2])
    rows, cols = [0, 1, 1, 1, 2, 2], [1, 0, 0, 0, 1, 1]
    repeated = bf.Problem(bf.losses.Huber(1.0), bf.operators.Entries(rows, cols, (3, 2)), y[[0, 1, 1, 1, 2, 2]])
    x = Free().pair(np.ones((3, 1)), np.array([[0.5], [2.0]]))
    for a, b in zip(weighted.f.evaluate(x)[:3], repeated.f.evaluate(x)[:3], strict=True):
        np.testing.assert_allclose(a, b)
    assert weighted.smoothness == repeated.smoothness == 3.0


def test_weights_follow_the_order_of_y():
    op = bf.operators.Entries([2, 0, 1], [0, 0, 0], (3, 1))
    problem = bf.Problem(bf.losses.Squared(), op, [3.0, 1.0, 2.0], weights=[30.0, 10.0, 20.0])
    x = Free().pair(np.zeros((3, 1)), np.ones((1, 1)))
    np.testing.assert_allclose(problem.f.evaluate(x).GV, -np.array([[10.0], [40.0], [90.0]]))


def test_a_number_as_weight_scales_f():
    y = np.array([1.0, -2.0, 0.5])
    x = Free().pair(np.ones((3, 1)), np.ones((2, 1)))
    plain, scaled = bf.Problem(bf.losses.Squared(), OP, y), bf.Problem(bf.losses.Squared(), OP, y, weights=4.0)
    assert scaled.f.value(x) == pytest.approx(4 * plain.f.value(x))
    assert scaled.smoothness == 4 * plain.smoothness
    assert scaled.scale == pytest.approx(4 * plain.scale)


def test_scale_is_the_observed_fraction(make_problem):
    problem = make_problem(200, 100, observed=0.2)
    assert problem.scale == pytest.approx(0.2, rel=0.1)
    assert problem.smoothness == 1.0


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, bool, np.float16, np.float32, np.longdouble, np.float64])
def test_dtypes_of_y(dtype):
    y = np.array([1, 0, 1]).astype(dtype)
    if dtype is np.longdouble and np.dtype(dtype).itemsize > 8:
        with pytest.raises(InputError, match="dtype"):
            bf.Problem(bf.losses.Squared(), OP, y)
        return
    problem = bf.Problem(bf.losses.Squared(), OP, y)
    assert problem.dtype == (np.float32 if dtype in (np.float16, np.float32) else np.float64)


def test_y_may_be_read_only_strided_or_a_list():
    y = np.arange(6.0)[::2]
    y.setflags(write=False)
    for given in (y, list(y), tuple(y)):
        np.testing.assert_array_equal(np.sort(bf.Problem(bf.losses.Squared(), OP, given).y), [0, 2, 4])


MISTAKES = {
    "y has shape \\(2,\\)": lambda: bf.Problem(bf.losses.Squared(), OP, [1, 2]),
    "takes 3 measurements": lambda: bf.Problem(bf.losses.Squared(), OP, np.ones((3, 1))),
    "y holds 1 NaN": lambda: bf.Problem(bf.losses.Squared(), OP, [1, np.nan, 2]),
    "2 NaN or infinite values": lambda: bf.Problem(bf.losses.Squared(), OP, [np.inf, -np.inf, 2]),
    "dtype <U1": lambda: bf.Problem(bf.losses.Squared(), OP, ["a", "b", "c"]),
    "nor a Loss": lambda: bf.Problem(bf.losses.Squared, OP, [1, 2, 3]),
    "not an Operator": lambda: bf.Problem(bf.losses.Squared(), np.eye(3), [1, 2, 3]),
    "weights has shape": lambda: bf.Problem(bf.losses.Squared(), OP, [1, 2, 3], weights=[1, 2]),
    "not all zero": lambda: bf.Problem(bf.losses.Squared(), OP, [1, 2, 3], weights=0.0),
    "weights must be": lambda: bf.Problem(bf.losses.Squared(), OP, [1, 2, 3], weights=[1, -1, 1]),
    "finite real": lambda: bf.Problem(bf.losses.Squared(), OP, [1, 2, 3], weights=[1, np.nan, 1]),
}


SMALL, LARGE = np.float32(1e-25), np.float32(1e25)
MISTAKES |= {
    "masked values": lambda: bf.Problem(bf.losses.Squared(), OP, np.ma.masked_equal([1.0, -9, 2], -9)),
    "largest magnitude in y is 1e-25": lambda: bf.Problem(bf.losses.Squared(), OP, np.array([SMALL] * 3)),
    "Rescale y": lambda: bf.Problem(bf.losses.Squared(), OP, [1e200, 0, 0]),
    "largest magnitude in y is 1e.25": lambda: bf.Problem(bf.losses.Squared(), OP, np.array([LARGE] * 3)),
    "largest magnitude in weights": lambda: bf.Problem(bf.losses.Squared(), OP, np.ones(3, np.float32), weights=1e60),
    "3 measurements of": lambda: bf.Problem(
        bf.losses.Squared(), bf.operators.Entries([0, 1, 2], [0, 0, 0], (3, 1)), np.ones((3, 1))
    ),
    r"weights has shape \(2, 3\)": lambda: bf.Problem(
        bf.losses.Squared(), bf.operators.Full((3, 2)), np.ones((3, 2)), weights=np.ones((2, 3))
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        MISTAKES[message]()


def test_poisson_has_no_smoothness_and_says_what_to_use():
    problem = bf.Problem(bf.losses.Poisson(), OP, [1, 0, 2])
    for rule in (bf.steps.StronglyConvex(), bf.steps.Smooth()):
        with pytest.raises(SmoothnessError, match=r"Poisson.*Backtracking"):
            bf.solve(problem, 1, bf.solvers.BFGD(rule), rng=0)
    given = bf.solvers.BFGD(bf.steps.StronglyConvex(L=50.0))
    assert bf.solve(problem, 1, given, bf.inits.Random(), rng=0, max_iter=5).n_iter == 5
    assert bf.solve(problem, 1, rng=0, max_iter=5).objective < 3.0


def test_check_gradient_finds_a_wrong_one():
    wrong = bf.Function(lambda X: 0.5 * np.sum(X**2), lambda X: 1.1 * X, (4, 3))
    with pytest.raises(CheckError, match="derivative"):
        check_gradient(wrong)


@pytest.mark.parametrize(
    "operator",
    [
        bf.operators.Noiselet((4, 4), 8, 0, complex=True),
        bf.operators.Fourier((3, 4), 8, 0, complex=True),
        bf.operators.Scaled(bf.operators.Full((2, 4)), 1j),
        bf.operators.RankOne(np.ones((8, 3)) + 1j, np.ones((8, 2))),
    ],
    ids=lambda op: type(op).__name__,
)
def test_real_losses_refuse_complex_measurements(operator, loss):
    y = np.ones(8)
    if loss.targets.complex:
        assert bf.Problem(loss, operator, y).dtype == np.complex128
    else:
        with pytest.raises(InputError, match="needs real measurements"):
            bf.Problem(loss, operator, y)


def test_expected_counts_of_any_size_are_fitted():
    rng = np.random.default_rng(0)
    for level in (0.5, 30.0, 1e6):
        mean = level * np.outer(1 + rng.random(20), 1 + rng.random(15))
        problem = bf.Problem(bf.losses.ExpectedCounts(), bf.operators.Full(mean.shape), rng.poisson(mean))
        result = bf.solve(problem, 1, rng=0)
        assert result.status.converged
        assert np.linalg.norm(result.matrix() - mean) < 0.5 * np.linalg.norm(mean)
    nothing = bf.Problem(bf.losses.ExpectedCounts(), bf.operators.Full((3, 3)), np.zeros((3, 3)))
    assert np.abs(bf.solve(nothing, 1, rng=0).matrix()).max() < 0.1


def test_a_problem_is_not_changed_from_outside_and_can_be_pickled(make_problem):
    y = np.ones(3)
    problem = bf.Problem(bf.losses.Squared(), OP, y)
    y[:] = np.nan
    assert np.all(problem.y == 1)
    problem.f.evaluate(Free().pair(np.ones((3, 1)), np.ones((2, 1))))
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(bf.solve(again, 1, rng=0).U, bf.solve(problem, 1, rng=0).U)
    assert "Squared" in repr(problem)


def test_operator_and_y_belong_together():
    rows, cols, y = [2, 0, 1], [0, 1, 0], [3.0, 1.0, 2.0]
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (3, 2)), y)
    got = dict(zip(zip(problem.operator.rows, problem.operator.cols, strict=True), problem.y, strict=True))
    assert got == dict(zip(zip(rows, cols, strict=True), y, strict=True))
