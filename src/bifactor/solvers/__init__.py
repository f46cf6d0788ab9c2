"""Where to move: one file per solver."""

from bifactor.solvers.base import Solver
from bifactor.solvers.bfgd import BFGD
from bifactor.solvers.fgd import FGD

__all__ = ["BFGD", "FGD", "Solver"]
