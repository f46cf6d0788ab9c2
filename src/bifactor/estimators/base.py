"""Base classes of estimators that fit factors to entries of a matrix: names, new rows, error bars, saving, cards."""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, generator
from bifactor.data import BlockDataset, Dataset, Names, Observations, Recoding, read
from bifactor.data.observations import is_triples
from bifactor.display.card import card, charts, figures
from bifactor.display.html import table
from bifactor.display.svg import CARD, bar_chart
from bifactor.errors import InputError
from bifactor.estimators.callbacks import CallbackSupportMixin, fit_watched
from bifactor.estimators.long_form import Column, LongFormMixin
from bifactor.estimators.side_information import FeatureReader, with_features
from bifactor.estimators.validation import (
    frame_header,
    note_columns,
    observations,
    require_in_memory,
    require_small,
    store_or_none,
    validate_factors,
)
from bifactor.executors import Executor
from bifactor.models.completion.fitting import CompletionSettings, fit_model, seed_of
from bifactor.models.fit import Fit
from bifactor.models.metrics import deviance_explained, left_out_scores, mean_noise
from bifactor.models.model import Model, Prediction
from bifactor.models.partial_fit import update_model
from bifactor.operators.entries import places
from bifactor.running.result import Status, run_card, status_line
from bifactor.validation import is_count, require_flag, require_instance


class FromStore:
    """Fits to data in blocks; a mixin for `MatrixEstimator`."""

    executor: Any
    _readers: tuple[FeatureReader | None, FeatureReader | None]
    """What reads features of rows and of columns."""

    def _fit_store(self: Any, settings: CompletionSettings, store: BlockDataset, sample_weight: Any = None) -> Any:
        if sample_weight is not None:
            raise InputError("A block store contains its own weights. Leave out sample_weight.")
        for name in ("user_features", "item_features"):
            if getattr(self, name, None) is not None:
                raise InputError(f"{name} needs data in memory, but these are in blocks. Leave it out.")
        if self.executor is not None:
            require_instance(self.executor, Executor, "executor")
        note_columns(self, store.shape[1])
        self._readers = (None, None)
        return self._fit_data(replace(settings, executor=self.executor), store, self._recoded(store))


# Uncertainty of predictions, for fits with a posterior.


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
        lower, upper = self._at(rows, cols, unknown).interval(level)
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
            return self._at(rows, cols).sample(n_samples, noise, rng)
        check_is_fitted(self, "model_")
        self.model_.distribution()
        data = require_in_memory(self.observations_)
        require_small((n_samples * data.shape[0], data.shape[1]))
        matrices = Prediction(self.model_).sample(n_samples, noise, rng)
        if noise:
            matrices[:, data.rows, data.cols] = data.values
        return matrices


# scikit-learn's warning about fits that did not converge.


def warn_unless_converged(model: Model) -> None:
    status = model.result.status
    asked = status is Status.CALLBACK or status is Status.PLATEAU  # what the callback or tol wanted
    if not (status.converged or asked):
        warnings.warn(f"The fit has {status}.", ConvergenceWarning, stacklevel=3)


# Estimators in notebooks: scikit-learn's diagram, and below it a card of the fit.

COLUMNS = 12
"""Number of columns of a table listed in a card."""


class CardMixin:
    """Mixin to be placed before scikit-learn's `BaseEstimator`."""

    def _card(self) -> str:
        """Card of the fit; empty before `fit`."""
        model = getattr(self, "model_", None)
        return "" if model is None else model.html(f"{type(self).__name__}, fitted")

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]  # an AttributeError if scikit-learn should show text
        return lambda: diagram() + self._card()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._card()
        return bundle


def state_card(estimator: Any) -> str:
    """Card of a state of qubits."""
    goodness = estimator.goodness_of_fit_
    p = None if goodness is None or goodness.p_value is None else f"{goodness.p_value:.3g}"
    shown = [
        (estimator.n_qubits_, "qubits"),
        (estimator.rank_, "rank"),
        (f"{float(np.sum(estimator.eigenvalues_**2)):.4g}", "purity tr ρ²"),
        (p, "p-value of the fit"),
    ]
    state = bar_chart(estimator.eigenvalues_, "eigenvector", "eigenvalue of ρ", CARD)
    return run_card("StateTomography, fitted", "ρ = UUᴴ", estimator.result_, shown, [state])


def factors_card(estimator: Any) -> str:
    """Card of a factor analysis."""
    shown = [
        (estimator.n_components_, "components"),
        (len(estimator.mean_), "columns"),
        (f"{estimator.bound_:.6g}", "bound of the log evidence"),
        (f"{estimator.n_iter_:,}", "iterations"),
    ]
    variances = np.sum(estimator.components_**2, axis=1)
    pictures = [
        bar_chart(variances, "component", "variance explained", CARD),
        bar_chart(estimator.noise_variance_, "column", "noise variance", CARD),
    ]
    status = status_line(estimator.result_.status)
    return card("FactorAnalysis, fitted", "", status, figures(shown), charts(*pictures, *estimator.result_.pictures()))


def table_card(estimator: Any) -> str:
    """Card of a table, column by column."""
    lines = [
        (name, estimator.kinds_[name], score["metric"], f"{score['error']:.4g}", f"{score['baseline']:.4g}")
        for name, score in estimator.scores_.items()
    ]
    more = f" The first {COLUMNS} columns are shown." if len(lines) > COLUMNS else ""
    detail = f"Error of hidden cells, and that of a constant prediction.{more}"
    listed = table(("column", "kind", "metric", "error", "baseline"), lines[:COLUMNS])
    return card("TableImputer, fitted", detail, status_line(estimator.status_), listed)


def picture_card(doubt: Array) -> str:
    """Card of a completed picture, from its uncertainty."""
    holes = doubt > 0
    mean = f"±{float(np.mean(doubt[holes])):.3g}" if holes.any() else None
    shown = [
        ("×".join(map(str, doubt.shape)), "picture"),
        (f"{np.mean(holes):.1%}", "filled in"),
        (mean, "uncertainty"),
    ]
    return card("ImageCompletion, fitted", "", figures(shown))


class MatrixEstimator(CardMixin, FromStore, LongFormMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fits factors to entries of a matrix."""

    def _fit_observations(self, settings: CompletionSettings, X: Any, data: Observations) -> Self:
        if data.values.size == 0:
            raise InputError("No entry of X is known. Pass at least one known entry.")
        encoded = self._recoded(data).lines(np.ones(data.shape[0], bool))
        return self._fit_data(settings, X, self._with_features(encoded))

    def _fit_data(self, settings: CompletionSettings, X: Any, data: Dataset) -> Self:
        """Fit to data with the values of the loss."""
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, data, settings, start, self._fit_model).with_recoding(self._recoding)
        if self._readers[0] is not None and self._readers[0].standard is not None:
            model = replace(model, rows=model.rows.with_feature_units(self._readers[0].standard))
        self._set_model(model, data)
        self._set_run_attributes(model, None if model.posterior is None else mean_noise(model.posterior, data))
        return self

    def _set_run_attributes(self, model: Model, noise: float | None) -> None:
        """Set the attributes that describe the run."""
        self.result_, self.n_iter_, self.ridge_ = model.result, model.result.n_iter, model.rows.ridge
        sought = None if model.search is None else model.search.what
        self.ridge_search_ = model.search if sought == "ridge" else None
        self.noise_search_ = model.search if sought == "noise" else None
        self.evidence_ = None if model.posterior is None else -model.result.objective
        self.noise_ = noise
        warn_unless_converged(model)

    def _with_features(self, data: Observations) -> Observations:
        """Add the features of the estimator, and the rows and columns that only features name."""
        users, items = (getattr(self, name, None) for name in ("user_features", "item_features"))
        columns = data.shape[1]
        data, self._readers = with_features(data, users, items)
        if data.shape[1] > columns:
            note_columns(self, data.shape[1])
        return data

    def _features(self, given: Any, rows: int | Names) -> sparse.csr_array | None:
        if given is None:
            return None
        reader = self._readers[0] if self.observations_.in_memory else None
        if reader is None:
            raise InputError("The fit has no features of rows. Leave them out, or fit with user_features.")
        reader = replace(reader, what="features")
        return reader.named(given, rows) if isinstance(rows, Names) else reader.matrix(given, rows)

    def _fit_model(self, data: Dataset, settings: CompletionSettings, start: Model | None) -> Model:
        return fit_model(data, settings, start)

    def _find_recoding(self, data: Dataset) -> Recoding | None:
        """How the values of some data to fit become those of the loss; None for no change."""
        return None

    def _recoded(self, data: Dataset) -> Dataset:
        """Data to fit, with the values of the loss."""
        self._recoding = self._find_recoding(data)
        return data if self._recoding is None else data.recode(self._recoding)

    def _encode(self, data: Observations) -> Observations:
        """More data, with the values of the loss."""
        return self.model_.link.encode(data)

    def _set_model(self, model: Model, data: Dataset) -> None:
        """Store a model, and the data that it was fitted to."""
        extra = model.fixed_columns
        self.model_, self.observations_ = model, data
        self.fit_ = Fit.of(model, data)
        self.row_names_, self.column_names_ = data.row_names, data.column_names
        self.components_ = model.V[:, extra:].T
        self.row_factors_ = model.U[:, extra:]
        self.n_components_ = model.rank
        self.intercept_ = model.link.intercept
        self.row_offsets_: Array = model.U[:, 1] if model.offsets else np.zeros(model.U.shape[0], model.U.dtype)
        self.column_offsets_: Array = model.V[:, 0] if model.offsets else np.zeros(model.V.shape[0], model.V.dtype)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add new rows, and new columns if X is triples, without fitting the others again.

        A table contains new rows. Triples may contain existing rows, whose factors are then computed again from all
        their entries, and rows and columns beyond the last. On an estimator that is not fitted, this is `fit`.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, sample_weight=sample_weight)
        if self.row_names_ is not None:
            raise InputError("This estimator was fitted to names. Use partial_fit_long.")
        old = require_in_memory(self.observations_)
        if is_triples(X):
            new = observations(BaseEstimator(), X, sample_weight)
        else:
            new = observations(self, X, sample_weight, reset=False)
            new = replace(new, rows=new.rows + old.shape[0], shape=(old.shape[0] + new.shape[0], old.shape[1]))
        return self._update(new)

    def _update(self, new: Observations) -> Self:
        model, data = update_model(self.model_, require_in_memory(self.observations_), self._encode(new))
        if data.shape[1] > self.n_features_in_:
            note_columns(self, data.shape[1])
        self._set_model(model, data)
        return self

    def decision_function(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """z at the entries (rows[t], cols[t]), before the link of the loss.

        Without `cols`, `rows` is a frame of pairs after `fit_long`, or a table of new rows as for `transform`; then z
        is returned in all columns. `unknown` says how to treat names that were not in the fit, see `predict`.
        """
        return self._at(rows, cols, unknown).warned().scores

    def _at(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Prediction:
        """The prediction at pairs of numbers or names, at the pairs in a frame, or in all cells of new rows."""
        check_is_fitted(self, "model_")
        if cols is None:
            if self.row_names_ is None or not self._has_pairs(frame_header(rows)):
                data = self._encode(observations(self, rows, reset=False))
                require_small(data.shape)
                return Prediction(self.model_.of_rows(data))
            rows, cols = self._pairs_of(rows)
        if self.row_names_ is not None:
            return self.fit_.at(rows, cols, unknown)
        i, j = (np.atleast_1d(np.asarray(side)) for side in (rows, cols))
        i, j = np.broadcast_arrays(i, j) if 1 in (i.size, j.size) else (i, j)
        cells = places(i, j, self.model_.factors.shape) if i.size or j.size else (i, j)
        return Prediction(self.model_, cells, single=np.ndim(rows) == np.ndim(cols) == 0)

    def _has_pairs(self, header: list[str] | None) -> bool:
        """Whether a frame contains pairs: by its column names, or because its columns are not those of the matrix."""
        if header is None:
            return False
        return set((self._header or ())[:2]) <= set(header) or len(header) != self.n_features_in_

    def _pairs_of(self, frame: Any, row: Column = None, col: Column = None) -> tuple[Array, Array]:
        """Names in each line of a frame, by default in the same columns as in the fit."""
        pairs = read(frame, row=row, col=col, values=False, hints=self._header)
        assert pairs.row_names is not None
        assert pairs.column_names is not None
        return pairs.row_names[pairs.rows], pairs.column_names[pairs.cols]

    def transform(self, X: Any, features: Any = None) -> Array:
        """Factors of new rows, from their known entries: b and u, or u alone without offsets.

        The factors of columns are fixed, and each row is fitted with the loss and ridge of the fit. `features` are the
        features of the rows of X, in the same form as in the fit; they alone determine the factors of a row without
        known entries.
        """
        check_is_fitted(self, "model_")
        data = self._encode(observations(self, X, reset=False))
        data = replace(data, row_features=self._features(features, data.shape[0]))
        return self.model_.fold_in(data).factors[:, int(self.model_.offsets) :]

    def inverse_transform(self, Z: Any) -> Array:
        """Predictions from factors of rows, in all columns."""
        check_is_fitted(self, "model_")
        first = int(self.model_.offsets)
        Z = validate_factors(Z, self.model_.V.shape[1] - first)
        require_small((Z.shape[0], self.model_.V.shape[0]))
        U = np.hstack([np.ones((Z.shape[0], first), Z.dtype), Z])
        return Prediction(self.model_.with_row_factors(U)).mean

    def save(self, folder: str | os.PathLike[str], *, force: bool = False, error_bars: bool = True) -> None:
        """Write the fit to a new folder, which `bifactor.load` and the command line can read.

        Parameters
        ----------
        folder : path
            The folder to create.
        force : bool
            Replace an existing fit.
        error_bars : bool
            Keep the covariances of a posterior, (m + n)(r + 1)(r + 2)/2 numbers, which error bars need.
        """
        check_is_fitted(self, "model_")
        told = {name: value for name, value in self.get_params().items() if isinstance(value, (str, int, float))}
        origin = self.observations_.origin
        card: dict[str, Any] = {"estimator": type(self).__name__, "settings": told}
        if origin is not None:
            card["data"] = {"columns": list(origin.header), "layout": origin.layout}
        replace(self.fit_, card=card).save(folder, force=force, error_bars=error_bars)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` returns."""
        check_is_fitted(self, "model_")
        name = type(self).__name__.lower()
        offset = [f"{name}_offset"] if self.model_.offsets else []
        return np.array([*offset, *(f"{name}{k}" for k in range(self.n_components_))], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Base class of estimators that complete matrices.


def warn_of_clicks(data: Observations) -> None:
    """Warn if all known entries are 1 and most are unknown: these look like clicks, which completion cannot rank."""
    if 1 < data.values.size < 0.5 * data.shape[0] * data.shape[1] and np.all(data.values == 1):
        warnings.warn(
            f"All {data.values.size:,} known entries are 1, and so will be every prediction. For clicks, plays and "
            "purchases, use bifactor.Recommender.",
            UserWarning,
            stacklevel=4,
        )


class Completed:
    """`fit_transform`, in a class of its own so that `set_output` does not name its columns as those of `transform`."""

    def fit_transform(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the completed matrix as an array: known entries as given, predictions elsewhere."""
        settings = self._settings()
        data = observations(self, X, sample_weight)
        require_small(data.shape)
        return self._fit_observations(settings, X, data).complete()


class Completion(Completed, MatrixEstimator):
    """Fits a matrix to some of its entries, and predicts the others."""

    def _set_run_attributes(self, model: Model, noise: float | None) -> None:
        super()._set_run_attributes(model, noise)
        self.offset_ridge_ = model.rows.offset_ridge

    def _fit_observations(self, settings: CompletionSettings, X: Any, data: Observations) -> Self:
        warn_of_clicks(data)
        return super()._fit_observations(settings, X, data)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the known entries of X.

        Parameters
        ----------
        X : array, frame, sparse matrix, tuple, or BlockStore
            An array or frame with NaN for missing entries; a sparse matrix, whose stored entries are known, zeros
            included; a masked array; or triples (rows, cols, values) numbered from 0. For a frame or file with one line
            per entry, use `fit_long`. Data that do not fit into memory are passed as a `bifactor.data.BlockStore`,
            or its folder; they are read block by block on `executor`.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry; an entry with weight 0 counts as missing.
        """
        settings, store = self._settings(), store_or_none(X)
        if store is not None:
            return self._fit_store(settings, store, sample_weight)
        return self._fit_observations(settings, X, observations(self, X, sample_weight))

    def complete(self) -> Array:
        """The completed matrix of the fit; an entry that was measured twice has the last value."""
        check_is_fitted(self, "model_")
        data = require_in_memory(self.observations_)
        require_small(data.shape)
        full = Prediction(self.model_).mean
        full[data.rows, data.cols] = self.model_.link.decode_values(data.values)
        return full

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        *,
        filter_seen: bool = True,
        items: Any = None,
        by: str = "mean",
        level: float = 0.9,
        random_state: Any = None,
    ) -> tuple[Array, Array]:
        """For each row, the n columns with the largest predictions, best first, and these predictions.

        With `by="lower"`, columns are ranked by a lower bound that holds with probability `level`; with `by="draw"`, by
        one draw from the posterior, with the seed `random_state`. See `bifactor.models.Fit.recommend`. Rows and columns
        are given by number, or by name after `fit_long`.
        """
        check_is_fitted(self, "model_")
        asked = {"by": by, "level": level, "random_state": random_state}
        return self.fit_.recommend(rows, n, filter_seen=filter_seen, items=items, **asked)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Fraction of deviance explained, D²: R² for squared errors. 1 is perfect, 0 is as good as a constant.

        Triples are predicted by the fit. A table contains new rows: a fifth of its entries at a time is predicted by
        factors that were found from the other four fifths.
        """
        check_is_fitted(self, "model_")
        data = self._encode(observations(self, X, sample_weight, reset=False))
        if data.values.size == 0:
            raise InputError("No entry of X is known, so the score is undefined. Pass at least one known entry.")
        if is_triples(X):
            return deviance_explained(self.model_, data, self.model_.scores(data.rows, data.cols))
        return deviance_explained(self.model_, data, left_out_scores(self.model_, data))
