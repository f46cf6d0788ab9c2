"""Variational Bayes: the posterior of the factors, without tuning parameters."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.threading import thread_count
from bifactor.operators import Entries, Partitioned
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective, Problem
from bifactor.problems.state import State
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_no_penalty, require_numpy, require_two_factors
from bifactor.solvers.variational.block_sweeps import BlockSweeps, Swept
from bifactor.solvers.variational.features import MAX_JOINT_FEATURES, FeatureMatrix
from bifactor.solvers.variational.noise import Noise, NoiseName, noise_named
from bifactor.solvers.variational.posterior import Posterior
from bifactor.solvers.variational.sweeps import EntrySweeps, Inferred, Sweeps
from bifactor.validation import is_at_least_zero, require_flag

PriorModel = Literal["separate", "shared"]

FEATURES = ("row_features", "column_features")

IN_BLOCKS = 7
"""The number of tables of packed matrices of the shorter side in sweeps over blocks, besides those of threads."""

Known = Inferred | Swept
"""The state of a solver for data in memory, or for data in blocks."""


@dataclass(frozen=True)
class Variational(Solver[Known]):
    """The posterior of the factors, by coordinate ascent on the variational bound of the evidence.

        y = z + noise,  z = (UVᵀ)ᵢⱼ,  uᵢₖ ~ N(0, 1/aₖ),  vⱼₖ ~ N(0, 1/dₖ),  q(uᵢ) = N(mᵢ, Cᵢ),  q(vⱼ) = N(nⱼ, Sⱼ)

    Each row of each factor has a mean and a full covariance. The precisions of the priors, one for each column, and the
    noise are fitted during the run, so that there is nothing to tune and nothing is held out: a column that explains
    nothing gets an infinite precision. After a sweep the factors are rotated to maximise the bound.

    The objective is the negative bound, in nats: it never increases, and is comparable between ranks and noise models.
    `Result.U` and `Result.V` are the means, and `Result.posterior` has their uncertainty. `Result.problem` is least
    squares in the means, plus the contribution of the covariances. The loss must be squared errors of observed entries;
    weights are precisions relative to the noise.

    Data may also be in blocks: an `Objective` of `operators.Partitioned`. A sweep is then one pass over them, and only
    the means of the longer side are kept, m·r numbers, besides n·r² of the shorter one. Error bars of the longer side
    are computed on demand: `Result.posterior` reads the blocks of those rows again. A pickled one has none.

    Parameters
    ----------
    noise : "one", "columns", "rows", "both" or "student"
        The noise model: one variance for all entries; a factor of it for each column, for each row, or for both; or a
        factor for each entry, which makes the noise Student's t and is for data with outliers. These factors have a
        gamma posterior; the strength with which they are drawn to 1, for t the degrees of freedom, is fitted, too.
        "student" is not available for data in blocks.
    prior : "separate" or "shared"
        Whether each column of a factor has its own prior precision, so that columns that explain nothing vanish, or all
        components share one, apart from effects of rows and columns. The bound mostly prefers separate ones. If rows
        have few entries and one component dominates, a shared precision may predict better, because it restrains that
        component; it needs a rank that is not too large.
    row_features, column_features : array or sparse matrix, optional
        Features of the rows and of the columns, one line of numbers for each. They determine the means of the priors,
        uᵢ ~ N(fᵢA, 1/a), where A is fitted with its own posterior; thousands of uninformative ones may do harm. A
        constant is added. They should have been standardised, as estimators do: the prior of A prefers features of
        similar size. Rows without entries are predicted by fᵢA. Neither these nor `implicit` are available for data in
        blocks.
    implicit : bool
        Whether the sets of columns in which a row is known, and of rows in which a column is known, are features, too,
        independently of the values (SVD++): 1/√n at each of the n columns of a row.
    tol : float
        The tolerance: the run has converged when the root mean square change of predictions of the entries is below
        this share of the noise in three consecutive sweeps. 0 leaves stopping to the tests of `solve`.

    References
    ----------
    Y. J. Lim and Y. W. Teh, Variational Bayesian approach to movie rating prediction, KDD Cup 2007. A. Ilin and
    T. Raiko, Practical approaches to principal component analysis in the presence of missing values, JMLR 11 (2010).
    B. Lakshminarayanan, G. Bouchard and C. Archambeau, Robust Bayesian matrix factorisation, AISTATS 2011. D. Agarwal
    and B.-C. Chen, Regression-based latent factor models, KDD 2009. Y. Koren, Factorization meets the neighborhood: a
    multifaceted collaborative filtering model, KDD 2008.
    """

    noise: NoiseName = "one"
    prior: PriorModel = "separate"
    tol: float = 3e-3
    row_features: Any = None
    column_features: Any = None
    implicit: bool = False
    outermost = True

    def __post_init__(self) -> None:
        noise_named(self.noise)
        if self.prior not in get_args(PriorModel):
            raise InputError(f"prior={self.prior!r} is not a prior. Pass 'separate' or 'shared'.")
        if not is_at_least_zero(self.tol):
            raise InputError(f"tol={self.tol!r} is not a number ≥ 0. Use 0 to turn the test off.")
        require_flag(self.implicit, "implicit")
        for name in FEATURES:
            object.__setattr__(self, name, FeatureMatrix.of(getattr(self, name), name))

    @property
    def noise_model(self) -> Noise:
        """The noise model of this name, before the fit."""
        return noise_named(self.noise)

    def with_features(self, row_features: Any, column_features: Any) -> "Variational":
        """The same solver with features; None keeps those that it has."""
        given = {
            name: one for name, one in zip(FEATURES, (row_features, column_features), strict=True) if one is not None
        }
        return replace(self, **given) if given else self

    def check(self, problem: Objective, rank: int) -> None:
        if not isinstance(problem.f, Partitioned):
            require_numpy(self, problem)
        require_no_penalty(self, problem)
        require_two_factors(self, problem)
        entries = isinstance(problem, Problem) and isinstance(problem.operator, Entries)
        entries = entries or isinstance(problem.f, Partitioned)
        if not (entries and problem.f.quadratic) or np.dtype(problem.dtype).kind == "c":
            raise InputError("Variational is for squared errors of real observed entries. Use PCG here.")
        if problem.f.data is not problem.f:
            raise InputError("Variational does not support all_cells. Use PCG here.")
        if isinstance(problem.f, Partitioned):
            self._check_blocks()
        for given, name, rows in zip((self.row_features, self.column_features), FEATURES, problem.shape, strict=True):
            if given is not None:
                given.require_rows(rows, name)
        if not self._sweeps(problem).about.representable(problem.dtype):
            raise InputError(f"With y of this size, precisions overflow in {problem.dtype}. Rescale y to around 1.")

    def _check_blocks(self) -> None:
        told = [name for name in FEATURES if getattr(self, name) is not None] + ["implicit"] * self.implicit
        told = [f"noise={self.noise!r}"] * self.noise_model.per_entry + told
        if told:
            raise InputError(
                f"Variational does not support {told[0]} for data in blocks. Leave it out, or pass entries in memory."
            )

    def peak(self, problem: Objective, rank: int) -> int:
        width = rank + problem.kind.fixed_columns
        packed = 8 * width * (width + 1) // 2
        if isinstance(problem.f, Partitioned):
            means = run_memory(problem, rank, pairs=6, lengths=0)
            return means + (IN_BLOCKS + thread_count()) * min(problem.shape) * packed
        tables, lengths = (8, 11) if self.noise_model.per_entry else (6, 5)
        wide = 8 / np.dtype(problem.dtype).itemsize  # sums are taken in double precision
        usual = run_memory(problem, rank, pairs=8, lengths=wide * lengths) + tables * sum(problem.shape) * packed
        given = zip((self.row_features, self.column_features), problem.shape, problem.shape[::-1], strict=True)
        return usual + sum(self._features_memory(problem, width, *side) for side in given)

    def _features_memory(
        self, problem: Objective, width: int, given: FeatureMatrix | None, rows: int, others: int
    ) -> int:
        """Bytes of the features of one side, without the tables that were passed."""
        if given is None and not self.implicit:
            return 0
        count, known = (1, rows) if given is None else (given.matrix.shape[1] + 1, given.matrix.nnz + rows)
        entries = problem.f.footprint(width).z // np.dtype(problem.dtype).itemsize
        count, known = (count + others, known + entries) if self.implicit else (count, known)
        return 8 * (6 * width * (rows + count) + 6 * known + 5 * min(count, MAX_JOINT_FEATURES) ** 2)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Known]:
        return self._sweeps(problem).init(x)

    def step(self, problem: Objective, state: State[Known]) -> State[Known]:
        return self._sweeps(problem).step(state)

    def current(self, problem: Objective, state: State[Known]) -> Objective:
        """Least squares in the means, plus the contribution of the covariances."""
        return self._sweeps(problem).current(state)

    def posterior(self, problem: Objective, state: State[Known]) -> Posterior:
        return self._sweeps(problem).posterior(state)

    def _sweeps(self, problem: Objective) -> Sweeps[Any]:
        shared, features = self.prior == "shared", (self.row_features, self.column_features)
        if isinstance(problem.f, Partitioned):
            return BlockSweeps(problem, self.noise_model, shared, self.tol)
        return EntrySweeps(problem, self.noise_model, shared, self.tol, features, self.implicit)
