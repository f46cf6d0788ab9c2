"""Readers on damaged files: how many are read, raise an error of bifactor, or end otherwise.

`BIFACTOR_FUZZ=1000000 python -m benchmarks fuzz_readers` runs as many cases; by default there are a few thousand. Only
"read" and "refused" may be above 0.
"""

import gzip
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.children import outcomes
from benchmarks.harness.mutations import changed, changed_gzip, changed_npz
from benchmarks.harness.rows import Row, row
from bifactor.errors import BifactorError

COUNT = int(os.environ.get("BIFACTOR_FUZZ", "5000"))
"""Of cases, all kinds together."""

SEED = int(os.environ.get("BIFACTOR_FUZZ_SEED", "0"))

ENDS = ("read", "refused", "other", "signal", "exit", "memory", "late")

LONG = b"user,item,rating\nann,x,1\nbob,y,2.5\nann,y,-3e1\ncarl,x,\n"
WIDE = b"name,a,b,c,d\nann,1,,3,0.5\nbob,,2.5,NA,1\ncarl,7,8,9,10\n"
QUOTED = b'user,item,rating\n"ann, 1",x,1\nbob,"y ""2""",2.5\n"a\nb",y,-3\n'
LINES = b'{"user": "ann", "item": 7, "rating": 1.5}\n{"user": "bob", "item": 8, "rating": null}\n'
MARKET = b"%%MatrixMarket matrix coordinate real general\n% text\n3 4 3\n1 1 5\n2 3 -1.5\n3 4 2e-3\n"
COUNTS = b"setting,outcome,count\nXX,00,512\nXX,11,488\nXY,01,100\n"

LONGEST = 1000
"""Letters of an error."""

Change = Callable[[np.random.Generator, bytes], bytes]


class Unsound(Exception):
    """An answer that should not have been given."""


def saved(write: Callable[..., Any], *content: Any, **more: Any) -> bytes:
    out = io.BytesIO()
    write(out, *content, **more)
    return out.getvalue()


def matrix(kind: str) -> bytes:
    dense = np.array([[1.0, 0, 2, 0], [0, 3, 0, 4], [5, 0, 0, 6], [0, 7, 0, 0]])
    return saved(sparse.save_npz, getattr(sparse, f"{kind}_array")(dense))


def parquet(**columns: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet as pq

    return saved(lambda out, table: pq.write_table(table, out), pa.table(columns))


def picture(kind: str) -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (9, 7, 3)).astype(np.uint8)
    return saved(Image.fromarray(pixels).save, format=kind)


def arrays(**more: Any) -> bytes:
    return saved(np.savez, user=np.array([3, 10**15, 3]), item=np.array(["x", "y", "ä"]), rating=[1, 2, np.nan], **more)


SEEDS: dict[str, tuple[Callable[[], bytes], Change]] = {
    "long.csv": (lambda: LONG, changed),
    "long.tsv": (lambda: LONG.replace(b",", b"\t"), changed),
    "libmf.txt": (lambda: b"1 2 3\n4 5 6.5\n1 5 -2\n", changed),
    "colons.dat": (lambda: LONG.replace(b",", b"::"), changed),
    "decimal.csv": (lambda: LONG.replace(b",", b";").replace(b".", b","), changed),
    "quoted.csv": (lambda: QUOTED, changed),
    "wide.csv": (lambda: WIDE, changed),
    "long.csv.gz": (lambda: gzip.compress(LONG), changed_gzip),
    "lines.jsonl": (lambda: LINES, changed),
    "market.mtx": (lambda: MARKET, changed),
    "market.mtx.gz": (lambda: gzip.compress(MARKET), changed_gzip),
    "triples.npz": (arrays, changed_npz),
    "table.npz": (lambda: saved(np.savez, table=np.array([[1, np.nan], [np.nan, 4.0]])), changed_npz),
    **{f"{kind}.npz": (lambda kind=kind: matrix(kind), changed_npz) for kind in ("csr", "csc", "bsr", "coo", "dia")},
    "long.parquet": (lambda: parquet(user=["ann", "bob", "ann"], item=[7, 8, 8], rating=[1.0, 2.0, None]), changed),
    "wide.parquet": (lambda: parquet(name=["ann", "bob"], a=[1, None], b=[2.5, 3.5], c=[None, 1.0]), changed),
    "counts.csv": (lambda: COUNTS, changed),
    "counts.json": (lambda: json.dumps({"XX": {"00": 512, "11": 488}, "XY": {"0x1": 9}}).encode(), changed),
    "photo.png": (lambda: picture("PNG"), changed),
    "photo.jpg": (lambda: picture("JPEG"), changed),
    "photo.tif": (lambda: picture("TIFF"), changed),
    "state.npz": (lambda: saved(np.savez, rho=np.eye(4) / 4), changed_npz),
    "state.npy": (lambda: saved(np.save, np.array([1, 0, 0, 1]) / 2**0.5), changed),
}


@cache
def seed_of(kind: str) -> bytes:
    return SEEDS[kind][0]()


def case(kind: str, seed: int, folder: Path) -> str:
    """One file, read."""
    rng = np.random.default_rng([seed, *kind.encode()])
    path = folder / kind
    path.write_bytes(SEEDS[kind][1](rng, seed_of(kind)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read(path, rng)
    except BifactorError as error:
        if "\n" in str(error) or len(str(error)) > LONGEST:
            raise Unsound("the error is not a sentence") from error
        return "refused"
    if not sound(found):
        raise Unsound("what was read makes no sense")
    return "read"


def read(path: Path, rng: np.random.Generator) -> Any:
    from bifactor.applications.pictures.files import read_picture
    from bifactor.models.tomography.states import target_state

    if path.name.startswith("counts"):
        return bf.data.read_counts(path)[1]
    if path.name.startswith("photo"):
        return read_picture(path).pixels
    if path.name.startswith("state"):
        return target_state(path, 2)
    told = ({}, {}, {}, {"wide": True}, {"values": False}, {"header": False}, {"decimal": ","}, {"weight": "3"})
    return bf.data.read(path, **told[int(rng.integers(len(told)))])


def sound(found: Any) -> bool:
    """Whether the data that were read are valid."""
    if isinstance(found, np.ndarray):
        return bool(np.all(np.isfinite(found)))
    if (
        not np.all(np.isfinite(found.values))
        or found.rows.size != found.cols.size
        or found.values.size
        not in (
            0,
            found.rows.size,
        )
    ):
        return False
    if found.weights is not None and not np.all(found.weights > 0):
        return False
    sides = ((found.rows, found.row_names, 0), (found.cols, found.column_names, 1))
    return all(
        places.size == 0 or (places.min() >= 0 and places.max() < len(names) == found.shape[k])
        for places, names, k in sides
    )


def run(count: int = COUNT) -> Iterator[Row]:
    each = -(-count // len(SEEDS))
    for kind in SEEDS:
        told, examples = outcomes(case, kind, 1_000_000 * SEED, each)
        yield row(
            "read", kind, "changed at random", **{end: told[end] for end in ENDS}, example="; ".join(examples[:3])
        )
