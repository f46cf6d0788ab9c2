"""Sixty fits of this tree and of another commit, compared bit by bit: `python -m benchmarks.bits --against COMMIT`.

Every estimator, every solver, losses, operators, data in memory and in blocks, and the shell. Both trees run the
cases of this file, with the same number of threads and with kernels that are compiled anew. Public names that differ
between the trees are in one table, `NAMES`. A case that differs is shown with its largest difference in units in the
last place.
"""

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.against import checkout
from benchmarks.harness.report import ROOT
from benchmarks.harness.rows import Mistake, Row, row

NAMES: dict[str, tuple[str, ...]] = {"data": ("tables",)}
"""Public names of this tree, and what they were called before."""

ARGUMENTS: dict[str, tuple[str, ...]] = {"ridge": ("alpha",), "item_ridge": ("item_alpha",)}
"""Parameters of estimators, and what they were called before."""

Arrays = dict[str, Any]
Case = Callable[[], Arrays]


def named(path: str) -> Any:
    """A public object of the library, under the name that it has in this tree."""
    import bifactor

    head, _, rest = path.partition(".")
    for name in (head, *NAMES.get(head, ())):
        if hasattr(bifactor, name):
            found = getattr(bifactor, name)
            return attrgetter(rest)(found) if rest else found
    raise Mistake(f"Neither tree has a public {path}. Add the old name to NAMES.")


def estimator(name: str, **settings: Any) -> Any:
    """An estimator with its parameters under the names that they have in this tree."""
    made = named(name)
    known = inspect.signature(made).parameters
    renamed = {}
    for key, value in settings.items():
        renamed[next((k for k in (key, *ARGUMENTS.get(key, ())) if k in known), key)] = value
    return made(**renamed, random_state=0) if "random_state" in known else made(**renamed)


# Problems


@cache
def entries(dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    known = np.nonzero(rng.random((120, 90)) < 0.3)
    truth = rng.standard_normal((120, 4)) @ rng.standard_normal((4, 90))
    return *known, (1 + truth[known] + 0.1 * rng.standard_normal(known[0].size)).astype(dtype)


def problem(loss: str = "squared", y: Any = None, **options: Any) -> Any:
    rows, cols, values = entries()
    return named("Problem")(
        loss, named("operators.Entries")(rows, cols, (120, 90)), values if y is None else y, **options
    )


def factors(result: Any) -> Arrays:
    return {"U": result.U, "V": result.V, "objective": np.asarray(result.history.objective)}


def solved(problem: Any, solver: Any = None, rank: Any = 4, **options: Any) -> Arrays:
    return factors(named("solve")(problem, rank, solver, rng=0, **{"max_iter": 40, **options}))


def symmetric() -> Any:
    rng = np.random.default_rng(3)
    U = rng.standard_normal((30, 2))
    return named("Problem")("squared", named("operators.Full")((30, 30)), (U @ U.T).ravel(), symmetric=True)


def with_ridge(strength: float = 2.0) -> Any:
    return problem(penalty=named("penalties.Ridge")(strength))


SOLVERS: dict[str, Case] = {
    "default": lambda: solved(problem()),
    "default_float32": lambda: solved(problem(y=entries()[2].astype(np.float32))),
    "PCG": lambda: solved(problem(), named("solvers.PCG")()),
    "Newton": lambda: solved(problem(), named("solvers.Newton")()),
    "BFGD": lambda: solved(problem(), named("solvers.BFGD")()),
    "FGD": lambda: solved(symmetric(), named("solvers.FGD")(), 2),
    "MiFGD": lambda: solved(symmetric(), named("solvers.MiFGD")(), 2),
    "ScaledGD": lambda: solved(problem(), named("solvers.ScaledGD")(named("steps.Backtracking")())),
    "AltMin": lambda: solved(problem(), named("solvers.AltMin")(), max_iter=10),
    "SVP": lambda: solved(problem(), named("solvers.SVP")()),
    "SoftImpute": lambda: solved(with_ridge(), named("solvers.SoftImpute")()),
    "NuclearNorm": lambda: solved(with_ridge(5.0), named("solvers.NuclearNorm")()),
    "SPG": lambda: solved(problem(), named("solvers.SPG")(100.0)),
    "GuaranteedMC": lambda: solved(problem(), named("solvers.GuaranteedMC")()),
    "ProcrustesFlow": lambda: solved(problem(), named("solvers.ProcrustesFlow")()),
    "SparseApproxSDP": lambda: solved(symmetric(), named("solvers.SparseApproxSDP")(40.0), 20),
    "RankContinuation": lambda: solved(problem(), named("solvers.RankContinuation")()),
    "RidgeHomotopy": lambda: solved(problem(), named("solvers.RidgeHomotopy")()),
    "Race": lambda: solved(problem(), named("solvers.Race")()),
    "Variational": lambda: solved(problem(offsets=True), named("solvers.Variational")()),
    "Refitted": lambda: solved(
        problem(named("losses.Ordinal")(4), y=np.clip(np.rint(entries()[2]), 0, 3)),
        named("solvers.Refitted")(named("solvers.PCG")()),
    ),
    "rank_auto": lambda: solved(problem(), rank="auto"),
}


def labels() -> np.ndarray:
    return np.sign(entries()[2] + 1e-9)


def counts() -> np.ndarray:
    return np.maximum(np.rint(entries()[2] + 1), 0)


LOSSES: dict[str, Case] = {
    "huber": lambda: solved(problem(named("losses.Huber")(0.3))),
    "logistic": lambda: solved(problem("logistic", labels(), penalty=named("penalties.Ridge")(1.0))),
    "probit": lambda: solved(problem(named("losses.Probit")(0.5), labels(), penalty=named("penalties.Ridge")(1.0))),
    "poisson": lambda: solved(problem("poisson", counts(), penalty=named("penalties.Ridge")(1.0))),
    "negative_binomial": lambda: solved(
        problem(named("losses.NegativeBinomial")(3.0), counts(), penalty=named("penalties.Ridge")(1.0))
    ),
    "offsets": lambda: solved(problem(offsets=True, penalty=named("penalties.Ridge")(1.0))),
    "weights": lambda: solved(problem(weights=np.linspace(0.5, 2, entries()[2].size))),
}


def measured(name: str, size: int) -> Arrays:
    rng = np.random.default_rng(5)
    operator = named(f"operators.{name}")((32, 16), size, rng=1)
    y = operator.forward(rng.standard_normal((32, 2)), rng.standard_normal((16, 2)))
    return solved(named("Problem")("squared", operator, y), rank=2)


def of_pauli() -> Arrays:
    operator = named("operators.Pauli")(4)
    state = np.zeros((16, 1), complex)
    state[[0, -1]] = 0.5**0.5
    y = np.real(operator.forward(state, state))
    return solved(named("Problem")("squared", operator, y, symmetric=True), rank=1)


def of_comparisons() -> Arrays:
    rng = np.random.default_rng(2)
    rows, left = rng.integers(40, size=3000), rng.integers(30, size=3000)
    right = (left + 1 + rng.integers(29, size=3000)) % 30
    operator = named("operators.Comparisons")(rows, left, right, (40, 30))
    return solved(named("Problem")("logistic", operator, np.ones(3000), penalty=named("penalties.Ridge")(1.0)))


def of_table() -> Arrays:
    from scipy import sparse

    X = sparse.random_array((150, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    X.data[:] = 1 + np.rint(4 * X.data)
    return {"components": estimator("PoissonPCA", n_components=3, ridge=1.0).fit(X).components_}


OPERATORS: dict[str, Case] = {
    "gaussian": lambda: measured("Gaussian", 400),
    "dct": lambda: measured("DCT", 300),
    "fourier": lambda: measured("Fourier", 300),
    "hadamard": lambda: measured("Hadamard", 300),
    "noiselet": lambda: measured("Noiselet", 300),
    "pauli": of_pauli,
    "comparisons": of_comparisons,
    "full_table": of_table,
    "all_cells": lambda: solved(with_ridge(0.5) + named("all_cells")(0.1), rank=5),
    "partitioned": lambda: solved_in_blocks(named("solvers.PCG")()),
    "partitioned_variational": lambda: solved_in_blocks(named("solvers.Variational")()),
}


def blocks(folder: str, dtype: Any = np.float64) -> Any:
    rows, cols, values = entries(np.dtype(dtype).type)
    return named("data.partition")((rows, cols, values), f"{folder}/blocks")


def solved_in_blocks(solver: Any) -> Arrays:
    with tempfile.TemporaryDirectory() as folder:
        f = named("operators.Partitioned")("squared", blocks(folder), named("executors.Streamed")("1GB"))
        return solved(named("Objective")(f, offsets=True), solver)


# Estimators


def dense(round_to: int | None = None) -> np.ndarray:
    rows, cols, values = entries()
    X = np.full((120, 90), np.nan)
    X[rows, cols] = values if round_to is None else np.clip(np.rint(values + 2), 1, round_to)
    return X


def of_fit(model: Any) -> Arrays:
    result = model.result_
    i, j = np.indices((20, 15)).reshape(2, -1)
    return {"U": result.U, "V": result.V, "predictions": model.predict(i, j)}


def completed(X: Any = None, **settings: Any) -> Arrays:
    return of_fit(estimator("MatrixCompletion", **settings).fit(dense() if X is None else X))


def with_bars() -> Arrays:
    model = estimator("MatrixCompletion", n_components=4).fit(dense())
    mean, std = model.predict([0, 1, 2], [3, 4, 5], return_std=True)
    return {**of_fit(model), "mean": mean, "std": std}


def with_features() -> Arrays:
    features = np.random.default_rng(1).standard_normal((120, 3))
    return completed(n_components=3, user_features=features)


def in_blocks(name: str, dtype: Any = np.float64, **settings: Any) -> Arrays:
    with tempfile.TemporaryDirectory() as folder:
        blocks(folder, dtype)
        return of_fit(estimator(name, **settings).fit(f"{folder}/blocks"))


def clicks() -> Any:
    from scipy import sparse

    X = sparse.random_array((200, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    X.data[:] = 1 + np.rint(3 * X.data)
    return X


def recommended(**settings: Any) -> Arrays:
    model = estimator("Recommender", **settings).fit(clicks())
    names, scores = model.recommend(np.arange(20), n=5)
    return {"U": model.result_.U, "V": model.result_.V, "names": names, "scores": scores}


def table() -> np.ndarray:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((150, 3)) @ rng.standard_normal((3, 8)) + 0.3 * rng.standard_normal((150, 8))
    X[:, 7] = X[:, 7] > 0
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def analysed() -> Arrays:
    model = estimator("FactorAnalysis", n_components=2).fit(table())
    return {"components": model.components_, "noise": model.noise_variance_}


def inpainted() -> Arrays:
    rng = np.random.default_rng(0)
    picture = np.clip(np.add.outer(np.sin(np.arange(48) / 7), np.cos(np.arange(40) / 5)) * 60 + 128, 0, 255)
    return {"picture": estimator("ImageCompletion").fit_transform(picture, rng.random(picture.shape) < 0.5)}


def tomography() -> Arrays:
    counted = {"XX": {"00": 480, "11": 520}, "YY": {"01": 510, "10": 490}, "ZZ": {"00": 505, "11": 495}}
    return {"state": estimator("StateTomography").fit_counts(counted).density_matrix()}


ESTIMATORS: dict[str, Case] = {
    "completion": with_bars,
    "completion_auto": lambda: completed(n_components="auto"),
    "completion_ridge": lambda: completed(ridge=3.0, n_components=4),
    "completion_ridge_auto": lambda: completed(ridge="auto"),
    "completion_huber": lambda: completed(loss="huber", ridge=3.0, n_components=4),
    "completion_ordinal": lambda: completed(dense(5), loss="ordinal", ridge=3.0, n_components=3),
    "completion_features": with_features,
    "completion_blocks": lambda: in_blocks("MatrixCompletion", n_components=4),
    "completion_blocks_float32": lambda: in_blocks("MatrixCompletion", np.float32, n_components=4),
    "completion_blocks_ridge": lambda: in_blocks("MatrixCompletion", n_components=4, ridge=3.0),
    "labels": lambda: of_fit(estimator("OneBitCompletion", n_components=3, ridge=1.0).fit(np.sign(dense()))),
    "labels_auto": lambda: of_fit(estimator("OneBitCompletion").fit(np.sign(dense()))),
    "recommender": lambda: recommended(n_components=6, ridge=0.05, unobserved=0.1, item_share=0.0),
    "recommender_items": lambda: recommended(
        n_components=6, ridge=0.05, unobserved=0.1, item_share=0.3, item_ridge=3.0
    ),
    "recommender_auto": lambda: recommended(n_components=8),
    "logistic_pca": lambda: {
        "components": estimator("LogisticPCA", n_components=2, ridge=1.0).fit(np.nan_to_num(dense()) > 0).components_
    },
    "factor_analysis": analysed,
    "table_imputer": lambda: {"table": estimator("TableImputer").fit_transform(table())},
    "image_completion": inpainted,
    "tomography": tomography,
}


# The shell


def shell(*commands: list[str], results: dict[str, str]) -> Arrays:
    """What commands write in an empty folder that holds `ratings.csv` and `table.csv`."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        rows, cols, values = entries()
        lines = [f"u{i},{j},{v:.4f}" for i, j, v in zip(rows, cols, values, strict=True)]
        (home / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
        cells = [",".join("" if np.isnan(x) else f"{x:.4f}" for x in line) for line in table()]
        (home / "table.csv").write_text("\n".join([",".join(f"c{k}" for k in range(8)), *cells]) + "\n")
        for command in commands:
            done = subprocess.run(
                [sys.executable, "-m", "bifactor", *command], cwd=home, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"bifactor {' '.join(command)}: {done.stderr.strip()[-300:]}")
        found: Arrays = {}
        for name, file in results.items():
            path = home / file
            if path.suffix == ".npz":
                with np.load(path) as stored:
                    found |= {f"{name}.{key}": stored[key] for key in stored.files}
            elif path.suffix == ".safetensors":
                from safetensors.numpy import load_file

                found |= {f"{name}.{key}": value for key, value in load_file(path).items()}
            else:
                found[name] = np.frombuffer(path.read_bytes(), np.uint8)
        return found


PAIRS = ["predict", "fit", "ratings.csv", "-o", "predictions.csv"]
SHELL: dict[str, Case] = {
    "shell_complete": lambda: shell(
        ["complete", "ratings.csv", "-o", "fit", "--rank", "3", "--seed", "0"],
        PAIRS,
        results={"out": "predictions.csv"},
    ),
    "shell_blocks": lambda: shell(
        ["partition", "ratings.csv", "-o", "blocks"],
        ["complete", "blocks", "-o", "fit", "--rank", "3", "--seed", "0"],
        PAIRS,
        results={"out": "predictions.csv"},
    ),
    "shell_impute": lambda: shell(["impute", "table.csv", "-o", "full.csv"], results={"out": "full.csv"}),
}


def all_cases() -> dict[str, Case]:
    groups = {"solver": SOLVERS, "loss": LOSSES, "operator": OPERATORS, "estimator": ESTIMATORS, "shell": SHELL}
    return {f"{group} {name}": run for group, cases in groups.items() for name, run in cases.items()}


# The comparison


def save_all(folder: Path, only: str) -> None:
    """Run the cases in this process and write their arrays, or the error of a case, into a folder."""
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name, run in all_cases().items():
        if only not in name:
            continue
        path = folder / name.replace(" ", "_")
        try:
            found = {key: np.asarray(value) for key, value in run().items()}
            np.savez(path.with_suffix(".npz"), **found)
        except Exception as error:
            path.with_suffix(".txt").write_text(f"{type(error).__name__}: {error}")


def run_tree(tree: Path, folder: Path, only: str, threads: int) -> None:
    """The cases of this file with the library of a tree, and with kernels compiled for this run alone."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (tree / "src", ROOT))),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }
    command = [sys.executable, "-P", "-m", "benchmarks.bits", "--save", str(folder), "--only", only]
    if subprocess.run(command, env=environment, check=False).returncode:
        raise Mistake(f"The cases of {tree} did not end. The last words of the process are above.")


def steps_apart(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference in units in the last place of the largest number of the array."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.dtype.kind not in "fc":
        return 0.0 if np.array_equal(a, b) else np.inf
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    scale = np.spacing(np.max(np.abs(a[np.isfinite(a)]), initial=0).astype(np.abs(a).dtype))
    different = np.abs(a - b)[~((a == b) | (np.isnan(a) & np.isnan(b)))]
    return float(np.max(different) / scale)


def outcome(folder: Path, name: str) -> dict[str, np.ndarray] | str:
    path = folder / name.replace(" ", "_")
    if path.with_suffix(".txt").exists():
        return path.with_suffix(".txt").read_text()
    with np.load(path.with_suffix(".npz")) as stored:
        return {key: stored[key] for key in stored.files}


def compared(name: str, new: Path, old: Path) -> Row:
    ours, theirs = outcome(new, name), outcome(old, name)
    if isinstance(ours, str) or isinstance(theirs, str):
        errors = {side: one for side, one in (("new", ours), ("old", theirs)) if isinstance(one, str)}
        return row("bits", name, "", same=False, **errors)
    if set(ours) != set(theirs):
        return row("bits", name, "", same=False, arrays=sorted(set(ours) ^ set(theirs)))
    apart = {key: steps_apart(ours[key], theirs[key]) for key in ours}
    different = {key: ulps for key, ulps in apart.items() if ulps}
    return row("bits", name, "", same=not different, **different)


def compare(commit: str, only: str = "", threads: int = 1) -> Iterator[Row]:
    with checkout(commit) as tree, tempfile.TemporaryDirectory() as home:
        sides = {"new": ROOT, "old": tree}
        for side, source in sides.items():
            run_tree(source, Path(home, side), only, threads)
        for name in all_cases():
            if only in name:
                yield compared(name, Path(home, "new"), Path(home, "old"))


def run() -> Iterator[Row]:
    """This tree against its own last commit."""
    yield from compare("HEAD")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bits", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", default="HEAD")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name contains this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="run the cases of this tree alone, and keep arrays")
    asked = parser.parse_args()
    if asked.save:
        return save_all(asked.save, asked.only)
    rows = list(compare(asked.against, asked.only, asked.threads))
    for line in rows:
        if not line["same"]:
            print(*(f"{key}: {value}" for key, value in line.items() if key not in ("objective", "solver")), sep=" | ")
    print(f"{sum(line['same'] for line in rows)} of {len(rows)} the same, bit by bit")
    return None


if __name__ == "__main__":
    main()
