"""Solvers, which decide where to move: one file per solver."""

from bifactor.solvers.altmin import AltMin
from bifactor.solvers.base import Solver
from bifactor.solvers.bfgd import BFGD
from bifactor.solvers.fgd import FGD
from bifactor.solvers.guaranteed_mc import GuaranteedMC
from bifactor.solvers.mifgd import MiFGD
from bifactor.solvers.newton import Newton
from bifactor.solvers.nuclear_norm import NuclearNorm
from bifactor.solvers.pcg import PCG
from bifactor.solvers.procrustes_flow import ProcrustesFlow
from bifactor.solvers.race import Race
from bifactor.solvers.rank_continuation import RankContinuation
from bifactor.solvers.refitted import Refitted
from bifactor.solvers.ridge_homotopy import RidgeHomotopy
from bifactor.solvers.scaled_gd import ScaledGD
from bifactor.solvers.soft_impute import SoftImpute
from bifactor.solvers.sparse_approx_sdp import SparseApproxSDP
from bifactor.solvers.spg import SPG
from bifactor.solvers.svp import SVP
from bifactor.solvers.variational.solver import Variational

__all__ = [
    "BFGD",
    "FGD",
    "PCG",
    "SPG",
    "SVP",
    "AltMin",
    "GuaranteedMC",
    "MiFGD",
    "Newton",
    "NuclearNorm",
    "ProcrustesFlow",
    "Race",
    "RankContinuation",
    "Refitted",
    "RidgeHomotopy",
    "ScaledGD",
    "SoftImpute",
    "Solver",
    "SparseApproxSDP",
    "Variational",
]
