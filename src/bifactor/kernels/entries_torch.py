"""Sampled products and passes over observed entries by operations of torch; see `entries_reference`.

Factors, values and weights are never converted, and a pass holds at most one number for each entry. Tensors of the
coordinates, which are NumPy's, share their memory on the host. The order of entries by rows of the short side is kept
as long as the layout.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch  # type: ignore[import-not-found]

from bifactor.arrays import Array
from bifactor.kernels import losses_reference
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions

BLOCK = 1 << 15
"""The number of entries whose rows of the factors are gathered at a time: they stay in the cache."""

Tensor: TypeAlias = torch.Tensor


class Side(NamedTuple):
    """The entries of each row of one side."""

    rows: Tensor
    """The row of each entry on this side."""
    others: Tensor
    """Its row on the other side."""
    order: Tensor | None
    """The places of the entries row after row; None if they lie in this order."""
    bags: Tensor
    """`others` in that order."""
    starts: Tensor
    """Where each row starts in it."""


_SIDES: WeakKeyDictionary[EntryLayout, dict[torch.device, tuple[Side, Side]]] = WeakKeyDictionary()


def dot(layout: EntryLayout, P: Tensor, Q: Tensor) -> Tensor:
    P, Q = _alike(P, Q)
    z = P.new_empty(layout.size)
    for part, p, q in _gathered(layout, P, Q):
        z[part] = (p * q).sum(1)
    return z


def curve(layout: EntryLayout, P: Tensor, Q: Tensor, D: Tensor, E: Tensor) -> tuple[Tensor, Tensor]:
    P, Q, D, E = _alike(P, Q, D, E)
    z1, z2 = P.new_empty(layout.size), P.new_empty(layout.size)
    for part, *rows in _gathered(layout, P, Q, D, E):
        _, z1[part], z2[part] = _moving(*rows)
    return z1, z2


def left(layout: EntryLayout, w: Tensor, Q: Tensor) -> Tensor:
    return _sums(_sides(layout, Q.device)[0], w, Q)


def right(layout: EntryLayout, w: Tensor, P: Tensor) -> Tensor:
    return _sums(_sides(layout, P.device)[1], w.conj(), P)


def both(layout: EntryLayout, w: Tensor, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    return left(layout, w, Q), right(layout, w, P)


def fused(
    layout: EntryLayout, loss: LossFunctions, y: Tensor, weights: Tensor, P: Tensor, Q: Tensor
) -> tuple[float, Tensor, Tensor]:
    """Σ w·ℓ(z; y), S Q and Sᴴ P with S = w·ℓ′(z; y)."""
    P, Q = _alike(P, Q)
    f, slope = 0.0, P.new_empty(layout.size)
    for part, p, q in _gathered(layout, P, Q):
        more, slope[part] = losses_reference.evaluate(loss, (p * q).sum(1), y[part], weights[part])
        f += more
    return f, *both(layout, slope, P, Q)


def slopes(
    layout: EntryLayout, loss: LossFunctions, y: Tensor, weights: Tensor, P: Tensor, Q: Tensor, A: Tensor, B: Tensor
) -> tuple[Tensor, Tensor]:
    """S B and Sᴴ A with S = w·ℓ′(z; y); either of A and B may have no columns."""
    P, Q, A, B = _alike(P, Q, A, B)
    slope = P.new_empty(layout.size)
    for part, p, q in _gathered(layout, P, Q):
        slope[part] = losses_reference.weighted(loss.gradient((p * q).sum(1), y[part]), weights[part])
    return both(layout, slope, A, B)


def bent(
    layout: EntryLayout, loss: LossFunctions, y: Tensor, weights: Tensor, P: Tensor, Q: Tensor, D: Tensor, E: Tensor
) -> tuple[Tensor, Tensor]:
    """S Q and Sᴴ P with S = w·ℓ″(z; y)·z₁, z₁ = DQᴴ + PEᴴ."""
    P, Q, D, E = _alike(P, Q, D, E)
    change = P.new_empty(layout.size)
    for part, *rows in _gathered(layout, P, Q, D, E):
        z, z1, _ = _moving(*rows)
        change[part] = losses_reference.weighted(loss.curvature(z, y[part]) * z1, weights[part])
    return both(layout, change, P, Q)


def along(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Tensor,
    weights: Tensor,
    P: Tensor,
    Q: Tensor,
    D: Tensor,
    E: Tensor,
    a: float,
) -> tuple[float, float, float]:
    """φ(a) = Σ w·ℓ(z(a); y) with z(a) = (P + aD)(Q + aE)ᴴ at the entries, and φ′(a) and φ″(a)."""
    f, first, second = 0.0, 0.0, 0.0
    for part, *rows in _gathered(layout, *_alike(P, Q, D, E)):
        more = losses_reference.line(loss, *_moving(*rows), y[part], weights[part], a)
        f, first, second = f + more[0], first + more[1], second + more[2]
    return f, first, second


def quartic(layout: EntryLayout, y: Tensor, weights: Tensor, P: Tensor, Q: Tensor, D: Tensor, E: Tensor) -> Array:
    """c₀ … c₄ with Σ w·½|z(a) − y|² = Σₖ cₖ aᵏ for every a."""
    c = np.zeros(5)
    for part, *rows in _gathered(layout, *_alike(P, Q, D, E)):
        c += losses_reference.quartic(*_moving(*rows), y[part], weights[part])
    return c


def _gathered(layout: EntryLayout, *factors: Tensor) -> Iterator[tuple[Any, ...]]:
    """Some entries at a time, and their rows of factors of the outer and of the inner side in turn, conj for these."""
    side = _sides(layout, factors[0].device)[0]
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        outer = [F.index_select(0, side.rows[part]) for F in factors[::2]]
        inner = [F.conj().index_select(0, side.others[part]) for F in factors[1::2]]
        yield part, *(rows for pair in zip(outer, inner, strict=True) for rows in pair)


def _moving(p: Tensor, q: Tensor, d: Tensor, e: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """z, z₁ and z₂ of some entries."""
    return (p * q).sum(1), (d * q).sum(1) + (p * e).sum(1), (d * e).sum(1)


def _alike(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in their common dtype."""
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return tuple(tensor.to(dtype) for tensor in tensors)


def _sums(side: Side, w: Tensor, factor: Tensor) -> Tensor:
    """Σ w·q over the entries of each row, q the rows of the factor of the other side."""
    w, factor = _alike(w, factor)
    if factor.is_complex() or 0 in (w.shape[0], factor.shape[1]):
        sums = factor.new_zeros(side.starts.shape[0], factor.shape[1])
        return sums.index_add_(0, side.rows, w[:, None] * factor.index_select(0, side.others))
    w = w if side.order is None else w.index_select(0, side.order)
    # Made for bags of words: more than four times as fast as `index_add_`, and each row is summed by one thread.
    bags = torch.nn.functional.embedding_bag
    return bags(side.bags, factor.contiguous(), side.starts, mode="sum", per_sample_weights=w)


def _sides(layout: EntryLayout, device: torch.device) -> tuple[Side, Side]:
    kept = _SIDES.setdefault(layout, {})
    if device not in kept:
        outer, inner, (of_outer, of_inner) = layout.outer, layout.inner, layout.counts
        kept[device] = _side(outer, inner, of_outer, device), _side(inner, outer, of_inner, device)
    return kept[device]


def _side(rows: Array, others: Array, counts: Array, device: torch.device) -> Side:
    index = np.int32 if rows.size <= np.iinfo(np.int32).max else np.int64
    starts = (np.cumsum(counts) - counts).astype(index)
    order = np.argsort(rows, kind="stable").astype(index) if np.any(rows[1:] < rows[:-1]) else None
    bags = (others if order is None else others[order]).astype(index, copy=False)
    return Side(*(None if a is None else _shared(a, device) for a in (rows, others, order, bags, starts)))


def _shared(index: Array, device: torch.device) -> Tensor:
    return torch.from_numpy(np.require(index, requirements="W")).to(device)  # torch warns of memory that is read-only
