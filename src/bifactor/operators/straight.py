"""Lines in X as curves of factors."""

from bifactor.arrays import hstack
from bifactor.factors import Factors, Free


def straightened(x: Factors | None, new: Factors) -> tuple[Factors, Factors]:
    """Factors of X and a direction along which X moves by ΔX, whose factors are `new`; x = None stands for X = 0.

    X + t·ΔX = [U, A][V, tB]ᴴ for ΔX = ABᴴ.
    """
    nothing = 0 * new.right
    if x is None:
        return Free().pair(new.left, nothing), Free().pair(0 * new.left, new.right)
    here = Free().pair(hstack(x.left, new.left), hstack(x.right, nothing))
    return here, Free().pair(0 * here.left, hstack(0 * x.right, new.right))
