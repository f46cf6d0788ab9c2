"""Which solver to take where the user names none."""

from bifactor.problems.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.solvers.pcg import PCG
from bifactor.solvers.race import Race
from bifactor.solvers.rank_continuation import RankContinuation

SCARCE = 2.5
"""Observed entries per degree of freedom below which no single continuation is sure to arrive."""


def recommended(problem: Objective, rank: int) -> Solver:
    """PCG where measurements are spread over all of X, or a ridge smooths the landscape; else with continuation.

    Where entries are observed, PCG from the spectral start fails in a third of problems at three to four entries per
    degree of freedom, and in most that are ill-conditioned; rank continuation has solved them all and costs little
    more. With still fewer entries it meets its limits on flat spectra, and ridge homotopy its own on steep
    ones: there they race. The measurements are in docs/performance.md.
    """
    sampling = problem.oversampling(rank)
    if sampling is None or problem.penalties:
        return RankContinuation(stages=1) if problem.kind.fixed_columns else PCG()  # offsets first, then the rest
    return RankContinuation() if sampling >= SCARCE else Race()
