"""Time to the minimum of an objective of implicit feedback: PCG against implicit and irspack, on their own objectives.

All in single precision, from the positives to factors; starts count, compilation does not. Every value is that of our
problem at the factors found, off the clock, and the least value is that of a long run of PCG in double precision or
what a rival finds below it. `within` is the seconds until F is no more than that share above the least value, None
where the iterations end before. irspack runs its conjugate gradients, the fastest of its solvers here. Solvers take
turns. Generated clicks have the shape of MovieLens 1M, ratings of 3 and more.

That the objective is implicit's own is checked where implicit is at hand: `apart` is the largest relative difference
between our F at its factors and the training loss that it tells of them, over some of its iterations.
"""

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import bifactor as bf
from benchmarks.harness.click_data import CLICKS
from benchmarks.harness.rows import Absent, Row, library, row
from bifactor.kernels.threading import thread_count

WIDTHS, ROUNDS, LONG = (64, 256, 512), 3, 60
NEAR = 1e-2, 1e-3
IMPLICIT, IRSPACK = {"alpha": 2.0, "ridge": 40.0}, {"unobserved": 0.28, "ridge": 0.01}
"""Near the best settings for MovieLens 1M."""

Value = Callable[[Any, Any], float]
Curve = list[tuple[float, float]]
"""Seconds, and F."""


@dataclass(frozen=True)
class Race:
    """An objective, and how a rival minimises it."""

    name: str
    problem: Callable[[Any], bf.Problem]
    rival: str
    run: Callable[[Any, int, int, Value], Curve]


def generated(m: int = 6033, n: int = 3123, entries: int = 673_000, seed: int = 0) -> sparse.csr_array:
    """Clicks by taste, popularity and activity, with long tails of the latter two."""
    rng = np.random.default_rng(seed)
    taste = rng.standard_normal((m, 20)) @ rng.standard_normal((20, n)) / 20**0.5
    score = taste + 1.2 * rng.standard_normal(n) + rng.gumbel(size=(m, n))
    active = rng.lognormal(0.0, 0.9, m)
    counts = np.minimum((active * entries / active.sum()).astype(int) + 5, n // 2)
    rows = np.repeat(np.arange(m), counts)
    cols = np.concatenate([np.argpartition(-score[i], k)[:k] for i, k in enumerate(counts)])
    return sparse.csr_array((np.ones(rows.size, np.float32), (rows, cols)), shape=(m, n))


def as_implicit(X: Any) -> bf.Problem:
    """F of `implicit`, halved; what is constant in its loss is left out."""
    alpha, (rows, cols) = IMPLICIT["alpha"], X.tocoo().coords
    y = np.full(X.nnz, alpha / (alpha - 1), X.dtype)
    weights = np.full(X.nnz, alpha - 1, X.dtype)
    ridge = bf.penalties.Ridge(IMPLICIT["ridge"])
    return bf.Problem("squared", bf.operators.Entries(rows, cols, X.shape), y, weights, ridge) + bf.all_cells(1.0)


def loss_of_implicit(F: float, X: Any) -> float:
    """What `implicit` calls the loss where our F has this value: 2F and what is constant, per unit of confidence."""
    alpha = IMPLICIT["alpha"]
    return (2 * F - X.nnz * alpha / (alpha - 1)) / ((alpha - 1) * X.nnz + X.shape[0] * X.shape[1])


def as_irspack(X: Any) -> bf.Problem:
    """F of Rendle et al. with ν = 1, halved."""
    w0, (m, n), (rows, cols) = IRSPACK["unobserved"], X.shape, X.tocoo().coords
    a, b = np.diff(X.indptr) + w0 * n, np.bincount(X.indices, minlength=n) + w0 * m
    ridge = bf.penalties.Ridge(IRSPACK["ridge"], rows=a, cols=b)
    entries = bf.operators.Entries(rows, cols, X.shape)
    return bf.Problem("squared", entries, np.ones(X.nnz, X.dtype), penalty=ridge) + bf.all_cells(w0)


def implicit_model(width: int, iterations: int, **more: Any) -> Any:
    package = library("implicit.cpu.als")
    settings = {"alpha": IMPLICIT["alpha"], "regularization": IMPLICIT["ridge"], "num_threads": thread_count()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that BLAS has threads, too
        return package.AlternatingLeastSquares(factors=width, iterations=iterations, random_state=0, **settings, **more)


def with_implicit(X: Any, width: int, iterations: int, value: Value) -> Curve:
    model = implicit_model(width, iterations)
    clock = Clock()
    matrix = sparse.csr_matrix(X, dtype=np.float32)

    def note(*_: Any) -> None:
        clock.note(lambda: value(model.user_factors, model.item_factors))

    model.fit(matrix, show_progress=False, callback=note)
    return clock.curve


def losses_apart(name: str, X: Any, width: int, iterations: int = 10) -> Iterator[Row]:
    """The difference between our F and the loss that `implicit` reports, in both precisions."""
    value = value_of(as_implicit(X.astype(np.float64)))
    for dtype in (np.float64, np.float32):
        model = implicit_model(width, iterations, dtype=dtype, calculate_training_loss=True)
        apart = []

        def note(_: int, __: float, loss: float, model: Any = model, apart: list[float] = apart) -> None:
            ours = loss_of_implicit(value(model.user_factors, model.item_factors), X)
            apart.append(abs(ours / loss - 1))

        model.fit(sparse.csr_matrix(X, dtype=np.float32), show_progress=False, callback=note)
        where = f"{name}, d = {width}, {np.dtype(dtype).name}"
        yield row(RACES[0].name, where, "F against implicit's own loss", apart=max(apart))


def with_irspack(X: Any, width: int, iterations: int, value: Value) -> Curve:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what it imports
        package = library("irspack")
    settings = {"alpha0": IRSPACK["unobserved"], "reg": IRSPACK["ridge"], "n_threads": thread_count()}
    clock = Clock()
    with contextlib.redirect_stdout(io.StringIO()):
        model = package.IALSRecommender(sparse.csr_matrix(X), n_components=width, **settings)
        model.start_learning()
        for _ in range(iterations):
            model.run_epoch()
            clock.note(lambda: value(model.get_user_embedding(), model.get_item_embedding()))
    return clock.curve


class Clock:
    """Seconds since it was created, without those of `note`."""

    def __init__(self) -> None:
        self.started, self.paused, self.curve = time.perf_counter(), 0.0, Curve()

    def note(self, value: Callable[[], float]) -> None:
        now = time.perf_counter()
        self.curve.append((now - self.started - self.paused, value()))
        self.paused += time.perf_counter() - now


RACES = (
    Race("implicit, α 2, λ 40", as_implicit, "implicit, conjugate gradients", with_implicit),
    Race("Rendle et al., w₀ 0.28, λ 0.01, ν 1", as_irspack, "irspack, conjugate gradients", with_irspack),
)


def with_pcg(race: Race, X: Any, width: int, iterations: int) -> Curve:
    started = time.perf_counter()
    problem = race.problem(X)
    bound = time.perf_counter() - started
    result = bf.solve(problem, width, bf.solvers.PCG(), rng=0, max_iter=iterations, tol=0)
    return [(bound + float(t), float(F)) for t, F in zip(result.history.seconds, result.history.objective, strict=True)]


def value_of(problem: bf.Problem) -> Value:
    """F at factors, in double precision."""
    return lambda U, V: problem.objective(problem.kind.pair(*(np.array(side, np.float64) for side in (U, V))))


def first_within(curve: Curve, limit: float) -> float | None:
    return next((seconds for seconds, F in curve if limit >= F), None)


def raced(race: Race, name: str, X: Any, width: int, rounds: int = ROUNDS) -> Iterator[Row]:
    exact = race.problem(X.astype(np.float64))
    value = value_of(exact)
    with_pcg(race, X, width, 1)  # compiles
    curves: dict[str, list[Curve]] = {"PCG": [], race.rival: []}
    for _ in range(rounds):
        curves["PCG"].append(with_pcg(race, X, width, LONG // 2))
        curves[race.rival].append(race.run(X, width, LONG // 2, value))
    long = bf.solve(exact, width, bf.solvers.PCG(), rng=0, max_iter=2 * LONG, tol=0).objective
    least = min(long, *(F for runs in curves.values() for curve in runs for _, F in curve))
    for solver, runs in curves.items():
        for draw, curve in enumerate(runs):
            found = {f"within {near:g}": first_within(curve, least * (1 + near)) for near in NEAR}
            each = float(np.median(np.diff([seconds for seconds, _ in curve])))
            yield row(race.name, f"{name}, d = {width}", solver, draw=draw, seconds_each=each, **found)


def run(widths: tuple[int, ...] = WIDTHS, sets: tuple[str, ...] = ("Last.fm",)) -> Iterator[Row]:
    data = {"generated": generated()}
    for name in sets:
        with contextlib.suppress(Absent):
            data[name] = CLICKS[name].read().astype(np.float32)
    for name, X in data.items():
        with contextlib.suppress(Absent):  # the race below says so
            yield from losses_apart(name, X, widths[0])
        for width in widths:
            for race in RACES:
                try:
                    yield from raced(race, name, X, width)
                except Absent as reason:
                    yield row(race.name, name, race.rival, skipped=str(reason))
