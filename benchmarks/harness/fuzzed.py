"""Random small problems and fits, unusual ones on purpose, each reproducible from its seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bifactor as bf

Rng = np.random.Generator

LOSSES = (
    bf.losses.Squared(),
    bf.losses.Huber(0.3),
    bf.losses.Logistic(),
    bf.losses.Probit(0.2),
    bf.losses.Poisson(),
    bf.losses.ExpectedCounts(0.1),
)
RULES = (
    bf.steps.StronglyConvex(),
    bf.steps.StronglyConvex(every_step=True),
    bf.steps.Smooth(),
    bf.steps.Smooth(every_step=True),
    bf.steps.Semidefinite(every_step=True),
    bf.steps.Constant(0.1),
    bf.steps.Constant(1e8),
    bf.steps.Backtracking(),
    bf.steps.CurveSearch(),
)
BALANCES = (None, bf.penalties.balance.Frobenius(), bf.penalties.balance.Frobenius(2.0))
INITS = (bf.inits.Spectral(), bf.inits.Spectral(fit=False), bf.inits.Random(), bf.inits.Random(1e4), bf.inits.Zero())
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
SHAPES = ((1, 1), (1, 6), (7, 1), (2, 2), (4, 4), (3, 7), (30, 2), (2, 30), (8, 8))
OPERATORS = (
    "Entries",
    "Entries",
    "Entries",
    "Comparisons",
    "Full",
    "Gaussian",
    "RankOne",
    "Pauli",
    "Noiselet",
    "Hadamard",
    "DCT",
    "Fourier",
    "Linear",
)


@dataclass(frozen=True)
class Parts:
    """The parts of a problem; building it may raise an error."""

    loss: bf.losses.Loss
    operator: bf.operators.Operator
    y: np.ndarray
    weights: Any
    options: dict[str, Any]

    def problem(self) -> bf.Problem:
        return bf.Problem(self.loss, self.operator, self.y, self.weights, **self.options)

    def __str__(self) -> str:
        m, n = self.operator.shape
        named = ", ".join(f"{name}" for name in self.options)
        return f"{self.loss!r}, {type(self.operator).__name__} of {m}×{n}, {self.y.size} {self.y.dtype}, {named}"


def one_of(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def draw_parts(rng: Rng) -> Parts:
    """A loss, an operator, data that the loss takes of a size from 1e-20 to 1e20, weights, and the kind of factors."""
    shape = one_of(rng, SHAPES) if rng.random() < 0.5 else tuple(map(int, rng.integers(1, 8, 2)))
    kind = one_of(rng, ("free", "free", "symmetric", "offsets", "fixed"))
    shape = (shape[0], shape[0]) if kind == "symmetric" else shape
    dtype, loss = np.dtype(one_of(rng, DTYPES)), LOSSES[0] if rng.random() < 0.4 else one_of(rng, LOSSES)
    operator = draw_operator(rng, shape, dtype)
    m, n = operator.shape
    options: dict[str, Any] = {"symmetric": {"symmetric": True}, "offsets": {"offsets": True}}.get(kind, {})
    if kind == "fixed":
        options = {"fixed": (rng.standard_normal((m, 1)), None if rng.random() < 0.5 else np.ones((n, 1)))}
    if rng.random() < 0.3:
        options = {**options, "penalty": bf.penalties.Ridge(10.0 ** rng.integers(-4, 4))}
    weights = one_of(rng, (None, 1e-3, rng.random(operator.size) + 0.01, rng.integers(0, 2, operator.size)))
    return Parts(loss, operator, draw_data(rng, loss, operator.size, dtype), weights, options)


def draw_data(rng: Rng, loss: bf.losses.Loss, size: int, dtype: np.dtype) -> np.ndarray:
    reach = 20 if rng.random() < 0.1 else 8
    y = 10.0 ** rng.integers(-reach, reach + 1) * rng.standard_normal(size)
    y = np.full(size, y[0]) if rng.random() < 0.05 else y
    if loss.targets is bf.losses.Logistic.targets:
        y = np.where(y > 0, 1.0, -1.0)
    elif loss.targets is bf.losses.Poisson.targets:
        y = np.abs(y)
    elif dtype.kind == "c":
        return (y * np.exp(1j * rng.random(size))).astype(dtype)
    return y.astype(dtype if dtype.kind == "f" else np.float64)


def comparisons(rng: Rng, shape: tuple[int, int], size: int) -> bf.operators.Operator:
    """Of a single column there are none."""
    if shape[1] == 1:
        return bf.operators.Full(shape)
    left = rng.integers(shape[1], size=size)
    right = (left + rng.integers(1, shape[1], size)) % shape[1]
    return bf.operators.Comparisons(rng.integers(shape[0], size=size), left, right, shape)


def draw_operator(rng: Rng, shape: tuple[int, int], dtype: np.dtype) -> bf.operators.Operator:
    m, n = shape
    name, size = one_of(rng, OPERATORS), int(rng.integers(1, 2 * m * n + 1))
    if name in ("Noiselet", "Hadamard", "Pauli"):  # powers of two
        m, n = (1 << int(side).bit_length() - 1 for side in shape)
    mixed = min(size, m * n)
    operator = {
        "Entries": lambda: bf.operators.Entries(rng.integers(m, size=size), rng.integers(n, size=size), (m, n)),
        "Comparisons": lambda: comparisons(rng, (m, n), size),
        "Full": lambda: bf.operators.Full((m, n)),
        "Gaussian": lambda: bf.operators.Gaussian((m, n), size, rng=int(rng.integers(100))),
        "RankOne": lambda: bf.operators.RankOne(rng.standard_normal((size, m)), rng.standard_normal((size, n))),
        "Pauli": lambda: bf.operators.Pauli(max(1, m.bit_length() - 1)),
        "Noiselet": lambda: bf.operators.Noiselet((m, n), mixed, rng=0, complex=dtype.kind == "c"),
        "Hadamard": lambda: bf.operators.Hadamard((m, n), mixed, rng=0),
        "DCT": lambda: bf.operators.DCT((m, n), mixed, rng=0),
        "Fourier": lambda: bf.operators.Fourier((m, n), mixed, rng=0, complex=dtype.kind == "c"),
        "Linear": lambda: bf.operators.Linear(rng.standard_normal((size, m * n)), (m, n)),
    }[name]()
    wrapped = rng.random()
    if wrapped < 0.05:
        return bf.operators.Scaled(operator, 10.0 ** rng.integers(-3, 4))
    return bf.operators.Recomputed(operator) if wrapped < 0.1 else operator


def draw_solver(rng: Rng, wrapped: bool = True) -> bf.solvers.Solver | None:
    """Any solver, with any step rule where it has one; None for the one that `solve` takes."""
    rule = one_of(rng, RULES)
    plain: list[Callable[[], Any]] = [
        lambda: None,
        lambda: bf.solvers.PCG(),
        lambda: bf.solvers.Newton(full=bool(rng.integers(2))),
        lambda: bf.solvers.ScaledGD(rule),
        lambda: bf.solvers.BFGD(rule, one_of(rng, BALANCES)),
        lambda: bf.solvers.BFGD(rule, one_of(rng, BALANCES)),
        lambda: bf.solvers.FGD(rule),
        lambda: bf.solvers.FGD(rule),
        lambda: bf.solvers.SVP(normalized=bool(rng.integers(2))),
        lambda: bf.solvers.ProcrustesFlow(),
        lambda: bf.solvers.GuaranteedMC(alternating=bool(rng.integers(2))),
        lambda: bf.solvers.AltMin(),
        lambda: bf.solvers.SoftImpute(),
        lambda: bf.solvers.MiFGD(),
        lambda: bf.solvers.NuclearNorm(),
        lambda: bf.solvers.SPG(10.0 ** rng.integers(-3, 4), one_of(rng, (None, None, 1.0))),
        lambda: bf.solvers.SparseApproxSDP(10.0 ** rng.integers(-3, 4), line_search=bool(rng.integers(2))),
    ]
    around = (bf.solvers.RankContinuation, bf.solvers.RidgeHomotopy, bf.solvers.Race, bf.solvers.Refitted)
    if wrapped and rng.random() < 0.25:
        wrapper, inner = one_of(rng, around), draw_solver(rng, wrapped=False)
        return wrapper() if inner is None or wrapper is bf.solvers.Race else wrapper(inner)
    return one_of(rng, plain)()
