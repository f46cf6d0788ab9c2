"""Blocks, manifests and names that are damaged or foreign are refused by their names."""

import copy
import json
import os
import pickle
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import bifactor as bf
from bifactor.data.store import partition
from bifactor.data.store.block_file import HEADER, TYPES, digest, encode_columns
from bifactor.data.store.block_store import Part
from bifactor.data.store.manifest import read_checked, with_checksum
from bifactor.errors import FileError
from bifactor.executors import Workspace
from bifactor.running import files


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "SMALL", 100)
    return made(tmp_path / "blocks", 0)


def made(folder, seed):
    rng = np.random.default_rng(seed)
    rows, cols = (np.array([f"n{k}" for k in rng.integers(80, size=2000)]) for _ in range(2))
    table = bf.data.observations.observations_from_names(
        bf.data.Names.of(rows, "row"), bf.data.Names.of(cols, "column"), rng.standard_normal(2000), None
    )
    return bf.data.partition(table, folder)


def fresh(store):
    """As another process sees it, which has checked nothing yet."""
    from bifactor.data.store import block_store

    block_store._checked.clear()
    return bf.data.BlockStore.open(store.folder)


def test_every_flipped_bit_of_a_block_is_found(store):
    rng = np.random.default_rng(1)
    part = store.parts[2]
    whole = Path(part.path).read_bytes()
    for at in [*range(0, HEADER, 7), *rng.integers(HEADER, len(whole), size=40)]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        Path(part.path).write_bytes(damaged)
        with pytest.raises(FileError, match=r"block-00002\.bin"):
            fresh(store).parts[2].load()
    Path(part.path).write_bytes(whole)
    fresh(store).parts[2].load()


def test_a_block_that_changes_after_it_was_checked_is_found(store):
    part = store.parts[1]
    part.load()
    whole = bytearray(Path(part.path).read_bytes())
    whole[-100] ^= 1
    Path(part.path).write_bytes(whole)
    with pytest.raises(FileError, match="checksum"):
        part.load()


@pytest.mark.parametrize("left", [0, 5, HEADER - 1, HEADER, HEADER + 100, -1])
def test_a_truncated_block_is_refused(store, left):
    part = store.parts[0]
    whole = Path(part.path).read_bytes()
    Path(part.path).write_bytes(whole[:left])
    with pytest.raises(FileError, match=r"block-00000\.bin"):
        fresh(store).parts[0].load()


def test_foreign_blocks_are_refused(store, tmp_path):
    other = made(tmp_path / "other", 0)
    assert other.fingerprint == store.fingerprint
    shutil.copy(other.parts[0].path, store.parts[0].path)
    with pytest.raises(FileError, match="belongs to another block store"):
        fresh(store).parts[0].load()
    shutil.copy(store.parts[2].path, store.parts[1].path)
    with pytest.raises(FileError, match=r"block-00001\.bin"):
        fresh(store).parts[1].load()
    Path(store.parts[3].path).write_bytes(b"\0" * 5000)
    with pytest.raises(FileError, match="is not a block of bifactor"):
        fresh(store).parts[3].load()
    (store.folder / "block-00004.bin").unlink()
    with pytest.raises(FileError, match=r"no file .*block-00004.bin"):
        fresh(store).parts[4].load()


def rewritten(store, change):
    """The store with other columns in its third block, and with right checksums."""
    content = read_checked(store.folder / "manifest.json")
    header, path = store.parts[2].header, Path(store.parts[2].path)
    blob = path.read_bytes()
    column = {
        name: np.frombuffer(blob, dtype, length, at).copy() for name, (at, length, dtype) in header.sections.items()
    }
    change(column)
    types = {name: TYPES.index(one.dtype.str.replace("|", "<")) for name, one in column.items()}
    parts = encode_columns(column)
    header = header._replace(**types)
    header = header._replace(fingerprint=digest(header, parts))
    path.write_bytes(header.pack() + b"".join(parts))
    content["blocks"][2] = list(header)
    (store.folder / "manifest.json").write_bytes(with_checksum(content))
    return fresh(store)


def wrapped(column):
    runs = column["runs"].astype("<u8")
    runs[0] += 1000
    runs[1] += np.uint64(2**64 - 1000)  # -1000 as a signed integer
    column["runs"] = runs


def last_tile(column):
    column["columns"][-1] = np.iinfo(column["columns"].dtype).max


CRAFTED = {
    "columns beyond the matrix": (lambda c: c["columns"].fill(250), "lie outside of the matrix"),
    "one column beyond the matrix": (last_tile, "lie outside of the matrix"),
    "run lengths that wrap": (wrapped, "rows do not have"),
    "too few entries in rows": (lambda c: c["runs"].fill(0), "rows do not have"),
    "too many entries in columns": (lambda c: c["marginals"].fill(7), "columns do not have"),
    "NaN": (lambda c: c["values"].fill(np.nan), "values are not numbers"),
}


@pytest.mark.parametrize("name", CRAFTED)
@pytest.mark.parametrize("held", [False, True])
def test_numbers_out_of_range_are_found_though_the_checksum_is_right(store, name, held):
    change, words = CRAFTED[name]
    opened = rewritten(store, change)
    with pytest.raises(FileError, match=rf"block-00002\.bin is damaged: .*{words}"):
        (opened.split(bf.data.RandomCells(0.3, 0))[0] if held else opened).parts[2].load()


def test_codes_without_a_value_and_weights_of_nan_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "SMALL", 100)
    rng = np.random.default_rng(0)
    triples = rng.integers(0, 80, 2000), rng.integers(0, 60, 2000), rng.integers(1, 6, 2000), rng.random(2000) + 0.5
    for name, value, words in (("values", 5, "values are not numbers"), ("weights", np.nan, "weights are not")):
        opened = rewritten(bf.data.partition(triples, tmp_path / name), lambda c: c[name].fill(value))  # noqa: B023
        with pytest.raises(FileError, match=words):
            opened.parts[2].load()


def test_a_block_is_checked_once(store, monkeypatch):
    checks = []
    whole = Part._require_valid
    monkeypatch.setattr(Part, "_require_valid", lambda self, column: checks.append(1) or whole(self, column))
    part = fresh(store).parts[0]
    for _ in range(3):
        part.load()
    assert len(checks) == 1


def test_a_block_that_claims_too_much_takes_no_memory(store):
    content, path = read_checked(store.folder / "manifest.json"), Path(store.parts[0].path)
    header = store.parts[0].header._replace(size=10**12)
    content["values"]["size"] += header.size - content["blocks"][0][3]
    content["blocks"][0] = list(header)
    (store.folder / "manifest.json").write_bytes(with_checksum(content))
    path.write_bytes(header.pack() + path.read_bytes()[HEADER:])
    with pytest.raises(FileError, match="bytes, but should have"):
        fresh(store).parts[0].load()


STRANGE = (None, "x", -1, 0, [], {"a": 1}, True, False, 1.5, float("nan"), float("inf"), 10**12, 2**63, 10**400)


def nodes(tree, path=()):
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*path, key)
        if isinstance(value, (dict, list)) and len(path) < 3:
            yield from nodes(value, (*path, key))


def test_every_field_of_a_manifest_is_tested_though_the_checksum_is_right(tmp_path):
    """A field of another type or range is refused in one sentence, or changes nothing that a fit depends on."""
    rng = np.random.default_rng(0)
    triples = rng.integers(0, 30, 200), rng.integers(0, 9, 200), rng.integers(1, 6, 200)
    store = bf.data.partition(triples, tmp_path / "blocks")
    path = store.folder / "manifest.json"
    free = {"request", "missing", "layout", "header", "wide", "total", "squares", "whole", "levels"}
    whole = read_checked(path)
    for place in nodes(whole):
        for strange in STRANGE:
            content = copy.deepcopy(whole)
            at = content
            for key in place[:-1]:
                at = at[key]
            if at[place[-1]] == strange:
                continue
            at[place[-1]] = strange
            path.write_bytes(with_checksum(content))
            try:
                opened = bf.data.BlockStore.open(store.folder)
                _ = opened.parts, opened.summary(), opened.fingerprint, repr(opened), opened.counts(), opened.row_names
                _ = opened.parts[0].load()
                assert free & set(place), (place, strange)
            except FileError as error:
                assert "\n" not in str(error)  # noqa: PT017
                assert len(str(error)) < 500  # noqa: PT017


def test_marginals_that_do_not_add_up_are_refused(store):
    arrays, metadata = files.read(store.folder / "marginals.safetensors", "marginals")
    for strange in (arrays["rows"] + 1, arrays["rows"].astype(np.float32), arrays["rows"][:, None]):
        files.write(store.folder / "marginals.safetensors", "marginals", {**arrays, "rows": strange}, metadata)
        with pytest.raises(FileError, match=r"marginals\.safetensors"):
            _ = fresh(store).counts()


def _loaded(blob):
    try:
        return json.loads(blob)
    except ValueError:
        return None


def test_damaged_manifests_are_refused(store):
    path = store.folder / "manifest.json"
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for at in rng.integers(len(whole), size=60):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        blank = json.loads(whole) == _loaded(damaged)
        with nullcontext() if blank else pytest.raises(FileError, match=r"manifest\.json"):
            assert bf.data.BlockStore.open(store.folder).manifest == store.manifest
    for content in (b"", b"{}", b"[]", b"\xff\xfe", whole[:200], b'{"content": 5, "checksum": ""}'):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"manifest\.json"):
            bf.data.BlockStore.open(store.folder)
    path.write_bytes(whole.replace(b'\\"format\\": 1', b'\\"format\\": 9'))
    with pytest.raises(FileError, match=r"manifest\.json"):
        bf.data.BlockStore.open(store.folder)


def test_what_is_no_store_is_told(tmp_path):
    with pytest.raises(FileError, match="no folder"):
        bf.data.BlockStore.open(tmp_path / "nowhere")
    with pytest.raises(FileError, match="not a block store"):
        bf.data.BlockStore.open(tmp_path)


def test_names_and_marginals_of_another_store_are_refused(store, tmp_path):
    other = made(tmp_path / "other", 3)
    for name in ("names.safetensors", "marginals.safetensors"):
        shutil.copy(other.folder / name, store.folder / name)
    opened = fresh(store)
    with pytest.raises(FileError, match=r"names\.safetensors belongs to another"):
        _ = opened.row_names
    with pytest.raises(FileError, match=r"marginals\.safetensors belongs to another"):
        _ = opened.counts()
    (store.folder / "names.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"names\.safetensors"):
        _ = fresh(store).column_names


def test_parts_travel_and_are_small(store):
    for part in (store.parts[3], store.split(bf.data.RandomCells(0.1, 0))[0].parts[3]):
        blob = pickle.dumps(part)
        assert len(blob) < 8192
        again = pickle.loads(blob)
        assert again == part
        np.testing.assert_array_equal(again.load().y, part.load().y)


def test_a_workspace_is_used_again_and_threads_have_their_own(store):
    space = Workspace()
    for part in store.parts:
        part.load(space)
    kept = {name: array.ctypes.data for name, array in space._held.items()}
    for view in (store, store.split(bf.data.RandomCells(0.3, 1))[1]):
        for part in view.parts:
            found, wanted = part.load(space), part.load()
            np.testing.assert_array_equal(found.layout.outer, wanted.layout.outer)
            np.testing.assert_array_equal(found.layout.inner, wanted.layout.inner)
            np.testing.assert_array_equal(found.y, wanted.y)
            np.testing.assert_array_equal(found.layout.counts[1], wanted.layout.counts[1])
    assert {name: space._held[name].ctypes.data for name in kept} == kept
    assert {"file", "outer", "inner"} <= set(kept)
    results = []
    workers = [
        threading.Thread(target=lambda: results.append(sum(part.load(Workspace()).y.sum() for part in store.parts)))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4
    assert len(set(results)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on Windows")
def test_a_pipe_in_the_place_of_a_block_is_refused(store):
    path = Path(store.parts[0].path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileError, match="is not a file"):
        store.parts[0].load()


def test_manifests_may_hold_what_utf8_cannot_encode(store):
    path = store.folder / "manifest.json"
    content = read_checked(path) | {"request": {"source": "caf\udce9.csv"}}
    path.write_bytes(with_checksum(content))
    assert read_checked(path) == content
