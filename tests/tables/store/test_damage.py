"""Blocks, manifests and names that are damaged or foreign are refused by their names."""

import json
import pickle
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import FileError
from bifactor.executors import Workspace
from bifactor.tables.store import plan
from bifactor.tables.store.block_file import HEADER


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SMALL", 100)
    return made(tmp_path / "blocks", 0)


def made(folder, seed):
    rng = np.random.default_rng(seed)
    rows, cols = (np.array([f"n{k}" for k in rng.integers(80, size=2000)]) for _ in range(2))
    table = bf.tables.observations.named(
        bf.tables.Names.of(rows, "row"), bf.tables.Names.of(cols, "column"), rng.standard_normal(2000), None
    )
    return bf.tables.partition(table, folder)


def fresh(store):
    """As another process sees it, which has checked nothing yet."""
    from bifactor.tables.store import part

    part._checked.clear()
    return bf.tables.BlockStore.open(store.folder)


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
            assert bf.tables.BlockStore.open(store.folder).manifest == store.manifest
    for content in (b"", b"{}", b"[]", b"\xff\xfe", whole[:200], b'{"content": 5, "checksum": ""}'):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"manifest\.json"):
            bf.tables.BlockStore.open(store.folder)
    path.write_bytes(whole.replace(b'\\"format\\": 1', b'\\"format\\": 9'))
    with pytest.raises(FileError, match=r"manifest\.json"):
        bf.tables.BlockStore.open(store.folder)


def test_what_is_no_store_is_told(tmp_path):
    with pytest.raises(FileError, match="no folder"):
        bf.tables.BlockStore.open(tmp_path / "nowhere")
    with pytest.raises(FileError, match="not a block store"):
        bf.tables.BlockStore.open(tmp_path)


def test_names_and_marginals_of_another_store_are_refused(store, tmp_path):
    other = made(tmp_path / "other", 3)
    for name in ("names.safetensors", "marginals.safetensors"):
        shutil.copy(other.folder / name, store.folder / name)
    opened = fresh(store)
    with pytest.raises(FileError, match=r"names\.safetensors belongs to another"):
        _ = opened.row_names
    with pytest.raises(FileError, match=r"marginals\.safetensors belongs to another"):
        _ = opened.marginals
    (store.folder / "names.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"names\.safetensors"):
        _ = fresh(store).column_names


def test_parts_travel_and_are_small(store):
    for part in (store.parts[3], store.train(0.1, 0).parts[3]):
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
    for view in (store, store.held(0.3, 1)):
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
