"""The units that articles work in: measurements that preserve norms on average, so that f has curvature 1."""

import numpy as np

from bifactor.arrays import epsilon, gaussian, norm
from bifactor.objective import Objective


def typical_curvature(problem: Objective, psd: bool) -> float:
    """The typical curvature of f over all X; with `psd`, over Hermitian ones.

    Measurements that see no more of X than its Hermitian part, such as Pauli expectations and intensities, have all
    their curvature there: twice what they have on average.
    """
    if not psd:
        return problem.scale
    rng = np.random.default_rng(0)
    a, b = (gaussian(rng, (problem.shape[0], 1), problem.dtype) for _ in range(2))
    one, other = problem.measure(a, b), problem.measure(b, a)
    return problem.scale * (2.0 if norm(one - other) <= epsilon(a) ** 0.5 * norm(one) else 1.0)
