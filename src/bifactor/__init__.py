"""bifactor finds low-rank matrices: it minimises a smooth convex f over X = UVᴴ by descent on U and V."""

from typing import TYPE_CHECKING

import bifactor._compat  # noqa: F401  # before any other thread imports more
from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor import anndata as anndata
    from bifactor import data as data
    from bifactor import errors as errors
    from bifactor import estimators as estimators
    from bifactor import executors as executors
    from bifactor import extend as extend
    from bifactor import inits as inits
    from bifactor import losses as losses
    from bifactor import metrics as metrics
    from bifactor import models as models
    from bifactor import operators as operators
    from bifactor import penalties as penalties
    from bifactor import ranking as ranking
    from bifactor import solvers as solvers
    from bifactor import steps as steps
    from bifactor import testing as testing
    from bifactor.estimators import FactorAnalysis as FactorAnalysis
    from bifactor.estimators import ImageCompletion as ImageCompletion
    from bifactor.estimators import LogisticPCA as LogisticPCA
    from bifactor.estimators import MatrixCompletion as MatrixCompletion
    from bifactor.estimators import OneBitCompletion as OneBitCompletion
    from bifactor.estimators import PoissonPCA as PoissonPCA
    from bifactor.estimators import Recommender as Recommender
    from bifactor.estimators import StateTomography as StateTomography
    from bifactor.estimators import TableImputer as TableImputer
    from bifactor.kernels.threading import threads as threads
    from bifactor.models import load as load
    from bifactor.operators.all_cells import all_cells as all_cells
    from bifactor.problems import Function as Function
    from bifactor.problems import Objective as Objective
    from bifactor.problems import Problem as Problem
    from bifactor.running.result import History as History
    from bifactor.running.result import Result as Result
    from bifactor.running.result import Status as Status
    from bifactor.running.search import Search as Search
    from bifactor.running.solve import solve as solve

_ROOMS = "anndata data errors estimators executors extend inits losses metrics models operators penalties plots "
_ROOMS += "ranking solvers steps testing"
_ESTIMATORS = "FactorAnalysis ImageCompletion LogisticPCA MatrixCompletion OneBitCompletion PoissonPCA "
_ESTIMATORS += "Recommender StateTomography TableImputer"
if not TYPE_CHECKING:  # otherwise a misspelt name would be of type Any
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            **{room: room for room in _ROOMS.split()},
            **dict.fromkeys(_ESTIMATORS.split(), "estimators"),
            **dict.fromkeys(("Function", "Objective", "Problem"), "problems"),
            **dict.fromkeys(("History", "Result", "Status"), "running.result"),
            "all_cells": "operators.all_cells",
            "load": "models",
            "Search": "running.search",
            "solve": "running.solve",
            "threads": "kernels.threading",
        },
    )
