"""bifactor finds low-rank matrices: it minimises a smooth convex f over X = UVᴴ by descent on U and V."""

from bifactor import (
    errors,
    estimators,
    extend,
    inits,
    losses,
    metrics,
    operators,
    penalties,
    solvers,
    steps,
    tables,
    testing,
)
from bifactor.estimators import (
    LogisticPCA,
    LowRankImputer,
    MatrixCompletion,
    OneBitCompletion,
    PoissonPCA,
    StateTomography,
)
from bifactor.problems.function import Function
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem
from bifactor.running.result import History, Result, Status
from bifactor.running.solve import solve

__all__ = [
    "Function",
    "History",
    "LogisticPCA",
    "LowRankImputer",
    "MatrixCompletion",
    "Objective",
    "OneBitCompletion",
    "PoissonPCA",
    "Problem",
    "Result",
    "StateTomography",
    "Status",
    "errors",
    "estimators",
    "extend",
    "inits",
    "losses",
    "metrics",
    "operators",
    "penalties",
    "solve",
    "solvers",
    "steps",
    "tables",
    "testing",
]
