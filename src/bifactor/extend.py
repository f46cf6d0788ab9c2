"""The names that an extension needs besides its base classes; the pages on extending the library import from here.

The base classes are in their subpackages: `losses.Loss`, `operators.Operator`, `penalties.Penalty`, `solvers.Solver`,
`steps.StepSize`, `inits.Init`. Names in this module stay here when files move.
"""

from bifactor.arrays import Array, conj, herm, inner, is_complex, namespace, norm
from bifactor.blocks import Blocks, Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Factors, Free, require_symmetric
from bifactor.linear_map import Dense, LinearMap, LowRankPlus
from bifactor.losses.base import COUNTS, NUMBERS, SIGNS
from bifactor.operators.base import matrix_shape, power_norm_squared, probed_mean_square
from bifactor.operators.bound import Footprint, Measured, MeasuredCurve
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory, search_memory
from bifactor.problems.state import Moving, Nothing, Phase, Point, Provisional, Settled, Staged, Stalled, State, Value
from bifactor.solvers.preconditioner import preconditioned
from bifactor.solvers.requirements import (
    require_explicit,
    require_free,
    require_no_fixed,
    require_numpy,
    require_plain,
    require_ridge,
)
from bifactor.steps.base import Step, backtrack, reciprocal
from bifactor.validation import (
    require_finite,
    require_flag,
    require_instance,
    require_measurements,
    require_rows,
    settle_nonnegative,
    settle_positive,
)

__all__ = [
    "COUNTS",
    "NUMBERS",
    "SIGNS",
    "Array",
    "Blocks",
    "Dense",
    "Exact",
    "FactorCurve",
    "Factors",
    "Footprint",
    "Free",
    "InputError",
    "LinearMap",
    "LowRankPlus",
    "Measured",
    "MeasuredCurve",
    "Moving",
    "Nothing",
    "Phase",
    "Point",
    "Provisional",
    "Settled",
    "Shared",
    "Staged",
    "Stalled",
    "State",
    "Step",
    "Value",
    "backtrack",
    "conj",
    "herm",
    "inner",
    "is_complex",
    "matrix_shape",
    "namespace",
    "norm",
    "power_norm_squared",
    "preconditioned",
    "probed_mean_square",
    "reciprocal",
    "require_explicit",
    "require_finite",
    "require_flag",
    "require_free",
    "require_instance",
    "require_measurements",
    "require_no_fixed",
    "require_numpy",
    "require_plain",
    "require_ridge",
    "require_rows",
    "require_symmetric",
    "run_memory",
    "search_memory",
    "settle_nonnegative",
    "settle_positive",
]
