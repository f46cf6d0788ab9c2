"""Every solver on one problem of each kind, from its own start: seconds and iterations to a common goal.

The goal is a relative error of 1e-5 to the truth; for the problems with noise, an objective within 1e-6 of the minimum.
`SPG` and `SparseApproxSDP` are told ‖X*‖_*; `NuclearNorm` gets a ridge of 1e-6 of ‖∇f(0)‖₂ if there is no noise. The
rank is the true one, with noise 20, and a ridge there 0.4 of ‖∇f(0)‖₂, above what noise alone shows. Each solver has 20
seconds. `python -m benchmarks.speed.choose PATH` draws the picture.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

import bifactor as bf
from benchmarks.harness.reach import error_to
from benchmarks.harness.rows import Row, row
from bifactor import solvers as s
from bifactor.problems.state import State
from bifactor.svd import spectral_norm

LIMIT = 20.0
"""Time limit of each solver, in seconds."""

GOAL, GAP = 1e-5, 1e-6


@dataclass
class Task:
    """A problem, and a measure of the distance from its solution."""

    objective: str
    data: str
    problem: bf.Problem
    rank: int
    distance: Callable[[State], float]
    goal: float
    solvers: dict[str, s.Solver | None]
    ridge: bf.Problem | None = None
    """For solvers that need a ridge."""


@dataclass
class Curve:
    """Seconds, without the time to measure distances, and distances."""

    seconds: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    arrived: bool = False

    @property
    def numbers(self) -> Row:
        least = min(self.distances, default=None)
        seconds = self.seconds[-1] if self.arrived else None
        return {"arrived": self.arrived, "seconds": seconds, "iterations": len(self.seconds), "distance": least}


def follow(task: Task, solver: s.Solver | None) -> Curve:
    curve, paused = Curve(), 0.0
    started = time.perf_counter()

    def look(t: int, state: State) -> bool:
        nonlocal paused
        now = time.perf_counter()
        curve.seconds.append(now - started - paused)
        curve.distances.append(task.distance(state))
        curve.arrived = curve.distances[-1] <= task.goal
        paused += time.perf_counter() - now
        return curve.arrived or curve.seconds[-1] > LIMIT

    wants_ridge = isinstance(solver, s.NuclearNorm) and task.ridge is not None
    bf.solve(
        task.ridge if wants_ridge else task.problem, task.rank, solver, rng=1, tol=0, max_iter=10**6, callback=look
    )
    return curve


def steepest(problem: bf.Problem) -> float:
    """‖∇f(0)‖₂."""
    return spectral_norm(problem.gradient_at_zero(), np.random.default_rng(0))


def noiseless(data: str, operator: bf.operators.Operator, U: np.ndarray, V: np.ndarray) -> Task:
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(U, V))
    radius = bf.metrics.nuclear_norm(U, V)
    chosen: dict[str, s.Solver | None] = {
        "default": None,
        "PCG": s.PCG(),
        "Newton": s.Newton(),
        "ScaledGD": s.ScaledGD(),
        "AltMin": s.AltMin(),
        "SoftImpute": s.SoftImpute(),
        "SVP, normalized": s.SVP(normalized=True),
        "SVP": s.SVP(),
        "BFGD, backtracking": s.BFGD(bf.steps.Backtracking()),
        "BFGD": s.BFGD(),
        "ProcrustesFlow": s.ProcrustesFlow(),
        "GuaranteedMC": s.GuaranteedMC(),
        "MiFGD": s.MiFGD(),
        "NuclearNorm": s.NuclearNorm(),
        "SPG": s.SPG(radius),
        "SparseApproxSDP": s.SparseApproxSDP(radius),
    }
    ridge = problem.penalized(bf.penalties.Ridge(1e-6 * steepest(problem)))
    return Task("least squares", data, problem, U.shape[1], error_to(U, V), GOAL, chosen, ridge)


def planted(m: int, n: int, rank: int, kappa: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors with singular values that decrease geometrically from √(mn) to √(mn)/κ."""
    rng = np.random.default_rng(seed)
    root = np.geomspace(1, 1 / kappa, rank) ** 0.5
    U, V = (np.linalg.qr(rng.standard_normal((k, rank)))[0] * k**0.5 * root for k in (m, n))
    return U, V


def entries(m: int, n: int, count: int, seed: int) -> bf.operators.Entries:
    rng = np.random.default_rng(seed)
    return bf.operators.Entries(*np.divmod(rng.choice(m * n, count, replace=False), n), (m, n))


def sensing() -> Task:
    return noiseless(
        "noiselets 256², r = 10",
        bf.operators.Noiselet((256, 256), size=5 * 256 * 10, rng=3),
        *planted(256, 256, 10, 2, 4),
    )


def completion(kappa: float) -> Task:
    m, n, rank = 1000, 800, 5
    operator = entries(m, n, 5 * rank * (m + n - rank), 5)
    return noiseless(f"completion {m} × {n}, r = {rank}, κ = {kappa:g}", operator, *planted(m, n, rank, kappa, 6))


def noisy() -> Task:
    m, n = 1000, 800
    U, V = planted(m, n, 5, 3, 7)
    operator = entries(m, n, 60_000, 8)
    y = operator.forward(U, V)
    y = y + np.std(y) / 2 * np.random.default_rng(9).standard_normal(y.size)
    plain = bf.Problem(bf.losses.Squared(), operator, y)
    problem = plain.penalized(bf.penalties.Ridge(0.4 * steepest(plain)))
    chosen = {
        "PCG": s.PCG(),
        "Newton": s.Newton(),
        "ScaledGD": s.ScaledGD(),
        "AltMin": s.AltMin(),
        "SoftImpute": s.SoftImpute(),
        "NuclearNorm": s.NuclearNorm(),
        "RidgeHomotopy": s.RidgeHomotopy(),
        "BFGD, backtracking": s.BFGD(bf.steps.Backtracking()),
        "BFGD": s.BFGD(),
    }
    return with_least("least squares + ridge", f"noisy {m} × {n}, r = 20", problem, 20, chosen)


def binary() -> Task:
    m, n = 600, 500
    U, V = planted(m, n, 3, 2, 10)
    operator = entries(m, n, 60_000, 11)
    loss = bf.losses.Logistic()
    z = 2 * operator.forward(U, V)
    y = np.where(np.random.default_rng(12).random(z.size) < loss.mean(z), 1.0, -1.0)
    plain = bf.Problem(loss, operator, y)
    problem = plain.penalized(bf.penalties.Ridge(0.4 * steepest(plain)))
    chosen = {
        "PCG": s.PCG(),
        "Newton": s.Newton(),
        "ScaledGD": s.ScaledGD(),
        "SoftImpute": s.SoftImpute(),
        "NuclearNorm": s.NuclearNorm(),
        "RidgeHomotopy": s.RidgeHomotopy(),
        "BFGD, backtracking": s.BFGD(bf.steps.Backtracking()),
        "BFGD, smooth": s.BFGD(bf.steps.Smooth(), balance=None),
    }
    return with_least("logistic + ridge", f"binary {m} × {n}, r = 20", problem, 20, chosen)


def with_least(objective: str, data: str, problem: bf.Problem, rank: int, chosen: dict[str, s.Solver | None]) -> Task:
    least = min(
        bf.solve(problem, rank, solver, rng=2, tol=1e-12, max_iter=3000).objective
        for solver in (s.PCG(), s.NuclearNorm())
    )
    return Task(objective, data, problem, rank, lambda state: (state.value - least) / least, GAP, chosen)


def tomography() -> Task:
    qubits, rank = 6, 2
    rng = np.random.default_rng(13)
    operator = bf.operators.Pauli(qubits, 1500, rng=14)
    U = rng.standard_normal((2**qubits, rank)) + 1j * rng.standard_normal((2**qubits, rank))
    U /= np.linalg.norm(U)
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(U, U), symmetric=True)
    chosen = {
        "PCG": s.PCG(),
        "Newton": s.Newton(),
        "ScaledGD": s.ScaledGD(),
        "MiFGD": s.MiFGD(),
        "FGD": s.FGD(),
        "FGD, backtracking": s.FGD(bf.steps.Backtracking()),
        "SVP": s.SVP(),
        "ProcrustesFlow": s.ProcrustesFlow(),
        "SparseApproxSDP": s.SparseApproxSDP(1.0),
    }
    return Task(
        "least squares, X = UUᴴ",
        f"Pauli strings, {qubits} qubits, r = {rank}",
        problem,
        rank,
        error_to(U, U),
        GOAL,
        chosen,
    )


TASKS: list[Callable[[], Task]] = [
    sensing,
    lambda: completion(1),
    lambda: completion(30),
    noisy,
    binary,
    tomography,
]


def curves() -> list[tuple[Task, dict[str, Curve]]]:
    done = []
    for make in TASKS:
        task = make()
        bf.solve(task.problem, task.rank, rng=0, max_iter=3)  # compiles
        done.append((task, {name: follow(task, solver) for name, solver in task.solvers.items()}))
    return done


def run() -> Iterator[Row]:
    for task, got in curves():
        yield from (row(task.objective, task.data, name, **curve.numbers) for name, curve in got.items())


def draw(found: list[tuple[Task, dict[str, Curve]]], path: str) -> None:
    import matplotlib.pyplot as plt

    colours = plt.get_cmap("tab20").colors
    names = list(dict.fromkeys(name.split(",")[0] for task, _ in found for name in task.solvers))
    figure, axes = plt.subplots(2, 3, figsize=(15, 8.5), layout="constrained")
    for ax, (task, got) in zip(axes.flat, found, strict=True):
        for name, curve in got.items():
            plain = name.split(",")[0]
            dashed = "--" if "," in name else "-"
            ax.loglog(curve.seconds, curve.distances, dashed, color=colours[names.index(plain)], lw=1.6, label=name)
        ax.axhline(task.goal, color="0.6", lw=0.8, ls=":")
        ax.set(title=f"{task.objective}: {task.data}", xlabel="seconds", ylim=(task.goal / 3, None))
        ax.set_ylabel("relative error" if task.goal == GOAL else "objective above the least, relative")
    handles = {label: line for ax in axes.flat for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(curves(), sys.argv[1])
