"""Requirements of solvers, checked before any work."""

from collections.abc import Iterator
from contextlib import contextmanager

from bifactor.arrays import is_foreign, where
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.problems.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.validation import require_instance


def require_plain(solver: Solver, problem: Objective) -> None:
    """Require a problem without penalty and fixed columns."""
    if problem.penalties:
        raise InputError(f"{_name(solver)} minimises f alone, but the penalty is {_shown(problem)}. Use PCG.")
    require_no_fixed(solver, problem)


def require_no_penalty(solver: Solver, problem: Objective) -> None:
    if problem.penalties:
        raise InputError(f"{_name(solver)} fits its own priors, but the penalty is {_shown(problem)}. Leave it out.")


def require_two_factors(solver: Solver, problem: Objective) -> None:
    if len(problem.kind.distinct(problem.zero())) != 2:
        raise InputError(
            f"{_name(solver)} finds two factors, but the problem is to find {problem.kind.describe()}. Use PCG."
        )


def require_explicit(solver: Solver, problem: Objective) -> None:
    """Require stored measurements."""
    if not problem.f.explicit:
        raise InputError(f"{_name(solver)} works on the measurements, but these are not stored here. Use PCG.")


def require_numpy(solver: Solver, problem: Objective) -> None:
    """Require NumPy arrays."""
    if is_foreign(problem.f.like):
        raise InputError(f"{_name(solver)} works on NumPy arrays, but y is in {where(problem.f.like)}. Use PCG.")


def require_no_fixed(solver: Solver, problem: Objective) -> None:
    """Require a problem without offsets and other fixed columns."""
    if problem.kind.fixed_columns:
        raise InputError(f"{_name(solver)} does not support offsets or fixed columns. Use PCG, or leave them out.")


def require_free(solver: Solver, problem: Objective) -> None:
    """Require two unknown factors."""
    if not isinstance(problem.kind, Free):
        raise InputError(
            f"{_name(solver)} finds X = UVᴴ, but the problem is to find {problem.kind.describe()}. Use PCG."
        )


def require_ridge(solver: Solver, problem: Objective, optional: bool = False) -> None:
    """Require a ridge that amounts to ρ‖X‖_*, or no penalty if it is `optional`."""
    if optional and not problem.penalties:
        return
    if not problem.penalties or problem.nuclear is None or not problem.nuclear.even:
        raise InputError(
            f"{_name(solver)} needs a ridge, which amounts to ρ‖X‖_*, but the penalty is {_shown(problem)}. "
            "Pass Problem(…, penalty=penalties.Ridge(rho))."
        )


def _shown(problem: Objective) -> str:
    return ", ".join(map(repr, problem.penalties)) or "None"


def require_inner(wrapper: Solver, solver: Solver) -> None:
    """Require a solver that others may wrap."""
    require_instance(solver, Solver, "solver")
    if solver.outermost:
        raise InputError(f"{_name(wrapper)} cannot wrap {_name(solver)}. Wrap them the other way round.")


@contextmanager
def wrapping(wrapper: Solver, solver: Solver, stages: str = "") -> Iterator[None]:
    """Add the name of the wrapper, and a description of its stages, to errors of an inner solver."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{_name(wrapper)}{stages} cannot run {_name(solver)} here: {error}") from None


def _name(solver: Solver) -> str:
    return type(solver).__name__
