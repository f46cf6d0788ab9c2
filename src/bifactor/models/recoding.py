"""Blocks of a store with recoded values: labels as −1 and +1, and choices as ones with weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.data import BlockStore
from bifactor.executors import Block, BlockData, Workspace
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.models.completion.labels import above_threshold, signs
from bifactor.models.recommender.weights import weights_of

Recode = Callable[[BlockData], BlockData]
"""A function of a loaded block. It can be pickled, and its repr identifies it."""


@dataclass(frozen=True)
class Labels:
    """The two classes of labels as −1 and +1."""

    classes: tuple[float, float]
    binarize: float | None = None

    def __call__(self, loaded: BlockData) -> BlockData:
        return loaded._replace(y=self.of(loaded.y))

    def of(self, values: Array) -> Array:
        return signs(above_threshold(values, self.binarize), np.array(self.classes)).astype(values.dtype)


@dataclass(frozen=True)
class CountsToClicks:
    """Each entry once, as 1, with a weight from its count; see `choice_weights.as_choices`."""

    def __call__(self, loaded: BlockData) -> BlockData:
        layout, y, given = loaded
        outer, inner = layout.outer, layout.inner
        again = (outer[1:] == outer[:-1]) & (inner[1:] == inner[:-1])  # entries at the same place are adjacent
        if again.any() or np.any(y <= 0):
            first = np.flatnonzero(np.concatenate([[True], ~again]))
            counts = np.add.reduceat(y.astype(np.float64), first)
            weights = weights_of(counts)
            if given is not None:
                weights *= np.add.reduceat(y.astype(np.float64) * given, first) / np.where(counts > 0, counts, 1)
            stay = counts > 0
            first, weights = first[stay], weights[stay]
            tiles = np.searchsorted(first, layout.tiles).astype(np.int64)
            layout = EntryLayout(outer[first], inner[first], layout.n_outer, layout.n_inner, tiles)
        else:
            weights = weights_of(y) if given is None else weights_of(y) * given
        sure = None if np.all(weights == 1) else weights.astype(y.dtype)
        return BlockData(layout, np.ones(layout.size, y.dtype), sure)


@dataclass(frozen=True)
class WithoutWeights:
    """Without weights."""

    how: Recode | None

    def __call__(self, loaded: BlockData) -> BlockData:
        return (loaded if self.how is None else self.how(loaded))._replace(weights=None)


@dataclass(frozen=True)
class Recoded:
    """A block whose values are recoded when it is loaded."""

    part: Block
    how: Recode

    @property
    def start(self) -> int:
        return self.part.start

    @property
    def stop(self) -> int:
        return self.part.stop

    @property
    def size(self) -> int:
        return self.part.size

    @property
    def fingerprint(self) -> str:
        return f"{self.part.fingerprint} {self.how!r}"

    def load(self, workspace: Workspace | None = None) -> BlockData:
        return self.how(self.part.load(workspace))


@dataclass(frozen=True, eq=False)
class BlockView:
    """A store with the values that a fit uses."""

    store: BlockStore
    how: Recode | None = None
    plain: bool = False
    """Whether weights are left out."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.shape

    @property
    def dtype(self) -> Any:
        return self.store.dtype

    @property
    def flipped(self) -> bool:
        return self.store.flipped

    @cached_property
    def parts(self) -> tuple[Block, ...]:
        how: Recode | None = WithoutWeights(self.how) if self.plain and self.store.weighted else self.how
        return self.store.parts if how is None else tuple(Recoded(part, how) for part in self.store.parts)

    @property
    def weighted(self) -> bool:
        return self.store.weighted and not self.plain

    @property
    def levels(self) -> Array | None:
        """The values that occur; None if there are many."""
        values = self.store.levels
        if values is None or isinstance(self.how, CountsToClicks):
            return None
        return self.how.of(values) if isinstance(self.how, Labels) else values

    @property
    def level_counts(self) -> Array | None:
        """How often each of the `levels` occurs."""
        return None if self.levels is None else self.store.level_counts

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """Numbers of entries of each row and each column, by one pass over the blocks."""
        longer, shorter, space = np.zeros(max(self.shape), np.int64), np.zeros(min(self.shape), np.int64), Workspace()
        for part in self.parts:
            outer, inner = part.load(space).layout.counts
            longer[part.start : part.stop] = outer
            shorter += inner.astype(np.int64)
        return (shorter, longer) if self.flipped else (longer, shorter)
