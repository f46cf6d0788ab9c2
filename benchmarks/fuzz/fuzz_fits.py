"""Fuzzed fits: random small problems and odd tables end in finite numbers or in an error of bifactor.

`python -m benchmarks.fuzz.fuzz_fits --cases 4000 --seed 1` runs as many as you like, and `--only 123` one of them
again, with its traceback.
"""

import argparse
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import bifactor as bf
from benchmarks.harness.fuzzed import INITS, draw_parts, draw_solver, one_of
from benchmarks.harness.fuzzed_tables import cells_for, draw_counts, draw_estimator, draw_table
from benchmarks.harness.rows import Row, row
from bifactor.errors import BifactorError

DOCUMENTED = (
    (ConvergenceWarning, ""),
    (bf.estimators.MisfitWarning, ""),
    (UserWarning, "Columns without any known cell are dropped"),
    (UserWarning, "All .* known entries are 1"),
)
"""Documented warnings of estimators."""

TRIES = 6
"""Drawings of a case: many solvers are for few problems."""

FINISHED, REFUSED = "finished", "refused"


class Surprise(Exception):
    """A number that is not finite and not reported; or an error after work."""


class Fuzzed:
    """One case: its name, as far as it was drawn, and its outcome."""

    def __init__(self, seed: int, number: int):
        self.rng, self.name, self.words = np.random.default_rng([seed, number]), "", ""

    def run(self) -> bool:
        """Draw and fit, again where that is refused; whether one of a few fits was not."""
        choice = self.rng.random()
        attempt = self.solve if choice < 0.6 else self.estimate if choice < 0.95 else self.tomography
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for category, message in DOCUMENTED:
                warnings.filterwarnings("ignore", message, category)
            for _ in range(TRIES):
                try:
                    attempt()
                except BifactorError as error:
                    require_early(error)
                    continue
                return True
        return False

    def solve(self) -> bf.Result:
        self.name = "solve"
        parts = draw_parts(self.rng)
        self.words = str(parts)
        solver = draw_solver(self.rng)
        self.name = "default" if solver is None else type(solver).__name__
        problem, most = parts.problem(), min(parts.operator.shape)
        rank = one_of(self.rng, ("auto", 0, most + 1, *8 * (int(self.rng.integers(1, most + 1)),)))
        init = one_of(self.rng, (None, None, *INITS))
        tol, most_iterations = one_of(self.rng, (0.0, 1e-6)), int(one_of(self.rng, (0, 1, 12, 60)))
        self.words += f"; {solver!r}, rank {rank}, {init!r}, tol {tol:g}, max_iter {most_iterations}"
        result = bf.solve(problem, rank, solver, init, int(self.rng.integers(100)), max_iter=most_iterations, tol=tol)
        history = vars(result.history).items()
        for name, part in (("U", result.U), ("V", result.V), ("objective", result.objective), *history):
            require_finite(name, part)
        if result.U.dtype != problem.dtype or not isinstance(result.status, bf.Status):
            raise Surprise(f"U is of {result.U.dtype}, and the problem of {problem.dtype}.")
        return result

    def estimate(self) -> None:
        estimator = draw_estimator(self.rng)
        self.name = type(estimator).__name__
        told, X = draw_table(self.rng, cells_for(estimator))
        self.words = f"{told}; {estimator!r}"
        estimator.fit(X)
        completes = hasattr(estimator, "recommend")
        if not (isinstance(X, tuple) and not completes):
            require_finite("transform", without_empty(X, estimator.transform(X)))
        if completes:
            require_finite("complete", estimator.complete())
            require_finite("predict", estimator.predict(0, 0))
            names, values = estimator.recommend(n=3)
            if np.any(np.isnan(values) != (names < 0)):
                raise Surprise("recommend: a gap has a number, or a column none.")
            require_finite("score", estimator.score(X))
            estimator.partial_fit(X)
            require_finite("partial_fit", estimator.complete())
        if isinstance(estimator, bf.TableImputer):
            require_finite("sample", without_empty(X, estimator.sample(X, 1)[0]))
            require_finite("scores_", [score["error"] for score in estimator.scores_.values()])
        else:
            found = estimator.bound_ if isinstance(estimator, bf.FactorAnalysis) else estimator.result_.objective
            require_finite("objective", found)

    def tomography(self) -> None:
        estimator, settings, counts = draw_counts(self.rng)
        self.name, self.words = type(estimator).__name__, f"{settings}, {counts.sum():g} shots; {estimator!r}"
        estimator.fit_counts(settings, counts)
        require_finite("density_matrix", estimator.density_matrix())
        require_finite("eigenvalues_", estimator.eigenvalues_)
        require_finite("probabilities", estimator.probabilities(settings))
        if abs(estimator.eigenvalues_.sum() - 1) > 1e-6:
            raise Surprise(f"The trace of the state is {estimator.eigenvalues_.sum():g}.")


def require_early(error: BifactorError) -> None:
    """What is refused is refused before any work; what happens in a run is a status."""
    if any(frame.name == "_iterate" for frame in traceback.extract_tb(error.__traceback__)):
        raise Surprise(f"Refused in the middle of a run: {error}") from error


def without_empty(X: Any, filled: Any) -> Any:
    """Without the columns of objects that are empty in X: if they are kept, they stay so."""
    if not (isinstance(X, pd.DataFrame) and isinstance(filled, pd.DataFrame)):
        return filled
    empty = X.dtypes.map(pd.api.types.is_object_dtype) & X.isna().all()
    return filled.drop(columns=empty.index[empty], errors="ignore")


def require_finite(what: str, value: Any) -> None:
    value = value.toarray() if sparse.issparse(value) else value
    array = np.asarray(value)
    if array.dtype == object:  # as of frames of several types, where text is as good as a number
        array = np.array([cell for cell in array.ravel() if not isinstance(cell, str)], float)
    if not np.all(np.isfinite(array)):
        raise Surprise(f"{what} holds NaN or infinity.")


def outcome(case: Fuzzed) -> str:
    """`FINISHED`, `REFUSED`, or another outcome."""
    try:
        return FINISHED if case.run() else REFUSED
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def run(cases: int = 300, seed: int = 0) -> Iterator[Row]:
    counts: dict[str, Counter[str]] = {}
    surprises = []
    for number in range(cases):
        case = Fuzzed(seed, number)
        came = outcome(case)
        known = came if came in (FINISHED, REFUSED) else "surprises"
        counts.setdefault(case.name, Counter({FINISHED: 0, REFUSED: 0, "surprises": 0}))[known] += 1
        if known == "surprises":
            surprises.append(row(f"seed {seed}, case {number}", case.words, case.name, came=came))
    for name in sorted(counts):
        yield row("finite or refused", f"{cases:,} cases of seed {seed}", name, **counts[name])
    yield from surprises


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.fuzz_fits", description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one case, with its traceback")
    asked = parser.parse_args()
    if asked.only is None:
        for line in run(asked.cases, asked.seed):
            print(*(f"{key}: {value}" for key, value in line.items()), sep=" | ")
        return
    case = Fuzzed(asked.seed, asked.only)
    try:
        print(FINISHED if case.run() else REFUSED)
    except Exception:
        traceback.print_exc()
    print(case.name, case.words, sep=": ")


if __name__ == "__main__":
    main()
