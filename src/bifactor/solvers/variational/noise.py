"""Noise models: y = z + e with e ~ N(0, ψ/(wᵢⱼρᵢκⱼτᵢⱼ)), ψ the variance and w the weights.

The precisions ρ of rows, κ of columns and τ of entries are 1, or have a gamma posterior. A new model is another one of
`NOISES`, and a subclass of `Noise` if its distribution is neither normal nor Student's t.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.problems.state import Value

STRENGTH, WEAKEST, STRONGEST = 10.0, 0.1, 1e4
"""The number of measurements that the prior is worth: the initial value, and its range."""

HEAVIEST = 4.0
"""The smallest number of degrees of freedom of Student's t. If most values are equal, as some ratings are, it would
tend to 0: a spike at one value that ignores the others. Four is a common choice (Lange, Little and Taylor, Robust
statistical modeling using the t distribution, JASA 84, 1989)."""


@dataclass(frozen=True)
class Precisions(Value, key="variational.precisions"):
    """E[τᵢ] for each row, τᵢ ~ Gamma(t/2, t/2) before the data."""

    mean: Array
    cost: float = 0.0
    """Σ KL(q(τᵢ) ‖ prior) − ½nᵢE[log τᵢ], over the rows with measurements: their part of the negative bound."""
    strength: float = STRENGTH
    """t."""


class PrecisionStats(NamedTuple):
    """Statistics of precisions, for their strength and their part of the bound; those of blocks can be added."""

    constant: float
    """The part of the cost that does not depend on the strength."""
    apart: float
    """Σ E[log τᵢ] − E[τᵢ]."""
    seen: int

    def cost(self, strength: float) -> float:
        """The sum of KL(Gamma(shape, rate) ‖ Gamma(h, h)) − ½nE[log τ], where h is half the strength."""
        h = strength / 2
        return float(self.constant - h * self.apart + self.seen * (scipy.special.gammaln(h) - h * np.log(h)))


@dataclass(frozen=True)
class GammaPrior:
    """τᵢ ~ Gamma(t/2, t/2), which has mean 1; its strength t is fitted, and is at least `weakest`."""

    strength: float = STRENGTH
    weakest: float = WEAKEST

    def at(self, strength: float) -> Self:
        """The prior with another strength."""
        return replace(self, strength=strength)

    def fit(self, counts: Array, errors: Array) -> Precisions:
        """The posterior for nᵢ measurements whose expected squares sum to errors[i], and then the best strength."""
        mean, stats = self.update(counts, errors)
        strength = self.refit(stats).strength
        return Precisions(mean, stats.cost(strength), strength)

    def update(self, counts: Array, errors: Array) -> tuple[Array, PrecisionStats]:
        """E[τᵢ] of the posterior for this strength, 1 without measurements; and the statistics for the strength."""
        seen = counts > 0
        numbers = counts[seen]
        if numbers.size and np.all(numbers == numbers[0]):  # as for single entries: one evaluation for all is faster
            numbers = numbers[:1]
        shape, rate = (numbers + self.strength) / 2, (errors[seen] + self.strength) / 2
        expected, digamma = shape / rate, scipy.special.digamma(shape)
        logarithm = digamma - np.log(rate)
        mean = np.ones(len(counts))
        mean[seen] = expected
        constant = shape * digamma - scipy.special.gammaln(shape) - shape - numbers * logarithm / 2
        return mean, PrecisionStats(
            float(np.sum(constant)), float(np.sum(logarithm - expected)), int(np.count_nonzero(seen))
        )

    def refit(self, stats: PrecisionStats) -> Self:
        """The prior with the best strength; the previous one without measurements."""
        return self.at(2 * _half_strength(stats.apart / stats.seen, self.weakest)) if stats.seen else self

    def expected(self, counts: Array, errors: Array) -> Array:
        """The mean of the posterior for this strength; 1 without measurements."""
        return np.where(counts > 0, (counts + self.strength) / (errors + self.strength), 1.0)


def _half_strength(mean: float, weakest: float) -> float:
    """argmax over h of h log h − log Γ(h) + h·mean, within its range."""

    def slope(h: float) -> float:
        return float(np.log(h) + 1 - scipy.special.digamma(h) + mean)

    low, high = weakest / 2, STRONGEST / 2
    if slope(high) >= 0:
        return high
    return low if slope(low) <= 0 else float(scipy.optimize.brentq(slope, low, high, rtol=1e-8))


@dataclass(frozen=True)
class Noise:
    """Normal noise, or Student's t if entries have precisions of their own; before a fit, with initial strengths.

    The variance ψ, and the precisions of rows and columns, belong to the factors: `scale` is ψ/(ρᵢκⱼ).
    """

    name: str
    kind: str
    """The model in words."""
    rows: GammaPrior | None = None
    """The prior of the precisions of rows; None if these are all 1."""
    columns: GammaPrior | None = None
    entries: GammaPrior | None = None

    @property
    def sides(self) -> tuple[GammaPrior | None, GammaPrior | None]:
        return self.rows, self.columns

    @property
    def per_entry(self) -> bool:
        """Whether the fit needs a number for each entry, which blocks do not store."""
        return self.entries is not None

    @property
    def degrees(self) -> float | None:
        """The degrees of freedom of Student's t; None if the noise is normal."""
        return None if self.entries is None else self.entries.strength

    @property
    def words(self) -> str:
        """The model and its fitted numbers in words."""
        return self.kind if self.degrees is None else f"{self.kind}, {self.degrees:.3g} degrees of freedom"

    def with_strengths(self, rows: float, columns: float, entries: float | None = None) -> Self:
        """The model with fitted strengths, of which only those of its own priors are used."""
        return replace(
            self,
            rows=None if self.rows is None else self.rows.at(rows),
            columns=None if self.columns is None else self.columns.at(columns),
            entries=self.entries if self.entries is None or entries is None else self.entries.at(entries),
        )

    def variance(self, scale: Array) -> Array:
        """The variance of the noise."""
        nu = self.degrees
        wider = 1.0 if nu is None else nu / (nu - 2) if nu > 2 else np.inf
        return wider * scale

    def quantile(self, p: float) -> float:
        """The quantile of the noise over the root of its scale."""
        return float(scipy.special.ndtri(p) if self.degrees is None else scipy.special.stdtrit(self.degrees, p))

    def sample(self, scale: Array, rng: np.random.Generator) -> Array:
        """A random sample of the noise of measurements with these scales."""
        drawn = rng.standard_normal(scale.size) if self.degrees is None else rng.standard_t(self.degrees, scale.size)
        return drawn * np.sqrt(scale)

    def pack(self) -> dict[str, float]:
        """The fitted numbers, by their names in a file."""
        found = {"degrees": self.entries, "row_strength": self.rows, "column_strength": self.columns}
        return {name: prior.strength for name, prior in found.items() if prior is not None}

    def unpack(self, numbers: dict[str, float]) -> Self:
        """The model with the numbers of a file."""
        rows, columns = (numbers.get(f"{side}_strength", STRENGTH) for side in ("row", "column"))
        return self.with_strengths(rows, columns, numbers.get("degrees"))


NoiseName = Literal["one", "columns", "rows", "both", "student"]

NOISES = {
    noise.name: noise
    for noise in (
        Noise("one", "the same for all entries"),
        Noise("columns", "by columns", columns=GammaPrior()),
        Noise("rows", "by rows", rows=GammaPrior()),
        Noise("both", "by rows and columns", rows=GammaPrior(), columns=GammaPrior()),
        Noise("student", "Student's t", entries=GammaPrior(weakest=HEAVIEST)),
    )
}
"""The models by their names; files tell them apart by the names of their numbers."""

NUMBERS = tuple(dict.fromkeys(name for noise in NOISES.values() for name in noise.pack()))
"""The names of the fitted numbers of all models."""


def noise_named(name: str) -> Noise:
    """The noise model of a name; `InputError` if there is none."""
    if name not in tuple(NOISES):  # it may have no hash
        raise InputError(f"noise={name!r} is not a noise model. Pass one of {', '.join(map(repr, NOISES))}.")
    return NOISES[name]


def unpack_noise(numbers: dict[str, float]) -> Noise:
    """The fitted noise of a file; `ValueError` if its numbers are those of no model."""
    for noise in NOISES.values():
        if noise.pack().keys() == numbers.keys():
            return noise.unpack(numbers)
    raise ValueError(f"its noise has {', '.join(numbers)}, which no noise model has")
