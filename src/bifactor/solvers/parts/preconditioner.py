"""The gradient seen through the curvature of f in each factor.

Dividing each row of the gradient by its block of curvature makes the iteration blind to the condition number of X
(Tong, Ma and Chi, 2021), and to the factorisation: (UR, VR⁻ᴴ) gives the same X.
"""

from bifactor.blocks import Blocks
from bifactor.factors import Factors
from bifactor.problems.objective import Objective


def preconditioned(problem: Objective, x: Factors, g: Factors, damping: float) -> Factors:
    """A gradient at x, each row divided by the block of curvature to expect.

    `damping` is added to the eigenvalues of VᴴV and UᴴU, where zero ones would otherwise be blown up.
    """

    def blocks(side: int) -> Blocks:
        return problem.f.expected(x, side).damped(damping) + problem.blocks_of_terms(x, side)

    return g.divided(blocks)
