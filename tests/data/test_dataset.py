"""Laws of datasets: in memory, in blocks, views of blocks, and a storage that only tests have."""

import re
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bifactor as bf
from bifactor.data.dataset import BlockDataset, BlockView, CellFilter, WithoutWeights
from bifactor.errors import CheckError, InputError
from bifactor.executors import BlockData
from bifactor.models.completion.labels import Labels
from bifactor.models.recommender.weights import CountsToClicks
from bifactor.testing import check_dataset


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(sys.modules["bifactor.data.store.partition"], "SMALL", 1)


@dataclass(frozen=True)
class Range:
    """Some rows of the longer side in a database."""

    file: str
    query: str
    start: int
    stop: int
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        return len(self.entries())

    @property
    def fingerprint(self) -> str:
        return f"{self.file} {self.start} {self.stop}"

    def entries(self) -> list[tuple[int, int, float]]:
        with sqlite3.connect(self.file) as database:
            return list(database.execute(self.query, (self.start, self.stop)))

    def load(self, workspace=None) -> BlockData:
        rows, cols, values = (np.array(side) for side in zip(*self.entries(), strict=True))
        return BlockData.of(rows - self.start, cols, values, (self.stop - self.start, min(self.shape)))


class Database(BlockDataset):
    """Entries in a table of SQLite, as a third storage."""

    is_weighted = False
    dtype = np.dtype(np.float64)

    def __init__(self, file: Path, shape: tuple[int, int], count: int):
        self.file, self.shape, self.flipped = str(file), shape, shape[0] < shape[1]
        ends = np.linspace(0, max(shape), count + 1).astype(int).tolist()
        outer, inner = ("col", "row") if self.flipped else ("row", "col")
        query = f"SELECT {outer}, {inner}, value FROM entries WHERE {outer} >= ? AND {outer} < ?"
        self._parts = tuple(Range(self.file, query, a, b, shape) for a, b in pairwise(ends))

    @property
    def parts(self) -> tuple[Range, ...]:
        return self._parts

    def __repr__(self) -> str:
        return f"Database({self.file!r})"


def draw(shape, weighted, whole=False, seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = np.nonzero(rng.random(shape) < 0.4)
    z = 3 + (rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])))[rows, cols]
    values = np.clip(np.round(z), 1, 5) if whole else z + 0.1 * rng.standard_normal(rows.size)
    weights = rng.uniform(0.5, 2, rows.size) if weighted else None
    return bf.data.Observations(rows, cols, values, shape, weights)


def partition(data, folder):
    return bf.data.partition(data, folder)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (1, 30), (30, 30)])
def test_observations_blocks_and_views(tmp_path, shape, weighted, whole):
    data = draw(shape, weighted, whole)
    store = partition(data, tmp_path / "blocks")
    views = [store, *store.split(bf.data.RandomCells(0.4, 3)), *store.split(bf.data.RandomLines(0.3, 1))]
    views += [store.recode(WithoutWeights()), store.unweighted(), data.in_blocks()]
    views += [BlockView(store, cells=CellFilter(bf.data.RandomCells(0.4, 3), True))]
    for one in (data, *(view for view in views if view.size)):
        check_dataset(one)


def test_a_hash_holds_out_the_same_cells_however_they_are_stored(tmp_path):
    data, mask = draw((60, 30), False), bf.data.RandomCells(0.3, 7)
    store = partition(data, tmp_path / "blocks")
    quick = store.split(mask)[1]
    plain = BlockView(store, cells=CellFilter(mask, True))
    assert type(quick) is bf.data.BlockStore
    for one in (quick, plain):
        some = one.lines(np.ones(60, bool))
        inside = data.part(mask(data.rows, data.cols))
        assert sorted(zip(some.rows, some.cols, strict=True)) == sorted(zip(inside.rows, inside.cols, strict=True))


def test_mistakes_are_refused(tmp_path):
    store = partition(draw((40, 25), False), tmp_path / "blocks")
    for fraction in (0.0, 1.0, 1, "a tenth", np.nan):
        for mask in (bf.data.RandomCells, bf.data.RandomLines):
            with pytest.raises(InputError, match="between 0 and 1"):
                mask(fraction, 0)
    with pytest.raises(InputError, match="seed"):
        bf.data.RandomLines(0.5, -1)
    with pytest.raises(InputError, match="side"):
        bf.data.RandomLines(0.5, 0, side=2)
    nothing = store.split(lambda rows, cols: rows < 0)[1]
    assert nothing.summary().size == nothing.lines(np.ones(40, bool)).size == 0
    for estimator in (bf.MatrixCompletion(2), bf.MatrixCompletion(2, ridge=1.0), bf.Recommender(2)):
        with pytest.raises(InputError, match=r"No entry is known|no choices"):
            estimator.fit(nothing)


def test_recodings_agree_in_memory_and_in_blocks(tmp_path):
    data = draw((50, 20), False, whole=True)
    twice = bf.data.Observations(*(np.tile(one, 2) for one in (data.rows, data.cols, data.values)), data.shape)
    signs = data.replaced(np.where(data.values > 2, 1.0, 0.0))
    for recoding, one in ((CountsToClicks(), twice), (Labels((0.0, 1.0)), signs)):
        there = partition(one, tmp_path / type(recoding).__name__).recode(recoding)
        check_dataset(there)
        ours, theirs = (view.lines(np.ones(50, bool)) for view in (one.recode(recoding), there))
        order, other = (np.lexsort((view.cols, view.rows)) for view in (ours, theirs))
        np.testing.assert_array_equal(ours.values[order], theirs.values[other])
        np.testing.assert_array_equal(ours.rows[order], theirs.rows[other])
        if ours.weights is not None:
            np.testing.assert_allclose(ours.weights[order], theirs.weights[other], rtol=1e-6)
        assert there.summary().size == ours.size
        np.testing.assert_allclose(there.weight_sums()[1], ours.weight_sums()[1], rtol=1e-6)


@pytest.fixture(params=[(60, 25), (25, 60)], ids=["tall", "wide"])
def database(request, tmp_path):
    data = draw(request.param, False)
    with sqlite3.connect(tmp_path / "entries.db") as file:
        file.execute("CREATE TABLE entries (row INTEGER, col INTEGER, value REAL)")
        lines = zip(data.rows.tolist(), data.cols.tolist(), data.values.tolist(), strict=True)
        file.executemany("INSERT INTO entries VALUES (?, ?, ?)", lines)
    return data, Database(tmp_path / "entries.db", request.param, 4)


def test_a_third_storage_keeps_the_laws(database):
    check_dataset(database[1])


def one_more(self):
    rows, cols = self._pass.counts
    return rows + 1, cols


def of_labels(self, loss, *, executor=None):
    return BlockView(self, recoding=Labels((0.0, 1.0), 3.0)).bind(loss)


@pytest.mark.parametrize(
    ("member", "fault", "law"),
    [
        ("counts", one_more, "counts"),
        ("summary", lambda self: self._pass.summary._replace(total=0.0), "total"),
        ("split", lambda self, mask: (self, self), "split divides"),
        ("bind", of_labels, "f is half the sum"),
    ],
    ids=["counts", "summary", "split", "bind"],
)
def test_a_dataset_with_a_fault_breaks_a_law(database, monkeypatch, member, fault, law):
    monkeypatch.setattr(Database, member, fault)
    with pytest.raises(CheckError, match=law):
        check_dataset(database[1])


@pytest.mark.parametrize("options", [{"ridge": 1.0}, {"loss": "huber", "ridge": 1.0}, {"noise": "one"}], ids=str)
def test_a_third_storage_fits_scores_predicts_and_recommends(database, options, tmp_path):
    data, there = database
    settings = {"n_components": 2, "random_state": 0, "tol": 1e-9, **options}
    triples = (data.rows, data.cols, data.values)
    ours, theirs = (bf.MatrixCompletion(**settings).fit(one) for one in (triples, there))
    close = 1e-2 if "noise" in options else 1e-4  # posteriors in memory and in blocks are two algorithms
    np.testing.assert_allclose(ours.predict(*triples[:2]), theirs.predict(*triples[:2]), atol=close)
    assert ours.score(triples) == pytest.approx(theirs.score(triples), abs=close)
    np.testing.assert_array_equal(ours.recommend([3], 2)[0], theirs.recommend([3], 2)[0])
    theirs.save(tmp_path / "fit")
    loaded = bf.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.recommend([3], 2)[0], theirs.recommend([3], 2)[0])


def switches() -> Iterator[str]:
    source = Path(bf.__file__).parent
    for path in source.rglob("*.py"):
        if path.relative_to(source).parts[0] != "data":
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.search(r"isinstance\([^)]*\b(Observations|BlockStore|BlockView)\b", line):
                    yield f"{path.name}: {line.strip()}"


def test_only_data_asks_where_entries_are():
    assert list(switches()) == []
