"""Recommendations from clicks, plays and purchases."""

from dataclasses import replace
from typing import Any, Self

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.data import Dataset, Observations
from bifactor.data.seen_items import Pairs
from bifactor.errors import InputError
from bifactor.estimators.base import MatrixEstimator
from bifactor.estimators.long_form import Column
from bifactor.estimators.validation import (
    is_long,
    note_columns,
    store_or_none,
    validate_choices,
)
from bifactor.models.completion.fitting import CompletionSettings, validate_settings
from bifactor.models.model import Model
from bifactor.models.recommender.explain import nearest
from bifactor.models.recommender.fitting import fit_clicks
from bifactor.models.recommender.hyperparameters import Hyperparameters, require_click_settings
from bifactor.models.recommender.model import ColdUserRecommender, held_out_ranking
from bifactor.models.recommender.rows import click_rows, items_of
from bifactor.models.recommender.weights import CountsToClicks, lines_of, matrix_of
from bifactor.models.top_k import RankingCriterion, recommend_names
from bifactor.running.search import Search


class Recommender(MatrixEstimator):
    """Recommends columns (items) to rows (users) from the choices of all users: uᵢ·vⱼ ranks the columns.

    For clicks, plays and purchases, where only positive choices are known. Chosen entries are fitted as 1, and all
    others as 0 with a small weight, which costs nothing: sums over all entries are computed from the factors alone. For
    ratings, which express dislikes too, use `MatrixCompletion`.

    Parameters
    ----------
    n_components : int
        The rank, reduced to the smaller side of the matrix if necessary. More components only cost time.
    unobserved : float or "auto"
        Weight of an entry that was not chosen, where a single choice has the weight 1 unless `sample_weight` says
        otherwise. "auto" takes the one that best ranks held-out positives of held-out users, by NDCG; it is relative to
        the mean weight of choices.
    ridge : float or "auto"
        The ridge per entry: that of a row is ridge times the sum of its weights. "auto" chooses it in the same way.
    item_share : float or "auto"
        Share of item-to-item regression in the scores, at least 0 and below 1; it helps most if users have few choices
        among few items. "auto" chooses it in the same way, after the others; 0 turns it off.
    item_ridge : float or "auto"
        The ridge of that regression.
    solver : Solver, optional
        By default that of `bifactor.solve`.
    max_iter, tol
        Maximum number of iterations and tolerance of the fit; rankings converge long before the objective does.
    warm_start : bool
        Start from the previous fit if it has the same shape and rank.
    user_features, item_features : matrix, frame or path, optional
        Features of users and items, such as ages and genres: the prior mean of uᵢ is then fᵢA for a user with the
        features fᵢ, and that of vⱼ likewise. Users and items without choices are ranked by their features alone.
        A matrix, sparse or dense, or a frame has one line for each row (column) of X; further lines are rows (columns)
        beyond the last. For `fit_long` it is a frame or file with the names in the column that has the same header as
        in the data, or else in the first; names that do not occur in the data are added. Numbers are
        standardised, so their zero and unit do not matter. In frames and files, words give one feature per category; a
        cell may hold several categories separated by bars, as in Action|Comedy. Weights are chosen without features.
    executor : Executor, optional
        Where passes over a block store run: `executors.Streamed(memory="2GB")` on this machine, which is the default,
        or `executors.Dask(client)` on others. Data in memory do not need one.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    verbose : int
        1 shows what is being chosen and fitted, with counts and an upper bound of the remaining time.
    random_state : int, RandomState or None
        Seed of the start and of the held-out choices.

    Attributes
    ----------
    components_, row_factors_ : arrays
        The v of each column, as columns, and the u of each row. Item-to-item scores double their number.
    n_components_ : int
        Number of components.
    unobserved_, ridge_, item_share_, item_ridge_ : float
        The values used.
    weight_search_ : Search or None
        How they were chosen: settings, and the NDCG of held-out choices.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        Names of rows and columns, after `fit_long`.
    fit_ : Fit
        The fit as an object independent of scikit-learn: see `bifactor.models.Fit`.

    References
    ----------
    Y. Hu, Y. Koren and C. Volinsky, Collaborative filtering for implicit feedback datasets, ICDM 2008.
    S. Rendle, W. Krichene, L. Zhang and Y. Koren, Revisiting the performance of iALS on item recommendation benchmarks,
    RecSys 2022.
    H. Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019.
    """

    def __init__(
        self,
        n_components: int = 128,
        *,
        unobserved: float | str = "auto",
        ridge: float | str = "auto",
        item_share: float | str = "auto",
        item_ridge: float | str = "auto",
        solver: Any = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        user_features: Any = None,
        item_features: Any = None,
        executor: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.unobserved = unobserved
        self.ridge = ridge
        self.item_share = item_share
        self.item_ridge = item_ridge
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.user_features = user_features
        self.item_features = item_features
        self.executor = executor
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def unobserved_(self) -> float:
        return click_rows(self.model_).unobserved

    @property
    def item_share_(self) -> float:
        items = items_of(self.model_)
        return 0.0 if items is None else items.share

    @property
    def item_ridge_(self) -> float:
        items = items_of(self.model_)
        return 0.0 if items is None else items.ridge

    @property
    def weight_search_(self) -> Search | None:
        return self.model_.search

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to choices.

        Parameters
        ----------
        X : sparse matrix, array, frame, tuple, or BlockStore
            Users × items. Entries above 0 were chosen; counts r > 1, such as plays, weigh 1 + log r. Or (rows, cols),
            or (rows, cols, counts), numbered from 0. A frame with a line for each choice is treated as by `fit_long`.
            A `bifactor.data.BlockStore`, or its folder, is read block by block on `executor`, without item-to-item
            scores.
        y : ignored
        sample_weight : array, optional
            One weight per row, or a matrix like X; for pairs and triples, one for each.
        """
        store = store_or_none(X)
        if store is not None:
            return self._fit_store(self._settings(), store, sample_weight)
        if is_long(X):
            if sample_weight is not None:
                raise InputError("sample_weight is not used for a frame of choices. Use fit_long with a weight column.")
            return self.fit_long(X)
        settings = self._settings()
        return self._fit_observations(settings, X, validate_choices(self, X, sample_weight, reset=True))

    def fit_long(
        self,
        source: Any,
        *,
        row: Column = None,
        col: Column = None,
        value: Column = None,
        weight: Column = None,
        text_names: bool = False,
    ) -> Self:
        """Fit to a file or a frame with one line for each choice: a user and an item, with names of any type.

        Two lines with the same names count as two choices.

        Parameters
        ----------
        source : frame or path
            See `bifactor.data.read`.
        row, col : str, optional
            Columns with users and items. By default those with common names, such as user and item, or the first
            two.
        value : str, optional
            Column with counts, such as plays. By default there is none, and each line is one choice.
        weight : str, optional
            Column with weights, for example larger ones for recent choices.
        text_names : bool
            Keep names as text, even if all of them are numbers, so that users with other names can be added later.
        """
        settings, store = self._settings(), store_or_none(source, long=True)
        if store is not None:
            return self._fit_store(settings, store)
        data = lines_of(source, row, col, value, weight, text_names=text_names)
        note_columns(self, data.shape[1])
        return self._fit_observations(settings, source, data)

    def recommend(
        self, rows: Any = None, n: int = 10, *, filter_seen: bool = True, items: Any = None, features: Any = None
    ) -> tuple[Array, Array]:
        """For each row, the n columns that it will most likely choose, best first, and their scores.

        Parameters
        ----------
        rows : sequence, or matrix
            Row numbers, or names after `fit_long`; by default all. A matrix, preferably sparse, contains the histories
            of new users, one in each row, whose factors are computed from them. Users without choices and features get
            the most popular columns, with the share of rows that chose each as scores, and a warning.
        n : int
            Number of columns.
        filter_seen : bool
            Leave out columns chosen before.
        items : sequence, optional
            Columns to choose from, or a mask of all columns; by default all.
        features : matrix, frame or path, optional
            Features of the new users, in the same form as `user_features`.
        """
        check_is_fitted(self, "model_")
        if not sparse.issparse(rows) and getattr(rows, "ndim", 1) != 2:
            if features is not None:
                raise InputError("features are for new users with histories, not for rows of the fit. Leave them out.")
            return self.fit_.recommend(rows, n, filter_seen=filter_seen, items=items)
        histories = self._histories(rows)
        given = self._features(features, histories.shape[0])
        factors = ColdUserRecommender(self.model_).factors(histories, given)
        return recommend_names(
            self.fit_, RankingCriterion(factors, self.model_.V), Pairs.stored(histories), n, filter_seen, items
        )

    def transform(self, X: Any, features: Any = None) -> Array:
        """Factors of users who were not in the fit, from their choices and, optionally, their features."""
        check_is_fitted(self, "model_")
        histories = self._histories(X)
        return ColdUserRecommender(self.model_).factors(histories, self._features(features, histories.shape[0]))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the factors of the rows."""
        return self.fit(X, sample_weight=sample_weight).row_factors_

    def similar_items(self, items: Any, n: int = 10) -> tuple[Array, Array]:
        """For each of these columns, the n others chosen by the most similar rows, and the cosines of their factors."""
        check_is_fitted(self, "model_")
        return nearest(self.fit_.cols, self.model_.V, items, n, "column")

    def similar_users(self, users: Any, n: int = 10) -> tuple[Array, Array]:
        """For each of these rows, the n others with the most similar choices, and the cosines of their factors."""
        check_is_fitted(self, "model_")
        return nearest(self.fit_.rows, self.model_.U, users, n, "row")

    def explain(self, row: Any, col: Any, n: int = 10) -> tuple[Array, Array, float]:
        """Chosen columns of a row that contribute most to the score of another column, and their contributions.

        The third result is the rest of the score that `predict` returns. See `bifactor.models.Fit.explain`.
        """
        check_is_fitted(self, "model_")
        return self.fit_.explain(row, col, n)

    def score(self, X: Any, y: Any = None) -> float:
        """NDCG@10: a fifth of each row of X is held out, and ranked by factors computed from the rest."""
        check_is_fitted(self, "model_")
        return held_out_ranking(self.model_, self._histories(X))

    def score_long(
        self,
        source: Any,
        *,
        row: Column = None,
        col: Column = None,
        value: Column = None,
        weight: Column = None,
        unknown: str = "mean",
    ) -> float:
        """NDCG@10 as in `score`, for a file or frame with one line for each choice; new items are left out."""
        data = self._read_long(source, row, col, value, weight)
        assert data.column_names is not None
        along = self.fit_.places(data.column_names.values, "column")
        stay = data.part(along[data.cols] >= 0)
        part = replace(stay, cols=along[stay.cols], shape=(data.shape[0], len(self.fit_.cols)))
        return held_out_ranking(self.model_, matrix_of(self._encode(part)))

    def predict(self, rows: Any, cols: Any, unknown: str = "mean") -> Array:
        """Scores of the entries (rows[t], cols[t]): near 1 for chosen entries, near 0 for most others."""
        return self.decision_function(rows, cols, unknown)

    def _settings(self) -> CompletionSettings:
        require_click_settings(self.n_components, self.unobserved, self.ridge, self.item_share, self.item_ridge)
        names = ["n_components", "ridge", "solver", "max_iter", "tol", "verbose", "random_state"]
        return validate_settings(loss="squared", offsets=False, **{name: getattr(self, name) for name in names})

    def _fit_model(self, data: Dataset, settings: CompletionSettings, start: Model | None) -> Model:
        return fit_clicks(data, settings, start, self._choices())

    def _find_recoding(self, data: Dataset) -> CountsToClicks:
        return CountsToClicks()

    def _choices(self) -> Hyperparameters:
        named = (self.unobserved, self.ridge, self.item_share, self.item_ridge)
        return Hyperparameters(*(None if a == "auto" else float(a) for a in named))

    def _histories(self, X: Any) -> sparse.csr_array:
        return matrix_of(self._encode(validate_choices(self, X, None, reset=False)))

    def _read_long(self, source: Any, row: Any, col: Any, value: Any, weight: Any) -> Observations:
        self._require_names()
        return lines_of(source, row, col, value, weight, self._header)
