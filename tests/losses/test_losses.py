"""Laws of every exported loss, and each against an independent library."""

import inspect
import pickle
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest
from scipy import special, stats

import bifactor as bf
from bifactor import kernels
from bifactor.errors import CheckError, InputError
from bifactor.kernels import pointwise
from bifactor.testing import check_loss

TARGETS = {
    "Squared": [-3.0, 0.0, 2.5],
    "Huber": [-3.0, 0.0, 2.5],
    "Logistic": [-1.0, 1.0],
    "Probit": [-1.0, 1.0],
    "Poisson": [0.0, 1.0, 2.5, 40.0],
    "NegativeBinomial": [0.0, 1.0, 2.5, 40.0],
    "ExpectedCounts": [0.0, 1.0, 2.5],
    "Ordinal": [1.0, 2.0, 4.0, 5.0],
    "Shifted": [-1.0, 1.0],
}


def y_of(loss):
    return np.array(TARGETS[type(loss).__name__])


def test_every_exported_loss_is_tested(request):
    exported = {name: getattr(bf.losses, name) for name in bf.losses.__all__}
    losses = {name: kind for name, kind in exported.items() if issubclass(kind, bf.losses.Loss)}
    assert {name for name, kind in losses.items() if not inspect.isabstract(kind)} == set(TARGETS)


def test_laws(loss):
    check_loss(loss, y_of(loss))


def test_compiled_equals_reference(loss):
    y = y_of(loss)
    z = np.concatenate([np.linspace(-60, 60, 2401), [-1e4, -300, 299, 301, 1e4]])
    kernels.get("losses", np.empty(0), np.inf)  # makes the functions that losses call known to numba
    function = numba.njit(loss.pointwise)
    for dtype, tol in ((np.float64, 1e-11), (np.float32, 2e-4)):
        parameter = dtype(loss.parameter(dtype))
        for target in y.astype(dtype):
            got = np.array([function(point, target, parameter) for point in z.astype(dtype)])
            whole = np.full(z.shape, target)
            for number, part in zip(got.T, (loss.value, loss.gradient, loss.curvature), strict=True):
                np.testing.assert_allclose(number, part(z.astype(dtype), whole), rtol=tol, atol=tol)


def test_pickles(loss):
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    assert (again.least, again.pointwise) == (loss.least, loss.pointwise)
    assert again.targets.description == loss.targets.description


def test_read_only_and_non_contiguous_input(loss):
    z = np.linspace(-2, 2, 24).reshape(4, 6)[:, ::2]
    y = np.broadcast_to(y_of(loss)[0], z.shape)
    for part in (loss.value, loss.gradient, loss.curvature):
        np.testing.assert_array_equal(part(z, y), part(z.copy(), y.copy()))


def test_squared_and_huber_are_half_the_modulus_squared_for_complex_data():
    z, y = np.array([1 + 2j, 0.3j]), np.array([1j, 0.1 + 0j])
    d = np.abs(z - y)
    np.testing.assert_allclose(bf.losses.Squared().value(z, y), d**2 / 2)
    np.testing.assert_allclose(bf.losses.Huber(0.5).value(z, y), special.huber(0.5, d))
    g = bf.losses.Huber(0.5).gradient(z, y)
    np.testing.assert_allclose(g, (z - y) * np.minimum(1, 0.5 / d))


def test_against_scipy():
    z = np.linspace(-30, 30, 121)
    ones = np.ones_like(z)
    np.testing.assert_allclose(bf.losses.Huber(2.0).value(z, 0 * z), special.huber(2.0, z))
    np.testing.assert_allclose(bf.losses.Logistic().value(z, ones), -stats.logistic.logcdf(z), rtol=1e-12)
    np.testing.assert_allclose(bf.losses.Probit(3.0).value(z, -ones), -stats.norm.logcdf(-z, scale=3.0), rtol=1e-12)
    y = np.arange(121.0)
    constant = special.gammaln(y + 1)
    np.testing.assert_allclose(
        bf.losses.Poisson().value(z / 10, y) + constant, -stats.poisson.logpmf(y, np.exp(z / 10)), rtol=1e-12
    )
    theta, mean = 2.5, np.exp(z / 10)
    constant = special.gammaln(y + 1) - special.gammaln(y + theta) + special.gammaln(theta) + y * np.log(theta)
    np.testing.assert_allclose(
        bf.losses.NegativeBinomial(theta).value(z / 10, y) + constant,
        -stats.nbinom.logpmf(y, theta, theta / (theta + mean)),
        rtol=1e-11,
    )


def test_negative_binomial_is_poisson_in_the_limit_and_finds_its_theta():
    rng = np.random.default_rng(0)
    z, y = np.linspace(-3, 3, 61), np.arange(61.0)
    for part in ("value", "gradient", "curvature"):
        near, limit = (getattr(loss, part)(z, y) for loss in (bf.losses.NegativeBinomial(1e9), bf.losses.Poisson()))
        np.testing.assert_allclose(near, limit, atol=1e-4)
    z = rng.standard_normal(40_000)
    mean = np.exp(z + 1)
    for theta in (0.5, 4.0):
        drawn = rng.negative_binomial(theta, theta / (theta + mean)).astype(float)
        found = bf.losses.NegativeBinomial().refit(z + 1, drawn, None)
        assert found.theta == pytest.approx(theta, rel=0.05)
    assert bf.losses.NegativeBinomial().refit(z + 1, rng.poisson(mean).astype(float), None).theta > 100


@pytest.mark.parametrize("loss", [bf.losses.Poisson(), bf.losses.NegativeBinomial(3.0), bf.losses.Logistic()])
def test_the_lowest_loss_of_each_target_is_its_infimum(loss):
    z, y = np.linspace(-30, 10, 4001)[:, None], np.array([1.0]) if loss == bf.losses.Logistic() else np.arange(5.0)
    np.testing.assert_allclose(loss.value(z, y).min(axis=0), loss.saturated(y), atol=1e-4)


def test_probit_curvature_is_accurate_far_out():
    # h(h + u) by mpmath with 60 digits, on both sides of the switch to the series.
    u = np.array([-10.0, -49.0, -51.0, -1e3])
    wanted = [0.99055462217434374, 0.99958454407441695, 0.99961641654887025, 0.99999900000599995]
    np.testing.assert_allclose(bf.losses.Probit(1.0).curvature(u, np.ones(4)), wanted, rtol=1e-10)
    np.testing.assert_allclose([pointwise.probit(x, 1.0, 1.0)[2] for x in u], wanted, rtol=1e-14)


@pytest.mark.parametrize("u", [-3.0, -7.999999, -8.0, -8.000001, -12.5, -50.0, -1e4])
def test_probit_at_one_measurement_is_accurate_on_both_sides_of_its_switch(u):
    # The hazard is x + 1/(x + 2/(x + …)) with x = −u, here with forty digits.
    with localcontext() as context:
        context.prec = 40
        x = inside = Decimal(-u)
        for k in range(5000, 1, -1):
            inside = x + k / inside
        hazard = x + 1 / inside
        wanted = [float(hazard), float(hazard / inside)]
    _, slope, curvature = pointwise.probit(u, 1.0, 1.0)
    np.testing.assert_allclose([-slope, curvature], wanted, rtol=1e-12)


def test_logistic_at_one_measurement_is_accurate_in_both_tails():
    z = np.concatenate([np.linspace(-700, 700, 1401), np.linspace(-8, 8, 801)])
    got = np.array([pointwise.logistic(point, -1.0, 0.0) for point in z])
    np.testing.assert_allclose(got[:, 0], -special.log_expit(-z), rtol=1e-12)
    np.testing.assert_allclose(got[:, 1], special.expit(z), rtol=1e-14)
    np.testing.assert_allclose(got[:, 2], special.expit(z) * special.expit(-z), rtol=1e-14)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1", None, True, 1j])
def test_bad_parameters_are_refused(value):
    for make in (bf.losses.Huber, bf.losses.Probit, bf.losses.NegativeBinomial):
        if (make, value) == (bf.losses.Huber, None):
            continue  # left to the data
        with pytest.raises(InputError, match="finite number > 0"):
            make(value)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_delta_of_huber_is_taken_from_the_data(unit):
    rng = np.random.default_rng(0)
    y = unit * np.concatenate([7 + 0.5 * rng.standard_normal(4000), [1e9] * 200])
    delta = bf.losses.Huber().with_data_parameters(y).delta
    assert delta == pytest.approx(1.345 * 0.5 * unit, rel=0.15)
    problem = bf.Problem("huber", bf.operators.Entries(np.arange(4200), np.zeros(4200, int), (4200, 1)), y)
    assert problem.loss.delta == pytest.approx(delta)
    assert bf.losses.Huber(0.3).with_data_parameters(y) == bf.losses.Huber(0.3)
    rounds = unit * np.array([0.0] * 9 + [3.0, -1.0])  # more than half are equal
    assert bf.losses.Huber().with_data_parameters(1e3 * rounds).delta == pytest.approx(
        1e3 * bf.losses.Huber().with_data_parameters(rounds).delta
    )
    assert bf.losses.Huber().with_data_parameters(np.zeros(5)).delta > 0
    with pytest.raises(InputError, match="does not know its δ"):
        bf.losses.Huber().value(y, y)


def test_labels_outside_the_domain_are_refused():
    op = bf.operators.Entries([0, 1], [0, 1], (2, 2))
    with pytest.raises(InputError, match=r"-1 or \+1.*2\*y - 1"):
        bf.Problem(bf.losses.Logistic(), op, [0, 1])
    with pytest.raises(InputError, match="negative"):
        bf.Problem(bf.losses.Poisson(), op, [1, -1])
    with pytest.raises(InputError, match="real y"):
        bf.Problem(bf.losses.Probit(), op, [1j, 1])


BASES = {name: values for name, values in TARGETS.items() if name != "Shifted"}


@pytest.mark.parametrize("name", BASES)
def test_a_shift_of_any_loss_is_that_loss_further_on(name):
    y = np.array(BASES[name])
    base = getattr(bf.losses, name)().with_data_parameters(y)
    shifted = bf.losses.Shifted(base, 0.75)
    check_loss(shifted, y)
    assert shifted.pointwise is not None
    z = np.linspace(-5, 5, 41)[:, None] + np.zeros_like(y)
    for part in ("value", "gradient", "curvature"):
        np.testing.assert_array_equal(getattr(shifted, part)(z, y), getattr(base, part)(z + 0.75, y))
    np.testing.assert_array_equal(shifted.mean(z), base.mean(z + 0.75))
    assert (shifted.smoothness, shifted.least, shifted.targets) == (base.smoothness, base.least, base.targets)


def test_a_shifted_loss_of_the_users_own_is_numpys_and_solves_the_same(make_problem):
    class Own(bf.losses.Logistic):
        pointwise = None

    problem = make_problem(loss=bf.losses.Shifted(bf.losses.Logistic(), 1.5), penalty=bf.penalties.Ridge(1.0))
    loss = bf.losses.Shifted(Own(), 1.5)
    assert loss.pointwise is None
    other = bf.Problem(loss, problem.operator, problem.y, penalty=problem.penalties)
    wanted, got = (bf.solve(p, 2, rng=0, tol=1e-10).matrix() for p in (problem, other))
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("shift", [np.nan, np.inf, "1", None, True, 1j])
def test_a_shift_that_is_no_number_is_refused(shift):
    with pytest.raises(InputError, match="not a finite number"):
        bf.losses.Shifted(bf.losses.Logistic(), shift)
    with pytest.raises(InputError, match="not a Loss"):
        bf.losses.Shifted(bf.losses.Logistic, 0.0)


def test_check_loss_finds_a_wrong_gradient():
    class Wrong(bf.losses.Squared):
        def gradient(self, z, y):
            return 1.01 * (z - y)

    with pytest.raises(CheckError, match="gradient is the derivative"):
        check_loss(Wrong(), [0.0, 1.0])


@pytest.mark.parametrize(
    ("numbers", "law"),
    [
        (lambda d: (0.5 * d * d, d, 1.01), "pointwise gives curvature"),
        (lambda d: (0.5 * d * d, d), "pointwise gives"),
    ],
)
def test_check_loss_finds_a_wrong_pointwise(numbers, law):
    class Wrong(bf.losses.Squared):
        pointwise = staticmethod(lambda z, y, parameter: numbers(z - y))

    with pytest.raises(CheckError, match=law):
        check_loss(Wrong(), [0.0, 1.0])
