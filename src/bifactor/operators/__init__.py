"""Operators A, which take measurements of X."""

from bifactor.operators.base import Operator
from bifactor.operators.bound import Bound, DataBound
from bifactor.operators.comparisons import Comparisons
from bifactor.operators.compose import Scaled, Stacked
from bifactor.operators.curves import Curve, Evaluated
from bifactor.operators.entries import Entries
from bifactor.operators.features import Featured, pattern
from bifactor.operators.full import Full
from bifactor.operators.full_table import FullTable
from bifactor.operators.gaussian import Gaussian
from bifactor.operators.linear import Linear
from bifactor.operators.partitioned import Partitioned
from bifactor.operators.pauli import Pauli
from bifactor.operators.rank_one import RankOne
from bifactor.operators.recomputed import Recomputed
from bifactor.operators.subsampled import Subsampled
from bifactor.operators.transforms import DCT, Fourier, Hadamard, Noiselet

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
    "FullTable",
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
    "pattern",
]
