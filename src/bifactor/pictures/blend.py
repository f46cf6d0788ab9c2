"""Weights for mixing simpler guesses with those of groups, fitted to known pixels that are held out.

If a picture is smooth, or few of its pixels are known, a thin plate or a blur is more accurate than groups of patches,
and a mixture is more accurate than any of these. Its weights minimise the squared error at known pixels that were
hidden in the shape of the holes. They are reduced by half their standard errors, so that nothing is mixed in unless it
helps in most of the picture. (Chosen from twelve rules on 120 pages of text and photographs with scratches, text or
missing pixels: 1 lost more than 0.1 dB; without the standard errors, or with two trials, 4 did.)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.pictures.blur import WIDTHS, blurred
from bifactor.pictures.smooth import fill, smooth

SIDE, CROPS, DRAWS = 112, 10, (2, 4)
"""The side in pixels of the parts of a large picture on which weights are fitted, and the number of parts. A small
picture is one part, which is used two to four times, the smaller the more often, with different pixels held out."""

CAUTION = 0.5
"""The number of standard errors by which weights are reduced."""

HELD = 0.15
"""The largest share of known pixels that is held out."""

LEAST = 1e-3
"""The squared difference of shades below which guesses count as equal."""

BLOCK, FEW = 32, 4
"""The side in pixels of the squares whose errors count as independent, and the smallest number of squares."""

Completion = Callable[[Array, Array], Array]
"""A function that fills in planes in place, given the mask of known pixels, and returns the variance of each guess."""

PRIOR = 4.0
"""The weight in pixels of the variance of all known pixels, where few pixels were held out."""

TINY = 1e-6
"""The smallest variance of a guess in squared shades."""


@dataclass(frozen=True)
class Blend:
    """Weights of a thin plate and of a blur of some width; the rest is the weight of the guesses themselves."""

    plate: float = 0.0
    blur: float = 0.0
    width: float = 1.0
    error: float = 0.0
    """The sum of the squared errors of the mixture at the pixels that were held out."""
    variance: float = 0.0
    """The sum of the variances of these guesses."""

    def widened(self, variance: Array, planes: Array, known: Array, reach: float) -> Array:
        """Variances of guesses, times the factor by which those of held-out pixels were too small or too large.

        With few known pixels the variance of a guess without a model counts as well. `reach` is the width of the range
        of values: with one known pixel, nothing else says how far others may be.
        """
        count, values = np.count_nonzero(known), planes[:, known].astype(np.float64)
        squares = np.sum((values - values.mean(axis=1, keepdims=True)) ** 2)
        alone = (squares * (1 + 1 / count) + len(planes) * reach**2 / 12 / count) / (count - 1 + 1 / count)
        variance = np.maximum(variance, np.float32(TINY))
        mean = float(np.mean(variance, where=~known, dtype=np.float64)) if not known.all() else 0.0
        factor = (self.error + PRIOR * alone) / (self.variance + PRIOR * mean)
        return np.asarray(variance * np.float32(factor))

    def apply(self, planes: Array, known: Array) -> None:
        """Mix them into the unknown pixels."""
        for plane in planes:
            mixed = (1 - self.plate - self.blur) * plane
            if self.plate > 0:
                bent = plane[None].copy()
                fill(bent, known)
                mixed += np.float32(self.plate) * bent[0]
            if self.blur > 0:
                mixed += np.float32(self.blur) * blurred(plane, known, self.width)
            np.copyto(plane, mixed, where=~known)


def best_blend(planes: Array, known: Array, complete: Completion) -> Blend:
    """The best weights for this picture and these holes."""
    rng = np.random.default_rng(0)
    blocks = [
        block for part in _parts(known, rng) for block in _held_back(planes[:, *part], known[part], complete, rng)
    ]
    if not blocks:
        return Blend()
    grams, products, squares, variances = (np.stack(side) for side in zip(*blocks, strict=True))
    plate, mean, blur = _mixture(grams, products) if len(blocks) >= FEW else (0.0, 0.0, 1)
    weights = np.zeros(len(products[0]))
    weights[0], weights[blur] = plate, mean
    error = squares.sum() - 2 * products.sum(axis=0) @ weights + weights @ grams.sum(axis=0) @ weights
    return Blend(plate, mean, WIDTHS[blur - 1], float(error), float(variances.sum()))


def _mixture(grams: Array, products: Array) -> tuple[float, float, int]:
    """The weights of the plate and of the best blur, and the place of this blur among the guesses."""
    # Square roots keep a few squares with high contrast from dominating.
    scales = 1 / np.sqrt(np.maximum(np.trace(grams, axis1=1, axis2=2), LEAST))
    grams, products = scales[:, None, None] * grams, scales[:, None] * products
    gram, product = grams.sum(axis=0), products.sum(axis=0)
    # ‖r − d‖² = ‖r‖² − 2⟨r, d⟩ + ‖d‖² for each guess alone; the plate is the first.
    blur = 1 + int(np.argmin(np.diag(gram)[1:] - 2 * product[1:]))
    grams, products = grams[:, [[0], [blur]], [0, blur]], products[:, [0, blur]]
    weights = _weights(grams.sum(axis=0), products.sum(axis=0))
    count, without = len(grams), zip(grams.sum(axis=0) - grams, products.sum(axis=0) - products, strict=True)
    left_out = np.stack([_weights(*pair) for pair in without])
    errors = np.sqrt((count - 1) * np.var(left_out, axis=0))  # by the jackknife
    plate, mean = np.maximum(weights - CAUTION * errors, 0)
    return float(plate), float(mean), blur


def trial_pixels(known: Array) -> int:
    """The number of pixels that are completed to fit the weights."""
    return _draws(known) * known.size or CROPS * SIDE**2


def _draws(known: Array) -> int:
    """How often a small picture is used; 0 for a large one."""
    often = CROPS * SIDE**2 // known.size
    return min(often, DRAWS[1]) if often >= DRAWS[0] else 0


def _parts(known: Array, rng: np.random.Generator) -> Iterator[tuple[slice, slice]]:
    """All of a small picture, or squares around some of the holes of a large one."""
    if draws := _draws(known):
        yield from [(slice(None), slice(None))] * draws
        return
    tried = (rng.integers(size, size=100 * CROPS) for size in known.shape)
    places = [(i, j) for i, j in zip(*tried, strict=True) if not known[i, j]]
    for place in places[:CROPS]:
        first = [max(0, min(at - SIDE // 2, size - SIDE)) for at, size in zip(place, known.shape, strict=True)]
        yield slice(first[0], first[0] + SIDE), slice(first[1], first[1] + SIDE)


def _held_back(
    planes: Array, known: Array, complete: Completion, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, float, float]]:
    """For each square of a part, inner products of the changes by simpler guesses, with each other and the error.

    Then the sum of squared errors, and that of the variances of the guesses.
    """
    held = known & ~np.roll(known, [int(rng.integers(size)) for size in known.shape], (0, 1))
    if held.sum() > HELD * known.sum():
        held &= rng.random(held.shape) < HELD * known.sum() / held.sum()
    left = known & ~held
    if not held.any() or not left.any():
        return
    ours = np.where(left, planes, np.float32(0))
    simple = np.stack([smooth(ours, left), *(np.stack([blurred(p, left, w) for p in ours]) for w in WIDTHS)])
    variances = np.maximum(complete(ours, left)[held], TINY)
    added = (simple - ours)[:, :, held].astype(np.float64)
    missing = (planes - ours)[:, held].astype(np.float64)
    rows, cols = np.nonzero(held)
    squares = (rows // BLOCK) * known.shape[1] + cols // BLOCK
    for square in np.unique(squares):
        here = squares == square
        mine, rest = added[:, :, here].reshape(len(simple), -1), missing[:, here].ravel()
        yield mine @ mine.T, mine @ rest, float(rest @ rest), float(np.sum(variances[here], dtype=np.float64))


def _weights(gram: Array, product: Array) -> Array:
    """argmin over w ≥ 0 of ½wᵀGw − pᵀw, for two unknowns; scaled to a sum of at most 1."""
    alone = np.maximum(product, 0) / np.maximum(np.diag(gram), np.finfo(float).tiny)
    first = int(np.argmax(alone * product))
    found = np.where(np.arange(2) == first, alone, 0)
    if gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2 > 1e-9 * gram[0, 0] * gram[1, 1]:
        both = np.linalg.solve(gram, product)
        found = both if np.all(both >= 0) else found
    return found / max(1, found.sum())
