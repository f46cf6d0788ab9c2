"""Laws of operators, of their bounds, and of the gradient of any function."""

from typing import Any

import numpy as np

from bifactor.arrays import Array, gaussian, herm, inner
from bifactor.factors import Factors, Free
from bifactor.losses import DataFit, Squared
from bifactor.operators import Bound, Evaluated, Featured, Operator, Recomputed, Scaled, Stacked
from bifactor.problems.objective import Objective
from bifactor.testing.laws import close, size_of, true

EXPLICIT = 1000
"""The largest mn for which an operator is compared with its explicit matrix."""


def check_operator(operator: Operator, dtype: Any = np.float64, rank: int = 2, seed: int = 0) -> None:
    """Check the adjoint identity, linearity, products of the lazy matrix, shapes and dtype.

    Bound to data, also within `Scaled`, `Stacked`, `Recomputed` and `Featured`, check f, its gradient, Hessian and
    curves. A complex dtype tests conjugation, too. Up to mn = 1000, measurements, adjoint and both norms, with and
    without weights, are also compared with the explicit matrix.
    """
    rng = np.random.default_rng(seed)
    name = type(operator).__name__
    m, n = operator.shape
    U, D = gaussian(rng, (m, rank), dtype), gaussian(rng, (m, rank), dtype)
    V, E = gaussian(rng, (n, rank), dtype), gaussian(rng, (n, rank), dtype)
    tol = 200 * float(np.finfo(dtype).eps)
    z = operator.forward(U, V)
    true(f"{name}: forward gives {operator.size} measurements", z.shape == (operator.size,))
    true(f"{name}: forward keeps the precision", np.finfo(z.dtype).eps == np.finfo(dtype).eps)
    w = gaussian(rng, z.shape, z.dtype)
    G = operator.adjoint(w)
    GV, GhU = G.products(U, V)
    close(f"{name}: ⟨A(UVᴴ), w⟩ = ⟨U, A*(w)V⟩", inner(z, w), inner(U, GV), tol, size_of(z) * size_of(w))
    close(f"{name}: products gives G V", GV, G @ V, tol)
    close(f"{name}: products gives Gᴴ U", GhU, G.H @ U, tol)
    close(f"{name}: ⟨G V, U⟩ = ⟨V, Gᴴ U⟩", inner(U, GV), inner(GhU, V), tol, size_of(GV) * size_of(U))
    close(f"{name}: linear in U", operator.forward(U + 2 * D, V), z + 2 * operator.forward(D, V), tol)
    close(f"{name}: depends on UVᴴ only", operator.forward(*_rotated(U, V, rng)), z, tol)
    true(f"{name}: adjoint has the shape of X", G.shape == (m, n) and GV.shape == U.shape and GhU.shape == V.shape)
    true(f"{name}: adjoint keeps the precision", np.finfo(GV.dtype).eps == np.finfo(dtype).eps)
    _check_bound(operator, Free().pair(U, V), Free().pair(D, E), rng.random(operator.size), tol)
    if m * n <= EXPLICIT:
        _check_explicit(operator, U @ herm(V), z, w, G @ np.eye(n, dtype=dtype), tol)
        _check_norms(operator, rng.random(operator.size))


def _check_bound(operator: Operator, x: Factors, d: Factors, weights: Array, tol: float) -> None:
    """Check that all bounds of an operator, also within wrappers, are the same function and equally fast."""
    name, y = type(operator).__name__, operator.forward(d.left, x.right)
    fit = DataFit.of(Squared(), y, weights.astype(y.real.dtype))
    z = operator.forward(x.left, x.right)
    value, slopes = fit.evaluate(z)
    wanted = Evaluated(value, *operator.adjoint(slopes).products(x.left, x.right), None)
    bounds = {"bound": operator.bind(fit), "Scaled(A, 1)": Scaled(operator, 1).bind(fit)}
    bounds |= {"Stacked(A)": Stacked(operator).bind(fit), "Recomputed(A)": Recomputed(operator).bind(fit)}
    bounds |= {"Featured(A)": Featured(operator).bind(fit)}
    for way, bound in bounds.items():
        true(f"{name}: {way} has quick curves if A has", bound.quick == bounds["bound"].quick)
        true(f"{name}: {way} knows the number of observed entries if A does", bound.seen == bounds["bound"].seen)
        for keeps, at in ((" with z", bound.measure(x)), ("", None)):
            for time in ("", ", after its first answer was overwritten,"):
                got = bound.evaluate(x, at)
                _check_evaluated(f"{name}: {way}{keeps}{time}", got, wanted, tol)
                for side in (got.GV, got.GhU):
                    side[...] = np.nan
        _check_curve(f"{name}: {way}", bound, x, d, tol)


def _check_evaluated(name: str, got: Evaluated, wanted: Evaluated, tol: float) -> None:
    for part in ("f", "GV", "GhU"):
        close(f"{name} gives {part}", getattr(got, part), getattr(wanted, part), tol)


def _check_curve(name: str, bound: Bound, x: Factors, d: Factors, tol: float) -> None:
    """Check everything that a curve computes at some steps against f there."""
    curve, h = bound.curve(x, d, bound.measure(x)), 1e-2
    size = abs(bound.value(x.plus(1.0, d))) + abs(bound.value(x))
    for a in (0.0, 0.7):
        there = bound.evaluate(x.plus(a, d))
        _check_evaluated(f"{name}: a curve", curve.to(a, x.plus(a, d)), there, 10 * tol)
        value, slope, _ = curve.at(a)
        close(f"{name}: f along a curve", value, there.f, tol, size)
        close(f"{name}: its slope", slope, inner(there.GV, d.left) + inner(there.GhU, d.right), 10 * tol, size)
        if curve.quartic is not None:
            close(f"{name}: its quartic", np.polyval(curve.quartic[::-1], a), there.f, 10 * tol, size)
    image, step = bound.hessian(x)(d), Free().pair(*(h * side for side in (d.left, d.right)))
    ahead, behind = (bound.evaluate(x.plus(s, step)) for s in (1.0, -1.0))
    rest = bound.gradient(x).products(d.left, d.right)
    for got, more, up, down in zip(image, rest, ahead[1:3], behind[1:3], strict=True):
        close(f"{name}: hessian", got + more, (up - down) / (2 * h), max(50 * tol, h * h) * 10, size_of(got) + size)


def _check_explicit(operator: Operator, X: Array, z: Array, w: Array, G: Array, tol: float) -> None:
    name = type(operator).__name__
    units = _units(operator, np.iscomplexobj(X))
    parts = np.stack([X.real, X.imag][: len(units)])
    close(f"{name}: A(X) by the explicit matrix", z, np.einsum("uij,uijp->p", parts, units), 10 * tol)
    slopes = np.einsum("uijp,p->uij", units.conj(), w).real
    wanted = slopes[0] + 1j * slopes[1] if len(units) == 2 else slopes[0]
    close(f"{name}: A*(w) by the explicit matrix", G if len(units) == 2 else G.real, wanted, 10 * tol)


def _check_norms(operator: Operator, some: Array) -> None:
    name = type(operator).__name__
    units = _units(operator, bool(operator.complex_matrix)).reshape(-1, operator.size)
    for weights in (None, some):
        weighted = units if weights is None else units * weights**0.5
        # As a map of real vector spaces, because intensities are linear over the reals only.
        found = float(np.linalg.norm(np.hstack([weighted.real, weighted.imag]), 2) ** 2)
        declared = operator.norm_squared(weights)
        true(f"{name}: norm_squared = {declared:g} bounds {found:g}", 0.98 * found <= declared)
        true(f"{name}: norm_squared = {declared:g} is within 2× of {found:g}", declared <= 2 * found)
        mean = float(np.sum(np.abs(weighted) ** 2)) / len(units)
        close(f"{name}: mean_square", operator.mean_square(weights), mean, 0.2)


def _units(operator: Operator, complex_X: bool) -> Array:
    """A of every matrix with one entry 1 and, for complex X, with one entry i: an array of parts × m × n × p."""
    m, n = operator.shape
    rows, cols = np.eye(m), np.eye(n)
    return np.stack(
        [
            [[operator.forward(unit * rows[:, [i]], cols[:, [j]]) for j in range(n)] for i in range(m)]
            for unit in ([1.0, 1.0j] if complex_X else [1.0])
        ]
    )


def _rotated(U: Array, V: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(UR, VR⁻ᴴ), another factorisation of the same X."""
    R = np.linalg.qr(gaussian(rng, (U.shape[1], U.shape[1]), U.dtype))[0] * U.dtype.type(1.5)
    return U @ R, V @ herm(np.linalg.inv(R))


def check_gradient(problem: Objective | Bound, rank: int = 2, seed: int = 0, tol: float = 1e-5) -> None:
    """Check the gradient of an Objective or a Bound against central differences of its value in random directions."""
    rng = np.random.default_rng(seed)
    name, f = type(problem).__name__, problem.f if isinstance(problem, Objective) else problem
    h = float(np.finfo(f.dtype).eps) ** (1 / 3)
    for scale in (0.1, 1.0):
        x, d = (scale * Free().random(rng, f.shape, rank, f.dtype) for _ in range(2))
        value, GV, GhU, _ = f.evaluate(x)
        close(f"{name}: one pass gives the same value", value, f.value(x), tol, abs(value) + 1e-300)
        difference = (f.value(x.plus(h, d)) - f.value(x.plus(-h, d))) / (2 * h)
        slope = inner(d.left, GV) + inner(d.right, GhU)
        size = size_of(d.left) * size_of(GV) + size_of(d.right) * size_of(GhU) + abs(value) * 1e-3
        close(f"{name}: gradient is the derivative of value", slope, difference, max(tol, 10 * h), size)
