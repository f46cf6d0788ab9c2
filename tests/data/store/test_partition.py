"""A block store holds what `data.read` reads, in the order that `arrange` gives."""

import numpy as np
import pandas as pd
import pytest

import bifactor as bf
from bifactor.data.delimited import Words
from bifactor.data.store import block_store as part_module
from bifactor.data.store import names as names_module
from bifactor.data.store import partition, sources
from bifactor.data.store.partition import LEAST_BUDGET
from bifactor.errors import BifactorError, FileError, InputError
from bifactor.executors.executor import bytes_of
from bifactor.kernels.entry_layout import arrange


@pytest.fixture
def small_pieces(monkeypatch):
    """Many pieces and blocks of few observations."""
    monkeypatch.setattr(sources, "PIECE", 300)
    monkeypatch.setattr(partition, "SMALL", 100)


def require_same(store, data):
    """The store holds these observations, with the same numbering."""
    assert store.shape == data.shape
    assert store.size == data.rows.size == sum(part.size for part in store.parts)
    assert store.flipped == (data.shape[0] < data.shape[1])
    for found, wanted in ((store.row_names, data.row_names), (store.column_names, data.column_names)):
        assert (found is None) == (wanted is None)
        if found is not None:
            assert list(found) == list(wanted)
    outer, inner = (data.cols, data.rows) if store.flipped else (data.rows, data.cols)
    assert (store.parts[0].start, store.parts[-1].stop) == (0, max(data.shape))
    for before, after in zip(store.parts, store.parts[1:], strict=False):
        assert before.stop == after.start
    for part in store.parts:
        mine = (outer >= part.start) & (outer < part.stop)
        layout, y, weights = part.load()
        wanted, order = arrange(outer[mine] - part.start, inner[mine], part.stop - part.start, min(data.shape))
        order = slice(None) if order is None else order
        for name in ("outer", "inner", "tiles"):
            np.testing.assert_array_equal(getattr(layout, name), getattr(wanted, name))
            assert getattr(layout, name).dtype == getattr(wanted, name).dtype
        for found, counts in zip(layout.counts, wanted.counts, strict=True):
            np.testing.assert_array_equal(found, counts)
        assert y.dtype == store.dtype
        np.testing.assert_array_equal(y, data.values[mine][order].astype(store.dtype))
        assert (weights is None) == (data.weights is None)
        if weights is not None:
            np.testing.assert_array_equal(weights, data.weights[mine][order].astype(store.dtype))
    np.testing.assert_array_equal(store.counts()[0], np.bincount(data.rows, minlength=data.shape[0]))
    np.testing.assert_array_equal(store.counts()[1], np.bincount(data.cols, minlength=data.shape[1]))
    assert store.summary().mean == pytest.approx(data.values.mean(), rel=1e-12)
    assert (store.summary().least, store.summary().largest) == (data.values.min(), data.values.max())
    assert store.summary().whole == bool(np.all(data.values % 1 == 0))


def ratings(kind="integers", size=2000, seed=0, m=60, n=40):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(m, size=size), rng.integers(n, size=size)
    kinds = {
        "integers": lambda k: k + 1,
        "sparse": lambda k: (k * 982_451_653_000_001) % (1 << 62) - (1 << 61),
        "text": lambda k: np.array([f"name {j}é" for j in k], object),
        "mixed": lambda k: np.array([str(j) if j < 30 else f"x{j}" for j in k], object),
        "fractions": lambda k: k - 20.5,
        "whole floats": lambda k: k.astype(np.float64),
        "unsigned": lambda k: k.astype(np.uint64) + np.uint64(1 << 63),
        "booleans": lambda k: k % 2 == 0,
        "dates": lambda k: np.datetime64("2020-01-01") + k,
    }
    return pd.DataFrame(
        {"user": kinds[kind](users), "item": items, "rating": rng.integers(1, 11, size=size) / 2, "w": rng.random(size)}
    )


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "kind",
    ["integers", "sparse", "text", "mixed", "fractions", "whole floats", "unsigned", "booleans", "dates"],
)
def test_parquet_is_numbered_as_in_memory(kind, tmp_path):
    frame = ratings(kind)
    frame.to_parquet(tmp_path / "ratings.parquet", row_group_size=700)
    store = bf.data.partition(tmp_path / "ratings.parquet", tmp_path / "blocks", row="user", col="item", value="rating")
    require_same(store, bf.data.read(tmp_path / "ratings.parquet", row="user", col="item", value="rating"))
    assert store.origin.header == ("user", "item", "rating")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["integers", "sparse", "text", "mixed", "fractions"])
def test_text_is_numbered_as_in_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("bifactor.data.text.BLOCK", 5000)
    path = tmp_path / "ratings.csv"
    ratings(kind)[["user", "item", "rating"]].to_csv(path, index=False)
    store = bf.data.partition(path, tmp_path / "blocks")
    data = bf.data.read(path)
    require_same(store, data)
    assert store.origin == data.origin


def rows_of(path):
    return bf.data.read(path, row="user", col="item", value="rating")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("form", ["npz", "mtx", "jsonl", "frame", "polars", "csv.gz", "wide"])
def test_other_sources_hold_what_is_read_of_them(form, tmp_path):
    frame = ratings()[["user", "item", "rating"]]
    source = tmp_path / f"ratings.{form}"
    if form == "npz":
        np.savez(source, **{name: frame[name].to_numpy() for name in frame})
    elif form == "mtx":
        lines = frame.to_csv(sep=" ", index=False, header=False)
        source.write_text(
            f"%%MatrixMarket matrix coordinate real general\n70 70 {len(frame)}\n{lines}".replace(" 0 ", " 70 ")
        )
    elif form == "jsonl":
        frame.to_json(source, orient="records", lines=True)
    elif form == "csv.gz":
        frame.to_csv(source, index=False)
    elif form == "wide":
        source = tmp_path / "wide.csv"
        frame.drop_duplicates(["user", "item"]).pivot(index="user", columns="item", values="rating").to_csv(source)
    else:
        source = frame if form == "frame" else pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    store = bf.data.partition(source, tmp_path / "blocks")
    require_same(store, bf.data.read(source))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (1, 30), (30, 1), (1, 1), (500, 7)])
def test_triples_keep_their_numbers(shape, weighted, tmp_path):
    rng = np.random.default_rng(1)
    size = 1 if shape == (1, 1) else 700
    rows, cols = rng.integers(shape[0], size=size), rng.integers(shape[1], size=size).astype(np.uint16)
    triples = (rows, cols, rng.standard_normal(size), *([rng.random(size) + 0.1] if weighted else []))
    for array in triples:
        array.setflags(write=False)
    store = bf.data.partition(triples, tmp_path / "blocks", dtype="float64")
    data = bf.data.observations.from_triples(triples[:3], triples[3] if weighted else None)
    require_same(store, data)
    assert store.is_weighted == weighted
    assert store.dtype == np.float64
    assert store.row_names is None


def test_wide_tiles_and_compiled_kernels(tmp_path):
    """Few entries per row of a matrix with more than 65,536 columns: one tile, and columns of four bytes."""
    rng = np.random.default_rng(2)
    rows, cols = rng.integers(120_000, size=60_000), rng.integers(100_000, size=60_000)
    rows[0], cols[0] = 119_999, 99_999
    store = bf.data.partition((rows, cols, np.ones(60_000, np.float32)), tmp_path / "blocks")
    assert store.parts[0].header.width > 1 << 16
    assert store.summary()[1:3] == (1, 1)
    require_same(store, bf.data.observations.from_triples((rows, cols, np.ones(60_000))))


@pytest.mark.parametrize("distinct", [256, 257])
def test_many_values_are_written_as_they_are(distinct, tmp_path):
    rng = np.random.default_rng(3)
    size = 20_000
    rows, cols, values = (
        rng.integers(300, size=size),
        rng.integers(200, size=size),
        rng.integers(distinct, size=size) / 8,
    )
    values[:distinct] = np.arange(distinct) / 8
    store = bf.data.partition((rows, cols, values), tmp_path / "blocks")
    assert (store.summary().levels is None) == (distinct > 256)
    if store.summary().levels is not None:
        np.testing.assert_array_equal(store.summary().levels, np.arange(distinct) / 8)
        assert store.summary().level_counts.sum() == size
    require_same(store, bf.data.observations.from_triples((rows, cols, values)))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1.0, 2.0, 5.0], np.float32),
        ([0.1, 3.7, 2.2], np.float32),
        ([1e9, 1e9 + 1, 1e9 + 2], np.float64),
        ([1e-300, 1e300, 1.0], np.float64),
        ([0.1, 0.1, 0.1], np.float32),
        ([1e-6, 2e-6, 5e-6], np.float64),
        ([1e10, 2e10, 5e10], np.float64),
    ],
)
def test_double_precision_is_kept_where_single_would_lose_values(values, dtype, tmp_path):
    store = bf.data.partition((np.arange(3), np.zeros(3, int), np.array(values)), tmp_path / "blocks")
    assert store.dtype == dtype
    np.testing.assert_array_equal(store.parts[0].load().y, np.array(values, dtype))


@pytest.mark.usefixtures("small_pieces")
def test_several_files_are_one_table(tmp_path):
    frame = ratings("text")
    (tmp_path / "parts").mkdir()
    for k in range(3):
        frame[k::3].to_parquet(tmp_path / f"parts/part-{k}.parquet")
        frame[["user", "item", "rating"]][k::3].to_csv(tmp_path / f"part-{k}.csv", index=False)
    (tmp_path / "parts/_metadata.parquet").write_bytes(b"not data")
    together = pd.concat([frame[k::3] for k in range(3)])
    wanted = bf.data.read(together, row="user", col="item", value="rating", weight="w")
    names = {"row": "user", "col": "item", "value": "rating"}
    parts = [tmp_path / f"parts/part-{k}.parquet" for k in range(3)]
    for k, source in enumerate([tmp_path / "parts", str(tmp_path / "parts/*t-*.parquet"), parts]):
        require_same(bf.data.partition(source, tmp_path / f"blocks{k}", **names, weight="w"), wanted)
    address = bf.data.partition(f"file://{tmp_path}/parts/part*.parquet", tmp_path / "there", **names, weight="w")
    require_same(address, wanted)
    text = bf.data.partition(tmp_path / "*.csv", tmp_path / "text")
    require_same(text, bf.data.read(together[["user", "item", "rating"]]))
    assert text.fingerprint != address.fingerprint


@pytest.mark.usefixtures("small_pieces")
def test_lines_without_a_value_are_left_out_with_names_that_are_in_no_other(tmp_path):
    frame = ratings("text")
    frame.loc[frame["item"] == 5, "rating"] = np.nan
    frame.loc[frame["user"] == "name 3é", "w"] = 0.0
    frame.loc[3, ["user", "rating"]] = None
    frame.to_parquet(tmp_path / "ratings.parquet")
    frame.drop(index=3).to_csv(tmp_path / "ratings.csv", index=False)
    for name in ("ratings.parquet", "ratings.csv"):
        asked = {"row": "user", "col": "item", "value": "rating", "weight": "w"}
        store = bf.data.partition(tmp_path / name, tmp_path / f"{name}.blocks", **asked)
        data = bf.data.read(tmp_path / name, **asked)
        require_same(store, data)
        assert 5 not in store.column_names
        assert store.origin.missing == data.origin.missing > 0


def test_pairs_count_as_one(tmp_path):
    frame = ratings()[["user", "item"]]
    frame.to_parquet(tmp_path / "clicks.parquet")
    store = bf.data.partition(tmp_path / "clicks.parquet", tmp_path / "blocks", value=False)
    data = bf.data.read(tmp_path / "clicks.parquet", values=False)
    require_same(store, data.replaced(np.ones(data.rows.size)))
    assert store.summary()[1:3] == (1, 1)


def test_held_out_observations_are_the_same_in_memory_and_in_blocks_of_either_side(small_pieces, tmp_path):
    from bifactor.data.hash_reference import hashed

    rng = np.random.default_rng(4)
    rows, cols, values = rng.integers(90, size=3000), rng.integers(50, size=3000), rng.standard_normal(3000)
    rows[0], cols[0] = 89, 49
    for k, triples in enumerate([(rows, cols, values), (cols, rows, values)]):
        aside = hashed(triples[0], triples[1], 11) < 0.2
        store = bf.data.partition(triples, tmp_path / f"blocks{k}", dtype="float64")
        assert store.flipped == bool(k)
        for view, mine in zip(store.split(bf.data.RandomCells(0.2, 11)), (~aside, aside), strict=True):
            found = []
            for part in view.parts:
                layout, y, _ = part.load()
                found += zip(layout.outer + part.start, layout.inner, y, strict=True)
                for side, counts in zip((layout.outer, layout.inner), layout.counts, strict=True):
                    np.testing.assert_array_equal(np.bincount(side, minlength=counts.size), counts)
                assert layout.tiles[-1] == layout.size
            wanted = zip(rows[mine], cols[mine], values[mine], strict=True)
            assert sorted(found) == sorted(wanted)
            assert view.size == np.count_nonzero(mine)
            np.testing.assert_array_equal(view.counts()[0], np.bincount(triples[0][mine], minlength=store.shape[0]))
            assert view.summary().mean == pytest.approx(values[mine].mean())
            data = bf.data.observations.from_triples(triples)
            np.testing.assert_array_equal(bf.data.RandomCells(0.2, 11)(data.rows, data.cols), aside)
            assert view.fingerprint != store.fingerprint
    with pytest.raises(InputError, match="between 0 and 1"):
        bf.data.RandomCells(1.0, 0)
    some = store.split(bf.data.RandomCells(0.5, 0))[1]
    assert sum(part.size for part in some.split(bf.data.RandomCells(0.5, 1))) == some.size


def test_the_same_data_have_the_same_fingerprint_and_others_another(tmp_path):
    rows, cols, values = np.arange(6), np.arange(6) % 3, np.array([1.0, 2, 3, 4, 5, 5])
    stores = [bf.data.partition((rows, cols, values), tmp_path / name) for name in ("a", "b")]
    assert stores[0].fingerprint == stores[1].fingerprint
    other = bf.data.partition((rows, cols, values[::-1]), tmp_path / "c")
    assert other.fingerprint != stores[0].fingerprint


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ((np.empty(0, int), np.empty(0, int), np.empty(0)), "at least one"),
        ((np.arange(3), np.arange(3), np.array([1, np.nan, 2])), "missing entries"),
        ((np.arange(3), np.arange(3), np.array([1, np.inf, 2])), "missing entries"),
        ((np.arange(3), np.arange(3)), "not three or four vectors"),
        ((np.arange(3), np.arange(3), np.ones(3), -np.ones(3)), "negative"),
        ((np.array([0, 10**12]), np.arange(2), np.ones(2)), "not indices"),
        ((np.array([0, -1]), np.arange(2), np.ones(2)), "rows holds -1"),
        ((np.array([0.0, 1.0]), np.arange(2), np.ones(2)), "integers from 0"),
        ((np.arange(3), np.arange(2), np.ones(2)), "equally many"),
        ([], "empty"),
        (5, "frame"),
        (pd.DataFrame({"user": [1], "item": [2], "rating": [np.inf]}), "infinite"),
        (pd.DataFrame({"user": [1], "item": [2], "rating": [np.nan]}), "at least one"),
    ],
)
def test_what_is_no_source_is_refused_before_anything_is_written(source, advice, tmp_path):
    with pytest.raises(InputError, match=advice):
        bf.data.partition(source, tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_files_that_do_not_fit_are_refused_by_name(tmp_path):
    frame = ratings()[["user", "item", "rating"]]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.rename(columns={"item": "thing"}).to_parquet(tmp_path / "b.parquet")
    frame.to_csv(tmp_path / "c.csv", index=False)
    (tmp_path / "d.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-100])
    frame[:0].to_parquet(tmp_path / "e.parquet")
    frame.assign(user=frame["user"].astype(str)).to_parquet(tmp_path / "f.parquet")
    frame.assign(rating=np.inf).to_parquet(tmp_path / "g.parquet")
    frame.assign(rating=np.nan).to_parquet(tmp_path / "h.parquet")
    (tmp_path / "nothing").mkdir()
    refused = {
        "one kind": ["a.parquet", "c.csv"],
        "b.parquet has no column": ["a.parquet", "b.parquet"],
        "d.parquet is not parquet": ["d.parquet"],
        "no rows": ["e.parquet"],
        "to one kind": ["a.parquet", "f.parquet"],
        "infinite": ["g.parquet"],
        "no entry with a value": ["h.parquet"],
        "no file .*missing": ["missing.parquet"],
        "no parquet file": ["nothing"],
        "No file matches": ["none-*.parquet"],
    }
    for k, (words, names) in enumerate(refused.items()):
        source = [tmp_path / name for name in names]
        with pytest.raises((InputError, FileError), match=words):
            bf.data.partition(source[0] if len(source) == 1 else source, tmp_path / f"blocks{k}")
        assert not (tmp_path / f"blocks{k}/manifest.json").exists()


def test_addresses_that_need_fsspec_say_so(tmp_path):
    try:
        import fsspec  # noqa: F401
    except ImportError:
        with pytest.raises(BifactorError, match="pip install fsspec"):
            bf.data.partition("memory://ratings.parquet", tmp_path / "blocks")
    else:
        with pytest.raises(FileError, match="no file"):
            bf.data.partition("memory://nowhere/ratings.parquet", tmp_path / "blocks")


@pytest.mark.parametrize(
    ("memory", "count"),
    [("2GB", 2 * 10**9), ("512MiB", 2**29), ("0.5 gb", 5 * 10**8), (10**8, 10**8), ("70m", 7 * 10**7)],
)
def test_memory_is_read(memory, count):
    assert bytes_of(memory) == count


@pytest.mark.parametrize("memory", ["2 apples", "", None, True, "1MB", -1, np.nan, "1e9TB", 10**400, 1j])
def test_other_memory_is_refused(memory):
    with pytest.raises(InputError, match="memory="):
        bytes_of(memory, LEAST_BUDGET)


def test_blocks_have_equal_numbers_of_observations():
    rng = np.random.default_rng(5)
    counts = rng.geometric(0.05, size=100_000)
    counts[rng.random(100_000) < 0.1] = 0
    found = partition.BlockPlan.of(counts, 1000, 2 * 10**9)
    assert found.count == 8
    assert (found.cuts[0], found.cuts[-1]) == (0, counts.size)
    np.testing.assert_array_equal(found.sizes, np.add.reduceat(counts, found.cuts[:-1]))
    assert found.sizes.max() - found.sizes.min() <= 2 * counts.max()
    small = partition.BlockPlan.of(counts, 1000, 10**7)
    assert small.sizes.max() <= 10**7 / partition.SHARE + counts.max()
    one = partition.BlockPlan.of(np.array([0, 10**9, 0]), 1000, 10**8)
    assert one.count == 1
    assert one.cuts.tolist() == [0, 3]


def test_more_names_than_memory_can_hold_are_refused():
    rng = np.random.default_rng(6)
    numbers, text = names_module.NameCounter("row", 1 << 20), names_module.NameCounter("column", 1 << 20)
    with pytest.raises(InputError, match="row names"):
        numbers.add(rng.integers(1 << 60, size=50_000), np.ones(50_000, bool))
    with pytest.raises(InputError, match="column names"):
        text.add(Words([f"name {k}" for k in range(10_000)], np.arange(10_000)), np.ones(10_000, bool))


def test_names_change_from_an_array_to_a_table_and_grow():
    """First dense integers, then sparse ones: counts and order stay right."""
    rng = np.random.default_rng(7)
    parts = [rng.integers(-100, 1000, size=3000), rng.integers(-(1 << 40), 1 << 40, size=9000)]
    parts += [rng.choice(np.concatenate(parts), size=5000)]
    side = names_module.NameCounter("row", 1 << 24)
    kept = []
    for part in parts:
        known = rng.random(part.size) < 0.8
        side.add(part, known)
        kept.append(part[known])
    names, counts = side.done()
    distinct, times = np.unique(np.concatenate(kept), return_counts=True)
    np.testing.assert_array_equal(names.values, distinct)
    np.testing.assert_array_equal(counts, times)
    for room in (1 << 24, 0):
        found = names_module.Locator(names, room).places(np.r_[distinct[::-1], 1 << 50])
        np.testing.assert_array_equal(found, np.r_[np.arange(distinct.size)[::-1], -1])


def test_names_return_to_an_array_where_a_table_would_take_more_memory():
    """Numbers of a moderate range in random order look sparse at first; a table of all would not fit."""
    rng, size = np.random.default_rng(9), 3_000_000
    order, known = rng.permutation(size) - 5, rng.random(size) < 0.5
    side = names_module.NameCounter("row", 9 * size)
    for start in range(0, size, 200_000):
        part = slice(start, start + 200_000)
        side.add(order[part], known[part])
    names, counts = side.done()
    np.testing.assert_array_equal(names.values, np.sort(order[known]))
    assert np.all(counts == 1)


def test_arrays_may_be_mapped_files_or_strided(small_pieces, tmp_path):
    rng = np.random.default_rng(8)
    rows, cols, values = rng.integers(50, size=900), rng.integers(30, size=900), rng.integers(5, size=900)
    mapped = []
    for name, array in (("rows", rows), ("cols", cols), ("values", values)):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    store = bf.data.partition(tuple(mapped), tmp_path / "mapped")
    require_same(store, bf.data.observations.from_triples((rows, cols, values)))
    strided = tuple(np.column_stack([array, array])[:, 1] for array in (rows, cols, values))
    assert bf.data.partition(strided, tmp_path / "strided").fingerprint == store.fingerprint


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_where_held_out_observations_lie_is_found_once_if_there_is_room(tmp_path, monkeypatch, most):
    rng = np.random.default_rng(0)
    store = bf.data.partition((rng.integers(0, 90, 3000), rng.integers(0, 40, 3000), rng.random(3000)), tmp_path / "b")
    found, remember = [], part_module._remember
    monkeypatch.setattr(part_module, "_marks", {})
    monkeypatch.setattr(part_module, "MAX_MARK_BYTES", most)
    monkeypatch.setattr(part_module, "_remember", lambda *given: found.append(given) or remember(*given))
    sizes = [[part.load().y.size for part in view.parts] for view in 2 * list(store.split(bf.data.RandomCells(0.2, 1)))]
    assert sizes[:2] == sizes[2:]
    assert sum(sizes[0]) + sum(sizes[1]) == 3000
    assert len(found) == len(store.parts) * (1 if most else 4)
    monkeypatch.setattr(part_module, "MAX_MARK_BYTES", sum(marks.bytes for marks in part_module._marks.values()))
    store.split(bf.data.RandomCells(0.1, 2))[1].parts[0].load()  # others give way to those that are asked for now
    assert {name[2:] for name in part_module._marks} == ({(0.1, 2)} if most else set())


@pytest.mark.parametrize("scale", [1e-6, 2e-5, 1e10])
def test_large_and_small_values_are_fitted_as_in_memory(scale, tmp_path):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 60, 1000), rng.integers(0, 20, 1000)
    data = (
        rows,
        cols,
        scale * (rng.standard_normal(60)[rows] * rng.standard_normal(20)[cols] + rng.standard_normal(1000)),
    )
    bf.data.partition(data, tmp_path / "blocks")
    fits = [bf.MatrixCompletion(n_components=1, random_state=0).fit(one) for one in (data, tmp_path / "blocks")]
    one, other = (fit.predict(rows, cols) for fit in fits)
    np.testing.assert_allclose(one, other, atol=0.05 * scale)


def test_complex_numbers_are_refused(tmp_path):
    rows = np.arange(3)
    with pytest.raises(InputError, match="values has dtype complex128"):
        bf.data.partition((rows, rows, rows * 1j), tmp_path / "blocks")
    with pytest.raises(InputError, match="weights has dtype complex128"):
        bf.data.partition((rows, rows, rows, rows * 1j), tmp_path / "blocks")


@pytest.mark.parametrize("dtype", ["float16", "foo", 5])
def test_other_types_are_refused(dtype, tmp_path):
    with pytest.raises(InputError, match="dtype="):
        bf.data.partition((np.arange(3), np.arange(3), np.ones(3)), tmp_path / "blocks", dtype=dtype)


def test_files_without_rows_may_lack_types_and_columns(tmp_path):
    frame = ratings()[["user", "item", "rating"]]
    frame.to_parquet(tmp_path / "b.parquet")
    pd.DataFrame({"user": [], "item": [], "rating": []}, dtype=object).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame().to_parquet(tmp_path / "c.parquet")
    require_same(bf.data.partition(tmp_path, tmp_path / "blocks"), bf.data.read(frame))


def test_columns_in_names_of_folders_are_told(tmp_path):
    (tmp_path / "item=3").mkdir()
    ratings()[["user", "rating"]].to_parquet(tmp_path / "item=3/a.parquet")
    for asked in ({}, {"row": "user", "col": "item", "value": "rating"}):
        with pytest.raises(InputError, match=r"no column 'item'.*name of its folder"):
            bf.data.partition(tmp_path, tmp_path / "blocks", **asked)


def test_small_values_are_fitted_as_large_ones(tmp_path):
    rng = np.random.default_rng(0)
    rows, cols, y = rng.integers(0, 60, 1000), rng.integers(0, 20, 1000), rng.standard_normal(1000)
    found = []
    for unit in (1.0, 1e-8):
        bf.data.partition((rows, cols, unit * y), tmp_path / f"{unit}")
        model = bf.MatrixCompletion(n_components=1, noise="one", random_state=0).fit(tmp_path / f"{unit}")
        found.append(model.predict(rows[:50], cols[:50]) / unit)
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)
