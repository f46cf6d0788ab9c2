"""How measurements of X are taken: one file per operator."""

from bifactor.operators.base import Operator
from bifactor.operators.dct import DCT
from bifactor.operators.entries import Entries
from bifactor.operators.fourier import Fourier
from bifactor.operators.full import Full
from bifactor.operators.gaussian import Gaussian
from bifactor.operators.hadamard import Hadamard
from bifactor.operators.linear import Linear
from bifactor.operators.noiselet import Noiselet
from bifactor.operators.pauli import Pauli
from bifactor.operators.rank_one import RankOne
from bifactor.operators.scaled import Scaled
from bifactor.operators.stacked import Stacked
from bifactor.operators.subsampled import Subsampled

__all__ = [
    "DCT",
    "Entries",
    "Fourier",
    "Full",
    "Gaussian",
    "Hadamard",
    "Linear",
    "Noiselet",
    "Operator",
    "Pauli",
    "RankOne",
    "Scaled",
    "Stacked",
    "Subsampled",
]
