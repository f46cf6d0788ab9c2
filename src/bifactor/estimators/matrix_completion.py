"""Numbers with holes."""

from typing import Any

from bifactor.arrays import Array
from bifactor.estimators.completion import Completion
from bifactor.models.model import Settings
from bifactor.models.settings import settings
from bifactor.tables import Observations


class MatrixCompletion(Completion):
    """Completes a matrix of which some entries are known: μ + bᵢ + cⱼ + uᵢ·vⱼ, seen through a loss of your choice.

    The defaults need no tuning: the ridge on b, c, u and v is the one that predicts a tenth of the entries, held out,
    best, and with `n_components="auto"` so is their number.

    Parameters
    ----------
    n_components : int or "auto"
        The rank, cut to the smaller side of the matrix where it is more; 0 for offsets alone, which "auto" may take.
    loss : {"squared", "huber", "logistic", "probit", "poisson"} or Loss
        What an entry means: a number, one with outliers, ±1, a count.
    alpha : float or "auto"
        The ridge, in the units of the loss summed over entries; 0 for none.
    offsets : bool
        Fit an intercept and an offset for every row and column.
    solver : Solver, optional
        By default what `bifactor.solve` takes.
    max_iter, tol
        Of the fit.
    warm_start : bool
        Begin where the last fit of the same shape and rank ended.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says.
    verbose : int
        1 shows a progress bar.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : array, n_components_ × n columns
        The v of each column.
    row_factors_ : array, n rows × n_components_
        The u of each row.
    intercept_, row_offsets_, column_offsets_
        μ, b and c; zero without offsets.
    n_components_ : int
    alpha_ : float
        The ridge that was used.
    ridge_path_ : RidgePath or None
        How it was chosen.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        The names of rows and columns, after `fit_long`.
    fit_ : Fit
        What has been fitted, free of scikit-learn: see `bifactor.models.Fit`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        n_components: int | str = 10,
        loss: Any = "squared",
        alpha: float | str = "auto",
        offsets: bool = True,
        solver: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.loss = loss
        self.alpha = alpha
        self.offsets = offsets
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def predict(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """What is to be expected at the entries (rows[t], cols[t]).

        Without `cols`, `rows` is a frame of pairs after `fit_long`; else a table of new rows as for `transform`, and
        all their entries are told.

        Parameters
        ----------
        rows, cols : sequences
            Numbers, or names after `fit_long`. A single one on one side goes with all of the other; of two single ones
            a single number is told.
        unknown : {"mean", "raise"}
            What to do about a name that was not in the fit: let it count with an offset of 0, which a warning tells
            (`predict_long` has a column for it), or raise `InputError`.
        """
        z = self.decision_function(rows, cols, unknown)
        return self.model_.loss.mean(z)

    def _told(self, z: Array) -> dict[str, Array]:
        return {"prediction": self.model_.loss.mean(z)}

    def _settings(self) -> Settings:
        names = ("n_components", "loss", "alpha", "offsets", "solver", "max_iter", "tol", "verbose", "random_state")
        return settings(**{name: getattr(self, name) for name in names})

    def _encoded(self, data: Observations, reset: bool) -> Observations:
        return data

    def _decoded(self, values: Array) -> Array:
        return values
