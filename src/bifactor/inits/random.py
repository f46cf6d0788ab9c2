"""A random start."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import norm
from bifactor.factors import Factors
from bifactor.inits.base import Init
from bifactor.problems.objective import Objective
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Random(Init):
    """Gaussian factors, scaled so that ‖U₀‖_F = ‖V₀‖_F and ‖U₀V₀ᴴ‖_F = `norm`."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        settle_positive(self, "norm", "Pass the Frobenius norm of the start.")

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        x = problem.kind.random(rng, problem.shape, rank, problem.dtype, problem.f.like)
        x = x.each(lambda a: a / norm(a))
        x = (self.norm / x.product_norm()) ** 0.5 * x
        return problem.kind.start(x.left, x.right)
