"""Observed entries in blocks of rows, which are read, or processed on other machines, in each pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, digest, is_complex, to_numpy
from bifactor.blocks import Exact
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.executors import Block, BlockData, BlockResult, Executor, PassResult, Streamed
from bifactor.executors.executor import AxpyArray, Task
from bifactor.factors import Factors, Free
from bifactor.kernels.threading import thread_count
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit, Loss, Shifted
from bifactor.losses.composite import Grouped, records
from bifactor.losses.named import loss_of
from bifactor.operators.bound import Apply, Bound, FittedParameters, Footprint, TrialPoint
from bifactor.operators.curves import Curve, Evaluated, EvaluatedCurve, Measurements
from bifactor.operators.entries import Entries, EntriesBound, EntriesCurve, Slopes, SymbolicEntries
from bifactor.validation import require_instance, require_pair, require_rows

Arrays = tuple[Array, ...]

FITTED = 2_000_000
"""The approximate number of observations, over all blocks, to which parameters of losses are fitted."""


@dataclass(frozen=True, eq=False)
class BlockBinder:
    """Makes f from the content of a block, with z computed again in each pass.

    Parameters
    ----------
    losses : tuple of Loss
        One loss, or one for each group.
    group : integer array or None
        The number of the loss of each column of the matrix.
    flipped : bool
        Whether the rows of blocks are columns of the matrix.
    weights : (number or array, number or array)
        Two factors of the weight of each entry: one for its place on the longer side, one for that on the shorter.
    """

    losses: tuple[Loss, ...]
    group: Array | None = None
    flipped: bool = False
    weights: tuple[Array | float, Array | float] = (1.0, 1.0)

    def __call__(self, part: Block, loaded: BlockData) -> SymbolicEntries:
        layout, y, _ = loaded
        weights = self._weights(part, loaded)
        operator = Entries.arranged((layout.n_outer, layout.n_inner), layout, False)
        return SymbolicEntries(EntriesBound(operator, self._fit(part, loaded, y, weights)))

    def _weights(self, part: Block, loaded: BlockData) -> Array | None:
        layout, y, weights = loaded
        rows, cols = self.weights
        if isinstance(rows, float) and isinstance(cols, float) and rows * cols == 1:
            return weights
        more = rows if isinstance(rows, float) else rows[part.start : part.stop][layout.outer]
        more = np.broadcast_to(more * (cols if isinstance(cols, float) else cols[layout.inner]), y.shape)
        return (more if weights is None else more * weights).astype(y.dtype)

    def _fit(self, part: Block, loaded: BlockData, y: Array, weights: Array | None) -> DataFit:
        loss = self.losses[0]
        if self.group is not None:
            own = self.group[part.start : part.stop] if self.flipped else self.group
            grouped = own[loaded.layout.outer if self.flipped else loaded.layout.inner]
            losses, numbered = records(self.losses, y, grouped)
            return DataFit(Grouped(losses), numbered, weights)
        if isinstance(loss, Shifted) and loss.loss.quadratic:
            return DataFit(loss.loss, y - y.dtype.type(loss.shift), weights)
        return DataFit(loss, y, weights)


def is_quadratic(loss: Loss) -> bool:
    """Whether f is quadratic: squared errors with an intercept are squared errors of shifted data."""
    return bool(loss.loss.quadratic if isinstance(loss, Shifted) else loss.quadratic)


def summarise_block(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The sums of the typical curvature, the number of observations and a lower bound of f; also checks data."""
    fit = bound.fit
    fit.loss.targets.check(fit.y, type(fit.loss).__name__)
    if bound.bound.operator.size == 0:
        rows, cols = (np.zeros(k) for k in bound.shape)
        return BlockResult((rows,), (cols, 0, 0.0))
    curvature, weights = fit.typical
    rows, cols = bound.bound.operator.sums(weights)
    least = fit.least
    return BlockResult((curvature * rows,), (curvature * cols, fit.seen, np.nan if least is None else least))


def smoothest(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The constant L of the block."""
    return BlockResult(each=bound.bound.smoothness if bound.bound.operator.size else 0.0)


def block_value(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The value of f alone, without a gradient of all blocks in memory."""
    return BlockResult(sums=(bound.value(_pair(tall[0], shared[0])),))


def evaluate_block(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """f, and its gradients in P and Q."""
    at = bound.evaluate(_pair(tall[0], shared[0]))
    return BlockResult((at.GV,), (at.f, at.GhU))


def quartic(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """Five numbers c with f = Σₖ cₖ aᵏ at (P + aD, Q + aE)."""
    return BlockResult(sums=(_curve(bound, tall, shared).quartic,))


def along(bound: SymbolicEntries, tall: Arrays, shared: Arrays, a: float) -> BlockResult:
    """φ(a), φ′(a) and φ″(a), with φ(a) = f at (P + aD, Q + aE)."""
    return BlockResult(sums=(np.array(_curve(bound, tall, shared).at(a)),))


def slope_products(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """S B and Sᵀ A, where S holds the slopes at PQᵀ."""
    (P, A), (Q, B) = tall, shared
    left, right = Slopes(bound, _pair(P, Q)).products(A, B)
    return BlockResult((left,), (right,))


def times(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """S B alone."""
    (P,), (Q, B) = tall, shared
    return BlockResult((Slopes(bound, _pair(P, Q)).matmul(B),))


def times_transposed(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """Sᵀ A alone."""
    (P, A), (Q,) = tall, shared
    return BlockResult(sums=(Slopes(bound, _pair(P, Q)).rmatmul(A),))


def normal(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """Sᵀ S B, with the block read once; with diag(w)·S instead of S, if w is given."""
    (P, *rows), (Q, B) = tall, shared
    return BlockResult(sums=(Slopes(bound, _pair(P, Q)).normal(B, *rows),))


def hessian_products(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The Hessian of f, without the second derivative of X, applied to (D, E)."""
    (P, D), (Q, E) = tall, shared
    left, right = bound.hessian(_pair(P, Q))(_pair(D, E))
    return BlockResult((left,), (right,))


def exact(bound: SymbolicEntries, tall: Arrays, shared: Arrays, side: int) -> BlockResult:
    """The curvature of f in each row of P (side 0) or Q, packed."""
    packed = bound.bound.exact(_pair(tall[0], shared[0]), side).packed
    return BlockResult(sums=(packed,)) if side else BlockResult((packed,))


def sample_block(bound: SymbolicEntries, tall: Arrays, shared: Arrays, step: int) -> BlockResult:
    """z, y and weights of every `step`-th observation, as copies, because the memory of blocks is reused."""
    layout, fit = bound.bound.layout, bound.fit
    some = slice(None, None, step)
    z = np.vecdot(tall[0][layout.outer[some]], shared[0][layout.inner[some]])
    return BlockResult(each=(z, fit.y[some].copy(), None if fit.weights is None else fit.weights[some].copy()))


def _pair(P: Array, Q: Array) -> Factors:
    return Free().pair(P, Q)


def _curve(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Any:
    (P, D), (Q, E) = tall, shared
    return EntriesCurve(bound, _pair(P, Q), _pair(D, E))


# The interface of a store of blocks, and the losses of its observations.


class Blocked(Protocol):
    """A matrix with some observed entries, in blocks of rows of its longer side."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> Any: ...

    @property
    def flipped(self) -> bool:
        """Whether blocks consist of columns."""

    @property
    def parts(self) -> Sequence[Block]: ...

    def representatives(self) -> Array:
        """Values that represent all: each level in proportion, or the values of some rows if there are many."""


def with_data_parameters(loss: Loss, store: Blocked, grouped: bool) -> Loss:
    """The loss with the parameters that are left to the data, such as levels, taken from all blocks."""
    if loss.left_open and grouped:
        raise InputError(
            f"{loss!r} has no parameters, which it needs in a group. Pass them, as in Ordinal(levels=…) or Huber(1.0)."
        )
    return loss.with_data_parameters(store.representatives()) if loss.left_open else loss


def groups_of(group: Any, losses: tuple[Loss, ...], columns: int) -> Array | None:
    if group is None:
        if len(losses) > 1:
            raise InputError(f"There are {len(losses)} losses. Pass group, the number of the loss of each column.")
        return None
    found = np.asarray(group)
    if found.shape != (columns,) or found.dtype.kind not in "iu":
        raise InputError(f"group is {found.dtype} of shape {found.shape}. Pass {columns} integers, one per column.")
    if found.min() < 0 or found.max() >= len(losses):
        raise InputError(
            f"group runs from {found.min()} to {found.max()}, but there are {len(losses)} losses. "
            "Number the losses from 0."
        )
    return found


class Partitioned(Bound):
    """f(X) = Σ w ℓ(X[i, j]; y) over the observed entries of a matrix that is stored in blocks.

    No array as long as the data is held, except the blocks that an executor has in memory: z is computed again in each
    pass. An iteration of PCG takes two passes over all blocks for squared errors, usually one to three otherwise.
    Solvers that work on the measurements themselves reject it. Pass it to `Objective`.

    Parameters
    ----------
    loss : Loss or str, or sequence of them
        The loss ℓ, or several losses, which are assigned by `group`.
    store : BlockStore
        The blocks, e.g. `data.BlockStore.open(folder)`.
    executor : Executor, optional
        The executor that runs the passes. By default `executors.Streamed()`, on this machine.
    group : integer array, optional
        The number of the loss of each column of the matrix, counted from 0.
    """

    explicit, expensive = False, True

    def __init__(
        self,
        loss: Loss | str | Sequence[Loss | str],
        store: Blocked,
        executor: Executor | None = None,
        group: Array | None = None,
    ):
        losses = tuple(loss_of(one) for one in (loss if isinstance(loss, (tuple, list)) else (loss,)))
        if executor is not None:
            require_instance(executor, Executor, "executor")
        if not store.parts:
            raise InputError("The store has no blocks. Pass one with at least one observation.")
        self.store, self.executor, self.group = store, executor or Streamed(), groups_of(group, losses, store.shape[1])
        losses = tuple(with_data_parameters(one, store, group is not None) for one in losses)
        self.shape, self.dtype = store.shape, np.dtype(store.dtype)
        self.like = self.executor.like(store.parts)
        self.losses = losses
        self.quadratic = is_quadratic(losses[0]) if self.group is None else self.loss.quadratic
        self.recipe = BlockBinder(losses, self.group, self.store.flipped)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Partitioned({self.loss!r}, {m}×{n} in {len(self.store.parts)} blocks, {self.executor!r})"

    @property
    def loss(self) -> Loss:
        return self.losses[0] if self.group is None else Grouped(self.losses)

    @cached_property
    def _summary(self) -> tuple[Array, Array, int, float]:
        (rows,), (cols, seen, least), _ = self.run_pass(summarise_block)
        if seen == 0:
            raise InputError("No observation in these blocks has a weight above 0. Hold out less, or check weights.")
        found = self.sides(to_numpy(rows), cols)
        return found[0], found[1], int(seen), float(least)

    @cached_property
    def smoothness(self) -> float:
        return float(max(self.run_pass(smoothest).each))

    @property
    def scale(self) -> float:
        return float(np.sum(self._summary[0])) / (self.shape[0] * self.shape[1])

    @property
    def least(self) -> float | None:
        return None if np.isnan(self._summary[3]) else float(self._summary[3])

    @property
    def marginals(self) -> tuple[Array, Array]:
        return self._summary[:2]

    @property
    def seen(self) -> int:
        return self._summary[2]

    def measure(self, x: Factors) -> None:
        return None

    def value(self, x: Factors) -> float:
        outer, inner = self._outer_inner(x)
        return float(self.run_pass(block_value, (outer,), (inner,)).sums[0])

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        return self._evaluated(*self._outer_inner(x))

    def arrived(self, a: float, x: Factors, d: Factors, there: Factors) -> Evaluated:
        """f and its gradient at `there`, usually x + a·d: then the shared parts of x and d need not be sent again."""
        (_, base), (_, direction), (outer, inner) = (self._outer_inner(one) for one in (x, d, there))
        same = np.array_equal(base + a * direction, inner)  # a term may have moved it into its domain
        return self._evaluated(outer, AxpyArray(inner, base, direction, a) if same else inner)

    def _evaluated(self, outer: Array, inner: Array | AxpyArray) -> Evaluated:
        (left,), (f, right), _ = self.run_pass(evaluate_block, (outer,), (inner,))
        return Evaluated(float(f), *self.sides(left, right), None)

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return BlockSlopes(self, x).H if self.store.flipped else BlockSlopes(self, x)

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        def times(d: Factors) -> tuple[Array, Array]:
            (left,), (right,), _ = self.run_pass(hessian_products, *self._moving(x, d))
            return self.sides(left, right)

        return times

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        return BlockCurve(self, x, d) if self.quadratic else EvaluatedCurve(self, x, d, self._along)

    def quartic(self, x: Factors, d: Factors) -> Array:
        """Five numbers c with f = Σₖ cₖ aᵏ at x + a·d, for squared errors."""
        found: Array = self.run_pass(quartic, *self._moving(x, d)).sums[0]
        return found

    def _along(self, x: Factors, d: Factors) -> tuple[float, float, float]:
        value, slope, curvature = self.run_pass(along, *self._moving(x, d), settings=(0.0,)).sums[0]
        return float(value), float(slope), float(curvature)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact:
        outer, inner = self._outer_inner(x)
        inside = int(bool(side) != self.store.flipped)
        (tall, sums, _) = self.run_pass(exact, (outer,), (inner,), (inside,))
        packed = sums[0] if inside else to_numpy(tall[0])
        return Exact(packed if rows is None else packed[slice(*rows)], x.width)

    @property
    def parameters(self) -> FittedParameters:
        return FittedParameters.of(self.loss, lambda x, z: self._best_loss(x), self._with)

    def _best_loss(self, x: Factors) -> Loss:
        """The loss that fits best to some observations, evenly spread over all blocks."""
        outer, inner = self._outer_inner(x)
        step = -(-sum(part.size for part in self.store.parts) // FITTED)
        z, y, w = zip(*self.run_pass(sample_block, (outer,), (inner,), (step,)).each, strict=True)
        weights = None if w[0] is None else np.concatenate(w)
        return self.loss.refit(np.concatenate(z), np.concatenate(y), weights)

    def _with(self, loss: Loss) -> "Partitioned":
        losses = loss.losses if isinstance(loss, Grouped) else loss
        found = Partitioned(losses, self.store, self.executor, self.group)
        found.recipe = replace(found.recipe, weights=self.recipe.weights)
        return found

    def reweighted(self, rows: Array | float = 1.0, cols: Array | float = 1.0) -> "Partitioned":
        """The same observations, with weights multiplied by a factor of the row and one of the column."""
        found = self._with(self.loss)
        first, second = (old * new for old, new in zip(self.recipe.weights, self.sides(rows, cols), strict=True))
        found.recipe = replace(found.recipe, weights=(first, second))
        return found

    def footprint(self, width: int) -> Footprint:
        copies = (thread_count() + 2) * min(self.shape) * width * self.dtype.itemsize
        return Footprint(0, self.executor.footprint(self.store.parts) + copies + 6 * 8 * sum(self.shape))

    def check_factors(self, x: Factors) -> None:
        if is_complex(x.left) or is_complex(x.right):
            raise InputError("Stored blocks hold real numbers, but the factors are complex. Pass real ones.")

    @cached_property
    def fingerprint(self) -> str:
        group = "" if self.group is None else digest(self.group)
        parts = " ".join(part.fingerprint for part in self.store.parts)
        weights = "".join(f" {w}" if isinstance(w, float) else f" {digest(w)}" for w in self.recipe.weights)
        return f"Partitioned {self.shape} {[describe(one) for one in self.losses]} {group}{weights} {parts}"

    def sides(self, left: Any, right: Any) -> tuple[Any, Any]:
        """A pair for rows and columns as a pair for blocks and the shared side; or back, which is the same swap."""
        return (right, left) if self.store.flipped else (left, right)

    def run_pass(
        self,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | AxpyArray] = (),
        settings: tuple[Any, ...] = (),
    ) -> PassResult:
        """A pass over all blocks."""
        return self.executor.run_pass(self.store.parts, self.recipe, task, tall, shared, settings)

    def _outer_inner(self, x: Factors) -> tuple[Array, Array]:
        require_pair(x.left, x.right, self.shape)
        outer, inner = self.sides(x.left, x.right)
        return outer, to_numpy(inner)

    def _moving(self, x: Factors, d: Factors) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Factors and a direction: the two arrays that are cut into blocks, and the two shared ones."""
        if x.width != d.width:
            raise InputError("The factors and the direction have different numbers of columns. Pass equal numbers.")
        return tuple(zip(self._outer_inner(x), self._outer_inner(d), strict=True))  # type: ignore[return-value]


class BlockCurve(Curve):
    """φ(a) for squared errors: one pass for all a, and one for the gradient at the end of the search."""

    def __init__(self, bound: Partitioned, x: Factors, d: Factors):
        self.bound, self.x, self.d = bound, x, d

    @cached_property
    def quartic(self) -> Array:
        return self.bound.quartic(self.x, self.d)

    def at(self, a: float) -> tuple[float, float, float]:
        c = np.polynomial.Polynomial(self.quartic)
        return float(c(a)), float(c.deriv()(a)), float(c.deriv(2)(a))

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.bound.arrived(a, self.x, self.d, x)


class BlockSlopes(LinearMap):
    """∇f(X), or its transpose if blocks consist of columns: its rows are those of blocks."""

    def __init__(self, bound: Partitioned, x: Factors):
        self.bound, (self.P, self.Q) = bound, bound._outer_inner(x)
        self.shape = bound.sides(*bound.shape)
        self.dtype, self.like = np.result_type(x.dtype, bound.dtype), bound.like

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        found: Array = self.bound.run_pass(times, (self.P,), (self.Q, to_numpy(V))).tall[0]
        return found

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        found: Array = self.bound.run_pass(times_transposed, (self.P, U), (self.Q,)).sums[0]
        return found

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        (left,), (right,), _ = self.bound.run_pass(slope_products, (self.P, U), (self.Q, to_numpy(V)))
        return left, right

    def normal(self, V: Array, rows: Array | None = None) -> Array:
        require_rows(V, self.shape[1])
        tall = (self.P,) if rows is None else (self.P, rows)
        found: Array = self.bound.run_pass(normal, tall, (self.Q, to_numpy(V))).sums[0]
        return found
