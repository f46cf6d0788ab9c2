"""Whether a fitted state explains the measurements: Pearson's χ², its degrees of freedom and p-value."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from bifactor.arrays import Array

LEAST = 1.0
"""Smallest expected count of a cell of χ²; rarer outcomes of a setting are pooled."""

ZERO = 1e-5
"""Eigenvalues of a state below this count as zero: runs converge to zero slowly."""

LEVEL = 1e-3
"""Probability of χ² under the true state below which the data count as not explained."""


class MisfitWarning(UserWarning):
    """The fitted state does not explain the measurements."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """Distance of the measurements from the predictions of the fitted state.

    Attributes
    ----------
    chi2 : float
        For counts, Pearson's Σ (y − Np)²/(Np). Outcomes of a setting with expected counts below one are pooled, rarest
        first, until each pool has an expected count of at least one. For expectation values, Σ (tr(ρP) − v)²/σ².
    dof : int
        Degrees of freedom: the number of outcomes or pools minus one, summed over settings, or the number of Pauli
        strings; minus the 2dr − r² − 1 parameters of a state of rank r in d = 2ⁿ dimensions. r counts the eigenvalues
        of the fitted state above 10⁻⁵, which may be fewer than allowed. With few settings, it may be 0 or negative.
    p_value : float or None
        Probability of a χ² at least as large with this many degrees of freedom; None if there are none. Rough if counts
        are few, or if more eigenvalues were allowed than the true state has.
    explained : bool
        False if χ² is too large even for the true state, without fitted parameters, at a level of 1/1000. For sparse
        counts the exact variance of χ² is used.
    """

    chi2: float
    dof: int
    p_value: float | None
    explained: bool

    def __str__(self) -> str:
        if self.p_value is None:
            return f"χ² = {self.chi2:,.1f} with no degrees of freedom left"
        return f"χ² = {self.chi2:,.1f} on {self.dof:,} degrees of freedom, p = {self.p_value:.2g}"


def goodness_of_fit(chi2: float, free: int, parameters: int, variance: float) -> GoodnessOfFit:
    """Goodness of fit from χ², its mean `free` and variance for the true state, and the number of parameters."""
    dof = free - parameters
    p_value = float(stats.chi2.sf(chi2, dof)) if dof > 0 else None
    explained = True
    if free > 0:
        # The gamma distribution with this mean and variance; the χ² distribution if the variance is 2·free.
        explained = bool(stats.gamma.sf(chi2, free**2 / variance, scale=variance / free) >= LEVEL)
    return GoodnessOfFit(float(chi2), int(dof), p_value, explained)


def n_parameters(U: Array) -> int:
    """Number of real parameters of the states of unit trace with the rank of UUᴴ."""
    rank = int(np.count_nonzero(np.linalg.svd(U, compute_uv=False) ** 2 > ZERO))
    return 2 * U.shape[0] * rank - rank**2 - 1


def pearson(y: Array, expected: Array) -> tuple[float, int, float]:
    """χ² of counts, with one row per setting, and its mean and variance for the true state.

    For multinomial counts both are exact: k − 1 and 2(k − 1) + (Σ 1/p − k² − 2k + 2)/N for k cells.

    References
    ----------
    J. B. S. Haldane, The exact value of the moments of the distribution of χ², Biometrika 29 (1937).
    """
    cell, k = pools(expected)
    place = (cell + expected.shape[1] * np.arange(len(k))[:, None]).ravel()
    means, seen = (np.bincount(place, a.ravel(), a.size).reshape(a.shape) for a in (expected, y))
    inside = (np.arange(expected.shape[1]) < k[:, None]) & (k > 1)[:, None]
    means = np.where(inside, means, 1.0)
    chi2 = np.sum(np.where(inside, (seen - means) ** 2 / means, 0.0))
    shots = expected.sum(axis=1)
    inverse = shots * np.sum(np.where(inside, 1 / means, 0.0), axis=1)
    variance = 2 * (k - 1) + (inverse - k**2 - 2 * k + 2) / shots
    return float(chi2), int(np.sum(k - 1)), float(np.sum(variance[k > 1]))


def pools(expected: Array) -> tuple[Array, Array]:
    """The pool of each outcome of each setting, and the number of pools of each setting."""
    order = np.argsort(expected, axis=1, kind="stable")
    pool = np.zeros(expected.shape, dtype=np.int64)
    current, held = np.zeros(len(expected), dtype=np.int64), np.zeros(len(expected))
    for column in order.T:
        rows = np.arange(len(expected))
        pool[rows, column] = current
        held = held + expected[rows, column]
        full = held >= LEAST
        current, held = current + full, np.where(full, 0.0, held)
    count = np.maximum(current, 1)
    return np.minimum(pool, count[:, None] - 1), count  # the rest joins the last pool
