"""bifactor finds low-rank matrices: it minimises a smooth convex f over X = UVᴴ by descent on U and V."""

from bifactor import (
    balance,
    datasets,
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
from bifactor.function import Function
from bifactor.objective import Objective
from bifactor.problem import Problem
from bifactor.result import History, Result, Status
from bifactor.solve import solve

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
    "balance",
    "datasets",
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
    "testing",
]
