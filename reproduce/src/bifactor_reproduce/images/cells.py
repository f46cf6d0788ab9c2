"""Photographs completed from some of their pixels: which are taken, the algorithms, and one cell."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import median

import numpy as np

from bifactor.applications.pictures.files import pictures_in, psnr, random_mask, read_grey, shrunk
from bifactor.arrays import Array
from bifactor.inits import Spectral
from bifactor.linear_map import Dense
from bifactor.losses import Squared
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problems.objective import Problem
from bifactor.solvers import BFGD, PCG, SVP, ProcrustesFlow, Solver
from bifactor.steps import StronglyConvex
from bifactor.svd import truncated_svd
from bifactor_reproduce.harness.calibrated import Calibrated
from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.harness.timed import timed
from bifactor_reproduce.images.thumbnails import encoded
from bifactor_reproduce.noiselets.cells import CALIBRATED, PRINTED, QUARTER

FLOW = "Procrustes Flow"

RIDGES = RIDGED, OURS_RIDGED = "BFGD, calibrated step, ridge", "PCG, ridge"

BEST = "whole photograph, cut to the rank"
"""No algorithm: the ceiling, and the pictures that all algorithms have in common."""

START = 10_000
"""Added to the seed of a choice of pixels for that of the start, which must not know them."""

STAND_INS = ("sunset", "elephants-painting", "milkyway-eso0932a")
"""Beginnings of the names of photographs like the paper's three, in its order."""


@dataclass(frozen=True)
class PhotoCell:
    """One algorithm on one choice of pixels of one photograph."""

    photo: str
    """Name of the file."""
    content: str
    """SHA-256 of the file."""
    side: int | None
    """Pixels of the longer side, about: means over whole squares are taken. None leaves the photograph as it is."""
    rank: int
    """At most; less where the pixels would be fewer than `freedom` for each degree of freedom."""
    freedom: float
    share: float
    method: str
    ridge: float
    """0 for none."""
    seed: int
    tol: float
    max_iter: int
    budget: float
    shown: bool
    """Whether the picture is kept with its numbers."""


@dataclass(frozen=True)
class Summary:
    """One algorithm on one photograph: medians over the choices of pixels."""

    psnr: float
    best: float
    """The highest PSNR on the way."""
    against: float
    """PSNR against the photograph cut to the rank."""
    seconds: float
    iterations: float
    stopped: str
    """How the runs ended; each way once."""
    outcomes: dict[int, Outcome]
    """By seeds."""


def chosen(folder: Path) -> list[Path]:
    """The photographs like the paper's where all three are there, else the first three of the folder by name."""
    pictures = pictures_in(folder)
    found = [[path for path in pictures if path.name.startswith(name)] for name in STAND_INS]
    return [paths[0] for paths in found] if all(found) else pictures[: len(STAND_INS)]


def summaries(finished: Sequence[Finished[PhotoCell]]) -> dict[str, dict[str, Summary]]:
    """By photographs and algorithms, in the order of cells; the ceiling is not among them."""
    groups: dict[str, dict[str, dict[int, Outcome]]] = {}
    for cell, outcome in finished:
        of_photo = groups.setdefault(cell.photo, {})
        if cell.method != BEST:
            of_photo.setdefault(cell.method, {})[cell.seed] = outcome
    return {
        photo: {method: _summary(outcomes) for method, outcomes in methods.items()} for photo, methods in groups.items()
    }


def _summary(outcomes: dict[int, Outcome]) -> Summary:
    every = list(outcomes.values())
    return Summary(
        median(outcome["psnr"] for outcome in every),
        median(max(outcome["curve"]["psnr"]) for outcome in every),
        median(outcome["psnr_against_best"] for outcome in every),
        median(outcome["seconds"] for outcome in every),
        median(outcome["iterations"] for outcome in every),
        " or ".join(sorted({outcome["stopped"] for outcome in every})),
        outcomes,
    )


@dataclass(frozen=True)
class Photograph:
    """What all algorithms on one photograph have in common."""

    truth: Array
    best: Array
    """The photograph cut to the rank."""
    rank: int


@lru_cache(maxsize=1)
def photograph(path: Path, content: str, side: int | None, rank: int, freedom: float, share: float) -> Photograph:
    """Read and made smaller; kept for the next cell, which mostly is about the same one."""
    truth = read_grey(path)
    if side is not None:
        truth = shrunk(truth, max(round(max(truth.shape) / side), 1))
    rank = min(rank, fitting_rank(truth.shape, share, freedom))
    A, s, B = truncated_svd(Dense(truth), rank, np.random.default_rng(0))
    best = np.clip((A * s) @ B.T, 0, 1)
    for array in (truth, best):
        array.setflags(write=False)
    return Photograph(truth, best, rank)


def fitting_rank(shape: tuple[int, ...], share: float, freedom: float) -> int:
    """The rank r whose r(m + n − r) is nearest to the known pixels over `freedom`, at least 1."""
    m, n = shape
    half = (m + n) / 2
    limit = half - math.sqrt(max(half**2 - share * m * n / freedom, 0.0))
    return max(min(round(limit), m, n), 1)


def run_cell(cell: PhotoCell, folder: Path) -> Outcome:
    """PSNR against the photograph on the way and at the end, and what it cost."""
    photo = photograph(folder / cell.photo, cell.content, cell.side, cell.rank, cell.freedom, cell.share)
    truth, rank = photo.truth, photo.rank
    known = random_mask(truth.shape, cell.share, cell.seed)
    about: Outcome = {"shape": list(truth.shape), "rank": rank, "pixels": int(known.sum())}
    if cell.method == BEST:
        pictures = {"original": encoded(truth), "best": encoded(photo.best), "observed": encoded(truth, known)}
        return {**about, "psnr": psnr(photo.best, truth), "pictures": pictures}
    penalty = Ridge(cell.ridge) if cell.ridge else None
    problem = Problem(Squared(), *Entries.from_dense(truth, known), penalty=penalty)
    done = timed(
        problem,
        rank,
        SOLVERS[cell.method](problem.scale),
        Spectral(),
        max_iter=cell.max_iter,
        tol=cell.tol,
        error=partial(_psnr, truth),
        budget=cell.budget,
        seed=cell.seed + START,
    )
    found = np.clip(done.result.matrix(), 0, 1)
    outcome = {**about, **done.outcome, "psnr_against_best": psnr(found, photo.best)}
    outcome["psnr"], outcome["curve"]["psnr"] = outcome.pop("error"), outcome["curve"].pop("error")
    return {**outcome, "picture": encoded(found)} if cell.shown else outcome


def _psnr(truth: Array, U: Array, V: Array) -> float:
    return psnr(np.clip(U @ V.T, 0, 1), truth)


SOLVERS: dict[str, Callable[[float], Solver]] = {
    "SVP": lambda share: SVP(1.0),
    FLOW: lambda share: ProcrustesFlow(),
    PRINTED: lambda share: BFGD(StronglyConvex(L=share)),
    CALIBRATED: lambda share: BFGD(Calibrated(), QUARTER),
    RIDGED: lambda share: BFGD(Calibrated(), QUARTER),
    "PCG": lambda share: PCG(),
    OURS_RIDGED: lambda share: PCG(),
}
"""From ρ, the share of the pixels that is known."""
