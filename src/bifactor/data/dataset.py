"""`Dataset`: known entries of a matrix, in memory or in blocks, behind one interface.

`Observations` are a dataset in memory; `BlockStore` is one in blocks on disk. Any other storage is a subclass of
`BlockDataset` with a shape, a dtype and blocks. What a fit, a score or a list needs is asked here, so that no
application depends on where the entries are.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.data.masks import CellMask
from bifactor.data.seen_items import BlockPairs, SeenItems, StoreAddress
from bifactor.data.store.census_reference import LEAST, MOST, SIZE, SUM, WHOLE
from bifactor.executors import Block, BlockData, Executor, PassResult, Workspace
from bifactor.executors.executor import Task
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.losses import Loss
from bifactor.operators import Partitioned
from bifactor.operators.bound import Bound

if TYPE_CHECKING:
    from scipy import sparse

    from bifactor.data.names import Names
    from bifactor.data.observations import Observations, Origin

MAX_LEVELS = 256
"""Largest number of distinct values that are listed."""

MAX_REPRESENTATIVES = 100_000
"""Number of values that represent all, each level in proportion."""


class Summary(NamedTuple):
    """Statistics of the values of a dataset."""

    size: int
    """The number of entries."""
    least: float
    largest: float
    total: float
    """The sum of the values."""
    whole: bool
    """Whether all values are integers."""
    levels: Array | None
    """The distinct values, sorted; None if there are more than `MAX_LEVELS`."""
    level_counts: Array | None
    """How often each level occurs."""

    @property
    def mean(self) -> float:
        return self.total / self.size if self.size else 0.0

    @property
    def constant(self) -> bool:
        """Whether all values are equal."""
        return self.least == self.largest


class Recoding(Protocol):
    """A change of values, and possibly of weights. It can be pickled, and its repr identifies it."""

    def observations(self, data: "Observations", /) -> "Observations":
        """The change of entries in memory."""

    def block(self, loaded: BlockData, /) -> BlockData:
        """The same change of the entries of a block."""

    def summary(self, summary: Summary, /) -> Summary | None:
        """The statistics after the change, from those before it; None if they need a pass."""

    def is_weighted(self, before: bool, /) -> bool:
        """Whether entries have weights after the change."""


class Dataset(ABC):
    """Known entries of a matrix: rows, columns, values and, optionally, weights, names and features."""

    shape: tuple[int, int]
    row_names: "Names | None" = None
    """Names of the rows; None if these are their indices."""
    column_names: "Names | None" = None
    origin: "Origin | None" = None
    """Where the entries come from."""
    row_features: "sparse.csr_array | None" = None
    """Features of the rows, one line of numbers for each; None if there are none."""
    column_features: "sparse.csr_array | None" = None
    in_memory: bool = True

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of entries."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""

    @property
    @abstractmethod
    def is_weighted(self) -> bool: ...

    @property
    def features(self) -> "tuple[sparse.csr_array | None, sparse.csr_array | None]":
        """The features of rows and of columns."""
        return self.row_features, self.column_features

    @abstractmethod
    def content(self, path: Path) -> dict[str, Any]:
        """The size and a hash of the entries that were read from a file or folder, for a card."""

    @abstractmethod
    def summary(self) -> Summary:
        """Statistics of the values, computed once."""

    @abstractmethod
    def representatives(self) -> Array:
        """All values in memory; of blocks, each level in proportion, or the values of some rows if there are many."""

    @abstractmethod
    def counts(self) -> tuple[Array, Array]:
        """The numbers of entries of each row and of each column."""

    @abstractmethod
    def weight_sums(self) -> tuple[Array, Array]:
        """The sums of the weights, or the numbers of entries, of each row and of each column."""

    @abstractmethod
    def split(self, mask: CellMask) -> tuple["Dataset", "Dataset"]:
        """The entries outside of a set of cells, and those in it; blocks are not copied."""

    @abstractmethod
    def recode(self, recoding: Recoding) -> "Dataset":
        """The entries with other values."""

    @abstractmethod
    def unweighted(self) -> "Dataset":
        """The entries without weights."""

    @abstractmethod
    def lines(self, stay: Array, side: int = 0) -> "Observations":
        """All entries of the rows (side 0), or columns (1), where `stay` is True, with unchanged indices and names."""

    def take(self, index: Array, side: int = 0) -> "Observations":
        """The rows (side 0), or columns (1), at these indices, renumbered in this order, with names and features."""
        index = np.asarray(index)
        stay, number = np.zeros(self.shape[side], bool), np.full(self.shape[side], -1)
        stay[index], number[index] = True, np.arange(index.size)
        some = self.lines(stay, side)
        names, features = (some.row_names, some.column_names)[side], self.features[side]
        kept = None if names is None else names.take(index)
        cut = None if features is None else features[index]
        if side:
            shape = (self.shape[0], int(index.size))
            return replace(some, cols=number[some.cols], shape=shape, column_names=kept, column_features=cut)
        shape = (int(index.size), self.shape[1])
        return replace(some, rows=number[some.rows], shape=shape, row_names=kept, row_features=cut)

    def subsample(self, most: int, rng: np.random.Generator, side: int | None = None) -> "Observations":
        """At most `most` entries in memory: all, or those of random rows, or columns if these are more; at least one.

        `side` decides between rows (0) and columns (1).
        """
        if self.size <= most:
            return self.lines(np.ones(self.shape[0], bool))
        side = int(self.shape[1] > self.shape[0]) if side is None else side
        return self.take(self.random_lines(most, rng, side), side)

    def random_lines(self, most: int, rng: np.random.Generator, side: int = 0) -> Array:
        """Indices of random rows, or columns for side 1, that have at most `most` entries together; at least one."""
        order = rng.permutation(self.shape[side])
        totals = np.cumsum(self.counts()[side][order])
        return order[: max(1, int(np.searchsorted(totals, most, side="right")))]

    @abstractmethod
    def weighted_values(self) -> tuple[Array, Array] | None:
        """All values and their weights; of blocks without weights, the levels and their counts; None if too many."""

    @abstractmethod
    def with_representable_squares(self, centre: float) -> "Dataset":
        """The entries, in double precision if squares of differences from `centre` leave the range of their type."""

    @abstractmethod
    def bind(self, loss: Loss, *, executor: Executor | None = None) -> Bound:
        """f(X) = Σ w ℓ(X[i, j]; y)."""

    @abstractmethod
    def in_blocks(self) -> "BlockDataset":
        """The same entries in blocks, one if they are in memory."""

    def reduce(
        self,
        loss: Loss,
        task: Task,
        factors: tuple[Array, Array] | None = None,
        settings: tuple[Any, ...] = (),
        executor: Executor | None = None,
    ) -> PassResult:
        """Run `task(bound, tall, shared, *settings)` on all blocks; see `executors.Executor.run_pass`.

        `bound` is f of a block, `tall` and `shared` hold its rows of the factor of the longer side, and the other.
        """
        f = Partitioned(loss, self.in_blocks(), executor)
        tall, shared = ((), ()) if factors is None else ((side,) for side in f.sides(*factors))
        return f.run_pass(task, tall, shared, settings)

    @abstractmethod
    def seen_items(self, weighted: bool = False) -> SeenItems:
        """The columns of each row that have entries."""


class BlockDataset(Dataset):
    """Entries in blocks of rows, or of columns if it is `flipped`; the rest follows from the blocks.

    A subclass has `shape`, `dtype`, `is_weighted` and `parts`, the blocks of the longer side in order. Each has
    `start`, `stop`, `size`, `fingerprint` and `load`, which returns the observations as `executors.BlockData.of` sorts
    them. Blocks are small and can be pickled.
    """

    in_memory = False
    flipped: bool = False

    @property
    @abstractmethod
    def parts(self) -> Sequence[Block]:
        """The blocks."""

    @property
    def size(self) -> int:
        return self.summary().size

    @property
    def fingerprint(self) -> str:
        """A hash of the content."""
        return " ".join(part.fingerprint for part in self.parts)

    def content(self, path: Path) -> dict[str, Any]:
        return {"blocks": len(self.parts), "content": self.fingerprint}

    def summary(self) -> Summary:
        return self._pass.summary

    def counts(self) -> tuple[Array, Array]:
        return self._pass.counts

    def weight_sums(self) -> tuple[Array, Array]:
        return self._pass.weight_sums if self.is_weighted else self.counts()

    @cached_property
    def _pass(self) -> "BlockTotals":
        return BlockTotals.of(self)

    def representatives(self) -> Array:
        about = self.summary()
        if about.levels is not None and about.level_counts is not None:
            times = np.maximum(1, (MAX_REPRESENTATIVES * about.level_counts) // max(1, np.sum(about.level_counts)))
            return np.repeat(about.levels, times)
        return self.subsample(20 * MAX_REPRESENTATIVES, np.random.default_rng(0)).values

    def weighted_values(self) -> tuple[Array, Array] | None:
        about = self.summary()
        if self.is_weighted or about.levels is None or about.level_counts is None:
            return None
        return about.levels.astype(np.float64), about.level_counts.astype(np.float64)

    def with_representable_squares(self, centre: float) -> "BlockDataset":
        return self  # values whose squares leave the range of single precision are stored in double precision

    def in_blocks(self) -> "BlockDataset":
        return self

    def split(self, mask: CellMask) -> tuple[Dataset, Dataset]:
        return BlockView(self, cells=CellFilter(mask, False)), BlockView(self, cells=CellFilter(mask, True))

    def recode(self, recoding: Recoding) -> "BlockDataset":
        return BlockView(self, recoding=recoding)

    def unweighted(self) -> "BlockDataset":
        return BlockView(self, recoding=WithoutWeights()) if self.is_weighted else self

    def lines(self, stay: Array, side: int = 0) -> "Observations":
        from bifactor.data.observations import Observations  # a dataset itself

        outer, inner, values, weights = [], [], [], []
        space, across = Workspace(), int(self.flipped)
        for part in self.parts:
            if side == across and not stay[part.start : part.stop].any():
                continue
            layout, y, w = part.load(space)
            own = stay[part.start : part.stop][layout.outer] if side == across else stay[layout.inner]
            here = own.nonzero()[0]
            outer.append(layout.outer[here].astype(np.int64) + part.start)
            inner.append(layout.inner[here].astype(np.int64))
            values.append(y[here])
            weights += [] if w is None else [w[here]]
        sides = _joined(outer, np.int64), _joined(inner, np.int64)
        rows, cols = sides[::-1] if self.flipped else sides
        known = _joined(weights, self.dtype) if weights else None
        about = self.row_names, self.column_names, self.origin, *self.features
        return Observations(rows, cols, _joined(values, self.dtype), self.shape, known, *about)

    def bind(self, loss: Loss, *, executor: Executor | None = None) -> Bound:
        return Partitioned(loss, self, executor)

    def seen_items(self, weighted: bool = False) -> SeenItems:
        return BlockPairs.of(self, weighted)

    def address(self) -> StoreAddress | None:
        """Where the blocks are, if they are files that can be opened again."""
        return None


def _joined(parts: list[Array], dtype: Any) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


class BlockTotals(NamedTuple):
    """What one pass over all blocks tells of a dataset."""

    summary: Summary
    counts: tuple[Array, Array]
    weight_sums: tuple[Array, Array]

    @classmethod
    def of(cls, data: BlockDataset) -> "BlockTotals":
        sides = max(data.shape), min(data.shape)
        counts, sums = ([np.zeros(size, dtype) for size in sides] for dtype in (np.int64, np.float64))
        tally, space = ValueTally(), Workspace()
        for part in data.parts:
            layout, y, weights = part.load(space)
            for total, one in ((counts, layout.counts), (sums, layout.sums(weights))):
                total[0][part.start : part.stop] = one[0]
                total[1] += one[1].astype(total[1].dtype, copy=False)
            tally.add(y)
        (longer, shorter), (long_sums, short_sums) = counts, sums
        if data.flipped:
            return cls(tally.summary(), (shorter, longer), (short_sums, long_sums))
        return cls(tally.summary(), (longer, shorter), (long_sums, short_sums))


class ValueTally:
    """Statistics of values that come in pieces."""

    def __init__(self) -> None:
        self.about = np.zeros(7)
        self.about[LEAST], self.about[MOST], self.about[WHOLE] = np.inf, -np.inf, 1
        self.levels: dict[float, int] | None = {}

    @property
    def size(self) -> int:
        return int(self.about[SIZE])

    def add(self, values: Array, known: Array | None = None) -> None:
        """Add values, or those of them that are known."""
        if values.size:
            census = kernels.get("data.store.census", HOST_ARRAY, values.size)
            known = np.ones(values.size, bool) if known is None else known
            self.levels = census.tally(values, known, self.about, self.levels)

    def summary(self) -> Summary:
        size = self.size
        least, largest = (float(self.about[k]) if size else 0.0 for k in (LEAST, MOST))
        levels = None if self.levels is None else sorted(self.levels.items())
        listed = None if levels is None else np.array([value for value, _ in levels])
        counts = None if levels is None else np.array([times for _, times in levels], np.int64)
        return Summary(size, least, largest, float(self.about[SUM]), bool(self.about[WHOLE]), listed, counts)


# Views of blocks: some of their entries, or other values.


@dataclass(frozen=True)
class CellFilter:
    """The entries of a block in a set of cells, or those outside of it."""

    mask: CellMask
    inside: bool

    def __call__(self, loaded: BlockData, start: int, flipped: bool) -> BlockData:
        layout, y, weights = loaded
        outer = layout.outer.astype(np.int64) + start
        rows, cols = (layout.inner.astype(np.int64), outer) if flipped else (outer, layout.inner.astype(np.int64))
        stay = np.flatnonzero(self.mask(rows, cols) == self.inside)
        tiles = np.searchsorted(stay, layout.tiles).astype(np.int64)
        some = EntryLayout(layout.outer[stay], layout.inner[stay], layout.n_outer, layout.n_inner, tiles)
        return BlockData(some, y[stay], None if weights is None else weights[stay])


@dataclass(frozen=True)
class WithoutWeights:
    """The recoding that drops weights."""

    def observations(self, data: "Observations") -> "Observations":
        return replace(data, weights=None)

    def block(self, loaded: BlockData) -> BlockData:
        return loaded._replace(weights=None)

    def summary(self, summary: Summary) -> Summary:
        return summary

    def is_weighted(self, before: bool) -> bool:
        return False


@dataclass(frozen=True)
class ViewedBlock:
    """A block that is filtered or recoded when it is loaded."""

    part: Block
    flipped: bool
    cells: CellFilter | None
    recoding: Recoding | None

    @property
    def start(self) -> int:
        return self.part.start

    @property
    def stop(self) -> int:
        return self.part.stop

    @property
    def size(self) -> int:
        """The number of entries before some are left out."""
        return self.part.size

    @property
    def fingerprint(self) -> str:
        changes = (f" {change!r}" for change in (self.cells, self.recoding) if change is not None)
        return self.part.fingerprint + "".join(changes)

    def load(self, workspace: Workspace | None = None) -> BlockData:
        loaded = self.part.load(workspace)
        if self.cells is not None:
            loaded = self.cells(loaded, self.start, self.flipped)
        return loaded if self.recoding is None else self.recoding.block(loaded)


class BlockView(BlockDataset):
    """Some entries of a dataset in blocks, or the same entries with other values."""

    def __init__(
        self, data: BlockDataset, *, cells: CellFilter | None = None, recoding: Recoding | None = None
    ) -> None:
        self.data, self.cells, self.recoding = data, cells, recoding
        self.shape, self.flipped, self.origin = data.shape, data.flipped, data.origin
        self.row_features, self.column_features = data.features

    def __repr__(self) -> str:
        return f"BlockView({self.data!r}, {self.cells if self.recoding is None else self.recoding!r})"

    @property
    def row_names(self) -> "Names | None":  # type: ignore[override]  # read when they are needed
        return self.data.row_names

    @property
    def column_names(self) -> "Names | None":  # type: ignore[override]
        return self.data.column_names

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @cached_property
    def is_weighted(self) -> bool:
        before = self.data.is_weighted
        return before if self.recoding is None else self.recoding.is_weighted(before)

    @cached_property
    def parts(self) -> tuple[Block, ...]:
        return tuple(ViewedBlock(part, self.flipped, self.cells, self.recoding) for part in self.data.parts)

    def split(self, mask: CellMask) -> tuple[Dataset, Dataset]:
        if self.cells is not None or self.recoding is None:
            return super().split(mask)
        train, held = (one.recode(self.recoding) for one in self.data.split(mask))  # a recoding moves no cell
        return train, held

    def address(self) -> StoreAddress | None:
        found = None if self.cells is not None else self.data.address()
        return found if found is None or self.recoding is None else replace(found, recoding=self.recoding)

    @cached_property
    def _known(self) -> Summary | None:
        """The statistics, if they do not need a pass."""
        if self.recoding is None or self.cells is not None:
            return None
        return self.recoding.summary(self.data.summary())

    def summary(self) -> Summary:
        return self._pass.summary if self._known is None else self._known

    def counts(self) -> tuple[Array, Array]:
        return self._pass.counts if self._known is None else self.data.counts()
