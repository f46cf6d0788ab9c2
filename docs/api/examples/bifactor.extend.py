"""Examples of the API reference; see docs/_ext/api_examples.py."""

from dataclasses import dataclass

import numpy as np

import bifactor as bf
from bifactor import extend

rng = np.random.default_rng(0)
U, V = rng.standard_normal((12, 2)), rng.standard_normal((9, 2))
problem = bf.Problem("squared", bf.operators.Full((12, 9)), U @ V.T)
x = extend.Free().pair(U + 0.1, V)  # factors to begin with
point = problem.at(x)
solver = bf.solvers.PCG()


# --- Array ---
def doubled(a: extend.Array) -> extend.Array:  # of NumPy, torch or another array library
    return 2 * a


# --- namespace ---
xp = extend.namespace(U, V)  # NumPy here; torch for tensors
xp.sum(U, axis=0)

# --- norm ---
assert np.isclose(extend.norm(U), np.linalg.norm(U))

# --- inner ---
assert np.isclose(extend.inner(U, U), np.sum(U**2))

# --- conj ---
extend.conj(U + 1j)

# --- herm ---
assert extend.herm(U).shape == (2, 12)

# --- is_complex ---
print(extend.is_complex(U), extend.is_complex(U + 1j))  # False True

# --- LinearMap ---
G = problem.f.gradient(x)
print(isinstance(G, extend.LinearMap), (G @ V).shape)  # True (12, 2)

# --- Dense ---
G = extend.Dense(U @ V.T)
assert np.allclose(G @ V, U @ V.T @ V)

# --- LowRankPlus ---
# X − 0.1·∇f(X), never formed
step = extend.LowRankPlus(x.left, x.right, -0.1, problem.f.gradient(x))
step @ V

# --- Factors ---
isinstance(x, extend.Factors)
moved = x.plus(-0.01, point.gradient)  # a step down the gradient
print(moved.inner(x), moved.norm(), [gram.shape for gram in moved.grams()])

# --- Free ---
pair = extend.Free().pair(U, V)  # X = UVᴴ with both factors unknown

# --- Blocks ---
blocks = problem.f.expected(x, 0)  # the curvature of each row of U
print(isinstance(blocks, extend.Blocks))

# --- Shared ---
blocks = extend.Shared(((1.0, V.T @ V),), ridge=0.1)  # VᵀV + 0.1·I for every row
assert np.allclose(blocks.divide(U), U @ np.linalg.inv(V.T @ V + 0.1 * np.eye(2)))

# --- Exact ---
# diag(2, 3) for each of 12 rows: its upper triangle
packed = np.tile([2.0, 0.0, 3.0], (12, 1))
assert np.allclose(extend.Exact(packed, 2).divide(U), U / [2.0, 3.0])

# --- preconditioned ---
s = extend.preconditioned(problem, x, point.gradient, damping=0.01)
print(s.inner(point.gradient) > 0)  # True: −s descends

# --- NUMBERS ---
print(bf.losses.Huber.targets is extend.NUMBERS)  # True

# --- SIGNS ---
print(bf.losses.Logistic.targets is extend.SIGNS)  # True

# --- COUNTS ---
print(bf.losses.Poisson.targets is extend.COUNTS)  # True

# --- Measured ---
f = extend.Measured(problem.operator, problem.f.fit)  # what `Operator.bind` returns by default
print(f.evaluate(x).f)

# --- MeasuredCurve ---
f = extend.Measured(problem.operator, problem.f.fit)
curve = f.curve(x, -point.gradient, f.measure(x))
print(isinstance(curve, extend.MeasuredCurve), curve.at(0.01)[0])

# --- Footprint ---
extend.Footprint(z=8 * 108, work=0)  # bytes

# --- matrix_shape ---
m, n = extend.matrix_shape((12, 9))

# --- power_norm_squared ---
extend.power_norm_squared(problem.operator)  # 1, by power iteration

# --- probed_mean_square ---
extend.probed_mean_square(problem.operator)  # 1, about

# --- State ---
state = solver.init(problem, x, 2)
print(isinstance(state, extend.State), state.value)
state = solver.step(problem, state)

# --- Point ---
print(isinstance(point, extend.Point), point.value, point.gradient.norm())

# --- FactorCurve ---
path = extend.FactorCurve(problem, point, -point.gradient)
print(path.slope < 0, path.to(0.001).value < point.value)  # True True


# --- Value ---
@dataclass(frozen=True)
class Momentum(extend.Value, key="momentum"):
    """What a solver of your own carries along."""

    velocity: extend.Factors


# --- Nothing ---
extend.State(point, extend.Nothing())  # a solver without a state of its own

# --- Phase ---
print(issubclass(extend.Settled, extend.Phase))  # True

# --- Moving ---
extend.State(point, extend.Nothing(), extend.Moving())  # the default

# --- Settled ---
print(extend.Settled().at_rest)  # True: the solver's own rule is met

# --- Staged ---
print(extend.Staged().staged)  # True: a rest is not the end yet

# --- Stalled ---
extend.Stalled(promised=1e-12)  # no step lowers F

# --- Provisional ---
print(extend.Provisional().provisional)  # True: F itself will change

# --- Step ---
rule = bf.steps.Backtracking()
step = rule.next(
    extend.FactorCurve(problem, point, -point.gradient), rule.init(problem, point, 0.0)
)
print(isinstance(step, extend.Step), step.point.value < point.value)  # True True

# --- reciprocal ---
print(extend.reciprocal(4.0), extend.reciprocal(0.0))  # 0.25 1.0

# --- backtrack ---
path = extend.FactorCurve(problem, point, -point.gradient)


def attempt(a):
    new = path.to(a)
    return new if new.value < point.value else None


new = extend.backtrack(attempt, a=1.0, shortest=1e-10)

# --- run_memory ---
extend.run_memory(problem, rank=2, pairs=5, lengths=3)  # bytes

# --- search_memory ---
extend.search_memory(problem, 2)  # bytes

# --- InputError ---
error = extend.InputError(
    "rank=9 is not possible for a 5×4 matrix. Choose an integer from 1 to 4."
)

# --- require_explicit ---
extend.require_explicit(solver, problem)  # an InputError where measurements are not stored

# --- require_finite ---
extend.require_finite(U, "U", "Leave out what is not known.")

# --- require_flag ---
extend.require_flag(True, "exact")

# --- require_free ---
extend.require_free(solver, problem)  # an InputError where X = UUᴴ, or columns are fixed

# --- require_instance ---
extend.require_instance(solver, bf.solvers.Solver, "solver")

# --- require_measurements ---
extend.require_measurements(np.zeros(108), 108)

# --- require_no_fixed ---
extend.require_no_fixed(solver, problem)

# --- require_numpy ---
extend.require_numpy(solver, problem)

# --- require_plain ---
extend.require_plain(solver, problem)  # an InputError where there is a penalty

# --- require_ridge ---
extend.require_ridge(solver, problem.penalized(bf.penalties.Ridge(0.1)))

# --- require_rows ---
extend.require_rows(U, 12)

# --- require_symmetric ---
symmetric = bf.Problem("squared", bf.operators.Full((12, 12)), U @ U.T, symmetric=True)
extend.require_symmetric(solver, symmetric.kind)


# --- settle_positive ---
@dataclass(frozen=True)
class Width:
    sigma: float

    def __post_init__(self):
        extend.settle_positive(self, "sigma", "Choose one in the units of y.")


# --- settle_nonnegative ---
@dataclass(frozen=True)
class Damping:
    delta: float = 0.0

    def __post_init__(self):
        extend.settle_nonnegative(self, "delta", "0 turns it off.")
