"""Models with features of rows and columns: cold ones, new ones, and what is kept in a folder."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.data import Names, Observations
from bifactor.errors import FileError, InputError
from bifactor.models.completion import fitting
from bifactor.models.completion.fitting import fit_model, validate_settings
from bifactor.models.fit import Fit
from bifactor.models.partial_fit import update_model
from bifactor.running import files
from bifactor.solvers import Variational

M, N, COLD = 90, 50, 20


@pytest.fixture(scope="module")
def planted():
    """Entries of rows and columns that features tell all of, but for the last ones; the truth."""
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((M, 3)), rng.standard_normal((N, 2))
    truth = 3 + F @ rng.standard_normal((3, 2)) @ (G @ rng.standard_normal((2, 2))).T + F[:, :1] + G[:, 1]
    seen = rng.random((M, N)) < 0.5
    seen[M - COLD :] = False
    i, j = np.nonzero(seen)
    y = truth[i, j] + 0.1 * rng.standard_normal(i.size)
    features = [sparse.csr_array(part) for part in (F, G)]
    return Observations(i, j, y, (M, N), row_features=features[0], column_features=features[1]), truth


def chosen(**options):
    usual = {"loss": "squared", "n_components": 3, "ridge": None, "noise": "one", "offsets": True, "solver": None}
    usual |= {"max_iter": 200, "tol": 1e-6, "random_state": 0, "verbose": 0, "implicit_features": False}
    return validate_settings(**(usual | options))


@pytest.fixture(scope="module")
def model(planted):
    return fit_model(planted[0], chosen())


def test_cold_rows_are_where_features_say(planted, model):
    data, truth = planted
    i, j = np.indices((M, N)).reshape(2, -1)
    z, cold = model.scores(i, j).reshape(M, N), slice(M - COLD, M)
    assert np.sqrt(np.mean((z - truth)[cold] ** 2)) < 0.3
    plain = fit_model(replace(data, row_features=None, column_features=None), chosen())
    assert np.sqrt(np.mean((plain.scores(i, j).reshape(M, N) - truth)[cold] ** 2)) > 1
    assert model.rows.side.rows.shape == (3, model.U.shape[1])
    assert model.rows.side.cols.shape == (2, model.V.shape[1])
    assert plain.rows.side is None


def popular(seed, told):
    """Entries of which columns with large effects have more, but for some columns without any; the truth, and y."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((100, 2))
    effects = (G @ [0.5, -0.3] if told else 0) + 0.6 * rng.standard_normal(100)
    truth = (
        3
        + 0.5 * rng.standard_normal((150, 1))
        + effects
        + 0.3 * np.outer(*(rng.standard_normal(k) for k in (150, 100)))
    )
    y = truth + 0.5 * rng.standard_normal(truth.shape)
    shown = rng.random(truth.shape) < 0.3 / (1 + np.exp(-3 * effects))
    i, j = np.nonzero(shown & (np.arange(100) < 80))
    data = Observations(i, j, y[i, j], truth.shape, column_features=sparse.csr_array(G) if told else None)
    return data, y, shown & (np.arange(100) >= 80)


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_cold_columns_are_predicted_without_bias_where_popular_ones_are_larger(implicit, told):
    """The next column that somebody chooses is like those of entries; intervals are around predictions."""
    apart, inside = [], []
    for seed in range(4):
        data, y, asked = popular(seed, told)
        model = fit_model(data, chosen(noise="one", n_components=2, implicit_features=implicit, keep_features=True))
        i, j = np.nonzero(asked)
        z = model.scores(i, j)
        low, high = (end + model.link.intercept for end in model.posterior.interval(i, j))
        np.testing.assert_allclose((low + high) / 2, z, atol=1e-6)
        apart.append(np.mean(y[i, j] - z))
        inside.append(np.mean((low <= y[i, j]) & (y[i, j] <= high)))
    assert abs(np.mean(apart)) < 0.1
    assert np.mean(inside) > 0.85


def test_new_rows_are_found_from_features_and_entries(planted, model):
    data, _ = planted
    none = np.empty(0, np.int64)
    new = Observations(none, none, np.empty(0), (COLD, N), row_features=data.row_features[M - COLD :])
    U, found = model.fold_in(new, 0)
    np.testing.assert_allclose(U, model.U[M - COLD :], atol=1e-10)
    np.testing.assert_allclose(found.covariance, model.posterior.rows.covariance[M - COLD :], rtol=1e-9, atol=1e-12)
    one = Observations(np.array([0]), np.array([3]), np.array([9.0]), (COLD, N), row_features=new.row_features)
    moved, found = model.fold_in(one, 0)
    np.testing.assert_allclose(moved[1:], U[1:], atol=1e-10)
    assert np.any(moved[0] != U[0])
    bare = model.fold_in(replace(one, row_features=None), 0)[0]
    assert np.all(np.isfinite(bare))
    assert np.ptp(bare[1:], axis=0).max() == 0
    for bad, words in (
        (data.row_features[:3], "3 lines"),
        (data.row_features[:COLD, :2], "2 columns, but the fit had 3"),
    ):
        for size in (0, 1):
            with pytest.raises(InputError, match=words):
                model.fold_in(
                    replace(
                        one, rows=one.rows[:size], cols=one.cols[:size], values=one.values[:size], row_features=bad
                    ),
                    0,
                )


def test_rows_folded_in_by_their_features_alone(planted, model):
    data, truth = planted
    fit = Fit.of(model, data)
    entry, names = (np.array([0]), np.array([1]), np.array([2.0])), Names.numbered(2, first=M)
    new = Observations(*entry, (2, N), row_names=names, row_features=data.row_features[M - 2 :])
    longer = fit.fold_in(new)
    np.testing.assert_allclose(longer.model.U[M + 1], model.U[M - 1], atol=1e-10)
    told = longer.predict([M + 1], [4])
    assert told[0] == pytest.approx(truth[M - 1, 4], abs=0.5)


def test_names_that_are_not_known_are_like_the_average_row(planted, model):
    fit = Fit.of(model, planted[0])
    with pytest.warns(UserWarning, match="was not in the fit"):
        told = fit.predict(["nobody"], [4])
    average = model.posterior.rows.padded(M + 1).means[M] @ model.posterior.cols.means[4] + model.link.intercept
    assert told[0] == pytest.approx(average)
    assert fit.model.std(np.array([-1]), np.array([4]))[0] > fit.model.std(np.array([0]), np.array([4]))[0]


@pytest.fixture(scope="module", params=[(k, implicit) for k in (3, "auto", 0) for implicit in (False, True)], ids=str)
def with_weights(request, planted):
    """A model of some components with features, and perhaps with the pattern as features too."""
    components, implicit = request.param
    return fit_model(planted[0], chosen(n_components=components, implicit_features=implicit))


@pytest.mark.parametrize("whole", [True, False])
def test_a_folder_keeps_weights(planted, tmp_path, with_weights, whole):
    data, model = planted[0], with_weights
    Fit.of(model, data).save(tmp_path / "fit", error_bars=whole)
    again = bf.load(tmp_path / "fit").model
    none = np.empty(0, np.int64)
    new = Observations(none, none, np.empty(0), (2, N), row_features=data.row_features[:2])
    for first, second in zip(model.posterior.rows.weights, again.posterior.rows.weights, strict=True):
        assert (first is None) == (second is None)
    np.testing.assert_array_equal(again.fold_in(new, 0)[0], model.fold_in(new, 0)[0])
    if whole:
        np.testing.assert_array_equal(again.fold_in(new, 0)[1].covariance, model.fold_in(new, 0)[1].covariance)


def test_a_damaged_folder_is_refused(planted, model, tmp_path):
    Fit.of(model, planted[0]).save(tmp_path / "fit")
    path = tmp_path / "fit" / "posterior.safetensors"
    arrays, told = files.read(path, "posterior")
    for name in ("row_features_average", "row_features_lines_1", "column_features_columns"):
        files.write(path, "posterior", {key: one[:1] if key == name else one for key, one in arrays.items()}, told)
        with pytest.raises(FileError, match=f"{name} is not"):
            bf.load(tmp_path / "fit")


def test_more_data_for_a_model(planted, model):
    data, truth = planted
    features = sparse.csr_array(sparse.vstack([data.row_features, data.row_features[M - 1 :]]))
    new = Observations(np.array([M, 2]), np.array([0, 1]), truth[[M - 1, 2], [0, 1]], (M + 1, N), row_features=features)
    longer, every = update_model(model, data, new)
    assert longer.U.shape[0] == every.shape[0] == M + 1
    assert longer.scores(np.array([M]), np.array([7]))[0] == pytest.approx(truth[M - 1, 7], abs=0.5)
    wider = Observations(np.array([0]), np.array([N]), np.array([3.0]), (M, N + 1))
    assert np.all(np.isfinite(update_model(model, data, wider)[0].V))


def test_of_many_entries_features_are_cut_alike(planted, monkeypatch):
    data, _ = planted
    monkeypatch.setattr(fitting, "MAX_NOISE_SELECTION_ENTRIES", 500)
    some = data.subsample(500, np.random.default_rng(0))
    assert some.row_features.shape == (some.shape[0], 3)
    first = data.values == some.values[0]
    assert np.array_equal(some.row_features[some.rows[:1]].toarray(), data.row_features[data.rows[first][:1]].toarray())
    assert fit_model(data, chosen(noise="auto", implicit_features="auto")).U.shape[0] == M


def test_a_solver_is_told_of_features(planted):
    data, _ = planted
    model = fit_model(data, chosen(noise="auto", solver=Variational("rows", implicit=True)))
    assert model.posterior.rows.weights[0].mean.shape[0] == 4
    assert model.posterior.rows.weights[1].mean.shape[0] == N


def test_wrong_features(planted):
    data, _ = planted
    for bad, words in (
        (data.row_features[:5], "row_features has 5 lines, but that side of the data has 90"),
        (data.row_features * np.nan, "row_features has NaN"),
    ):
        with pytest.raises(InputError, match=words):
            fit_model(replace(data, row_features=sparse.csr_array(bad)), chosen())
