"""Operators A, which take measurements of X: one file per operator."""

from bifactor.operators.base import Operator
from bifactor.operators.bound import Bound, Curve, DataBound, Evaluated
from bifactor.operators.comparisons import Comparisons
from bifactor.operators.dct import DCT
from bifactor.operators.entries import Entries
from bifactor.operators.featured import Featured
from bifactor.operators.features import pattern
from bifactor.operators.fourier import Fourier
from bifactor.operators.full import Full
from bifactor.operators.gaussian import Gaussian
from bifactor.operators.hadamard import Hadamard
from bifactor.operators.linear import Linear
from bifactor.operators.noiselet import Noiselet
from bifactor.operators.partitioned import Partitioned
from bifactor.operators.pauli import Pauli
from bifactor.operators.rank_one import RankOne
from bifactor.operators.recomputed import Recomputed
from bifactor.operators.scaled import Scaled
from bifactor.operators.stacked import Stacked
from bifactor.operators.subsampled import Subsampled
from bifactor.operators.table import Table

__all__ = [
    "DCT",
    "Bound",
    "Comparisons",
    "Curve",
    "DataBound",
    "Entries",
    "Evaluated",
    "Featured",
    "Fourier",
    "Full",
    "Gaussian",
    "Hadamard",
    "Linear",
    "Noiselet",
    "Operator",
    "Partitioned",
    "Pauli",
    "RankOne",
    "Recomputed",
    "Scaled",
    "Stacked",
    "Subsampled",
    "Table",
    "pattern",
]
