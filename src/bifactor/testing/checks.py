"""Laws of losses, operators, functions, penalties, solvers, executors and datasets."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bifactor.arrays import Array, gaussian, herm, inner, to_device_of, to_numpy
from bifactor.blocks import Shared
from bifactor.data import (
    BlockDataset,
    CellMask,
    Dataset,
    Observations,
    RandomCells,
    RandomLines,
    Rectangles,
    RowTails,
)
from bifactor.errors import InputError
from bifactor.executors import AxpyArray, Block, BlockData, BlockResult, Executor, Streamed
from bifactor.factors import Factors, Free
from bifactor.inits import Random
from bifactor.losses import DataFit, Loss, Squared
from bifactor.operators import Bound, Evaluated, Featured, Operator, Partitioned, Recomputed, Scaled, Stacked
from bifactor.operators.partitioned import Blocked
from bifactor.penalties import Penalty, Ridge
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, State
from bifactor.running.checkpoint import pack_value
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import PCG, Solver
from bifactor.testing.laws import close, size_of, true


def check_loss(loss: Loss, y: Array, z_max: float = 1e4) -> None:
    """Check derivatives against differences, convexity, the smoothness bound, and finite values up to |z| = `z_max`.

    If the loss has a `pointwise` form, check that it is the same function. `y` holds some targets of the loss.
    """
    y = np.asarray(y, dtype=np.float64)
    name = type(loss).__name__
    loss.targets.check(y, name)
    z = np.linspace(-8.0, 8.0, 161)[:, None] + np.zeros_like(y)
    bend = loss.curvature(z, y)
    h = 1e-5
    difference = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    close(f"{name}: gradient is the derivative of value", loss.gradient(z, y), difference, 1e-6)
    difference = (loss.gradient(z + h, y) - loss.gradient(z - h, y)) / (2 * h)
    # A gradient may have kinks, which differences straddle.
    smooth = np.abs(loss.curvature(z + h, y) - loss.curvature(z - h, y)) < 1e-2
    close(f"{name}: curvature is the derivative of gradient", bend[smooth], difference[smooth], 1e-5)
    true(f"{name}: curvature ≥ 0", np.all(bend >= 0))
    if loss.smoothness is not None:
        true(f"{name}: curvature ≤ smoothness", np.all(bend <= loss.smoothness * (1 + 1e-12)))
    true(f"{name}: mean is finite", np.isfinite(loss.mean(z)).all())
    for dtype in (np.float32, np.float64):
        _check_far_out(loss, y.astype(dtype), z_max)
        _check_pointwise(loss, z.astype(dtype), np.broadcast_to(y, z.shape).astype(dtype))


def _check_far_out(loss: Loss, y: Array, z_max: float) -> None:
    name, dtype = type(loss).__name__, y.dtype
    z = np.array([-z_max, -100.0, 0.0, 100.0, z_max], dtype=dtype)[:, None] + np.zeros_like(y)
    for part in (loss.value, loss.gradient, loss.curvature):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            got = part(z, y)
        true(f"{name}: {part.__name__} is finite at |z| = {z_max:g} in {dtype}", np.isfinite(got).all())
        true(f"{name}: {part.__name__} keeps {dtype}", got.dtype == dtype)


def _check_pointwise(loss: Loss, z: Array, y: Array) -> None:
    pointwise = loss.pointwise
    if pointwise is None:
        return
    name, dtype = type(loss).__name__, z.dtype
    parameter = dtype.type(loss.parameter(dtype))
    got = np.array([pointwise(*pair, parameter) for pair in zip(z.flat, y.flat, strict=True)])
    tol = 1e3 * float(np.finfo(dtype).eps)
    true(f"{name}: pointwise gives (ℓ, ℓ′, ℓ″)", got.shape == (z.size, 3))
    for number, part in zip(got.T, (loss.value, loss.gradient, loss.curvature), strict=True):
        close(f"{name}: pointwise gives {part.__name__} in {dtype}", number, part(z, y).ravel(), tol)


# Laws of operators, of their bounds, and of the gradient of any function.

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


# Laws of penalties.


def check_penalty(
    penalty: Penalty, shape: tuple[int, int], rank: int = 2, dtype: Any = np.float64, seed: int = 0
) -> None:
    """Check gradient and Hessian against differences, the polynomial along a curve, the blocks, and the domain."""
    rng, name, eps = np.random.default_rng(seed), type(penalty).__name__, float(np.finfo(dtype).eps)
    penalty.check(shape)
    x, d = (Free().random(rng, shape, rank, dtype) for _ in range(2))
    x = penalty.project(x)
    true(f"{name}: project does not change points of the domain", penalty.project(x) is x)
    h = min(eps ** (1 / 3), 0.4 * penalty.reach(x, d), 0.4 * penalty.reach(x, -d))
    true(f"{name}: steps from points it projects to are possible", h > 0)
    (value, gradient), (ahead, up), (behind, down) = (penalty.evaluate(x.plus(s, d)) for s in (0.0, h, -h))
    size, tol = gradient.norm() * d.norm() + abs(value) + 1, 1e2 * eps ** (2 / 3)
    slope, image = (ahead - behind) / (2 * h), penalty.hessian(x, d) - (0.5 / h) * (up - down)
    close(f"{name}: gradient is the derivative of value", gradient.inner(d), slope, tol, size)
    close(f"{name}: hessian is the derivative of gradient", image.norm(), 0.0, tol, size)
    close(f"{name}: value is that of evaluate", penalty.value(x), value, tol, size)
    alone, onto = penalty.added(x, 1.0 * d)
    close(f"{name}: added has the value", alone, value, tol, size)
    close(f"{name}: added is the sum of gradients", (onto - (gradient + d)).norm(), 0.0, tol, size)
    c = penalty.polynomial(x, d)
    if c is not None:
        for a in (0.0, h, -h):
            along, there = float(np.polyval(c[::-1], a)), penalty.value(x.plus(a, d))
            close(f"{name}: polynomial is the value along a curve", along, there, tol, size)
    for side, rows in enumerate((x.left, x.right)):
        blocks = Shared(ridge=1.0) + penalty.blocks(x, side)
        true(f"{name}: blocks are for the rows of side {side}", blocks.divide(rows).shape == rows.shape)


# Laws of solvers.


def check_solver(solver: Solver, problem: Objective, rank: int, seed: int = 0) -> None:
    """Check that a solver descends, is reproducible, can be resumed, leaves states unchanged, and reports correctly."""
    name = type(solver).__name__
    result = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    true(f"{name}: does not diverge", result.status is not Status.DIVERGED)
    true(f"{name}: ends lower than it starts", result.objective < result.history.objective[0])
    _check_run(solver, problem, rank, seed, result)
    start = solver.init(problem, Random()(problem, rank, np.random.default_rng(seed)), rank)
    kept = _arrays(start)
    first, second = solver.step(problem, start), solver.step(problem, solver.prepare(problem, start))
    true(f"{name}: steps from one state, prepared or not, are the same", np.array_equal(first.U, second.U))
    for a, b in zip(kept, _arrays(start), strict=True):
        true(f"{name}: a step does not change its state", np.array_equal(a, b))
    for state in (start, first):
        _check_point(name, solver.current(problem, state), state.point)


def _arrays(state: State) -> list[Array]:
    arrays: dict[str, Array] = {}
    pack_value(state, arrays, {})
    return [np.array(a) for a in arrays.values()]


def _check_point(name: str, problem: Objective, point: Point) -> None:
    """Check that f, F and their gradients are those at the factors of the point."""
    same, tol = problem.at(point.x), 1e4 * float(np.finfo(point.x.dtype).eps)
    whole = point.f == point.value  # a solver need not separate f from other terms
    size = abs(same.f) + problem.scale * point.x.product_norm() ** 2 + 1e-300
    for part in ("value",) if whole else ("f", "value"):
        close(f"{name}: {part} of a point is that at its factors", getattr(point, part), getattr(same, part), tol, size)
    true(f"{name}: the gradient has the shape of the factors", point.gradient.left.shape == point.x.left.shape)
    difference = (point.gradient - same.gradient).norm()
    close(f"{name}: gradient of a point is that at its factors", difference, 0.0, tol, 1 + same.gradient.norm())
    value, gradient = point.original
    alone = value == point.value and gradient.inner(gradient) == point.gradient.inner(point.gradient)
    true(f"{name}: a point of the problem has no terms of the solver", alone)


def _check_run(solver: Solver, problem: Objective, rank: int, seed: int, result: Result) -> None:
    name, history = type(solver).__name__, result.history
    lengths = {len(column) for column in asdict(history).values()}
    true(f"{name}: one record per iteration, and one of the start", lengths == {result.n_iter + 1})
    tol = 1e4 * float(np.finfo(result.U.dtype).eps)
    least = history.objective.min()
    close(f"{name}: the best objective is the result's", result.objective, least, tol, 1 + history.objective.max())
    true(f"{name}: factors are of the problem's dtype", result.U.dtype == result.V.dtype == problem.dtype)
    shapes = [(k, rank + problem.kind.fixed_columns) for k in problem.shape]
    true(f"{name}: factors have as many columns as the rank", [result.U.shape, result.V.shape] == shapes)
    again = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    true(f"{name}: the same seed gives the same fit", np.array_equal(result.U, again.U))
    if result.n_iter < 4:
        return
    stopped = solve(problem, rank, solver, rng=seed, tol=0.0, callback=lambda t, state: t == 3)
    true(f"{name}: a callback stops it", stopped.status is Status.CALLBACK and stopped.n_iter == 3)
    with TemporaryDirectory() as folder:
        for iterations in (3, 20):
            resumed = solve(
                problem, rank, solver, rng=seed, max_iter=iterations, tol=0.0, checkpoint=Path(folder) / "run"
            )
    same = np.array_equal(result.U, resumed.U) and np.array_equal(result.V, resumed.V)
    same = same and np.array_equal(history.objective, resumed.history.objective)
    true(f"{name}: resumed, it ends as if it had not been interrupted", same)


# Laws of datasets.


def check_dataset(data: Dataset, seed: int = 0) -> None:
    """Check that all that is known of a dataset agrees with its entries, that views divide them, and that f is theirs.

    A dataset in blocks must also divide the longer side into consecutive ranges, of which each can be pickled.
    """
    name, rng = type(data).__name__, np.random.default_rng(seed)
    some = data.lines(np.ones(data.shape[0], bool))
    w = np.ones(some.size) if some.weights is None else some.weights
    _check_numbers(name, data, some, w)
    masks: list[CellMask] = [RandomCells(0.3, seed), *(RandomLines(0.3, seed, side) for side in (0, 1))]
    masks += [RowTails(0.1, seed, max(2, data.shape[1])), Rectangles(0.3, seed, 2)]
    for mask in masks:
        parts = [one.lines(np.ones(data.shape[0], bool)) for one in data.split(mask)]
        inside = mask(some.rows, some.cols)
        for part, stay in zip(parts, (~inside, inside), strict=True):
            true(f"{name}: split divides the entries by {mask}", _entries(part) == _entries(some.part(stay)))
    for side in (0, 1):
        index = rng.permutation(data.shape[side])[: max(1, data.shape[side] // 2)]
        few = data.take(index, side)
        true(f"{name}: take has the shape of its index", few.shape[side] == index.size)
        places = (index[few.rows], few.cols) if side == 0 else (few.rows, index[few.cols])
        stay = np.isin((some.rows, some.cols)[side], index)
        true(f"{name}: take renumbers", _cells(*places) == _cells(some.rows[stay], some.cols[stay]))
    most = max(1, some.size // 3)
    true(f"{name}: a subsample is of whole lines", data.subsample(most, rng).size <= max(most, max(data.shape)))
    plain = data.unweighted().lines(np.ones(data.shape[0], bool))
    true(f"{name}: unweighted entries have no weights", plain.weights is None)
    _check_data_fit(name, data, some, w, rng)
    _check_blocks(name, data.in_blocks(), some)


def _check_numbers(name: str, data: Dataset, some: Observations, w: Array) -> None:
    about, y = data.summary(), some.values.astype(np.float64)
    true(f"{name}: size is the number of entries", data.size == some.size == about.size)
    true(f"{name}: dtype is that of the values", data.dtype == some.values.dtype)
    true(
        f"{name}: least and largest",
        [data.dtype.type(end) for end in (about.least, about.largest)] == [y.min(), y.max()],
    )
    close(f"{name}: total", about.total, y.sum(), 1e-6, float(np.abs(y).sum()) + 1.0)
    true(f"{name}: whole", about.whole == bool(np.all(y == np.floor(y))))
    if about.levels is not None and about.level_counts is not None:
        levels, counts = np.unique(y, return_counts=True)
        close(f"{name}: levels", about.levels.astype(data.dtype), levels.astype(data.dtype), 0.0)
        close(f"{name}: level counts", about.level_counts, counts, 0.0)
    for side, (index, size) in enumerate(zip((some.rows, some.cols), data.shape, strict=True)):
        close(f"{name}: counts", data.counts()[side], np.bincount(index, minlength=size), 0.0)
        close(f"{name}: weight sums", data.weight_sums()[side], np.bincount(index, w, size), 1e-6)
    seen = data.seen_items().select(np.arange(data.shape[0]))
    rows = np.repeat(np.arange(data.shape[0]), np.diff(seen.starts))
    true(f"{name}: seen items are the cells", _cells(rows, seen.columns) == _cells(some.rows, some.cols))


def _check_data_fit(name: str, data: Dataset, some: Observations, w: Array, rng: np.random.Generator) -> None:
    f, kind = data.bind(Squared()), Free()
    x = kind.pair(*(gaussian(rng, (size, 2), np.dtype(np.float64)) for size in data.shape))
    error = np.einsum("tk,tk->t", x.left[some.rows], x.right[some.cols]) - some.values
    known = 0.5 * float(w @ error**2)
    close(f"{name}: f is half the sum of w(x − y)²", f.value(x), known, 1e-5)
    slope = np.zeros(x.left.shape)
    np.add.at(slope, some.rows, (w * error)[:, None] * x.right[some.cols])
    close(f"{name}: the gradient of f", f.evaluate(x).GV, slope, 1e-4)


def _check_blocks(name: str, data: BlockDataset, some: Observations) -> None:
    ends = [0, *(part.stop for part in data.parts)]
    true(f"{name}: blocks are consecutive", [part.start for part in data.parts] == ends[:-1])
    true(f"{name}: blocks cover the longer side", ends[-1] == data.shape[int(data.flipped)] == max(data.shape))
    true(f"{name}: fingerprints of blocks differ", len({part.fingerprint for part in data.parts}) == len(data.parts))
    again = [pickle.loads(pickle.dumps(part)) for part in data.parts]
    loaded = [part.load() for part in again]
    true(f"{name}: blocks can be pickled", sum(one.y.size for one in loaded) == some.size)
    for part, one in zip(data.parts, loaded, strict=True):
        layout = one.layout
        true(f"{name}: a block has its rows", layout.n_outer == part.stop - part.start)
        true(f"{name}: entries lie in the block", layout.size == 0 or int(layout.outer.max()) < layout.n_outer)


def _cells(rows: Array, cols: Array) -> set[tuple[int, int]]:
    return set(zip(rows.tolist(), cols.tolist(), strict=True))


def _entries(data: Observations) -> list[tuple[int, int, float]]:
    return sorted(zip(data.rows.tolist(), data.cols.tolist(), data.values.tolist(), strict=True))


# Laws of executors.

WRONG = "This block is wrong."


def check_executor(
    executor: Executor,
    store: Blocked,
    others: Sequence[Executor] = (),
    lose: Callable[[], None] | None = None,
    seed: int = 0,
) -> None:
    """Check that passes over blocks give what they give on this machine, and runs the same bits whatever is lost.

    Tall arrays are cut like the blocks and put together again, shared ones are the same for all blocks, sums are added,
    small values are in the order of the blocks, and an error in a block is raised as it is. A few iterations of PCG
    end where those with `executors.Streamed` end, up to rounding.

    Parameters
    ----------
    executor : Executor
        The executor.
    store : BlockStore
        Some blocks of a matrix with at least two rows and columns, e.g. `data.BlockStore.open(folder)`.
    others : sequence of Executor
        The same with other numbers of workers: they must find the same bits.
    lose : callable, optional
        A function that makes workers lose what they hold. It is called once during a run, which must end with the same
        bits.
    seed : int
        The seed of the arrays and of the runs.
    """
    name = type(executor).__name__
    _check_pass(name, executor, store, np.random.default_rng(seed))
    _check_error(name, executor, store.parts)
    known, found = (_run_on(one, store, seed) for one in (Streamed(), executor))
    tol = float(np.finfo(store.dtype).eps) ** 0.5
    close(f"{name}: a run is that on this machine", found.history.objective, known.history.objective, tol)
    for other in (executor, *others):
        _require_same(f"{name}: another run, and other workers, find the same bits", _run_on(other, store, seed), found)
    if lose is not None:
        once = [lose]
        lossy = _run_on(executor, store, seed, lambda t, state: once.pop()() if t == 3 and once else None)
        _require_same(f"{name}: a run that loses results finds the same bits", lossy, found)


def _check_pass(name: str, executor: Executor, store: Blocked, rng: np.random.Generator) -> None:
    parts, tol = store.parts, 1e3 * float(np.finfo(store.dtype).eps)
    P, Q, D = (rng.standard_normal((k, 3)).astype(store.dtype) for k in (parts[-1].stop, 3, 3))
    before = [np.array(a) for a in (P, Q, D)]
    shared = Q, D, AxpyArray(Q + 0.5 * D, Q, D, 0.5)
    known = Streamed().run_pass(parts, _start_and_values, _probe, (P,), shared, (2.0,))
    further = Streamed().run_pass(parts, _start_and_values, _probe, known.tall, shared, (2.0,))
    for own in (P, to_device_of(P, executor.like(parts))):
        found = executor.run_pass(parts, _start_and_values, _probe, (own,), shared, (2.0,))
        again = executor.run_pass(parts, _start_and_values, _probe, found.tall, shared, (2.0,))
        unchanged = all(np.array_equal(a, b) for a, b in zip((P, Q, D), before, strict=True))
        true(f"{name}: a pass does not change its arguments", unchanged)
        for got, wanted in ((found, known), (again, further)):
            true(f"{name}: small values are in the order of the blocks", got.each == wanted.each)
            true(f"{name}: there are as many results as in a block", len(got.tall) == 1 and len(got.sums) == 3)
            close(f"{name}: tall arrays are cut like the blocks", to_numpy(got.tall[0]), wanted.tall[0], tol)
            for a, b in zip(got.sums, wanted.sums, strict=True):
                close(f"{name}: sums are those over all blocks", a, b, tol)


def _start_and_values(part: Block, loaded: BlockData) -> tuple[int, Array]:
    return part.start, loaded.y


def _probe(opened: tuple[int, Array], tall: tuple[Array], shared: tuple[Array, ...], number: float) -> BlockResult:
    """Every kind of result, from every kind of argument."""
    (start, y), (P,), (Q, D, S) = opened, tall, shared
    return BlockResult((number * P @ (Q - D + S),), (P.T @ P, float(np.sum(y, dtype=np.float64)), 1), (start, y.size))


def _check_error(name: str, executor: Executor, parts: Sequence[Block]) -> None:
    try:
        executor.run_pass(parts, _start_and_values, _fail, settings=(parts[-1].start,))
        said = "no error"
    except InputError as error:
        said = str(error)
    except Exception as error:
        said = repr(error)
    true(f"{name}: an error in a block is raised as it is, but there was {said}", said == WRONG)


def _fail(opened: tuple[int, Array], tall: tuple[()], shared: tuple[()], wrong: int) -> BlockResult:
    if opened[0] == wrong:
        raise InputError(WRONG)
    return BlockResult(sums=(1,))


def _run_on(
    executor: Executor, store: Blocked, seed: int, callback: Callable[[int, State], Any] | None = None
) -> Result:
    problem = Objective(Partitioned("squared", store, executor), Ridge(1.0))
    return solve(problem, 2, PCG(), rng=seed, max_iter=6, tol=0.0, checkpoint_every=2, callback=callback)


def _require_same(law: str, got: Result, wanted: Result) -> None:
    pairs = (got.U, wanted.U), (got.V, wanted.V), (got.history.objective, wanted.history.objective)
    true(law, all(np.array_equal(a, b) for a, b in pairs))
