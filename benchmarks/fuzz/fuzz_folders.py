"""Saved fits, results and checkpoints with random changes: how many are loaded, raise an error of bifactor, or else.

`BIFACTOR_FUZZ=1000000 python -m benchmarks fuzz_folders` runs as many cases. Loaded objects are also used: they must
predict and recommend finite numbers. Only "loaded" and "refused" may be above 0.
"""

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

import bifactor as bf
from benchmarks.harness.children import outcomes
from benchmarks.harness.mutations import changed, changed_array
from benchmarks.harness.rows import Row, row
from bifactor.data.store.block_file import HEADER, Header, digest
from bifactor.data.store.manifest import read_checked, with_checksum
from bifactor.errors import BifactorError, InputError
from bifactor.running import files

COUNT = int(os.environ.get("BIFACTOR_FUZZ", "2000"))
"""Of cases, all kinds together."""

SEED = int(os.environ.get("BIFACTOR_FUZZ_SEED", "0"))

ENDS = ("loaded", "refused", "other", "signal", "exit", "memory", "late")

KINDS = ("completion", "labels", "command", "result", "checkpoint", "posterior", "features", "clicks", "blocks")

LONGEST = 1000
"""Letters of an error."""

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1e999, -1e999, float("nan"), 10**400, "", "no", "yes", "squared", "probit", [], {},
    [1], [1, 2], [2, 1], {"name": "huber"}, {"name": "squared", "parameters": {}}, {"array": "array0"}, {"tuple": []},
    {"factors": [None, None]}, {"value": "x", "parts": {}}, "\ud800", "x" * 5000,
)  # fmt: skip


def problem() -> bf.Problem:
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((9, 7)) < 0.6)
    return bf.Problem("squared", bf.operators.Entries(rows, cols, (9, 7)), rng.standard_normal(rows.size))


def solved(**more: Any) -> bf.Result:
    return bf.solve(problem(), 2, bf.solvers.PCG(), rng=0, max_iter=4, tol=0, **more)


def frame(labels: bool) -> Any:
    import pandas as pd

    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((9, 7)) < 0.6)
    values = rng.choice([0, 1], i.size) if labels else rng.standard_normal(i.size)
    return pd.DataFrame({"user": [f"ü{k}" for k in i], "item": j, "rating": values})


@cache
def kept() -> tempfile.TemporaryDirectory[str]:
    """A folder for as long as the process runs."""
    return tempfile.TemporaryDirectory()


@cache
def seeds() -> Path:
    """A folder with one of each kind."""
    root = Path(kept().name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bf.MatrixCompletion(n_components=2, ridge=1.0, random_state=0).fit_long(frame(False)).save(root / "completion")
        bf.OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(frame(True)).save(root / "labels")
        shutil.copytree(root / "completion", root / "command")
        fuller(root)
        (root / "result").mkdir()
        solved().save(root / "result" / "x.safetensors")
        (root / "checkpoint").mkdir()
        solved(checkpoint=root / "checkpoint" / "x.safetensors")
    return root


def fuller(root: Path) -> None:
    """Fits with error bars, with features and to clicks, and a block store."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((12, 9)) < 0.7, rng.standard_normal((12, 9)), np.nan)
    features = {"user_features": rng.standard_normal((12, 2)), "item_features": rng.standard_normal((9, 2))}
    bf.MatrixCompletion(n_components=2, random_state=0).fit_long(frame(False)).save(root / "posterior")
    settings: dict[str, Any] = {"n_components": 2, "random_state": 0}
    bf.MatrixCompletion(**settings, keep_features=True, noise="both", **features).fit(X).save(root / "features")
    settings |= {"ridge": 0.03, "unobserved": 0.2, "item_share": 0.3, "item_ridge": 3.0}
    bf.Recommender(**settings).fit(1.0 * (X > 0)).save(root / "clicks")
    i, j = np.nonzero(~np.isnan(X))
    bf.data.partition((i, j, X[i, j], rng.random(i.size) + 0.5), root / "blocks")


def change_manifest(rng: np.random.Generator, path: Path) -> None:
    """Another field, with a right checksum."""
    path.write_bytes(with_checksum(changed_json(rng, read_checked(path))))


def change_block(rng: np.random.Generator, path: Path) -> None:
    """Other numbers in a block of a store, with right checksums in its header and in the manifest."""
    manifest = path.with_name("manifest.json")
    content = read_checked(manifest)
    number = int(path.stem.rpartition("-")[2])
    header, blob = Header(*content["blocks"][number]), bytearray(path.read_bytes())
    name = list(header.sections)[int(rng.integers(len(header.sections)))]
    at, length, dtype = header.sections[name]
    column = np.frombuffer(blob, dtype, length, at).copy()
    low, high = (-5, 5) if dtype.kind == "f" else (0, min(float(np.iinfo(dtype).max), 2.0**62))
    strange = (low, high, 1, np.nan) if dtype.kind == "f" else (low, high, 1, 9)
    column[rng.integers(length, size=int(rng.integers(1, 4)))] = strange[int(rng.integers(4))]
    blob[at : at + length * dtype.itemsize] = column.tobytes()
    header = header._replace(fingerprint=digest(header, [memoryview(blob)[HEADER:]]))
    path.write_bytes(header.pack() + blob[HEADER:])
    content["blocks"][number] = list(header)
    manifest.write_bytes(with_checksum(content))


def changed_json(rng: np.random.Generator, tree: Any) -> Any:
    """A tree in which one node is another, or gone."""
    if isinstance(tree, dict) and tree and rng.random() < 0.8:
        key = list(tree)[int(rng.integers(len(tree)))]
        if rng.random() < 0.1:
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: changed_json(rng, tree[key])}
    if isinstance(tree, list) and tree and rng.random() < 0.7:
        at = int(rng.integers(len(tree)))
        return [*tree[:at], changed_json(rng, tree[at]), *tree[at + 1 :]]
    return STRANGE[int(rng.integers(len(STRANGE)))]


def change_card(rng: np.random.Generator, path: Path) -> None:
    card = json.loads(path.read_text(encoding="utf-8"))
    if rng.random() < 0.6:
        card["model"] = changed_json(rng, card["model"])
    else:
        card = changed_json(rng, card)
    path.write_text(json.dumps(card), encoding="utf-8")


def change_tensors(rng: np.random.Generator, path: Path) -> None:
    """Other arrays or other metadata, half of the time with a right checksum."""
    try:
        with safe_open(path, framework="np") as file:
            header = dict(file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        return
    if rng.random() < 0.3:
        header["json"] = json.dumps(changed_json(rng, json.loads(header["json"])))
    elif rng.random() < 0.1:
        arrays.pop(list(arrays)[int(rng.integers(len(arrays)))])
    else:
        name = list(arrays)[int(rng.integers(len(arrays)))]
        arrays[name] = np.ascontiguousarray(changed_array(rng, arrays[name]))
    if rng.random() < 0.7 and all(array.dtype.kind in "biufc" for array in arrays.values()):
        header["checksum"] = files._checksum(arrays, header["json"])
    try:
        path.write_bytes(save(arrays, metadata=header))
    except (SafetensorError, KeyError, TypeError, ValueError):  # of a type that cannot be written
        path.write_bytes(b"")


def change_bytes(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(changed(rng, path.read_bytes()))


def replace(rng: np.random.Generator, path: Path) -> None:
    """Something else under the name of a file."""
    path.unlink()
    if rng.random() < 0.5:
        path.mkdir()
    elif rng.random() < 0.5:
        path.symlink_to(path)
    else:
        os.mkfifo(path)


def change(rng: np.random.Generator, folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    path = folder / names[int(rng.integers(len(names)))]
    way = rng.random()
    if way < 0.05:
        replace(rng, path)
    elif way < 0.2:
        change_bytes(rng, path)
    elif path.suffix == ".bin":
        change_block(rng, path)
    elif path.name == "manifest.json":
        change_manifest(rng, path)
    elif path.suffix == ".html":
        change_bytes(rng, path)
    else:
        (change_card if path.suffix == ".json" else change_tensors)(rng, path)


def command(folder: Path) -> np.ndarray:
    """What `bifactor predict` and `recommend` say of a fit; an error of theirs is one of ours."""
    from click.testing import CliRunner

    from bifactor.cli.main import main

    pairs = folder.with_name("pairs.csv")
    pairs.write_text("user,item\nü1,2\nü2,3\n", encoding="utf-8")
    found = []
    for arguments in (["predict", folder, pairs], ["recommend", folder, "--user", "ü1"]):
        for more in ([], ["--json"]):
            done = CliRunner().invoke(main, [*map(str, arguments), *more])
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            if done.exit_code:
                raise BifactorError(done.stderr.strip())
            if more:
                told = json.loads(done.stdout)
                lines = told["predictions"] if "predictions" in told else told["rows"][0]["recommended"]
                found += [line["prediction"] for line in lines]
    return np.array(found)


USES: dict[str, Callable[[Path], Any]] = {
    "command": command,
    "completion": lambda folder: use(bf.load(folder), folder),
    "labels": lambda folder: use(bf.load(folder), folder),
    "posterior": lambda folder: use_posterior(bf.load(folder), folder),
    "features": lambda folder: use_posterior(bf.load(folder), folder),
    "clicks": lambda folder: use(bf.load(folder), folder),
    "blocks": lambda folder: fitted(bf.data.BlockStore.open(folder)),
    "result": lambda folder: bf.Result.load(folder / "x.safetensors").matrix(),
    "checkpoint": lambda folder: solved(checkpoint=folder / "x.safetensors").matrix(),
}


def use_posterior(fit: Any, folder: Path) -> np.ndarray:
    """The deviations of a posterior that has some, too."""
    found = [use(fit, folder)]
    with suppress(InputError):  # of a folder without covariances
        found.append(fit.predict(fit.rows[0], list(fit.cols), return_std=True)[1])
        _, drawn = fit.recommend(n=2, by="draw", random_state=0)
        found.append(np.nan_to_num(drawn.ravel(), posinf=np.nan))
    return np.concatenate(found)


def fitted(store: bf.data.BlockStore) -> np.ndarray:
    """A few iterations on a block store, and all that it tells."""
    assert repr(store)
    _ = store.counts(), store.row_names, store.summary().mean, store.split(bf.data.RandomCells(0.3, 0))[0].size
    f = bf.operators.Partitioned("squared", store, bf.executors.Streamed("1GB"))
    result = bf.solve(bf.Objective(f, bf.penalties.Ridge(1.0)), 2, rng=0, max_iter=3)
    return np.concatenate([result.U.ravel(), result.V.ravel()])


def use(fit: Any, folder: Path) -> np.ndarray:
    assert repr(fit)
    assert len(fit.header) > 1
    fit.save(folder.with_name("again"), force=True)
    _, best = fit.recommend(n=2)
    return np.concatenate([fit.predict(fit.rows[0], list(fit.cols)), np.nan_to_num(best.ravel())])


def case(kind: str, seed: int, folder: Path) -> str:
    """One folder, loaded and used."""
    rng = np.random.default_rng([seed, *kind.encode()])
    shutil.rmtree(folder / kind, ignore_errors=True)
    shutil.copytree(seeds() / kind, folder / kind)
    change(rng, folder / kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = USES[kind](folder / kind)
    except BifactorError as error:
        if "\n" in str(error) or len(str(error)) > LONGEST:
            raise Unsound("the error is not a sentence") from error
        return "refused"
    if not np.all(np.isfinite(found)):
        raise Unsound("what is predicted is not finite")
    return "loaded"


class Unsound(Exception):
    """An answer that should not have been given."""


def run(count: int = COUNT) -> Iterator[Row]:
    for kind in KINDS:
        told, examples = outcomes(case, kind, 1_000_000 * SEED, -(-count // len(KINDS)))
        yield row(
            "load", kind, "changed at random", **{end: told[end] for end in ENDS}, example="; ".join(examples[:3])
        )
