"""The default solver of a problem."""

from bifactor.problems.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.solvers.pcg import PCG
from bifactor.solvers.race import Race
from bifactor.solvers.rank_continuation import RankContinuation

SCARCE = 2.5
"""Observed entries per degree of freedom below which no single continuation succeeds reliably."""


def default_solver(problem: Objective, rank: int) -> Solver:
    """PCG if measurements are spread over all of X or there is a penalty, otherwise a continuation.

    Before PCG, fixed columns such as offsets are fitted alone.

    For observed entries, PCG from the spectral start fails on a third of the problems with three to four entries per
    degree of freedom, and on most that are ill-conditioned; rank continuation has solved all of them at little extra
    cost. With even fewer entries, it fails on some flat spectra, and ridge homotopy on some steep ones, so a race of
    the two is used. The measurements are in docs/performance.md.
    """
    sampling = problem.oversampling(rank)
    if sampling is None or problem.penalties:
        return RankContinuation(stages=1) if problem.kind.fixed_columns else PCG()  # offsets first, then the rest
    return RankContinuation() if sampling >= SCARCE else Race()
