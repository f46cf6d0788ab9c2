"""One block of a store: small until it is loaded, so that it can be sent to another process."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.executors import Loaded, Workspace
from bifactor.kernels.census_reference import LEVELS
from bifactor.kernels.layout import Layout, index_type
from bifactor.tables.store.block_file import ADVICE, HEADER, Header, digest, read_block

_checked: set[tuple[str, int, str]] = set()
"""Files whose checksum this process has verified: name, time of the last change and checksum."""


class Sieve(NamedTuple):
    """A choice of entries: those whose hash is below a fraction are held out."""

    fraction: float
    seed: int
    held: bool
    """Whether the held-out entries are loaded, or all others."""


@dataclass(frozen=True)
class Part:
    """A range of rows, or of columns if the store is `flipped`, and the observations in it."""

    path: str
    header: Header
    table: tuple[float, ...]
    """The values of codes; empty if values are stored as numbers."""
    dtype: str
    flipped: bool
    sieve: Sieve | None = None

    @property
    def start(self) -> int:
        return self.header.start

    @property
    def stop(self) -> int:
        return self.header.stop

    @property
    def size(self) -> int:
        """The number of observations, before some are held out."""
        return self.header.size

    @property
    def fingerprint(self) -> str:
        """A hash of the content."""
        content = self.header.fingerprint
        return content if self.sieve is None else f"{content} {tuple(self.sieve)}"

    def sifted(self, sieve: Sieve) -> "Part":
        """The same block with another choice of its entries."""
        return replace(self, sieve=sieve)

    def load(self, workspace: Workspace | None = None) -> Loaded:
        """Read the block, check it and unpack it.

        Parameters
        ----------
        workspace : Workspace, optional
            Memory that is reused. The arrays of the last block are overwritten.

        Raises
        ------
        FileError
            If the file is missing, truncated or changed, or belongs to another store. The checksum of the whole content
            is verified when a process first reads the file, and again after the file has changed.
        """
        space = Workspace() if workspace is None else workspace
        buffer = space.take("file", self.header.bytes, np.uint8)
        self._check(buffer, read_block(Path(self.path), self.header, buffer))
        return self._decoded(buffer, space)

    def _check(self, buffer: Array, time: int) -> None:
        known = (self.path, time, self.header.fingerprint)
        if known in _checked:
            return
        if digest(self.header, [buffer.data[HEADER:]]) != self.header.fingerprint:
            raise FileError(f"{self.path} is damaged: its checksum does not match. {ADVICE}")
        _checked.add(known)

    def _decoded(self, buffer: Array, space: Workspace) -> Loaded:
        header = self.header
        column = {
            name: buffer[at : at + length * dtype.itemsize].view(dtype)
            for name, (at, length, dtype) in header.sections.items()
        }
        rows, size, index = self.stop - self.start, header.size, index_type(self.stop - self.start, header.n_inner)
        outer, inner = space.take("outer", size, index), space.take("inner", size, index)
        sums = space.take("rows", rows, np.float64), space.take("cols", header.n_inner, np.float64)
        codec = kernels.find("codec", np.float32, size)
        counts = column["runs"].reshape(header.n_tiles, rows)
        tiles = codec.decode(counts, column["columns"], header.width, outer, inner, sums[0])
        if tiles[-1] != size:
            raise FileError(f"{self.path} is damaged: its rows do not have {size} entries. {ADVICE}")
        y, weights = self._numbers(column, codec, space), None
        if "weights" in column:
            weights = column["weights"].astype(self.dtype, copy=False)
        if self.sieve is None:
            sums[1][:] = column["marginals"]
            return Loaded(Layout(outer, inner, rows, header.n_inner, tiles, given=sums), y, weights)
        arrays = [outer, inner, y, *([] if weights is None else [weights])]
        tiles = codec.sift(arrays, tiles, self.start, self.flipped, sums, *self._settings())
        left = slice(int(tiles[-1]))
        layout = Layout(outer[left], inner[left], rows, header.n_inner, tiles, given=sums)
        return Loaded(layout, y[left], None if weights is None else weights[left])

    def _numbers(self, column: dict[str, Array], codec: Any, space: Workspace) -> Array:
        values = column["values"]
        if not self.table:
            return values.astype(self.dtype, copy=False)
        y = space.take("y", values.size, self.dtype)
        table = np.zeros(LEVELS, self.dtype)
        table[: len(self.table)] = self.table
        codec.look_up(values, table, y)
        return y

    def _settings(self) -> tuple[int, float, bool]:
        assert self.sieve is not None
        return self.sieve.seed, self.sieve.fraction, self.sieve.held
