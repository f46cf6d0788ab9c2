"""Laws that every loss, operator, function and solver must obey; public, so that an extension's test is two lines.

Each check raises `CheckError` with the law that broke and by how much, and returns None when all hold.
"""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bifactor.arrays import Array, gaussian, herm, inner
from bifactor.checkpoint import packed
from bifactor.errors import CheckError
from bifactor.factors import Factors, Free
from bifactor.inits import Random
from bifactor.losses import DataFit, Loss, Squared
from bifactor.objective import Objective
from bifactor.operators import Bound, Evaluated, Operator, Recomputed, Scaled, Stacked
from bifactor.result import Result, Status
from bifactor.solve import solve
from bifactor.solvers import Solver
from bifactor.state import Point, State

EXPLICIT = 1000
"""The largest mn for which an operator is compared with its explicit matrix."""

__all__ = ["check_gradient", "check_loss", "check_operator", "check_solver"]


def check_loss(loss: Loss, y: Array, z_max: float = 1e4) -> None:
    """Derivatives against differences, convexity, the smoothness bound, and finite values up to |z| = `z_max`.

    Where the loss has a `pointwise` form, that it is the same function. `y` holds some targets of the loss's domain.
    """
    y = np.asarray(y, dtype=np.float64)
    name = type(loss).__name__
    loss.targets.check(y, name)
    z = np.linspace(-8.0, 8.0, 161)[:, None] + np.zeros_like(y)
    bend = loss.curvature(z, y)
    h = 1e-5
    difference = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    _close(f"{name}: gradient is the derivative of value", loss.gradient(z, y), difference, 1e-6)
    difference = (loss.gradient(z + h, y) - loss.gradient(z - h, y)) / (2 * h)
    # A gradient may have kinks, which differences straddle.
    smooth = np.abs(loss.curvature(z + h, y) - loss.curvature(z - h, y)) < 1e-2
    _close(f"{name}: curvature is the derivative of gradient", bend[smooth], difference[smooth], 1e-5)
    _true(f"{name}: curvature ≥ 0", np.all(bend >= 0))
    if loss.smoothness is not None:
        _true(f"{name}: curvature ≤ smoothness", np.all(bend <= loss.smoothness * (1 + 1e-12)))
    _true(f"{name}: mean is finite", np.isfinite(loss.mean(z)).all())
    for dtype in (np.float32, np.float64):
        _check_far_out(loss, y.astype(dtype), z_max)
        _check_pointwise(loss, z.astype(dtype), np.broadcast_to(y, z.shape).astype(dtype))


def _check_far_out(loss: Loss, y: Array, z_max: float) -> None:
    name, dtype = type(loss).__name__, y.dtype
    z = np.array([-z_max, -100.0, 0.0, 100.0, z_max], dtype=dtype)[:, None] + np.zeros_like(y)
    for part in (loss.value, loss.gradient, loss.curvature):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            got = part(z, y)
        _true(f"{name}: {part.__name__} is finite at |z| = {z_max:g} in {dtype}", np.isfinite(got).all())
        _true(f"{name}: {part.__name__} keeps {dtype}", got.dtype == dtype)


def _check_pointwise(loss: Loss, z: Array, y: Array) -> None:
    pointwise = loss.pointwise
    if pointwise is None:
        return
    name, dtype = type(loss).__name__, z.dtype
    parameter = dtype.type(loss.parameter(dtype))
    got = np.array([pointwise(*pair, parameter) for pair in zip(z.flat, y.flat, strict=True)])
    tol = 1e3 * float(np.finfo(dtype).eps)
    _true(f"{name}: pointwise gives (ℓ, ℓ′, ℓ″)", got.shape == (z.size, 3))
    for number, part in zip(got.T, (loss.value, loss.gradient, loss.curvature), strict=True):
        _close(f"{name}: pointwise gives {part.__name__} in {dtype}", number, part(z, y).ravel(), tol)


def check_operator(operator: Operator, dtype: Any = np.float64, rank: int = 2, seed: int = 0) -> None:
    """Adjoint identity, linearity, products of the lazy matrix, the curve identity, the shapes and the dtype.

    A complex dtype tests conjugation too. Up to mn = 1000 all is also compared with the explicit matrix, entry by entry
    of X: measurements, adjoint, and both norms, with and without weights.
    """
    rng = np.random.default_rng(seed)
    name = type(operator).__name__
    m, n = operator.shape
    U, D = gaussian(rng, (m, rank), dtype), gaussian(rng, (m, rank), dtype)
    V, E = gaussian(rng, (n, rank), dtype), gaussian(rng, (n, rank), dtype)
    tol = 200 * float(np.finfo(dtype).eps)
    z = operator.forward(U, V)
    _true(f"{name}: forward gives {operator.size} measurements", z.shape == (operator.size,))
    _true(f"{name}: forward keeps the precision", np.finfo(z.dtype).eps == np.finfo(dtype).eps)
    w = gaussian(rng, z.shape, z.dtype)
    G = operator.adjoint(w)
    GV, GhU = G.products(U, V)
    _close(f"{name}: ⟨A(UVᴴ), w⟩ = ⟨U, A*(w)V⟩", inner(z, w), inner(U, GV), tol, _size(z) * _size(w))
    _close(f"{name}: products gives G V", GV, G @ V, tol)
    _close(f"{name}: products gives Gᴴ U", GhU, G.H @ U, tol)
    _close(f"{name}: ⟨G V, U⟩ = ⟨V, Gᴴ U⟩", inner(U, GV), inner(GhU, V), tol, _size(GV) * _size(U))
    _close(f"{name}: linear in U", operator.forward(U + 2 * D, V), z + 2 * operator.forward(D, V), tol)
    _close(f"{name}: depends on UVᴴ only", operator.forward(*_rotated(U, V, rng)), z, tol)
    _true(f"{name}: adjoint has the shape of X", G.shape == (m, n) and GV.shape == U.shape and GhU.shape == V.shape)
    _true(f"{name}: adjoint keeps the precision", np.finfo(GV.dtype).eps == np.finfo(dtype).eps)
    _check_bound(operator, Free().pair(U, V), Free().pair(D, E), rng.random(operator.size), tol)
    if m * n <= EXPLICIT:
        _check_explicit(operator, U @ herm(V), z, w, G @ np.eye(n, dtype=dtype), tol)
        _check_norms(operator, rng.random(operator.size))


def _check_bound(operator: Operator, x: Factors, d: Factors, weights: Array, tol: float) -> None:
    """Bound to data, every way through an operator is the same function, and wrapped in others it keeps its ways."""
    name, y = type(operator).__name__, operator.forward(d.left, x.right)
    fit = DataFit.of(Squared(), y, weights.astype(y.real.dtype))
    z = operator.forward(x.left, x.right)
    value, slopes = fit.evaluate(z)
    wanted = Evaluated(value, *operator.adjoint(slopes).products(x.left, x.right), None)
    bounds = {"bound": operator.bind(fit), "Scaled(A, 1)": Scaled(operator, 1).bind(fit)}
    bounds |= {"Stacked(A)": Stacked(operator).bind(fit), "Recomputed(A)": Recomputed(operator).bind(fit)}
    for way, bound in bounds.items():
        _true(f"{name}: {way} has quick curves where A has", bound.quick == bounds["bound"].quick)
        _true(f"{name}: {way} knows single entries where A does", bound.seen == bounds["bound"].seen)
        for keeps, at in ((" with z", bound.measure(x)), ("", None)):
            _check_evaluated(f"{name}: {way}{keeps}", bound.evaluate(x, at), wanted, tol)
        _check_curve(f"{name}: {way}", bound, x, d, tol)


def _check_evaluated(name: str, got: Evaluated, wanted: Evaluated, tol: float) -> None:
    for part in ("f", "GV", "GhU"):
        _close(f"{name} gives {part}", getattr(got, part), getattr(wanted, part), tol)


def _check_curve(name: str, bound: Bound, x: Factors, d: Factors, tol: float) -> None:
    """f at some steps along a curve, by all that a curve can tell, against f there."""
    curve, h = bound.curve(x, d, bound.measure(x)), 1e-2
    size = abs(bound.value(x.plus(1.0, d))) + abs(bound.value(x))
    for a in (0.0, 0.7):
        there = bound.evaluate(x.plus(a, d))
        _check_evaluated(f"{name}: a curve", curve.to(a, x.plus(a, d)), there, 10 * tol)
        value, slope, _ = curve.at(a)
        _close(f"{name}: f along a curve", value, there.f, tol, size)
        _close(f"{name}: its slope", slope, inner(there.GV, d.left) + inner(there.GhU, d.right), 10 * tol, size)
        if curve.quartic is not None:
            _close(f"{name}: its quartic", np.polyval(curve.quartic[::-1], a), there.f, 10 * tol, size)
    image, step = bound.hessian(x)(d), Free().pair(*(h * side for side in (d.left, d.right)))
    ahead, behind = (bound.evaluate(x.plus(s, step)) for s in (1.0, -1.0))
    rest = bound.gradient(x).products(d.left, d.right)
    for got, more, up, down in zip(image, rest, ahead[1:3], behind[1:3], strict=True):
        _close(f"{name}: hessian", got + more, (up - down) / (2 * h), max(50 * tol, h * h) * 10, _size(got) + size)


def _check_explicit(operator: Operator, X: Array, z: Array, w: Array, G: Array, tol: float) -> None:
    name = type(operator).__name__
    units = _units(operator, np.iscomplexobj(X))
    parts = np.stack([X.real, X.imag][: len(units)])
    _close(f"{name}: A(X) by the explicit matrix", z, np.einsum("uij,uijp->p", parts, units), 10 * tol)
    slopes = np.einsum("uijp,p->uij", units.conj(), w).real
    wanted = slopes[0] + 1j * slopes[1] if len(units) == 2 else slopes[0]
    _close(f"{name}: A*(w) by the explicit matrix", G if len(units) == 2 else G.real, wanted, 10 * tol)


def _check_norms(operator: Operator, some: Array) -> None:
    name = type(operator).__name__
    units = _units(operator, bool(operator.complex_matrix)).reshape(-1, operator.size)
    for weights in (None, some):
        weighted = units if weights is None else units * weights**0.5
        # As a map of real vector spaces: intensities are linear over the reals only.
        found = float(np.linalg.norm(np.hstack([weighted.real, weighted.imag]), 2) ** 2)
        declared = operator.norm_squared(weights)
        _true(f"{name}: norm_squared = {declared:g} bounds {found:g}", 0.98 * found <= declared)
        _true(f"{name}: norm_squared = {declared:g} is within 2× of {found:g}", declared <= 2 * found)
        mean = float(np.sum(np.abs(weighted) ** 2)) / len(units)
        _close(f"{name}: mean_square", operator.mean_square(weights), mean, 0.2)


def _units(operator: Operator, complex_X: bool) -> Array:
    """A of every matrix with one entry 1 and, for complex X, of every one with one entry i: parts × m × n × p."""
    m, n = operator.shape
    rows, cols = np.eye(m), np.eye(n)
    return np.stack(
        [
            [[operator.forward(unit * rows[:, [i]], cols[:, [j]]) for j in range(n)] for i in range(m)]
            for unit in ([1.0, 1.0j] if complex_X else [1.0])
        ]
    )


def check_gradient(problem: Objective | Bound, rank: int = 2, seed: int = 0, tol: float = 1e-5) -> None:
    """The gradient of f, of a Problem or a Function, against central differences of its value, in random directions."""
    rng = np.random.default_rng(seed)
    name, f = type(problem).__name__, problem.f if isinstance(problem, Objective) else problem
    h = float(np.finfo(f.dtype).eps) ** (1 / 3)
    for scale in (0.1, 1.0):
        x, d = (scale * Free().random(rng, f.shape, rank, f.dtype) for _ in range(2))
        value, GV, GhU, _ = f.evaluate(x)
        _close(f"{name}: one pass gives the same value", value, f.value(x), tol, abs(value) + 1e-300)
        difference = (f.value(x.plus(h, d)) - f.value(x.plus(-h, d))) / (2 * h)
        slope = inner(d.left, GV) + inner(d.right, GhU)
        size = _size(d.left) * _size(GV) + _size(d.right) * _size(GhU) + abs(value) * 1e-3
        _close(f"{name}: gradient is the derivative of value", slope, difference, max(tol, 10 * h), size)


def check_solver(solver: Solver, problem: Objective, rank: int, seed: int = 0) -> None:
    """It descends, is repeatable, can be stopped and resumed, keeps its states as values, and reports true numbers."""
    name = type(solver).__name__
    result = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    _true(f"{name}: does not diverge", result.status is not Status.DIVERGED)
    _true(f"{name}: ends lower than it starts", result.objective < result.history.objective[0])
    _check_run(solver, problem, rank, seed, result)
    start = solver.init(problem, Random()(problem, rank, np.random.default_rng(seed)), rank)
    kept = _arrays(start)
    first, second = solver.step(problem, start), solver.step(problem, start)
    _true(f"{name}: a state steps to the same place each time", np.array_equal(first.U, second.U))
    for a, b in zip(kept, _arrays(start), strict=True):
        _true(f"{name}: a step leaves its state as it was", np.array_equal(a, b))
    for state in (start, first):
        _check_point(name, problem, state.point)


def _arrays(state: State) -> list[Array]:
    arrays: dict[str, Array] = {}
    packed(state, arrays, {})
    return [np.array(a) for a in arrays.values()]


def _check_point(name: str, problem: Objective, point: Point) -> None:
    """f, F and their gradients are those at the factors of the point."""
    same, tol = problem.at(point.x), 1e4 * float(np.finfo(point.x.dtype).eps)
    size = abs(same.f) + problem.scale * point.x.product_norm() ** 2 + 1e-300
    for part in ("f", "value"):
        _close(f"{name}: a point and its {part} belong together", getattr(point, part), getattr(same, part), tol, size)
    for part in ("slope", "gradient"):
        _true(f"{name}: {part} has the shape of the factors", getattr(point, part).left.shape == point.x.left.shape)
        difference = (getattr(point, part) - getattr(same, part)).norm()
        _close(f"{name}: a point and its {part} belong together", difference, 0.0, tol, 1 + same.gradient.norm())


def _check_run(solver: Solver, problem: Objective, rank: int, seed: int, result: Result) -> None:
    name, history = type(solver).__name__, result.history
    lengths = {len(column) for column in asdict(history).values()}
    _true(f"{name}: one record per iteration, and one of the start", lengths == {result.n_iter + 1})
    tol = 1e4 * float(np.finfo(result.U.dtype).eps)
    least = history.objective.min()
    _close(f"{name}: the best objective is the result's", result.objective, least, tol, 1 + history.objective.max())
    _true(f"{name}: factors are of the problem's dtype", result.U.dtype == result.V.dtype == problem.dtype)
    shapes = [(k, rank + problem.kind.fixed_columns) for k in problem.shape]
    _true(f"{name}: factors have the columns asked for", [result.U.shape, result.V.shape] == shapes)
    again = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    _true(f"{name}: the same seed gives the same fit", np.array_equal(result.U, again.U))
    if result.n_iter < 4:
        return
    stopped = solve(problem, rank, solver, rng=seed, tol=0.0, callback=lambda t, state: t == 3)
    _true(f"{name}: a callback stops it", stopped.status is Status.CALLBACK and stopped.n_iter == 3)
    with TemporaryDirectory() as folder:
        for iterations in (3, 20):
            resumed = solve(
                problem, rank, solver, rng=seed, max_iter=iterations, tol=0.0, checkpoint=Path(folder) / "run"
            )
    same = np.array_equal(result.U, resumed.U) and np.array_equal(result.V, resumed.V)
    same = same and np.array_equal(history.objective, resumed.history.objective)
    _true(f"{name}: resumed, it ends as if it had not been interrupted", same)


def _rotated(U: Array, V: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(UR, VR⁻ᴴ), another factorisation of the same X."""
    R = np.linalg.qr(gaussian(rng, (U.shape[1], U.shape[1]), U.dtype))[0] * U.dtype.type(1.5)
    return U @ R, V @ herm(np.linalg.inv(R))


def _size(a: Array) -> float:
    return float(np.linalg.norm(a))


def _close(law: str, got: Any, wanted: Any, tol: float, size: float | None = None) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    error = _size(got - wanted) / (size if size is not None else _size(wanted) + 1.0)
    if not error <= tol:
        raise CheckError(f"{law}: broken, relative error {error:.2e} (allowed {tol:.1e}).")


def _true(law: str, holds: Any) -> None:
    if not holds:
        raise CheckError(f"{law}: broken.")
