"""Observed entries in blocks of rows, which are read, or processed on other machines, in each pass."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, digest, foresee_inners, host, is_complex
from bifactor.blocks import Exact
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.executors import Executor, Gathered, Streamed
from bifactor.executors.executor import Moved, Task
from bifactor.factors import Factors
from bifactor.kernels.threads import thread_count
from bifactor.linear_map import LinearMap
from bifactor.losses import Loss
from bifactor.losses.grouped import Grouped
from bifactor.losses.named import loss_of
from bifactor.operators import block_tasks as tasks
from bifactor.operators.blocked import Blocked, groups_of, suited
from bifactor.operators.bound import Ahead, Apply, Bound, Curve, Evaluated, Measurements
from bifactor.operators.footprint import Footprint
from bifactor.operators.visited import Visited
from bifactor.validation import require_instance, require_pair, require_rows


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
        The blocks, e.g. `tables.BlockStore.open(folder)`.
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
        losses = tuple(suited(one, store, group is not None) for one in losses)
        self.shape, self.dtype = store.shape, np.dtype(store.dtype)
        self.like = self.executor.like(store.parts)
        self.losses = losses
        self.quadratic = tasks.is_quadratic(losses[0]) if self.group is None else self.loss.quadratic
        self.recipe = tasks.Recipe(losses, self.group, self.store.flipped)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Partitioned({self.loss!r}, {m}×{n} in {len(self.store.parts)} blocks, {self.executor!r})"

    @property
    def loss(self) -> Loss:
        return self.losses[0] if self.group is None else Grouped(self.losses)

    @cached_property
    def _summary(self) -> tuple[Array, Array, int, float]:
        (rows,), (cols, seen, least), _ = self.over(tasks.summarised)
        if seen == 0:
            raise InputError("No observation in these blocks has a weight above 0. Hold out less, or check weights.")
        found = self.sides(host(rows), cols)
        return found[0], found[1], int(seen), float(least)

    @cached_property
    def smoothness(self) -> float:
        return float(max(self.over(tasks.smoothest).each))

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
        return float(self.over(tasks.valued, (outer,), (inner,)).sums[0])

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        return self._evaluated(*self._outer_inner(x))

    def arrived(self, a: float, x: Factors, d: Factors, there: Factors) -> Evaluated:
        """f and its gradient at `there`, usually x + a·d: then the shared parts of x and d need not be sent again."""
        (_, base), (_, direction), (outer, inner) = (self._outer_inner(one) for one in (x, d, there))
        same = np.array_equal(base + a * direction, inner)  # a term may have moved it into its domain
        return self._evaluated(outer, Moved(inner, base, direction, a) if same else inner)

    def _evaluated(self, outer: Array, inner: Array | Moved) -> Evaluated:
        foresee_inners((outer, outer))  # which penalties need
        (left,), (f, right), _ = self.over(tasks.evaluated, (outer,), (inner,))
        return Evaluated(float(f), *self.sides(left, right), None)

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return BlockSlopes(self, x).H if self.store.flipped else BlockSlopes(self, x)

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        def times(d: Factors) -> tuple[Array, Array]:
            (left,), (right,), _ = self.over(tasks.bent, *self._moving(x, d))
            return self.sides(left, right)

        return times

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        return BlockCurve(self, x, d) if self.quadratic else Visited(self, x, d, self._along)

    def quartic(self, x: Factors, d: Factors) -> Array:
        """Five numbers c with f = Σₖ cₖ aᵏ at x + a·d, for squared errors."""
        found: Array = self.over(tasks.quartic, *self._moving(x, d)).sums[0]
        return found

    def _along(self, x: Factors, d: Factors) -> tuple[float, float, float]:
        value, slope, curvature = self.over(tasks.along, *self._moving(x, d), settings=(0.0,)).sums[0]
        return float(value), float(slope), float(curvature)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact:
        outer, inner = self._outer_inner(x)
        inside = int(bool(side) != self.store.flipped)
        (tall, sums, _) = self.over(tasks.exact, (outer,), (inner,), (inside, score))
        packed = sums[0] if inside else host(tall[0])
        return Exact(packed if rows is None else packed[slice(*rows)], x.width)

    @property
    def fitted(self) -> tuple[float, ...]:
        return self.loss.fitted

    @property
    def scales(self) -> bool:
        return self.loss.scales

    def refit(self, x: Factors, z: Measurements = None) -> "Partitioned":
        """The same with the parameters that fit best to some observations, evenly spread over all blocks."""
        outer, inner = self._outer_inner(x)
        step = -(-sum(part.size for part in self.store.parts) // tasks.FITTED)
        z, y, w = zip(*self.over(tasks.sampled, (outer,), (inner,), (step,)).each, strict=True)
        weights = None if w[0] is None else np.concatenate(w)
        return self._with(self.loss.refit(np.concatenate(z), np.concatenate(y), weights))

    def with_fitted(self, fitted: tuple[float, ...]) -> "Partitioned":
        return self._with(self.loss.with_fitted(fitted))

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

    def over(
        self,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | Moved] = (),
        settings: tuple[Any, ...] = (),
    ) -> Gathered:
        """A pass over all blocks."""
        return self.executor.over(self.store.parts, self.recipe, task, tall, shared, settings)

    def _outer_inner(self, x: Factors) -> tuple[Array, Array]:
        require_pair(x.left, x.right, self.shape)
        outer, inner = self.sides(x.left, x.right)
        return outer, host(inner)

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
        found: Array = self.bound.over(tasks.times, (self.P,), (self.Q, host(V))).tall[0]
        return found

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        found: Array = self.bound.over(tasks.times_transposed, (self.P, U), (self.Q,)).sums[0]
        return found

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        (left,), (right,), _ = self.bound.over(tasks.sloped, (self.P, U), (self.Q, host(V)))
        return left, right

    def normal(self, V: Array, rows: Array | None = None) -> Array:
        require_rows(V, self.shape[1])
        tall = (self.P,) if rows is None else (self.P, rows)
        found: Array = self.bound.over(tasks.normal, tall, (self.Q, host(V))).sums[0]
        return found
