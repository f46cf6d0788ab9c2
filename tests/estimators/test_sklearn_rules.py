"""scikit-learn's rules: its own checks, cloning, pickling, frames in and out, pipelines, searches, callbacks."""

import pickle
from inspect import Parameter, signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from bifactor.estimators import callbacks
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.estimators.table_imputer import TableImputer

# With a ridge given: the checks fit hundreds of times, and to choose one takes ten times as long.
CASES = {
    "MatrixCompletion": MatrixCompletion(ridge=1.0),
    "MatrixCompletion, no offsets": MatrixCompletion(ridge=1.0, n_components=2, offsets=False),
    "TableImputer, fast": TableImputer(effort="fast"),
    "TableImputer": TableImputer(keep_empty_features=True, add_indicator=True),
}

ENTRIES = {
    "check_sample_weights_shape": "weights of the shape of X are weights of entries",
    "check_sample_weight_equivalence_on_dense_data": "a row that comes twice has two factors, and a ridge on each",
    "check_sample_weight_equivalence_on_sparse_data": "a row that comes twice has two factors, and a ridge on each",
    "check_estimator_sparse_array": "predict of a table tells whole rows, not one target for each",
    "check_estimator_sparse_matrix": "predict of a table tells whole rows, not one target for each",
    "check_transformer_general": "fit_transform completes the matrix, transform gives factors of new rows",
    "check_transformer_data_not_an_array": "fit_transform completes the matrix, transform gives factors of new rows",
}
EXPECTED = {MatrixCompletion: ENTRIES, TableImputer: {}}

each = pytest.mark.parametrize("estimator", CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    full = 3 + rng.standard_normal((80, 2)) @ rng.standard_normal((2, 12)) + 0.1 * rng.standard_normal((80, 12))
    return np.where(rng.random(full.shape) < 0.7, full, np.nan)


@each
def test_scikit_learn_checks(estimator):
    expected = EXPECTED[type(estimator)]
    results = estimator_checks.check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected), "a check that was expected to fail passes: take it off the list"


@each
def test_parameters_other_than_the_rank_are_by_name_only(estimator):
    parameters = signature(type(estimator)).parameters.values()
    positional = [one.name for one in parameters if one.kind is not Parameter.KEYWORD_ONLY]
    assert positional == ["n_components"] * isinstance(estimator, MatrixCompletion)
    assert vars(type(estimator)()).keys() == {parameter.name for parameter in parameters}


@each
def test_clones_and_pickles(estimator, table):
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    copy.set_params(random_state=0).fit(table)
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(again.transform(table), copy.transform(table))
    assert not hasattr(clone(copy), "n_iter_")


def test_pickles_of_fits_to_names(table):
    rows, cols = np.nonzero(~np.isnan(table))
    frame = pd.DataFrame({"r": [f"r{i}" for i in rows], "c": cols, "v": table[rows, cols]})
    model = MatrixCompletion(ridge=1.0).fit_long(frame, row="r", col="c", value="v")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict("r3", [1, 2]), model.predict("r3", [1, 2]))


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("kind", FRAMES)
@each
def test_frames_in_and_out(estimator, table, kind):
    names = [f"c{j}" for j in range(table.shape[1])]
    columns = {name: table[:, j] for j, name in enumerate(names)}
    frame = FRAMES[kind](columns)
    model = clone(estimator).set_params(random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == names
    plain = model.transform(frame)
    assert isinstance(plain, FRAMES[kind] if isinstance(model, TableImputer) else np.ndarray)
    out = model.set_output(transform=kind).transform(frame)
    assert isinstance(out, FRAMES[kind])
    assert list(out.columns) == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(out), np.asarray(plain))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(FRAMES[kind]({f"other{j}": table[:, j] for j in range(table.shape[1])}))


def test_index_of_pandas_frames_stays(table):
    frame = pd.DataFrame(table, columns=list("abcdefghijkl"), index=[f"row{i}" for i in range(table.shape[0])])
    for estimator in (MatrixCompletion(ridge=1.0), TableImputer()):
        out = estimator.set_output(transform="pandas").fit(frame).transform(frame)
        assert out.index.equals(frame.index)


def test_fit_transform_of_completion_is_an_array_whatever_the_output(table):
    model = MatrixCompletion(ridge=1.0, random_state=0).set_output(transform="pandas")
    full = model.fit_transform(pd.DataFrame(table))
    assert type(full) is np.ndarray
    assert full.shape == table.shape


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:X has feature names")
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_set_output_transform,
        estimator_checks.check_set_output_transform_pandas,
        estimator_checks.check_set_output_transform_polars,
        estimator_checks.check_global_output_transform_pandas,
        estimator_checks.check_global_set_output_transform_polars,
        estimator_checks.check_transformer_get_feature_names_out,
        estimator_checks.check_transformer_get_feature_names_out_pandas,
        estimator_checks.check_dataframe_column_names_consistency,
    ],
    ids=lambda check: check.__name__,
)
def test_further_checks_of_the_imputer(check):
    check("TableImputer", TableImputer(effort="fast"))


def test_names_are_checked_for_completion_too():
    estimator_checks.check_dataframe_column_names_consistency("MatrixCompletion", MatrixCompletion(ridge=1.0))


def test_tags():
    for estimator in (MatrixCompletion(), TableImputer()):
        tags = estimator.__sklearn_tags__()
        assert tags.input_tags.allow_nan
        assert not tags.target_tags.required
        assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
        assert tags.input_tags.sparse == isinstance(estimator, MatrixCompletion)


def test_grid_search_finds_the_rank(table):
    grid = {"n_components": [1, 2], "ridge": [0.1, 50.0]}
    search = GridSearchCV(MatrixCompletion(random_state=0), grid, cv=3).fit(table)
    assert search.best_params_ == {"n_components": 2, "ridge": 0.1}
    assert 0.9 < search.best_score_ < 1
    assert search.score(table) > 0.9


def test_completion_at_the_end_of_a_pipeline(table):
    pipe = make_pipeline(StandardScaler(), MatrixCompletion(n_components=2, ridge=0.1, random_state=0))
    assert pipe.fit(table).score(table) > 0.9
    assert pipe.transform(table).shape == (80, 3)
    told = pipe.inverse_transform(pipe.transform(table))
    assert np.sqrt(np.nanmean((told - table) ** 2)) < 0.2
    assert np.all(cross_val_score(pipe, table, cv=3) > 0.8)


def test_imputer_in_a_pipeline(table):
    rng = np.random.default_rng(1)
    full = TableImputer(random_state=0).fit_transform(table)
    y = full @ rng.standard_normal(12)
    pipe = make_pipeline(TableImputer(random_state=0), LinearRegression())
    search = GridSearchCV(pipe, {"tableimputer__effort": ["fast", "full"]}, cv=3).fit(table, y)
    assert search.best_score_ > 0.9
    assert search.predict(table[:5]).shape == (5,)


def test_imputer_of_some_columns_of_a_frame(table):
    frame = pd.DataFrame(table, columns=[f"c{j}" for j in range(12)]).assign(word="w")
    step = ("fill", TableImputer(), [f"c{j}" for j in range(12)])
    columns = ColumnTransformer([step], remainder="passthrough")
    out = columns.set_output(transform="pandas").fit_transform(frame)
    assert not out.isna().any().any()
    assert list(out.columns[:2]) == ["fill__c0", "fill__c1"]


class Recorder:
    """A callback that counts, and stops after some iterations."""

    def __init__(self, stop=None):
        self.stop, self.iterations, self.events = stop, 0, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        assert X is not None

    def on_fit_task_end(self, estimator, context, *, X=None):
        if context.task_name == "fit":
            self.events.append("fit")
            return None
        self.iterations += 1
        return self.stop is not None and self.iterations >= self.stop

    def teardown(self, estimator, context):
        self.events.append("teardown")


@pytest.mark.parametrize(("kind", "settings"), [(MatrixCompletion, {"ridge": 1.0}), (TableImputer, {"effort": "fast"})])
def test_callbacks_see_every_iteration(table, kind, settings):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    recorder = Recorder()
    model = kind(**settings).set_callbacks(recorder).fit(table)
    assert recorder.events == ["setup", "fit", "teardown"]
    assert recorder.iterations == model.n_iter_ > 3
    stopped = Recorder(stop=2)
    assert kind(**settings).set_callbacks(stopped).fit(table).n_iter_ == 2  # without a warning


def test_without_callbacks_in_scikit_learn(table, monkeypatch):
    with_them = MatrixCompletion(ridge=1.0, random_state=0).fit(table)
    monkeypatch.setattr(callbacks, "with_callbacks", None)
    without = MatrixCompletion(ridge=1.0, random_state=0).fit(table)
    np.testing.assert_array_equal(without.components_, with_them.components_)


def test_progress_bar_of_scikit_learn(table, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    pipe = make_pipeline(TableImputer(), StandardScaler(), MatrixCompletion(ridge=1.0))
    pipe.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(table)
    assert "TableImputer" in capsys.readouterr().out
