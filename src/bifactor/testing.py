"""Laws that every loss, operator, function and solver must obey; public, so that an extension's test is two lines.

Each check raises `CheckError` with the law that broke and by how much, and returns None when all hold.
"""

from typing import Any

import numpy as np

from bifactor.arrays import Array, gaussian, herm, inner
from bifactor.errors import CheckError
from bifactor.losses import Loss
from bifactor.operators import Operator
from bifactor.problem import Objective
from bifactor.solve import solve
from bifactor.solvers import Solver

__all__ = ["check_gradient", "check_loss", "check_operator", "check_solver"]


def check_loss(loss: Loss, y: Array, z_max: float = 1e4) -> None:
    """Derivatives against differences, convexity, the smoothness bound, and finite values up to |z| = `z_max`.

    `y` holds some targets of the loss's domain, in double precision.
    """
    y = np.asarray(y, dtype=np.float64)
    name = type(loss).__name__
    loss.targets.check(y, name)
    z = np.linspace(-8.0, 8.0, 161)[:, None] + np.zeros_like(y)
    h = 1e-5
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    _close(f"{name}: gradient is the derivative of value", loss.gradient(z, y), slope, 1e-6)
    bend = (loss.gradient(z + h, y) - loss.gradient(z - h, y)) / (2 * h)
    # A loss may have kinks in its derivative; differences straddle them.
    smooth = np.abs(loss.curvature(z + h, y) - loss.curvature(z - h, y)) < 1e-2
    _close(
        f"{name}: curvature is the derivative of gradient",
        np.where(smooth, loss.curvature(z, y), 0),
        np.where(smooth, bend, 0),
        1e-5,
    )
    _true(f"{name}: curvature ≥ 0", bool(np.all(loss.curvature(z, y) >= 0)))
    if loss.smoothness is not None:
        _true(
            f"{name}: curvature ≤ smoothness",
            bool(np.all(loss.curvature(z, y) <= loss.smoothness * (1 + 1e-12))),
        )
    for dtype in (np.float32, np.float64):
        far = np.array([-z_max, -100.0, 0.0, 100.0, z_max], dtype=dtype)[:, None] + np.zeros_like(y, dtype=dtype)
        for part in (loss.value, loss.gradient, loss.curvature):
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                got = part(far, y.astype(dtype))
            _true(
                f"{name}: {part.__name__} is finite at |z| = {z_max:g} in {dtype.__name__}",
                np.isfinite(got).all(),
            )
            _true(f"{name}: {part.__name__} keeps {dtype.__name__}", got.dtype == dtype)


def check_operator(operator: Operator, dtype: Any = np.float64, rank: int = 2, seed: int = 0) -> None:
    """Adjoint identity, linearity, products of the lazy matrix, the curve identity, the norm, and the dtype."""
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
    z1, z2 = operator.curve(U, V, D, E)
    a = 0.7
    _close(f"{name}: curve", operator.forward(U + a * D, V + a * E), z + a * z1 + a * a * z2, tol)
    size = float(np.linalg.norm(U @ herm(V))) * operator.norm_squared() ** 0.5
    _true(f"{name}: ‖A(X)‖ ≤ ‖A‖ ‖X‖", _size(z) <= size * 1.05)
    arranged, order = operator.arrange()
    _close(f"{name}: arrange only permutes", arranged.forward(U, V), z if order is None else z[order], tol)


def check_gradient(problem: Objective, rank: int = 2, seed: int = 0, tol: float = 1e-5) -> None:
    """The gradient of a Problem or a Function against central differences of its value, in random directions."""
    rng = np.random.default_rng(seed)
    name = type(problem).__name__
    m, n = problem.shape
    h = float(np.finfo(problem.dtype).eps) ** (1 / 3)
    for scale in (0.1, 1.0):
        U, D = (scale * gaussian(rng, (m, rank), problem.dtype) for _ in range(2))
        V, E = (scale * gaussian(rng, (n, rank), problem.dtype) for _ in range(2))
        value, GV, GhU = problem.value_and_products(U, V)
        _close(f"{name}: one pass gives the same value", value, problem.value(U, V), tol, abs(value) + 1e-300)
        difference = (problem.value(U + h * D, V + h * E) - problem.value(U - h * D, V - h * E)) / (2 * h)
        slope = inner(D, GV) + inner(E, GhU)
        size = _size(D) * _size(GV) + _size(E) * _size(GhU) + abs(value) * 1e-3
        _close(f"{name}: gradient is the derivative of value", slope, difference, max(tol, 10 * h), size)


def check_solver(solver: Solver, problem: Objective, rank: int, seed: int = 0) -> None:
    """A fit that is finite, no worse than its start, repeatable, and the same whether run in one go or step by step."""
    name = type(solver).__name__
    result = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    again = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    for part in (result.U, result.V, result.history.objective):
        _true(f"{name}: every number is finite", np.isfinite(part).all())
    _true(f"{name}: no worse than its start", result.objective <= result.history.objective[0])
    _true(f"{name}: the same seed gives the same fit", np.array_equal(result.U, again.U))
    if solver.psd:
        _true(f"{name}: V = U", np.array_equal(result.U, result.V))


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
