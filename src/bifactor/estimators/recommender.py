"""Clicks, plays and purchases."""

from dataclasses import replace
from typing import Any, Self

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.choices import given_choices, is_long, require_settings
from bifactor.estimators.factorised import Factorised
from bifactor.estimators.inputs import note_columns
from bifactor.estimators.long_form import Column
from bifactor.models.choices import lines_of, matrix_of
from bifactor.models.chosen import ItemToItem
from bifactor.models.click_choices import Choices
from bifactor.models.click_fitting import fit_clicks
from bifactor.models.clicks import Strangers, as_choices, held_out_ranking
from bifactor.models.fitting import Settings
from bifactor.models.model import Model
from bifactor.models.neighbours import nearest
from bifactor.models.orders import Order
from bifactor.models.pairs import Pairs
from bifactor.models.recommending import recommended
from bifactor.models.settings import settings
from bifactor.tables import Observations


class Recommender(Factorised):
    """Recommends to users, the rows, what they may choose, by what all have chosen before: uᵢ·vⱼ ranks the columns.

    For clicks, plays and purchases, where all that is known is what was chosen. That is fitted as 1, and all other
    entries as 0 with a small weight, which costs nothing: sums over all entries are found from the factors alone. For
    ratings, which tell of dislikes too, there is `MatrixCompletion`.

    Parameters
    ----------
    n_components : int
        The rank, cut to the smaller side of the matrix where it is more. More do no harm but to time.
    unobserved : float or "auto"
        The weight of entries that were not chosen beside that of one that was. "auto" takes the one that best ranks
        positives held out of users who were held out, by NDCG.
    alpha : float or "auto"
        The ridge of one entry: a row's is alpha times the sum of the weights in it. "auto" chooses it in the same way.
    item_share : float or "auto"
        The share of scores by item-to-item regression, from 0 to below 1, which help most where users have few choices
        among few items. "auto" chooses it in the same way, after the others; 0 is for none.
    item_alpha : float or "auto"
        The ridge of that regression.
    solver : Solver, optional
        By default what `bifactor.solve` takes.
    max_iter, tol
        Of the fit; rankings rest long before the objective does.
    warm_start : bool
        Begin where the last fit of the same shape and rank ended.
    user_features, item_features : matrix, frame or path, optional
        What else is known of users and items, such as ages and genres: uᵢ is then expected at fᵢA for a user with the
        features fᵢ, and vⱼ likewise. Users and items of whom nothing else is known are recommended to, and recommended,
        by these alone. A matrix, sparse or dense, or a frame has one line for each row (column) of X; more lines stand
        for rows (columns) beyond the last. For `fit_long` it is a frame or file with the names in the column that is
        called as in the data, else in the first; names that are only there are added. Numbers are taken in units of
        their standard deviation from the mean, and words make a feature for each category, several of them in one cell
        where they stand between bars, as in Action|Comedy. In a matrix all is taken as it is; the units of features do
        not matter. Weights are chosen without features.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says.
    verbose : int
        1 shows what is chosen and fitted, with counts and the time that is left at most.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_, row_factors_ : arrays
        The v of each column, as columns, and the u of each row. Item-to-item scores have as many again.
    n_components_ : int
    unobserved_, alpha_, item_share_, item_alpha_ : float
        Those that were used.
    trials_ : tuple of Trial
        How they were chosen: settings, and the NDCG of what was held out.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        The names of rows and columns, after `fit_long`.
    fit_ : Fit
        What has been fitted, free of scikit-learn: see `bifactor.models.Fit`.

    References
    ----------
    Y. Hu, Y. Koren and C. Volinsky, Collaborative filtering for implicit feedback datasets, ICDM 2008.
    S. Rendle, W. Krichene, L. Zhang and Y. Koren, Revisiting the performance of iALS on item recommendation benchmarks,
    RecSys 2022.
    H. Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019.
    """

    def __init__(
        self,
        *,
        n_components: int = 128,
        unobserved: float | str = "auto",
        alpha: float | str = "auto",
        item_share: float | str = "auto",
        item_alpha: float | str = "auto",
        solver: Any = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        user_features: Any = None,
        item_features: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.unobserved = unobserved
        self.alpha = alpha
        self.item_share = item_share
        self.item_alpha = item_alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.user_features = user_features
        self.item_features = item_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to what was chosen.

        Parameters
        ----------
        X : sparse matrix, array, frame, or tuple
            Users × items. Entries above 0 were chosen; of counts r, such as plays, those above 1 weigh 1 + log r. Or
            (rows, cols), or (rows, cols, counts), that count from 0. A frame with a line for each choice is as for
            `fit_long`.
        y : ignored
        sample_weight : array, optional
            One weight per row, or a matrix like X; of pairs and triples, one for each.
        """
        if is_long(X):
            if sample_weight is not None:
                raise InputError("A frame with a line for each choice has its weights in a column. Use fit_long.")
            return self.fit_long(X)
        settings = self._settings()
        return self._fitted(settings, X, given_choices(self, X, sample_weight, reset=True))

    def fit_long(
        self, source: Any, *, row: Column = None, col: Column = None, value: Column = None, weight: Column = None
    ) -> Self:
        """Fit to a file or a frame with one line for each choice: a user and an item, by names of any kind.

        Two lines of the same names count as two.

        Parameters
        ----------
        source : frame or path
            See `bifactor.tables.read`.
        row, col : str, optional
            The columns with users and items. By default those with usual names, such as user and item, or the first
            two.
        value : str, optional
            The column with counts, such as plays. By default there is none, and each line is one choice.
        weight : str, optional
            The column with weights, such as how recent a choice was.
        """
        settings = self._settings()
        data = lines_of(source, row, col, value, weight)
        note_columns(self, data.shape[1])
        return self._fitted(settings, source, data)

    def recommend(
        self, rows: Any = None, n: int = 10, *, filter_seen: bool = True, items: Any = None, features: Any = None
    ) -> tuple[Array, Array]:
        """For each row the n columns that it will choose most likely, best first, and their scores.

        Parameters
        ----------
        rows : sequence, or matrix
            Numbers of rows, or names after `fit_long`; by default all. A matrix, best a sparse one, holds histories of
            others, one in each row, who are found from these. Those who have chosen nothing, and have no features, get
            the most popular columns, and as scores the share of rows that chose each; a warning says so.
        n : int
        filter_seen : bool
            Leave out what was chosen before.
        items : sequence, optional
            Columns to choose from, or a mask of all columns; by default all.
        features : matrix, frame or path, optional
            Of those whose histories these are, in the form that the fit had `user_features` in.
        """
        check_is_fitted(self, "model_")
        if not sparse.issparse(rows) and getattr(rows, "ndim", 1) != 2:
            if features is not None:
                raise InputError("features go with histories, and those in the fit have theirs. Leave them out.")
            return self.fit_.recommend(rows, n, filter_seen=filter_seen, items=items)
        histories = self._histories(rows)
        given = self._features(features, histories.shape[0])
        factors = Strangers(self.model_).factors(histories, given)
        return recommended(self.fit_, Order(factors, self.model_.V), Pairs.stored(histories), n, filter_seen, items)

    def transform(self, X: Any, features: Any = None) -> Array:
        """Factors of users who were not in the fit, from what they have chosen, and perhaps from their features."""
        check_is_fitted(self, "model_")
        histories = self._histories(X)
        return Strangers(self.model_).factors(histories, self._features(features, histories.shape[0]))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and the factors of the rows."""
        return self.fit(X, sample_weight=sample_weight).row_factors_

    def similar_items(self, items: Any, n: int = 10) -> tuple[Array, Array]:
        """For each of these columns the n others that are chosen by the same rows, and the cosines of their factors."""
        check_is_fitted(self, "model_")
        return nearest(self.fit_.cols, self.model_.V, items, n, "column")

    def similar_users(self, users: Any, n: int = 10) -> tuple[Array, Array]:
        """For each of these rows the n others that choose the same columns, and the cosines of their factors."""
        check_is_fitted(self, "model_")
        return nearest(self.fit_.rows, self.model_.U, users, n, "row")

    def explain(self, row: Any, col: Any, n: int = 10) -> tuple[Array, Array]:
        """Which columns that a row has chosen carry the score of another, most first, and how much each adds.

        With all columns that were chosen, the parts add up to the score, but for what features of the row add.
        """
        check_is_fitted(self, "model_")
        return self.fit_.explain(row, col, n)

    def score(self, X: Any, y: Any = None) -> float:
        """NDCG@10: of each row of X a fifth is held out, and ranked by factors that are found from the rest."""
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
        """The same for a file or frame with one line for each choice; items that were not in the fit are left out."""
        data = self._read_long(source, row, col, value, weight)
        assert data.column_names is not None
        along = self.fit_.places(data.column_names.values, "column")
        stay = data.part(along[data.cols] >= 0)
        part = replace(stay, cols=along[stay.cols], shape=(data.shape[0], len(self.fit_.cols)))
        return held_out_ranking(self.model_, matrix_of(self._encoded(part, reset=False)))

    def predict(self, rows: Any, cols: Any, unknown: str = "mean") -> Array:
        """Scores of the entries (rows[t], cols[t]): near 1 for what was chosen, near 0 for most others."""
        return self.decision_function(rows, cols, unknown)

    @property
    def unobserved_(self) -> float:
        assert self.model_.clicks is not None
        return self.model_.clicks.unobserved

    @property
    def item_share_(self) -> float:
        return 0.0 if self._items is None else self._items.share

    @property
    def item_alpha_(self) -> float:
        return 0.0 if self._items is None else self._items.alpha

    @property
    def _items(self) -> ItemToItem | None:
        assert self.model_.clicks is not None
        return self.model_.clicks.items

    @property
    def trials_(self) -> Any:
        assert self.model_.clicks is not None
        return self.model_.clicks.tried

    def _settings(self) -> Settings:
        require_settings(self.n_components, self.unobserved, self.alpha, self.item_share, self.item_alpha)
        names = ["n_components", "alpha", "solver", "max_iter", "tol", "verbose", "random_state"]
        return settings(loss="squared", offsets=False, **{name: getattr(self, name) for name in names})

    def _fit_model(self, data: Observations, settings: Settings, start: Model | None) -> Model:
        named = (self.unobserved, self.alpha, self.item_share, self.item_alpha)
        return fit_clicks(data, settings, start, Choices(*(None if a == "auto" else float(a) for a in named)))

    def _encoded(self, data: Observations, reset: bool) -> Observations:
        return as_choices(data)

    def _told(self, z: Array) -> dict[str, Array]:
        return {"prediction": z}

    def _histories(self, X: Any) -> sparse.csr_array:
        return matrix_of(self._encoded(given_choices(self, X, None, reset=False), reset=False))

    def _read_long(self, source: Any, row: Any, col: Any, value: Any, weight: Any) -> Observations:
        self._require_names()
        return lines_of(source, row, col, value, weight, self._header)
