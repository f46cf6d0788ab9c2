"""A partition that was stopped at any moment goes on, or starts over; nothing is overwritten by mistake."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bifactor as bf
from bifactor.data.store import partition, sources
from bifactor.errors import FileError, InputError


class Stopped(BaseException):
    """Like Ctrl-C."""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PIECE", 300)
    monkeypatch.setattr(partition, "SMALL", 100)
    rng = np.random.default_rng(0)
    size = 1500
    frame = {
        "user": rng.integers(60, size=size),
        "item": rng.integers(40, size=size),
        "rating": rng.integers(5, size=size),
    }
    path = tmp_path / "ratings.parquet"
    pd.DataFrame(frame).to_parquet(path)
    return path


def stopping(at, calls):
    """Progress that stops everything at its call number `at`."""

    def told(what, done, total):
        calls.append(what)
        if len(calls) == at:
            raise Stopped

    return told


def content(folder):
    return {path.name for path in Path(folder).iterdir()}


def test_it_goes_on_after_every_stop(source, tmp_path):
    calls = []
    whole = bf.data.partition(source, tmp_path / "whole", progress=stopping(-1, calls))
    assert len(whole.parts) == 8
    assert content(tmp_path / "whole") == {
        "manifest.json",
        "names.safetensors",
        "marginals.safetensors",
        *(f"block-{k:05d}.bin" for k in range(8)),
    }
    stages = list(calls)
    for at in range(1, len(stages) + 1):
        folder = tmp_path / f"stopped{at}"
        with pytest.raises(Stopped):
            bf.data.partition(source, folder, progress=stopping(at, []))
        with pytest.raises(FileError, match="not finished"):
            bf.data.BlockStore.open(folder)
        times = {path: path.stat().st_mtime_ns for path in folder.glob("block-*.bin")}
        again = []
        store = bf.data.partition(source, folder, progress=stopping(-1, again))
        assert store.fingerprint == whole.fingerprint
        assert content(folder) == content(tmp_path / "whole")
        assert all(path.stat().st_mtime_ns == time for path, time in times.items())
        # A pass that had ended is not done again.
        assert set(again) == set(stages[stages.index(stages[at - 1]) :])


KILLED = """
import os, signal, sys
import bifactor as bf
from bifactor.data.store import partition, sources

sources.PIECE, partition.SMALL = 300, 100
source, place = sys.argv[1:]
for at in (1, 5, 6, 8, 10, 11, 14, 18):
    folder, calls, child = f"{place}{at}", [], os.fork()
    if not child:
        def told(what, done, total):
            calls.append(what)
            if len(calls) == at:
                os.kill(os.getpid(), signal.SIGKILL)
        bf.data.partition(source, folder, progress=told)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, at
    print(bf.data.partition(source, folder).fingerprint)
"""


def test_a_killed_process_leaves_nothing_that_hinders_the_next(source, tmp_path):
    """In one process that forks, as each import takes a second."""
    command = [sys.executable, "-c", KILLED, str(source), str(tmp_path / "blocks")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    whole = bf.data.partition(source, tmp_path / "whole")
    assert done.stdout.split() == [whole.fingerprint] * 8, done.stderr
    assert content(tmp_path / "blocks14") == content(tmp_path / "whole")


def test_what_is_done_is_not_done_again(source, tmp_path):
    first = bf.data.partition(source, tmp_path / "blocks")
    calls = []
    again = bf.data.partition(source, tmp_path / "blocks", progress=stopping(1, calls))
    assert calls == []
    assert again.manifest == first.manifest


def test_other_settings_or_data_need_force(source, tmp_path):
    first = bf.data.partition(source, tmp_path / "blocks")
    for change in ({"memory": "100MB"}, {"row": "item", "col": "user", "value": "rating"}, {"dtype": "float64"}):
        with pytest.raises(InputError, match=r"holds a block store.*force"):
            bf.data.partition(source, tmp_path / "blocks", **change)
    triples = np.arange(3), np.arange(3), np.ones(3)
    with pytest.raises(InputError, match="force"):
        bf.data.partition(triples, tmp_path / "blocks")
    assert bf.data.BlockStore.open(tmp_path / "blocks").fingerprint == first.fingerprint
    other = bf.data.partition(triples, tmp_path / "blocks", force=True)
    assert other.size == 3
    assert content(tmp_path / "blocks") == {"manifest.json", "marginals.safetensors", "block-00000.bin"}


def test_unfinished_work_of_other_data_is_started_over(source, tmp_path):
    with pytest.raises(Stopped):
        bf.data.partition(source, tmp_path / "blocks", progress=stopping(14, []))
    os.utime(source, ns=(0, 10**18))
    calls = []
    store = bf.data.partition(source, tmp_path / "blocks", progress=stopping(-1, calls))
    assert calls[0] == "counting"
    assert store.fingerprint == bf.data.partition(source, tmp_path / "whole").fingerprint


def test_a_folder_with_other_files_is_left_alone(source, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="other files"):
        bf.data.partition(source, folder)
    assert content(folder) == {"thesis.txt"}
    bf.data.partition(source, folder, force=True)
    assert (folder / "thesis.txt").read_text() == "years of work"
    with pytest.raises(InputError, match="is a file"):
        bf.data.partition(source, folder / "thesis.txt")
    with pytest.raises(InputError, match="does not exist"):
        bf.data.partition(source, tmp_path / "no/blocks")


def test_two_processes_refuse_each_other(source, tmp_path):
    def told(what, done, total):
        with pytest.raises(FileError, match="Another process"):
            bf.data.partition(source, tmp_path / "blocks")

    bf.data.partition(source, tmp_path / "blocks", progress=told)
    assert bf.data.BlockStore.open(tmp_path / "blocks").size == 1500


def test_a_source_that_changes_meanwhile_is_refused(source, tmp_path):
    def told(what, done, total):
        if what == "sorting into blocks":
            os.utime(source, ns=(0, 10**18))

    with pytest.raises(FileError, match="has changed"):
        bf.data.partition(source, tmp_path / "blocks", progress=told)
    frame = pd.read_parquet(source)

    def more(what, done, total):
        if what == "counting" and done == total:
            pd.concat([frame, frame.assign(user=10**6)]).to_parquet(source)

    with pytest.raises(FileError, match="has changed"):
        bf.data.partition(source, tmp_path / "blocks", progress=more)


def test_a_full_disk_is_told_in_a_sentence_and_room_is_made(source, tmp_path, monkeypatch):
    def full(file, column):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bifactor.data.store.partition._write_all", full)
        with pytest.raises(FileError, match="No space left on device"):
            bf.data.partition(source, tmp_path / "blocks")
    assert not list((tmp_path / "blocks").glob("bucket*"))
    calls = []
    bf.data.partition(source, tmp_path / "blocks", progress=stopping(-1, calls))
    assert "counting" not in calls


def test_a_damaged_journal_is_no_journal(source, tmp_path):
    with pytest.raises(Stopped):
        bf.data.partition(source, tmp_path / "blocks", progress=stopping(14, []))
    path = tmp_path / "blocks" / partition.JOURNAL
    path.write_text(json.dumps({"content": "{}", "checksum": "0"}))
    calls = []
    bf.data.partition(source, tmp_path / "blocks", progress=stopping(-1, calls))
    assert calls[0] == "counting"


def test_a_bucket_that_was_cut_short_is_refused(source, tmp_path):
    with pytest.raises(Stopped):
        bf.data.partition(source, tmp_path / "blocks", progress=stopping(12, []))
    bucket = next(iter(sorted((tmp_path / "blocks").glob("bucket*"))))
    bucket.write_bytes(bucket.read_bytes()[:-5])
    with pytest.raises(FileError, match=rf"{bucket.name} is truncated"):
        bf.data.partition(source, tmp_path / "blocks")


@pytest.mark.parametrize("same", [False, True])
def test_a_store_that_another_process_finishes_meanwhile_is_kept(source, tmp_path, monkeypatch, same):
    module = sys.modules["bifactor.data.store.partition"]
    open_source, folder = module.open_source, tmp_path / "blocks"

    def slow(*arguments):
        monkeypatch.setattr(module, "open_source", open_source)
        bf.data.partition(source if same else (np.arange(3), np.arange(3), np.ones(3)), folder)
        return open_source(*arguments)

    monkeypatch.setattr(module, "open_source", slow)
    if same:
        assert bf.data.partition(source, folder).size == 1500
        return
    with pytest.raises(InputError, match="holds a block store"):
        bf.data.partition(source, folder)
    assert bf.data.BlockStore.open(folder).size == 3


def test_a_lock_that_was_replaced_is_not_held(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    lock = fcntl.flock

    def late(file, how):
        (tmp_path / partition.LOCK).unlink()
        (tmp_path / partition.LOCK).touch()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(FileError, match="Another process"), partition.locked(tmp_path):
        pass


@pytest.mark.parametrize("name", [partition.JOURNAL, partition.MANIFEST])
@pytest.mark.parametrize("force", [False, True])
def test_files_of_others_with_the_same_name_are_kept(source, tmp_path, name, force):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text('{"my": "work"}')
    with pytest.raises((InputError, FileError), match=name):
        bf.data.partition(source, tmp_path / "mine", force=force)
    assert (tmp_path / "mine" / name).read_text() == '{"my": "work"}'
