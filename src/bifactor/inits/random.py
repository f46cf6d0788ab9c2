"""A random start."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, gaussian, norm, product_norm
from bifactor.inits.base import Init
from bifactor.objective import Objective
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Random(Init):
    """Gaussian factors, scaled so that ‖U₀‖_F = ‖V₀‖_F and ‖U₀V₀ᴴ‖_F = `norm`."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        settle_positive(self, "norm", "It is the Frobenius norm of the start.")

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator, psd: bool) -> tuple[Array, Array]:
        m, n = problem.shape
        U = gaussian(rng, (m, rank), problem.dtype)
        V = U if psd else gaussian(rng, (n, rank), problem.dtype)
        U = U / norm(U)
        V = U if psd else V / norm(V)
        scale = (self.norm / product_norm(U, V)) ** 0.5
        U = scale * U
        return U, U if psd else scale * V
