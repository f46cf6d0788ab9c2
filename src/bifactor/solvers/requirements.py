"""What some solvers cannot serve, refused before any work."""

from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.penalties import Ridge
from bifactor.solvers.base import Solver


def require_plain(solver: Solver, problem: Objective) -> None:
    """f alone: no penalty, no offsets."""
    if problem.penalty is not None:
        raise InputError(f"{_name(solver)} minimises f alone, but the penalty is {problem.penalty!r}. Use PCG.")
    require_no_offsets(solver, problem)


def require_no_offsets(solver: Solver, problem: Objective) -> None:
    if problem.offsets:
        raise InputError(f"{_name(solver)} knows no offsets of rows and columns. Use PCG, or leave offsets out.")


def require_ridge(solver: Solver, problem: Objective, optional: bool = False) -> None:
    """f and a ridge, or f alone where it is `optional`."""
    if optional and problem.penalty is None:
        return
    if not isinstance(problem.penalty, Ridge):
        raise InputError(
            f"{_name(solver)} is made for a ridge, ρ‖X‖_* in disguise, but the penalty is {problem.penalty!r}. "
            "Pass Problem(…, penalty=penalties.Ridge(rho))."
        )


def _name(solver: Solver) -> str:
    return type(solver).__name__
