"""Terms on the factors: any number of them, with weights, polynomial or not, with a domain or without."""

from dataclasses import dataclass

import numpy as np
import pytest

import bifactor as bf
from bifactor.blocks import Shared
from bifactor.errors import CheckError, InputError
from bifactor.factors import Factors, Free
from bifactor.penalties import Penalty, Ridge
from bifactor.problems.curve import FactorCurve
from bifactor.solvers import PCG
from bifactor.steps import CurveSearch
from bifactor.steps.line_search import Searched
from bifactor.testing import check_penalty

SHAPE = (9, 7)


def ridges(rng) -> dict[str, Ridge]:
    rows, cols = rng.random(SHAPE[0]) + 0.2, rng.random(SHAPE[1]) + 0.2
    return {
        "plain": Ridge(0.7),
        "sides": Ridge((0.3, 2.0)),
        "rows": Ridge(0.7, rows=rows),
        "both": Ridge((0.3, 2.0), rows, cols),
        "components": Ridge(0.7, components=(0.1, 1.0)),
        "all": Ridge((0.3, 2.0), rows, cols, (0.5, 2.0, 1.0)),
    }


NAMES = list(ridges(np.random.default_rng(0)))


def dense_value(ridge: Ridge, x: Factors) -> float:
    width = x.width
    c = np.ones(width) if ridge.components is None else np.array([*ridge.components, *[ridge.components[-1]] * width])
    total = 0.0
    for F, rho, weights in zip((x.left, x.right), ridge.sides, (ridge.rows, ridge.cols), strict=True):
        w = np.ones(len(F)) if weights is None else weights
        total += rho / 2 * np.sum(w[:, None] * c[:width] * np.abs(F) ** 2)
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_a_weighted_ridge_is_its_formula(name, dtype):
    rng = np.random.default_rng(0)
    ridge, x, d = ridges(rng)[name], *(Free().random(rng, SHAPE, 4, dtype) for _ in range(2))
    tol = 1e3 * float(np.finfo(dtype).eps)
    value, gradient = ridge.evaluate(x)
    assert value == pytest.approx(dense_value(ridge, x), rel=tol)
    assert gradient.dtype == dtype
    for a in (0.0, 0.3, -2.0):
        assert np.polyval(ridge.polynomial(x, d)[::-1], a) == pytest.approx(dense_value(ridge, x.plus(a, d)), rel=tol)
    slope = dense_value(ridge, x.plus(0.5, d)) - dense_value(ridge, x.plus(-0.5, d))  # exact for quadratics
    assert gradient.inner(d) == pytest.approx(slope, rel=1e2 * tol)
    np.testing.assert_allclose(ridge.hessian(x, d).inner(d) / 2, dense_value(ridge, d), rtol=tol)


@pytest.mark.parametrize("name", NAMES)
def test_its_blocks_are_its_hessian(name):
    rng = np.random.default_rng(1)
    ridge, x = ridges(rng)[name], Free().random(rng, SHAPE, 3, np.float64)
    d = Free().random(rng, SHAPE, 3, np.float64)
    image = ridge.hessian(x, d)
    for side, (rows, wanted) in enumerate(((image.left, d.left), (image.right, d.right))):
        np.testing.assert_allclose(ridge.blocks(x, side).divide(rows), wanted, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_laws(name, dtype):
    check_penalty(ridges(np.random.default_rng(2))[name], SHAPE, 3, dtype)
    check_penalty(LogCosh(0.5), SHAPE)


def test_a_broken_penalty_is_noticed():
    class Steeper(LogCosh):
        def evaluate(self, x):
            value, gradient = super().evaluate(x)
            return value, 1.1 * gradient

    class Flat(LogCosh):
        def hessian(self, x, d):
            return 0.0 * d

    class Line(LogCosh):
        def polynomial(self, x, d):
            return np.ones(5)

    for broken, law in ((Steeper, "gradient is"), (Flat, "hessian is"), (Line, "polynomial is")):
        with pytest.raises(CheckError, match=law):
            check_penalty(broken(0.5), SHAPE)


def test_at_the_edge_of_a_domain_it_has_not_converged(make_problem):
    """Where the way down leads out of the domain there is no step to take, though the gradient says so."""
    problem = make_problem(12, 9).penalized(AtLeast(np.zeros((12, 2))))
    result = bf.solve(problem, 2, PCG(), bf.inits.Random(), rng=0)
    assert result.U.min() >= 0
    assert not result.status.converged


def test_several_penalties_add_up(make_problem):
    problem = make_problem(20, 15)
    one, two = (problem.penalized(p) for p in (Ridge(3.0), (Ridge(1.0), Ridge((2.0, 2.0)))))
    assert two.penalties == (Ridge(1.0), Ridge((2.0, 2.0)))
    results = [bf.solve(p, 3, PCG(), rng=0) for p in (one, two)]
    assert results[0].n_iter == results[1].n_iter
    np.testing.assert_allclose(results[1].matrix(), results[0].matrix(), atol=1e-8)
    assert results[1].certificate.rho == pytest.approx(3.0)


def whitened(problem: bf.Problem, ridge: Ridge) -> bf.Objective:
    """The same problem in X̃ = A^½ X B^½, whose ridge has no weights."""
    a, b = (np.sqrt(w)[:, None] for w in (ridge.rows, ridge.cols))

    def matrix(X):
        return Free().pair(X / a / b.T, np.eye(X.shape[1]))

    def gradient(X):
        return problem.f.gradient(matrix(X)).matmul(np.eye(X.shape[1])) / a / b.T

    return bf.Objective(bf.Function(lambda X: problem.f.value(matrix(X)), gradient, problem.shape), Ridge(ridge.sides))


@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_a_weighted_ridge_is_a_weighted_nuclear_norm(make_problem, loss):
    """With enough columns every solver finds the optimum of the convex problem, and the certificate proves it."""
    rng = np.random.default_rng(3)
    problem = make_problem(12, 9, loss=getattr(bf.losses, loss)(), observed=0.7)
    ridge = Ridge((0.5, 1.1), rng.random(12) + 0.3, rng.random(9) + 0.3)
    weighted = problem.penalized(ridge)
    wanted = bf.solve(whitened(problem, ridge), 9, bf.solvers.NuclearNorm(), tol=1e-10, max_iter=3000).objective
    solvers = (PCG(), bf.solvers.RankContinuation(), bf.solvers.RidgeHomotopy(), bf.solvers.Newton())
    for solver in solvers:
        result = bf.solve(weighted, 9, solver, rng=0, tol=1e-9)
        assert result.objective == pytest.approx(wanted, rel=1e-6), solver
        certificate = result.certificate
        assert certificate.optimal(1e-3), solver
        assert certificate.rho == pytest.approx((0.5 * 1.1 * ridge.rows.mean() * ridge.cols.mean()) ** 0.5)
    few = bf.solve(weighted, 1, PCG(), rng=0, tol=1e-9)
    assert few.certificate.stationary(1e-4)
    assert not few.certificate.optimal()
    assert few.objective - few.certificate.gap <= wanted + 1e-6 < few.objective


def test_growth_finds_nothing_where_the_scaled_gradient_is_small(make_problem):
    from bifactor.solvers.growth import add_columns
    from bifactor.svd import spectral_norm

    rng = np.random.default_rng(4)
    problem, rows, cols = make_problem(12, 9), rng.random(12) + 0.1, rng.random(9) + 0.1
    G = problem.gradient_at_zero().matmul(np.eye(9))
    edge = np.linalg.norm(G / np.sqrt(rows)[:, None] / np.sqrt(cols), 2)
    nothing = problem.zero(0)
    assert add_columns(problem.penalized(Ridge(1.001 * edge, rows, cols)), nothing, 2).width == 0
    assert add_columns(problem.penalized(Ridge(0.999 * edge, rows, cols)), nothing, 2).width == 1
    assert spectral_norm(problem.gradient_at_zero(), np.random.default_rng(0)) < edge


def test_what_is_no_nuclear_norm_is_certified_as_stationary_only(make_problem):
    problem = make_problem(12, 9).penalized(Ridge(0.5, components=(0.1, 1.0)))
    assert problem.nuclear is None
    certificate = bf.solve(problem, 3, PCG(), rng=0, tol=1e-9).certificate
    assert certificate.stationary(1e-4)
    assert not certificate.optimal(1.0)
    assert certificate.dual_norm is certificate.rho is certificate.gap is None
    assert "not a nuclear norm" in str(certificate)
    even = make_problem(12, 9).penalized(Ridge(0.5, components=(2.0, 2.0)))
    assert even.nuclear.rho(even.kind) == 1.0


@pytest.mark.parametrize("components", [(0.0, 0.0, 1.0), (8.0, 3.0, 1.0), (8.0, 3.0, 1.0, 1.0), (5.0, 1.0)])
def test_offsets_may_have_a_ridge_of_their_own(make_problem, components):
    """f(b1ᵀ + 1cᵀ + M) + ridges of b and c + ρ‖M‖_* is convex: what is certified is its minimum."""
    plain = make_problem(12, 9)
    problem = bf.Problem(plain.loss, plain.operator, plain.y, penalty=Ridge(0.5, components=components), offsets=True)
    fit = bf.solve(problem, 9, PCG(), rng=0, tol=1e-10)
    assert fit.certificate.rho == 0.5
    assert fit.certificate.optimal(1e-4)
    assert not bf.solve(problem, 0, rng=0).certificate.optimal(1e-4)
    b, c, M = fit.U[:, 1], fit.V[:, 0], fit.U[:, 2:] @ fit.V[:, 2:].T

    def convex(b, c, M):
        X = b[:, None] + c + M
        f = 0.5 * np.sum((X[plain.operator.rows, plain.operator.cols] - plain.y) ** 2)
        row, col = components[1], components[0]
        return f + 0.25 * (row * b @ b + col * c @ c) + 0.5 * np.linalg.svd(M, compute_uv=False).sum()

    rng = np.random.default_rng(0)
    least = convex(b, c, M)
    for _ in range(50):
        db, dc, dM = (
            rng.standard_normal(12),
            rng.standard_normal(9),
            rng.standard_normal((12, 1)) * rng.standard_normal(9),
        )
        for step in (1e-2, 1e-3):
            assert convex(b + step * db, c + step * dc, M + step * dM) > least


def test_other_fixed_columns_leave_the_norm_of_the_rest(make_problem):
    plain = make_problem(12, 9)
    uneven = Ridge(0.5, components=(8.0, 0.1, 1.0))
    assert plain.penalized(uneven).nuclear is None
    fixed = bf.Problem(plain.loss, plain.operator, plain.y, penalty=uneven, fixed=(np.ones((12, 1)), None))
    assert fixed.nuclear is None  # one column is fixed, and two differ


@pytest.mark.parametrize("penalty", [Ridge(0.5, components=(0.1, 1.0)), Ridge(0.5, rows=np.arange(1.0, 31))])
def test_solvers_of_the_nuclear_norm_refuse_other_penalties(make_problem, penalty):
    problem = make_problem().penalized(penalty)
    for solver in (bf.solvers.NuclearNorm(), bf.solvers.SoftImpute()):
        with pytest.raises(InputError, match=r"needs a ridge"):
            bf.solve(problem, 2, solver)


def test_rows_that_do_not_pay_have_no_norm(make_problem):
    rows = np.ones(12)
    rows[3] = 0.0
    problem = make_problem(12, 9).penalized(Ridge(0.5, rows=rows))
    assert problem.nuclear is None
    result = bf.solve(problem, 2, bf.solvers.RankContinuation(), rng=0, tol=1e-9)
    assert result.certificate.stationary(1e-4)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"rows": np.ones((3, 2))}, "rows must be"),
        ({"cols": [1.0, -1.0]}, "cols must be"),
        ({"rows": [np.nan, 1.0]}, "rows must be"),
        ({"components": []}, "components must be"),
        ({"components": [0.0, 0.0]}, "components must be"),
    ],
)
def test_bad_weights_are_refused(settings, match):
    with pytest.raises(InputError, match=match):
        Ridge(1.0, **settings)


def test_weights_of_another_shape_are_refused(make_problem):
    with pytest.raises(InputError, match=r"4 weights in rows, but X is 30×20"):
        make_problem(penalty=Ridge(1.0, rows=np.ones(4)))
    with pytest.raises(InputError, match=r"2 weights in cols"):
        make_problem().penalized((Ridge(1.0), Ridge(1.0, cols=np.ones(2))))


@dataclass(frozen=True)
class LogCosh(Penalty):
    """ρ Σ log cosh(u): smooth, and no polynomial."""

    rho: float

    def evaluate(self, x):
        value = sum(float(np.sum(np.logaddexp(F, -F) - np.log(2))) for F in (x.left, x.right))
        return self.rho * value, x.gradient(self.rho * np.tanh(x.left), self.rho * np.tanh(x.right))

    def hessian(self, x, d):
        return x.gradient(*(self.rho * D / np.cosh(F) ** 2 for F, D in ((x.left, d.left), (x.right, d.right))))

    def blocks(self, x, side):
        return Shared(ridge=self.rho)


@pytest.mark.parametrize("solver", [PCG(), bf.solvers.Newton(), bf.solvers.BFGD(CurveSearch(), balance=None)])
@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_a_penalty_need_not_be_a_polynomial(make_problem, solver, loss):
    problem = make_problem(15, 12, loss=getattr(bf.losses, loss)(), penalty=(LogCosh(0.5), Ridge(0.1)))
    result = bf.solve(problem, 2, solver, rng=0, tol=1e-9, max_iter=3000)
    assert np.all(np.diff(result.history.objective) <= 1e-12 * abs(result.history.objective[0]))
    assert result.certificate.stationary(1e-4)
    assert result.certificate.rho is None


@pytest.mark.parametrize(
    "solver",
    [
        bf.solvers.GuaranteedMC(step_size=CurveSearch()),
        bf.solvers.BFGD(CurveSearch(), bf.penalties.balance.Elementwise(lambda t: np.cosh(t) - 1, np.sinh, 1.0, 100.0)),
    ],
)
def test_terms_of_solvers_need_not_be_polynomials(make_problem, solver):
    problem = make_problem(20, 15, noiseless=True, observed=0.8)
    assert bf.solve(problem, 2, solver, rng=0, max_iter=2000).objective < 1e-8 * problem.f.value(problem.zero())


@dataclass(frozen=True)
class AtLeast(Penalty):
    """U ≥ low: a domain, and nothing that is paid."""

    low: np.ndarray

    def evaluate(self, x):
        return 0.0, 0.0 * x

    def polynomial(self, x, d):
        return np.zeros(5)

    def hessian(self, x, d):
        return 0.0 * d

    def reach(self, x, d):
        down = d.left < 0
        return float(np.min((self.low - x.left)[down] / d.left[down], initial=np.inf))

    def project(self, x):
        return x if np.all(x.left >= self.low) else x.kind.pair(np.maximum(x.left, self.low), x.right)


@pytest.mark.parametrize("rule", [CurveSearch(), bf.steps.Backtracking()])
@pytest.mark.parametrize("operator", ["Entries", "Gaussian"])
def test_steps_end_at_the_edge_of_a_domain(rule, operator, make_problem):
    rng = np.random.default_rng(5)
    problem = make_problem(12, 9)
    if operator == "Gaussian":
        A = bf.operators.Gaussian((12, 9), 60, rng=0)
        problem = bf.Problem(bf.losses.Squared(), A, rng.standard_normal(60))
    x = problem.kind.random(rng, (12, 9), 2, np.float64)
    free = problem.evaluate_keeping_z(x)
    memory = Searched() if isinstance(rule, CurveSearch) else rule.init(problem, free, 0.0)
    beyond = rule.next(FactorCurve(problem, free, -free.gradient), memory).point.x.left
    low = x.left - 0.3 * np.abs(beyond - x.left)
    assert np.any(beyond < low)
    bounded = problem.penalized(AtLeast(low))
    step = rule.next(FactorCurve(bounded, bounded.evaluate_keeping_z(x), -free.gradient), memory)
    assert np.all(step.point.x.left >= low)
    assert step.point.value < free.value
    again = bounded.evaluate_keeping_z(step.point.x)
    assert step.point.value == pytest.approx(again.value, rel=1e-12)


def test_a_gradient_is_what_the_terms_say(make_problem):
    rng = np.random.default_rng(6)
    problem = make_problem(12, 9, penalty=(LogCosh(0.5), Ridge(0.2, rows=rng.random(12) + 0.1)))
    x, d = (problem.kind.random(rng, (12, 9), 2, np.float64) for _ in range(2))
    slope = (problem.objective(x.plus(1e-5, d)) - problem.objective(x.plus(-1e-5, d))) / 2e-5
    assert problem.at(x).gradient.inner(d) == pytest.approx(slope, rel=1e-6)
