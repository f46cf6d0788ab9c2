"""Writes the bucket of a block as a file."""

import os
from pathlib import Path

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.running import files
from bifactor.tables.source import reading
from bifactor.tables.store.block_file import CODES, HEADER, TYPES, Header, digest, encoded, parsed, smallest
from bifactor.tables.store.manifest import Manifest, block_name
from bifactor.tables.store.plan import Plan
from bifactor.tables.store.workplace import Workplace


def finished(work: Workplace, facts: Manifest, plan: Plan, block: int) -> Header | None:
    """The header of a block that an earlier process has written; files get their name when they are complete."""
    path = work.folder / block_name(block)
    try:
        with open(path, "rb") as file:
            header = parsed(file.read(HEADER))
        size = os.path.getsize(path)
    except OSError:
        return None
    if header is None or header.store != facts.id or size != header.bytes:
        return None
    told = (int(plan.cuts[block]), int(plan.cuts[block + 1]), int(plan.sizes[block]))
    return header if (header.start, header.stop, header.size) == told else None


def write_block(work: Workplace, facts: Manifest, plan: Plan, block: int) -> Header:
    """Sort the observations of a bucket and write them."""
    size, rows = int(plan.sizes[block]), int(plan.cuts[block + 1] - plan.cuts[block])
    kind = CODES if facts.values.levels is not None else TYPES.index(np.dtype(facts.dtype).str)
    weighed = TYPES.index(np.dtype(facts.dtype).str) if facts.weighted else 0
    keys, values, weights = _bucket(work.bucket(block), size, TYPES[kind], TYPES[weighed] if weighed else None)
    n_tiles, width = plan.tiles(block)
    shift = plan.shift(block)
    if int(keys.max()) >> shift >= n_tiles * rows:
        raise _lost(work.bucket(block))
    codec = kernels.find("codec", np.float32, size)
    order, keys = codec.order(keys, (n_tiles * rows - 1).bit_length() + shift)
    columns = np.empty(size, TYPES[smallest(width - 1)])
    runs = codec.runs(keys, shift, n_tiles * rows, columns)
    marginals = _marginals(columns, runs, (n_tiles, width, plan.n_inner))
    del keys
    types = {"runs": smallest(int(runs.max())), "marginals": smallest(int(marginals.max()))}
    content = {"values": values[order]}
    if weights is not None:
        content["weights"] = weights[order]
    content |= {"columns": columns, "runs": runs.astype(TYPES[types["runs"]])}
    content["marginals"] = marginals.astype(TYPES[types["marginals"]])
    header = Header(
        facts.id,
        int(plan.cuts[block]),
        int(plan.cuts[block + 1]),
        size,
        plan.n_inner,
        n_tiles,
        width,
        kind,
        weighed,
        smallest(width - 1),
        **types,
        fingerprint="0" * 32,
    )
    parts = encoded(content)
    header = header._replace(fingerprint=digest(header, parts))
    files.put(work.folder / block_name(block), header.pack(), *parts)
    return header


def _marginals(columns: Array, runs: Array, sizes: tuple[int, int, int]) -> Array:
    """The number of entries of each column, tile by tile."""
    n_tiles, width, n_inner = sizes
    ends = np.cumsum(runs.reshape(n_tiles, -1).sum(axis=1))
    found = np.zeros((n_tiles, width), np.int64)
    start = 0
    for tile, end in enumerate(ends.tolist()):
        found[tile] = np.bincount(columns[start:end], minlength=width)
        start = end
    return found.ravel()[:n_inner]


def _bucket(path: Path, size: int, kind: str, weighed: str | None) -> tuple[Array, Array, Array | None]:
    """All segments of a bucket, concatenated."""
    keys, values = np.empty(size, np.uint64), np.empty(size, kind)
    weights = None if weighed is None else np.empty(size, weighed)
    at = 0
    with reading(path), open(path, "rb") as file:
        while head := file.read(8):
            count = int.from_bytes(head, "little")
            if at + count > size:
                break
            for column in (keys, values, weights):
                if column is not None:
                    part = column[at : at + count].data.cast("B")
                    if file.readinto(part) != part.nbytes:
                        raise _lost(path)
            at += count
    if at != size:
        raise _lost(path)
    return keys, values, weights


def _lost(path: Path) -> FileError:
    return FileError(f"{path} is truncated or has changed. Delete its folder and start again.")
