"""What some solvers cannot serve, refused before any work."""

from collections.abc import Iterator
from contextlib import contextmanager

from bifactor.arrays import is_foreign, where
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.problems.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.validation import require_instance


def require_plain(solver: Solver, problem: Objective) -> None:
    """f alone: no penalty, no fixed columns."""
    if problem.penalties:
        raise InputError(f"{_name(solver)} minimises f alone, but the penalty is {_shown(problem)}. Use PCG.")
    require_no_fixed(solver, problem)


def require_no_penalty(solver: Solver, problem: Objective) -> None:
    if problem.penalties:
        raise InputError(f"{_name(solver)} fits priors of its own, but the penalty is {_shown(problem)}. Leave it out.")


def require_two_factors(solver: Solver, problem: Objective) -> None:
    if len(problem.kind.distinct(problem.zero())) != 2:
        raise InputError(
            f"{_name(solver)} looks for two factors, but the problem for {problem.kind.describe()}. Use PCG."
        )


def require_explicit(solver: Solver, problem: Objective) -> None:
    """Measurements that are stored."""
    if not problem.f.explicit:
        raise InputError(f"{_name(solver)} works on the measurements, and these are not stored here. Use PCG.")


def require_numpy(solver: Solver, problem: Objective) -> None:
    """Arrays of NumPy."""
    if is_foreign(problem.f.like):
        raise InputError(f"{_name(solver)} works on NumPy's arrays, but y is in {where(problem.f.like)}. Use PCG.")


def require_no_fixed(solver: Solver, problem: Objective) -> None:
    """No offsets or other fixed columns."""
    if problem.kind.fixed_columns:
        raise InputError(f"{_name(solver)} knows no offsets or other fixed columns. Use PCG, or leave them out.")


def require_free(solver: Solver, problem: Objective) -> None:
    """Two factors, both unknown."""
    if not isinstance(problem.kind, Free):
        raise InputError(
            f"{_name(solver)} finds X = UVᴴ, but the problem looks for {problem.kind.describe()}. Use PCG."
        )


def require_ridge(solver: Solver, problem: Objective, optional: bool = False) -> None:
    """f and ρ‖X‖_* in disguise, or f alone where it is `optional`."""
    if optional and not problem.penalties:
        return
    if not problem.penalties or problem.nuclear is None or not problem.nuclear.even:
        raise InputError(
            f"{_name(solver)} is made for a ridge, ρ‖X‖_* in disguise, but the penalty is {_shown(problem)}. "
            "Pass Problem(…, penalty=penalties.Ridge(rho))."
        )


def _shown(problem: Objective) -> str:
    return ", ".join(map(repr, problem.penalties)) or "None"


def require_inner(wrapper: Solver, solver: Solver) -> None:
    """A solver that others may wrap."""
    require_instance(solver, Solver, "solver")
    if solver.outermost:
        raise InputError(f"{_name(wrapper)} cannot wrap {_name(solver)}. Wrap the other way round.")


@contextmanager
def wrapping(wrapper: Solver, solver: Solver, stages: str = "") -> Iterator[None]:
    """What an inner solver refuses is said with the name of the one that runs it, and what its stages are like."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{_name(wrapper)}{stages} cannot run {_name(solver)} here: {error}") from None


def _name(solver: Solver) -> str:
    return type(solver).__name__
