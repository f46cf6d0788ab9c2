"""A smooth first guess of unknown pixels: a thin plate through the known ones."""

from types import ModuleType

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels import find
from bifactor.pictures.levels import settled

LINEAR = np.array([0.0, 0.75, 0.25, 0.0])
"""Weights of the cells −1, 0, 1, 2 a quarter of the way from cell 0 to cell 1."""

TENSION = 0.02
"""The weight of slopes relative to curvature: holes beyond 1/√0.02 = 7 pixels are spanned as by a soap film."""


def smooth(planes: Array, known: Array) -> Array:
    """The picture (C×H×W, single precision) with its unknown pixels (H×W, the same in all channels) filled in.

    This nearly minimises ‖Δx‖² + 0.02⟨x, −Δx⟩ over the unknown pixels: the picture is halved until nothing is unknown;
    then each size is filled in from the smaller one and smoothed as a plate. Values at unknown pixels are ignored, so
    they may be NaN.
    """
    given, known = settled(planes, known)
    filled = np.array(given)
    fill(filled, known)
    return filled


def fill(planes: Array, known: Array) -> None:
    """Do the same as `smooth` in place, for arrays returned by `settled`."""
    _fill(planes, known, TENSION, find("plate", planes.dtype, planes.size))


def _fill(planes: Array, known: Array, tension: float, kernels: ModuleType) -> None:
    if known.all():
        return
    cells, some = kernels.halve(planes, known)
    # Cells are twice as far apart: slopes count a quarter there, and curvature a sixteenth.
    _fill(cells, some, 4 * tension, kernels)
    kernels.double(cells, LINEAR, known, planes)
    kernels.bend(planes, known, tension)
