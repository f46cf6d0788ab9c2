"""Uncertainty of predictions, for fits with a posterior."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, generator
from bifactor.errors import InputError
from bifactor.estimators.checked import frame_header
from bifactor.estimators.inputs import observations, require_small
from bifactor.estimators.stores import held
from bifactor.kernels.blas import matmul
from bifactor.models.settings import seed_of
from bifactor.solvers.variational.posterior import Posterior
from bifactor.validation import is_count, require_flag


class ErrorBars:
    """Intervals and draws; a mixin for subclasses of `Completion`."""

    def predict_interval(
        self: Any, rows: Any, cols: Any = None, level: float = 0.9, unknown: str = "mean"
    ) -> tuple[Array, Array]:
        """Lower and upper ends of intervals that contain new measurements with probability `level`.

        Parameters
        ----------
        rows, cols, unknown
            As for `predict`.
        level : float
            The probability, between 0 and 1. It is right if the model is: entries that are missing because of their
            value are not covered.
        """
        posterior, i, j, shape = self._doubt(rows, cols, unknown)
        ends = (self.model_.clipped(end + self.model_.intercept) for end in posterior.interval(i, j, level))
        lower, upper = (_shaped(end.astype(self.model_.U.dtype), shape) for end in ends)
        return lower, upper

    def sample(
        self: Any,
        n_samples: int = 1,
        rows: Any = None,
        cols: Any = None,
        *,
        noise: bool = True,
        random_state: Any = None,
    ) -> Array:
        """Draws from the posterior, along the first axis: of the whole matrix, or of some entries.

        A draw of the whole matrix keeps the known entries, as `complete` does; several draws are multiple imputations.
        The entries of a draw are joint: they come from one draw of all factors.

        Parameters
        ----------
        n_samples : int
            Number of draws.
        rows, cols
            Entries as for `predict`; by default the whole matrix.
        noise : bool
            Draw new measurements; if False, draw the matrix without noise, known entries included.
        random_state : int, RandomState, Generator or None
            Seed of the draws.
        """
        if not is_count(n_samples, 1):
            raise InputError(f"n_samples={n_samples!r} is not an integer ≥ 1. Pass the number of draws.")
        require_flag(noise, "noise")
        rng = generator(seed_of(random_state))
        if rows is not None:
            posterior, i, j, shape = self._doubt(rows, cols, "mean")
            drawn = [self._draw(posterior, i, j, noise, rng, whole=bool(shape)) for _ in range(n_samples)]
            return np.stack([_shaped(one, shape) for one in drawn])
        check_is_fitted(self, "model_")
        posterior, data = self.model_.posterior_or_advice(), held(self.observations_)
        require_small((n_samples * data.shape[0], data.shape[1]))
        i, j = _all(*data.shape)
        drawn = [self._draw(posterior, i, j, noise, rng, whole=True) for _ in range(n_samples)]
        matrices = np.stack(drawn).reshape((n_samples, *data.shape))
        if noise:
            matrices[:, data.rows, data.cols] = data.values
        return matrices

    def _draw(
        self: Any, posterior: Posterior, i: Array, j: Array, noise: bool, rng: np.random.Generator, whole: bool
    ) -> Array:
        """One draw at some entries; `whole` means that these are all of the matrix, row by row."""
        U, V = posterior.sample(rng)
        z = matmul(U, V.T).ravel() if whole else np.einsum("tk,tk->t", U[i], V[j])
        if noise:
            z = z + posterior.sample_noise(i, j, rng)
        return (z + self.model_.intercept).astype(self.model_.U.dtype)

    def _std(self: Any, rows: Any, cols: Any) -> Array:
        """Standard deviation of new measurements at the entries of `predict`."""
        posterior, i, j, shape = self._doubt(rows, cols, "mean")
        return _shaped(posterior.predictive_std(i, j).astype(self.model_.U.dtype), shape)

    def _doubt(self: Any, rows: Any, cols: Any, unknown: str) -> tuple[Posterior, Array, Array, tuple[int, ...] | None]:
        """The posterior, the entries that `predict` would return, and the shape of the result."""
        check_is_fitted(self, "model_")
        model = self.model_
        posterior = model.posterior_or_advice()
        if cols is None and not (self.row_names_ is not None and self._has_pairs(frame_header(rows))):
            data = self._encoded(observations(self, rows, reset=False), reset=False)
            require_small(data.shape)
            found = model.found(data, 0)[1]
            return replace(posterior, rows=found), *_all(*data.shape), data.shape
        single = () if cols is not None and np.ndim(rows) == np.ndim(cols) == 0 else None
        if self.row_names_ is not None:
            names = (rows, cols) if cols is not None else self._pairs_of(rows)
            return *model.doubt(*self.fit_.known_pairs(*names, unknown)), single
        i, j = (np.atleast_1d(np.asarray(side)) for side in (rows, cols))
        i, j = np.broadcast_arrays(i, j) if 1 in (i.size, j.size) else (i, j)
        return posterior, i, j, single


def _all(m: int, n: int) -> tuple[Array, Array]:
    """Rows and columns of all entries of a matrix, row by row."""
    return np.repeat(np.arange(m), n), np.tile(np.arange(n), m)


def _shaped(told: Array, shape: tuple[int, ...] | None) -> Array:
    return told if shape is None else told.reshape(shape)[()]
