"""Laws of estimators: changes of the data that must not change the answers."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import clone

from bifactor.arrays import Array
from bifactor.data import partition
from bifactor.errors import CheckError, InputError

Answers = Callable[[Any, Array], Array]
"""Maps a fitted estimator, and the table that it was fitted to, to a table of answers."""

Losses = Callable[[Array, Array, Array], Array]
"""Maps answers, the table with all known entries, and the mask of those that were held out to their losses."""

SHARE = 0.1
"""Share of the known entries that are held out to compare losses."""


class InvarianceData(NamedTuple):
    """A table with NaN for unknown entries, and what a change of it needs."""

    X: Array
    by: Any
    answers: Answers
    seed: int
    folder: Path

    @property
    def known(self) -> tuple[Array, Array, Array]:
        """Rows, columns and values of the known entries."""
        i, j = np.nonzero(~np.isnan(self.X))
        return i, j, self.X[i, j]

    @property
    def weights(self) -> Array:
        """Weights between ½ and 2, one for each entry."""
        return 2.0 ** np.random.default_rng(self.seed).uniform(-1, 1, self.X.shape)

    def lines(self, row: str = "{}", column: str = "{}") -> dict[str, Any]:
        """One line for each known entry; names are made from these patterns."""
        i, j, y = self.known
        names = [[pattern.format(k) for k in side.tolist()] for pattern, side in ((row, i), (column, j))]
        return {"row": names[0], "column": names[1], "value": y.tolist()}


class Comparison(NamedTuple):
    """Two fits, and how much their answers differ."""

    models: tuple[Any, Any]
    largest: float
    """Largest difference of an answer, in units of the standard deviation of the answers."""
    losses: tuple[float, float] | None
    """Mean losses of both fits at held-out entries; None if none were held out."""
    error: float
    """Standard error of the first of these."""


def check_invariance(
    estimator: Any,
    X: Any,
    change: str,
    *,
    by: Any = None,
    settings: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    losses: Losses | None = None,
    exact: bool = True,
    tol: float = 1e-6,
    seed: int = 0,
) -> None:
    """Check that an estimator gives the same answers after a change of the data that should not matter.

    The estimator is fitted to X and to X after the change. The answers of the second fit, in the units and in the order
    of X, must be those of the first.

    ============  ==================================================================================================
    change        what changes
    ============  ==================================================================================================
    "scale"       all values are multiplied by a constant
    "shift"       a constant is added to all values
    "weights"     each entry has a weight between ½ and 2, and all weights are multiplied by a constant
    "features"    each feature of the estimator is multiplied by a constant, and another constant is added
    "order"       rows and columns, and their features, are permuted
    "names"       rows and columns have other names, in a file
    "sparse"      X is a sparse matrix
    "triples"     X is a tuple (rows, cols, values)
    "frame"       X is a data frame with one line for each entry; this needs pandas
    "file"        X is a file with one line for each entry
    "blocks"      X is a `bifactor.data.BlockStore`
    ============  ==================================================================================================

    Parameters
    ----------
    estimator : estimator
        Anything with the interface of scikit-learn. Copies of it are fitted.
    X : array
        A table of numbers with NaN for unknown entries, and with an entry in each row and each column.
    change : str
        Name of the change.
    by : number, or a pair for "features", optional
        The constants. By default 10⁶, a hundred times the standard deviation for "shift", and (0.01, 2000).
    settings : dict, optional
        Settings of the estimator that have to change too, such as a ridge in the units of the data.
    answers : callable, optional
        Maps a fitted estimator and its X to a table of answers in the units of X. By default the predictions of all
        entries, or what `transform` returns, turned back by `inverse_transform` if there is one; expected labels, if
        these are probabilities.
    losses : callable, optional
        Maps answers, X, and the mask of held-out entries to the losses at these. By default squared errors.
    exact : bool
        False where the random choices of a fit depend on the change, as those of held-out entries do on the order of
        the rows. The answers then may differ, but their mean losses at a tenth of the known entries, which is held out
        from both fits, must agree within one standard error.
    tol : float
        Largest difference of answers that is allowed, in units of their standard deviation.
    seed : int
        Seed of permutations, weights and held-out entries.
    """
    found = compare(
        estimator, X, change, by=by, settings=settings, answers=answers, losses=losses, exact=exact, seed=seed
    )
    name = f"{type(estimator).__name__}, {change}"
    name += f" by {by}" if by is not None else ""
    if found.largest <= tol:
        return
    fact = f"answers differ by up to {found.largest:.1e} of their standard deviation (allowed {tol:.1e})"
    if found.losses is None:
        raise CheckError(f"{name}: {fact}.")
    before, after = found.losses
    if not abs(after - before) <= found.error:
        more = f"mean losses at held-out entries are {before:.4g} and {after:.4g}"
        raise CheckError(f"{name}: {fact}, and {more} (allowed: one standard error, {found.error:.1e}).")


def compare(
    estimator: Any,
    X: Any,
    change: str,
    *,
    by: Any = None,
    settings: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    losses: Losses | None = None,
    exact: bool = True,
    seed: int = 0,
) -> Comparison:
    """Fits before and after a change; see `check_invariance`."""
    if change not in CHANGES:
        raise InputError(f"change={change!r} is unknown. Choose from: {', '.join(CHANGES)}.")
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind != "f" or np.isnan(X).all(axis=0).any() or np.isnan(X).all(axis=1).any():
        raise InputError("X is not a table of floating-point numbers with an entry in each row and column. Pass one.")
    before, after = CHANGES[change]
    hidden = np.zeros(X.shape, bool) if exact else _hidden(X, seed)
    rest = np.where(hidden, np.nan, X)
    if by is None:
        by = {"shift": 100 * float(np.nanstd(X)), "features": (0.01, 2000.0)}.get(change, 1e6)
    models = clone(estimator), clone(estimator).set_params(**settings or {})
    with tempfile.TemporaryDirectory() as folder:
        data = InvarianceData(rest, by, answers or _answers, seed, Path(folder))
        first, second = (way(model, data) for way, model in zip((before, after), models, strict=True))
    spread = float(np.std(first)) or 1.0
    largest = float(np.max(np.abs(first - second))) / spread  # NaN if an answer is
    if exact:
        return Comparison(models, largest, None, 0.0)
    at = [(losses or _squares)(told, X, hidden) for told in (first, second)]
    error = float(np.std(at[0])) / at[0].size ** 0.5
    return Comparison(models, largest, (float(at[0].mean()), float(at[1].mean())), error)


def _squares(answers: Array, X: Array, hidden: Array) -> Array:
    return (answers[hidden] - X[hidden]) ** 2


def _hidden(X: Array, seed: int) -> Array:
    """Mask of held-out entries; one entry of each row and column is not among them."""
    rng, known = np.random.default_rng(seed), ~np.isnan(X)
    order = np.where(known, rng.random(X.shape), np.inf)
    hidden = known & (order < np.quantile(order[known], SHARE))
    hidden[np.arange(len(X)), np.argmax(np.where(known, order, -1), axis=1)] = False
    hidden[np.argmax(np.where(known, order, -1), axis=0), np.arange(X.shape[1])] = False
    return hidden


def _answers(model: Any, X: Array) -> Array:
    if hasattr(model, "predict"):
        return _predicted(model, *np.indices(X.shape).reshape(2, -1)).reshape(X.shape)
    found = model.transform(X)
    return _expected(model, model.inverse_transform(found) if hasattr(model, "inverse_transform") else found)


def _predicted(model: Any, rows: Any, cols: Any) -> Array:
    if getattr(model, "classes_", None) is None:
        return np.asarray(model.predict(rows, cols))
    return _expected(model, model.predict_proba(rows, cols)[:, 1])


def _expected(model: Any, found: Any) -> Array:
    """Answers in the units of the data: expected labels instead of probabilities of the second class."""
    classes = getattr(model, "classes_", None)
    return np.asarray(found) if classes is None else classes[0] + (classes[1] - classes[0]) * np.asarray(found)


def _plain(model: Any, data: InvarianceData) -> Array:
    return data.answers(model.fit(data.X), data.X)


def _scaled(model: Any, data: InvarianceData) -> Array:
    X = data.X * data.by
    return data.answers(model.fit(X), X) / data.by


def _shifted(model: Any, data: InvarianceData) -> Array:
    X = data.X + data.by
    return data.answers(model.fit(X), X) - data.by


def _weighed(model: Any, data: InvarianceData) -> Array:
    return data.answers(model.fit(data.X, sample_weight=data.weights), data.X)


def _weighed_more(model: Any, data: InvarianceData) -> Array:
    return data.answers(model.fit(data.X, sample_weight=data.weights * data.by), data.X)


def _with_other_features(model: Any, data: InvarianceData) -> Array:
    features = _features(model)
    if not features:
        raise InputError(f"{type(model).__name__} has no features. Set user_features or item_features.")
    factor, constant = data.by
    model.set_params(**{name: np.asarray(F) * factor + constant for name, F in features.items()})
    return _plain(model, data)


def _ordered(model: Any, data: InvarianceData) -> Array:
    rng = np.random.default_rng(data.seed)
    orders = [rng.permutation(count) for count in data.X.shape]
    sides = {"user_features": orders[0], "item_features": orders[1]}
    model.set_params(**{name: np.asarray(F)[sides[name]] for name, F in _features(model).items()})
    X = data.X[np.ix_(*orders)]
    return data.answers(model.fit(X), X)[np.ix_(*(np.argsort(order) for order in orders))]


def _features(model: Any) -> dict[str, Any]:
    given = {name: model.get_params().get(name) for name in ("user_features", "item_features")}
    return {name: F for name, F in given.items() if F is not None}


def _sparse(model: Any, data: InvarianceData) -> Array:
    """Known entries are stored or, where the others count as 0, all that are not 0."""
    i, j, y = data.known
    known = hasattr(model, "fit_long")
    X = sparse.csr_array((y, (i, j)), shape=data.X.shape) if known else sparse.csr_array(data.X)
    return data.answers(model.fit(X), data.X)


def _triples(model: Any, data: InvarianceData) -> Array:
    _require_long(model)
    return data.answers(model.fit(data.known), data.X)


def _framed(model: Any, data: InvarianceData) -> Array:
    lines = nw.from_dict(dict(zip(("row", "column", "value"), data.known, strict=True)), backend="pandas")
    return data.answers(_fitted_long(model, lines.to_native()), data.X)


def _filed(model: Any, data: InvarianceData) -> Array:
    return data.answers(_fitted_long(model, _file(data, data.lines())), data.X)


def _named(row: str, column: str) -> Callable[[Any, InvarianceData], Array]:
    """Fits to a file with names of these patterns."""

    def way(model: Any, data: InvarianceData) -> Array:
        _fitted_long(model, _file(data, data.lines(row, column)))
        i, j = np.indices(data.X.shape).reshape(2, -1).tolist()
        names = [row.format(k) for k in i], [column.format(k) for k in j]
        return _predicted(model, *names).reshape(data.X.shape)

    return way


def _blocks(model: Any, data: InvarianceData) -> Array:
    _require_long(model)
    store = partition(data.known, data.folder / "blocks", dtype=data.X.dtype)
    return data.answers(model.fit(store), data.X)


def _require_long(model: Any) -> None:
    if not hasattr(model, "fit_long"):
        raise InputError(f"{type(model).__name__} has no fit_long, so it takes tables only. Choose another change.")


def _fitted_long(model: Any, source: Any) -> Any:
    _require_long(model)
    return model.fit_long(source, row="row", col="column", value="value")


def _file(data: InvarianceData, lines: dict[str, Any]) -> Path:
    """A csv file of these columns; numbers are written to the last digit."""
    path = data.folder / "lines.csv"
    quoted = ['"{}","{}",{!r}'.format(*line) for line in zip(*lines.values(), strict=True)]
    path.write_text("\n".join([",".join(lines), *quoted, ""]), encoding="utf-8")
    return path


CHANGES = {
    "scale": (_plain, _scaled),
    "shift": (_plain, _shifted),
    "weights": (_weighed, _weighed_more),
    "features": (_plain, _with_other_features),
    "order": (_plain, _ordered),
    "names": (_named("row {}", "column {}"), _named("ω{}", "{} km, north")),
    "sparse": (_plain, _sparse),
    "triples": (_plain, _triples),
    "frame": (_plain, _framed),
    "file": (_plain, _filed),
    "blocks": (_plain, _blocks),
}
"""Ways to fit before and after each change."""
