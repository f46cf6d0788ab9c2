"""The result of a run: factors, how it ended, and its history."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, floating, herm, to_numpy
from bifactor.display.card import BAD, FAIR, GOOD, card, charts, figures, sentence
from bifactor.display.listing import Listing
from bifactor.display.svg import CARD, bar_chart, line_chart, thinned
from bifactor.errors import FileError, InputError
from bifactor.factors import Free
from bifactor.kernels.blas import gram, matmul
from bifactor.operators import Entries
from bifactor.problems.objective import Objective
from bifactor.running import files
from bifactor.running.certificate import Certificate, certify
from bifactor.running.files import sweep
from bifactor.running.search import Search, rank_search
from bifactor.solvers.variational.posterior import Posterior
from bifactor.validation import is_count, pluralize

Figures = Sequence[tuple[object, object]]


class ShownStatus:
    """Shows a status as its sentence in notebooks. (A base class, because Enum reserves names like `_repr_html_`.)"""

    def _repr_html_(self: Any) -> str:
        return card(self.name, "", status_line(self))


def status_line(status: "Status") -> str:
    """The sentence of a status."""
    colour = GOOD if status.converged else BAD if status.name == "DIVERGED" else FAIR
    return sentence(str(status), colour)


def result_card(result: "Result") -> str:
    """The status, sizes and charts of a result."""
    m, n = result.shape
    charts = () if result.rank_search is None else result.rank_search.pictures()
    return run_card("Result", f"{m:,}×{n:,} of rank {result.rank}", result, more_charts=charts)


def run_card(
    title: str,
    detail: str,
    result: "Result",
    more: Figures = (),
    more_charts: Sequence[str] = (),
    factors: tuple[Array, Array] | None = None,
) -> str:
    """A card of a run, with additional figures and charts; the spectrum is that of `factors`, if given."""
    misfit = None if result.misfit is None else f"{result.misfit:.3g}"
    shown = [
        *more,
        (f"{result.n_iter:,}", "iterations"),
        (f"{result.objective:.6g}", "objective"),
        (misfit, "misfit ‖A(X) − y‖/‖y‖"),
        (f"{result.history.seconds[-1]:.3g} s", "time"),
        (result.solver.split("(")[0], "solver"),
    ]
    pictures = [objective_chart(result.history), spectrum_chart(*(factors or (result.U, result.V)))]
    return card(title, detail, status_line(result.status), figures(shown), charts(*pictures, *more_charts))


def objective_chart(history: "History") -> str:
    """The objective against the iterations, on a logarithmic axis if it is positive."""
    some = thinned(history.objective.size)
    values, log = history.objective[some], bool(np.all(history.objective > 0))
    return line_chart(some, values, "iteration", "objective", whole_x=True, log_y=log, frame=CARD)


def spectrum_chart(U: Array, V: Array) -> str:
    """The singular values of UVᴴ."""
    values = np.zeros(0) if U.shape[1] == 0 else to_numpy(Free().pair(U, V).triplets()[1])
    return bar_chart(values, "component", "singular value", CARD)


_SEARCH, _COLUMNS = "rank_path:", ("rank", "train", "held_out", "error")
"""Names of the arrays of a search in files."""

PRECISIONS = (np.float32, np.float64, np.complex64, np.complex128)
"""The dtypes of factors."""


class Status(ShownStatus, Enum):
    """How a run ended: each value is a sentence that says what it means and what to try."""

    CONVERGED = "converged: X hardly changes any more, and the gradient is small"
    GRADIENT = "converged: the gradient is zero, or has fallen below gradient_tol times its first norm"
    SETTLED = "converged: the solver's own test of optimality is met"
    PRECISION = "converged to the limits of this precision: any further decrease is lost in rounding"
    RELATIVE_CHANGE = (
        "stopped by tol: X changes by less than that from one iteration to the next, but the gradient is not small; "
        "lower tol, or try another step rule, solver or start"
    )
    PLATEAU = (
        "stopped by objective_tol: the objective fell by less than that share in ten iterations; "
        "the gradient is not small yet"
    )
    STALLED = (
        "stopped because no step lowers the objective, though its gradient says one should: "
        "if you wrote the loss or function, try bifactor.testing.check_gradient"
    )
    MAX_ITER = "stopped at max_iter before converging: raise max_iter, or try a faster step rule or solver"
    TIME_LIMIT = "stopped at time_limit before converging: the best iterate so far is returned"
    CALLBACK = "stopped because the callback returned True"
    INTERRUPTED = "interrupted from the keyboard: the best iterate so far is returned"
    DIVERGED = (
        "diverged: the objective grew without bound or overflowed, the best iterate is returned; "
        "try steps.Backtracking(), a smaller step, or a start of the right size"
    )

    @property
    def converged(self) -> bool:
        """Whether the gradient is small, a test of optimality is met, or only rounding is left."""
        return self in (Status.CONVERGED, Status.GRADIENT, Status.SETTLED, Status.PRECISION)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, repr=False)
class History(Listing):
    """One number per iteration, including the start, so each array has n_iter + 1 of them.

    `objective` is F = f + the penalty, and `gradient_norm` that of F over both factors (of the pair (U, U) if X = UUᴴ),
    in every phase of every solver. `relative_change` is ‖Xₜ − Xₜ₋₁‖_F/‖Xₜ‖_F, where the start is compared with X = 0;
    `seconds` counts from the call of `solve`. It prints as a table, and `to_frame` converts it to a data frame.
    """

    objective: Array
    gradient_norm: Array
    relative_change: Array
    seconds: Array

    def columns(self) -> dict[str, Array]:
        """The columns by name, the number of the iteration first."""
        return {"iteration": np.arange(self.objective.size), **super().columns()}

    def _about(self) -> str:
        return pluralize(self.objective.size - 1, "iteration")


@dataclass(frozen=True, eq=False)
class Result:
    """X = UVᴴ in factored form. Only `matrix()` ever forms X.

    `objective` is F(U, V), f plus the penalty of the problem, without terms that a solver adds. U and V are those of
    the iteration with the least objective. Every number in a Result is finite.
    """

    U: Array
    V: Array
    status: Status
    n_iter: int
    objective: float
    history: History
    solver: str
    rank_search: Search | None = None
    """How the rank was chosen, if it was `"auto"`."""
    problem: Objective | None = field(default=None, repr=False)
    """The problem that was solved; not written to files."""
    posterior: Posterior | None = field(default=None, repr=False)
    """The uncertainty of the factors, if the solver computes it, as `Variational` does; not written to files."""

    def __repr__(self) -> str:
        m, n = self.shape
        misfit = "" if self.misfit is None else f", misfit {self.misfit:.3g}"
        return (
            f"Result({m}×{n} of rank {self.rank}, {self.status.name} after {pluralize(self.n_iter, 'iteration')}, "
            f"objective {self.objective:.6g}{misfit})"
        )

    def _repr_html_(self) -> str:
        return result_card(self)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.U.shape[0]), int(self.V.shape[0])

    @property
    def rank(self) -> int:
        """The number of columns of the factors."""
        return int(self.U.shape[1])

    @cached_property
    def misfit(self) -> float | None:
        """(f(X)/f(0))^½ for squared errors, which is ‖A(X) − y‖/‖y‖; None for other losses, and without a problem.

        The term that `all_cells` adds to f is not included.

        If it is near 1, X explains almost nothing of y, even if the run has converged: y, or the entries of X in your
        own operator, may be in another order than you expect.
        """
        if self.problem is None or not self.problem.f.quadratic:
            return None
        with np.errstate(all="ignore"):
            nothing = self.problem.f.data.value(self.problem.zero(1))
            left = self.problem.f.data.value(self.problem.kind.pair(self.U, self.V))
        return (max(left, 0.0) / nothing) ** 0.5 if nothing > 0 else None

    @cached_property
    def certificate(self) -> Certificate:
        """A proof of optimality, or a bound on the distance from it, computed on first access; see `Certificate`."""
        if self.problem is None:
            raise InputError("This Result was read from a file, which holds no problem. Solve again for a certificate.")
        return certify(self.problem, self.problem.kind.pair(self.U, self.V))

    def balanced(self) -> "Result":
        """The same X with factors such that UᴴU = VᴴV; unchanged if a penalty or fixed columns do not allow this."""
        if self.problem is not None and not self.problem.invariant:
            return self
        x = (Free() if self.problem is None else self.problem.kind).pair(self.U, self.V).balanced()
        return replace(self, U=x.left, V=x.right)

    def truncated(self, rank: int) -> "Result":
        """The nearest matrix of a lower rank, with balanced factors and its objective.

        After a convex solver, which penalises all singular values, this is also known as debiasing.
        """
        problem = self.problem
        if problem is None:
            raise InputError("This Result was read from a file, which holds no problem. Truncate it before saving.")
        if self.posterior is not None:
            raise InputError("This Result has a posterior, which belongs to all of its columns. Solve at a lower rank.")
        if problem.kind.fixed_columns or not (is_count(rank, 1) and rank <= self.rank):
            raise InputError(
                f"rank={rank!r} is not possible. Choose one from 1 to {self.rank}; fixed columns cannot be truncated."
            )
        A, s, B = problem.kind.pair(self.U, self.V).triplets()
        x = problem.new_columns.rescale_sides(problem.kind.from_triplets(A[:, :rank], s[:rank], B[:, :rank]))
        return replace(self, U=x.left, V=x.right, objective=problem.objective(x))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "problem"} | {"problem": None}

    def predict(self, rows: Array, cols: Array) -> Array:
        """X at the coordinates (rows[t], cols[t])."""
        if np.size(rows) == 0 and np.size(cols) == 0:
            return self.U[:0, 0]
        return Entries(rows, cols, self.shape).forward(self.U, self.V)

    def apply(self, B: Array) -> Array:
        """X B for a vector or a matrix B, at the cost of two thin products."""
        B = floating(B, "B")
        if B.ndim not in (1, 2) or B.shape[0] != self.shape[1]:
            raise InputError(f"B has shape {B.shape}, but X is {self.shape[0]}×{self.shape[1]}. Its rows must match.")
        product = matmul(self.U, gram(self.V, B[:, None] if B.ndim == 1 else B))
        return product[:, 0] if B.ndim == 1 else product

    def matrix(self) -> Array:
        """X itself, m×n and dense."""
        return matmul(self.U, herm(self.V))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to one safetensors file, atomically. An existing file is replaced; links are followed."""
        arrays = {"U": to_numpy(self.U), "V": to_numpy(self.V), **asdict(self.history)}
        if self.rank_search is not None:
            found = self.rank_search
            columns = found["rank"], found["train"], found.score, found["standard_error"]
            arrays |= {_SEARCH + name: array for name, array in zip(_COLUMNS, columns, strict=True)}
        metadata = {
            "status": self.status.name,
            "n_iter": self.n_iter,
            "objective": self.objective,
            "solver": self.solver,
        }
        files.write(path, "result", arrays, metadata)
        sweep(Path(os.path.realpath(path)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Read what `save` wrote."""
        arrays, metadata = files.read(path, "result")
        try:
            return _restored(arrays, metadata)
        except KeyError as error:
            raise FileError(f"{path} lacks {error}. It was written by another version of bifactor.") from None
        except (TypeError, ValueError) as error:
            raise FileError(f"{path} is damaged: {error}. Solve again.") from None


def _restored(arrays: dict[str, Array], metadata: dict[str, Any]) -> Result:
    """The result in a file; raises `ValueError`, with part of a sentence, if it is not valid."""
    U, V = arrays["U"], arrays["V"]
    for name, factor in (("U", U), ("V", V)):
        if factor.ndim != 2 or factor.shape[0] == 0 or factor.dtype not in PRECISIONS or factor.dtype != U.dtype:
            raise ValueError(f"{name} is {factor.dtype} of shape {factor.shape}")
        _require_finite(name, factor)
        with np.errstate(over="ignore"):
            if not np.linalg.norm(factor) <= float(np.finfo(factor.dtype).max) ** 0.5:
                raise ValueError(f"{name} holds numbers whose squares overflow")
    if U.shape[1] != V.shape[1]:
        raise ValueError(f"U and V have {U.shape[1]} and {V.shape[1]} columns")
    status, n_iter, objective, solver = (metadata[key] for key in ("status", "n_iter", "objective", "solver"))
    if status not in Status.__members__ or not is_count(n_iter, 0) or not isinstance(solver, str):
        raise ValueError(f"it ended as {str(status)[:40]!r} after {str(n_iter)[:40]} iterations")
    if type(objective) not in (int, float) or not abs(objective) <= sys.float_info.max:
        raise ValueError(f"the objective is {str(objective)[:40]!r}")
    history = History(**{part.name: _vector(arrays, part.name, n_iter + 1) for part in fields(History)})
    search = _restored_search(arrays)
    return Result(U, V, Status[status], n_iter, float(objective), history, solver, search)


def _restored_search(arrays: dict[str, Array]) -> Search | None:
    names = {name.removeprefix(_SEARCH) for name in arrays if name.startswith(_SEARCH)}
    if not names:
        return None
    if names != {*_COLUMNS}:
        raise ValueError(f"the ranks that were tried have {', '.join(sorted(names))}")
    size = arrays[_SEARCH + "rank"].size
    rank, train, held_out, error = (_vector(arrays, _SEARCH + name, size) for name in _COLUMNS)
    return rank_search(rank, train, held_out, error)


def _vector(arrays: dict[str, Array], name: str, size: int) -> Array:
    array = arrays[name]
    if array.shape != (size,) or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    _require_finite(name, array)
    return array


def _require_finite(name: str, array: Array) -> None:
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds NaN or infinite numbers")
