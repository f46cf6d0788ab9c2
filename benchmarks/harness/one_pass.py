"""f and its gradient by one pass, in the version of any tree: `--against` measures older ones by this file too."""

import numpy as np

import bifactor as bf


def value_and_gradient(problem: bf.Problem, U: np.ndarray, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """f(UVᴴ), ∇f V and ∇fᴴ U."""
    if hasattr(problem, "value_and_products"):  # before operators were bound to data
        return problem.value_and_products(U, V)
    return tuple(problem.f.evaluate(problem.kind.pair(U, V)))[:3]
