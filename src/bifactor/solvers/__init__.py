"""Where to move: one file per solver."""

from bifactor.solvers.base import Solver
from bifactor.solvers.bfgd import BFGD
from bifactor.solvers.fgd import FGD
from bifactor.solvers.newton import Newton
from bifactor.solvers.pcg import PCG
from bifactor.solvers.race import Race
from bifactor.solvers.rank_continuation import RankContinuation
from bifactor.solvers.ridge_homotopy import RidgeHomotopy
from bifactor.solvers.scaled_gd import ScaledGD
from bifactor.solvers.svp import SVP

__all__ = ["BFGD", "FGD", "PCG", "SVP", "Newton", "Race", "RankContinuation", "RidgeHomotopy", "ScaledGD", "Solver"]
