"""Features of users and items: in a fit, of rows and columns that nothing else is known of, and of new ones."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import bifactor as bf
from bifactor.data.features import Feature, FeatureTable
from bifactor.errors import FileError, InputError
from bifactor.estimators.side_information import FeatureReader
from bifactor.running import files

M, N, K = 80, 60, 6


def features(seed=0):
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((k, K)) * (rng.random((k, K)) < 0.6) for k in (M, N))
    return left, right


def matrix(noise=0.3, seed=0):
    """Rows and columns are mostly what their features say."""
    rng, (left, right) = np.random.default_rng(seed), features(seed)
    U = left @ rng.standard_normal((K, 2)) + noise * rng.standard_normal((M, 2))
    V = right @ rng.standard_normal((K, 2)) + noise * rng.standard_normal((N, 2))
    return 0.5 * U @ V.T


def ratings(seed=0, **options):
    """Some entries, none in the first eight rows and the first six columns."""
    X, rng = matrix(seed=seed, **options), np.random.default_rng(seed + 1)
    known = rng.random((M, N)) < 0.5
    known[:8], known[:, :6] = False, False
    return X, np.where(known, X, np.nan)


def clicks(seed=0):
    X, known = ratings(seed)
    return X, sparse.csr_array(((X > 0.6) & ~np.isnan(known)).astype(float))


def completion(**options):
    given = {"n_components": 3, "ridge": 0.1, "random_state": 0, "tol": 1e-10, "max_iter": 5000}
    return bf.MatrixCompletion(**given | options)


def recommender(**options):
    given = {"n_components": 4, "ridge": 0.02, "unobserved": 0.1, "random_state": 0, "tol": 1e-10, "max_iter": 5000}
    return bf.Recommender(**given | options)


def correlation(a, b):
    return np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_array, pd.DataFrame])
def test_rows_and_columns_that_were_never_observed_are_predicted_from_features(form):
    X, known = ratings()
    left, right = features()
    model = completion(user_features=form(left), item_features=form(right)).fit(known)
    plain = completion().fit(known)
    found = model.complete()
    assert correlation(found[:8, 6:], X[:8, 6:]) > 0.9
    assert correlation(found[8:, :6], X[8:, :6]) > 0.9
    assert correlation(found[:8, :6], X[:8, :6]) > 0.8
    hidden = np.isnan(known)
    hidden[:8], hidden[:, :6] = False, False
    errors = [np.linalg.norm((one.complete() - X)[hidden]) for one in (model, plain)]
    assert errors[0] <= 1.02 * errors[1]
    by_features = model.observations_.row_features[[0]] @ model.model_.rows.side.rows
    np.testing.assert_allclose(model.row_factors_[[0]], by_features[:, 2:], atol=1e-6)


def test_clicks_are_recommended_by_features():
    X, chosen = clicks()
    left, right = features()
    model = recommender(user_features=left, item_features=right).fit(chosen)
    scores = model.row_factors_ @ model.components_
    assert correlation(scores[:8, 6:], X[:8, 6:]) > 0.6
    assert correlation(scores[8:, :6], X[8:, :6]) > 0.6
    by_features = model.observations_.row_features[[0]] @ model.model_.rows.side.rows
    np.testing.assert_allclose(model.row_factors_[[0]], by_features, atol=1e-5)
    ids, _ = model.recommend([0, 1], 5)
    stranger, _ = model.recommend(sparse.csr_array((2, N)), 5, features=left[:2])
    np.testing.assert_array_equal(ids, stranger)


@pytest.mark.parametrize("make", [completion, recommender])
def test_features_that_say_nothing_change_nothing(make):
    X = ratings()[1] if make is completion else clicks()[1]
    plain, with_zeros = (
        make().fit(X),
        make(user_features=np.zeros((M, 2)), item_features=sparse.csr_array((N, 1))).fit(X),
    )
    np.testing.assert_allclose(
        with_zeros.row_factors_ @ with_zeros.components_, plain.row_factors_ @ plain.components_, atol=1e-5
    )


def posterior(**options):
    given = {"ridge": None, "noise": "one", "implicit_features": False, "keep_features": True, "max_iter": 30}
    return completion(**given | options)


UNITS = [1000.0, 1.0, 0.01, 1.0, 5.0, 1.0, 1e-6, 1.0]
ZEROS = [2000.0, 0.0, -3.0, 1.0, 0.0, 7.0, 1e-3, 0.0]


@cache
def fitted(make):
    """Data, features of rows and columns, and a fit to them that several tests compare others with."""
    X, (left, right) = (clicks()[1] if make is recommender else ratings()[1]), features()
    numbers = np.random.default_rng(3).standard_normal((M, 1)) + 0.5 * left[:, :1]
    left = np.hstack([numbers, left[:, :4], np.eye(3)[np.arange(M) % 3][:, :2], np.ones((M, 1))])
    left = np.round(256 * left) / 256  # exact in single precision, and so are units and zeros
    return X, left, right, make(user_features=left, item_features=right).fit(X)


@pytest.mark.parametrize("make", [completion, posterior, recommender])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array, pd.DataFrame])
def test_the_unit_and_the_zero_of_a_feature_do_not_matter(make, form, tmp_path):
    """Of numbers, of categories, of a column of which most are 0 and of a constant, in the fit and for new rows."""
    X, left, right, one = fitted(make)
    units, zeros = np.exp2(np.round(np.log2(UNITS))), np.round(ZEROS)
    changed = form(left * units + zeros)
    other = make(user_features=changed, item_features=form(np.float32(4) * right + 1)).fit(X)
    tell = lambda model: model.row_factors_ @ model.components_  # noqa: E731
    np.testing.assert_allclose(tell(other), tell(one), atol=1e-5)
    known = X[9:20]
    new = one.transform(known, features=left[9:20]), other.transform(known, features=changed[9:20])
    np.testing.assert_allclose(new[1] @ new[1].T, new[0] @ new[0].T, atol=1e-4)
    if form is pd.DataFrame:
        return
    other.save(tmp_path / "fit")
    table = sparse.coo_array(np.nan_to_num(known.toarray() if sparse.issparse(known) else known))
    lines = bf.data.Observations(*table.coords, table.data, table.shape)
    lines = replace(lines, row_features=sparse.csr_array(changed[9:20]))
    folded = bf.load(tmp_path / "fit").fold_in(lines).model.U[-11:]
    np.testing.assert_allclose(folded[:, folded.shape[1] - new[1].shape[1] :], new[1], atol=1e-8)


def test_sparse_features_stay_sparse():
    """Categories are not centred; a column of which most are another value becomes sparse."""
    categories = sparse.csr_array((np.ones(1000), (np.arange(1000), np.arange(1000) % 300)), shape=(1000, 300))
    reader = FeatureReader.of(categories, "user_features", None, keyed=False)
    assert reader.read(categories)[0].nnz == 1000
    np.testing.assert_array_equal(reader.read(categories)[0].toarray(), categories.toarray())
    dense = categories.toarray() + 7
    shifted = FeatureReader.of(dense, "user_features", None, keyed=False).read(dense)[0]
    np.testing.assert_array_equal(shifted.toarray(), categories.toarray())


def test_a_feature_that_does_not_vary_tells_nothing():
    known, same = ratings()[1], np.full((M, 1), 1e6)
    one, plain = posterior(user_features=same).fit(known), posterior().fit(known)
    np.testing.assert_array_equal(one.row_factors_, plain.row_factors_)
    np.testing.assert_array_equal(one.transform(known[:3], features=same[:3]), plain.transform(known[:3]))


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
@pytest.mark.parametrize("implicit", [False, True])
def test_new_rows_are_those_of_a_whole_fit(loss, implicit):
    known = ratings()[1]
    known = np.round(np.exp(0.3 * known)) if loss == "poisson" else known
    left, right = features()
    model = completion(
        loss=loss, ridge=2.0, user_features=left, item_features=right, implicit_features=implicit, tol=1e-13
    ).fit(known)
    assert model.result_.status.converged
    whole = np.hstack([model.row_offsets_[:, None], model.row_factors_])
    np.testing.assert_allclose(model.transform(known, features=left), whole, atol=1e-5)
    if not implicit:
        assert np.abs(model.transform(known) - whole).max() > 1e-2  # without their features they are others


def test_strangers_are_those_of_a_whole_fit():
    chosen, (left, right) = clicks()[1], features()
    model = recommender(user_features=left, item_features=right, tol=1e-12).fit(chosen)
    np.testing.assert_allclose(model.transform(chosen, features=left), model.row_factors_, atol=1e-5)


def test_features_of_more_rows_than_there_are_make_more_rows():
    known = ratings()[1]
    left, right = features()
    order = np.r_[8:M, :8], np.r_[6:N, :6]
    table = known[np.ix_(*order)][:-8, :-6]
    model = completion(user_features=left[order[0]], item_features=right[order[1]]).fit(table)
    assert model.row_factors_.shape[0] == M
    assert model.n_features_in_ == N
    whole = completion(user_features=left, item_features=right).fit(known)
    np.testing.assert_allclose(model.complete()[-8:], whole.complete()[np.ix_(*order)][-8:], atol=1e-4)
    ids, _ = model.recommend([M - 1], 3)
    assert ids.shape == (1, 3)


def long_form(known):
    i, j = np.nonzero(~np.isnan(known))
    return pd.DataFrame({"user": [f"u{k}" for k in i], "item": [f"i{k}" for k in j], "rating": known[i, j]})


def tables(left, right):
    names = [f"x{k}" for k in range(K)]
    users = pd.DataFrame(left, columns=names).assign(user=[f"u{k}" for k in range(M)])
    return users, pd.DataFrame(right, columns=names).assign(item=[f"i{k}" for k in range(N)])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, "csv", "parquet", "jsonl"])
def test_frames_and_files_have_names(library, tmp_path):
    X, known = ratings()
    users, items = tables(*features())
    if isinstance(library, str):
        paths = [tmp_path / f"{side}.{library}" for side in ("users", "items")]
        for frame, path in zip((users, items), paths, strict=True):
            write = {"csv": frame.to_csv, "parquet": frame.to_parquet}.get(library)
            write(path, index=False) if write else frame.to_json(path, orient="records", lines=True)
        given = paths
    else:
        given = [library(users), library(items)]
    model = completion(user_features=given[0], item_features=given[1]).fit_long(long_form(known))
    assert len(model.row_names_) == M
    assert list(model.row_names_[:1]) == ["u8"]
    found = model.predict([f"u{k}" for k in range(8)], ["i7"] * 8)
    assert correlation(found, X[:8, 7]) > 0.8
    lists, _ = model.recommend(["u0"], 4)
    assert lists.shape == (1, 4)
    assert model.fit_.known(["u0", "u9"], ["i0", "nobody"]).tolist() == ["both", "row"]


def test_new_names_have_features():
    known = ratings()[1]
    users, items = tables(*features())
    model = completion(user_features=users, item_features=items, ridge=1.0).fit_long(long_form(known))
    lines = long_form(known)[lambda frame: frame.user.isin(["u9", "u10"])]
    found = model.transform_long(lines, features=users[::-1]).set_index("user")
    places = model.row_names_.indices(["u9", "u10"])
    np.testing.assert_allclose(found.loc[["u9", "u10"]].to_numpy()[:, 1:], model.row_factors_[places], atol=1e-4)
    with pytest.raises(InputError, match="no column of names"):
        model.transform_long(lines, features=users.drop(columns="user"))


def test_names_without_features_are_as_without():
    users, _ = tables(*features())
    lines = long_form(ratings()[1])
    model = completion(user_features=users[users.user != "u9"]).fit_long(lines)
    place = model.row_names_.indices(["u9"])[0]
    assert model.observations_.row_features[[place]].nnz == 0
    with pytest.raises(InputError, match="A name has two lines of features"):
        completion(user_features=pd.concat([users, users[:1]])).fit_long(lines)


def test_words_become_categories(tmp_path):
    genres = pd.DataFrame(
        {
            "item": [1, 2, 3, 4, 5],
            "genres": ["Action|Comedy", "Comedy", "Action", None, "War"],
            "year": [1990.0, 1992.0, np.nan, 1994.0, 1996.0],
            "new": [True, False, False, True, True],
            "title": list("abcde"),
        }
    )
    table = FeatureTable.of(genres, "item_features", "item", keyed=True)
    assert table.names == ["genres=Action", "genres=Comedy", "year", "new"]
    found, names = table.read(genres, "item_features")
    assert names.tolist() == [1, 2, 3, 4, 5]
    spread = np.std([1990, 1992, 1994, 1996])
    years = np.nan_to_num((genres.year - 1993) / spread)
    wanted = np.column_stack([[1, 0, 1, 0, 0], [1, 1, 0, 0, 0], years, [0, -1, -1, 0, 0]])
    np.testing.assert_allclose(found.toarray(), wanted)
    text = tmp_path / "items.csv"
    genres.to_csv(text, index=False)
    from_text, _ = FeatureTable.of(text, "item_features", "item", keyed=True).read(text, "item_features")
    assert from_text.shape[1] == 5  # of a flag in words there are two categories
    np.testing.assert_allclose(from_text.toarray()[:, :3], wanted[:, :3])
    new, _ = table.read(pd.DataFrame({"genres": ["War|Action"], "year": [1993], "new": [0]}), "item_features")
    np.testing.assert_allclose(new.toarray(), [[1, 0, 0, -1]])  # most are new


def test_a_file_may_have_bars_and_no_header(tmp_path):
    path = tmp_path / "u.user"
    path.write_text("1|24|M|technician\n2|53|F|other\n3|23|M|writer\n4|24|M|technician\n")
    table = FeatureTable.of(path, "user_features", "user", keyed=True)
    assert table.names == ["2", "3=M", "4=technician"]
    assert table.read(path, "user_features")[1].tolist() == [1, 2, 3, 4]
    words = tmp_path / "words.csv"
    words.write_text("user_id,gender\nann,F\nbob,M\ncyd,F\ndan,M\n")
    assert FeatureTable.of(words, "user_features", "user", keyed=True).names == ["gender=F", "gender=M"]
    words.write_text("user_id,gender\nann,F\nbob,M,3\n")
    with pytest.raises((FileError, InputError)):
        FeatureTable.of(words, "user_features", "user", keyed=True)


def test_dates_are_numbers_and_a_constant_does_no_harm():
    days = np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[ns]")
    feature = Feature.of("day", days)
    np.testing.assert_allclose(feature.matrix(days).toarray().ravel(), [-1, 0, 1])
    constant = Feature.of("c", np.full(3, 7.0))
    np.testing.assert_allclose(constant.matrix(np.full(3, 7.0)).toarray(), 0)
    with pytest.raises(InputError, match="now text"):
        feature.matrix(np.array(["a"], object))


@pytest.mark.parametrize("make", [completion, recommender])
def test_folders_keep_what_features_say(make, tmp_path):
    X, (left, right) = (ratings()[1] if make is completion else clicks()[1]), features()
    model = make(user_features=left, item_features=right).fit(X)
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    np.testing.assert_array_equal(fit.model.rows.side.rows, model.model_.rows.side.rows)
    np.testing.assert_array_equal(fit.model.U, model.model_.U)
    for ours, theirs in zip(fit.recommend([0, 9], 5), model.fit_.recommend([0, 9], 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    table = sparse.csr_array(np.nan_to_num(X[9:20])) if make is completion else X[9:20]
    data = bf.data.Observations(
        *table.tocoo().coords, table.data, table.shape, row_features=sparse.csr_array(left[9:20])
    )
    again, live = fit.fold_in(data), model.fit_.fold_in(data)
    np.testing.assert_allclose(again.model.U, live.model.U, atol=1e-12)
    files.write(tmp_path / "fit" / "side.safetensors", "side", {"row": np.ones((2, 1))}, {})
    with pytest.raises(FileError, match="is damaged: the coefficients of rows"):
        bf.load(tmp_path / "fit")
    files.write(tmp_path / "fit" / "side.safetensors", "side", {}, {"row_pattern": "0", "column_pattern": "0"})
    with pytest.raises(FileError, match="is damaged: it has no coefficients"):
        bf.load(tmp_path / "fit")
    wide = {"row": model.model_.rows.side.rows}
    files.write(tmp_path / "fit" / "side.safetensors", "side", wide, {"row_pattern": "99", "column_pattern": "0"})
    with pytest.raises(FileError, match="is damaged: a pattern has 99 of 6"):
        bf.load(tmp_path / "fit")
    for zero, unit, words in (
        (np.zeros(5), np.ones(6), "not 6 finite numbers"),
        (np.zeros(6), np.full(6, np.inf), "not 6 finite numbers"),
        (np.zeros(6), np.zeros(6), "not above 0"),
        (np.zeros(6), None, "not 6 finite numbers"),
    ):
        given = {"row_zero": zero} if unit is None else {"row_zero": zero, "row_unit": unit}
        counts = {"row_pattern": "0", "column_pattern": "0"}
        files.write(tmp_path / "fit" / "side.safetensors", "side", wide | given, counts)
        with pytest.raises(FileError, match=words):
            bf.load(tmp_path / "fit")
    (tmp_path / "fit" / "side.safetensors").unlink()
    with pytest.raises(FileError, match="side"):
        bf.load(tmp_path / "fit")


def test_a_folder_of_patterns(tmp_path):
    known = ratings()[1]
    model = completion(implicit_features=True).fit(known)
    model.save(tmp_path / "fit")
    assert bf.load(tmp_path / "fit").model.rows.side.patterns == (N, M)


@pytest.mark.parametrize("implicit", [False, True])
def test_more_data_for_a_fit(implicit):
    X, known = ratings()
    left, right = features()
    options = {"user_features": left[:-2], "item_features": right, "implicit_features": implicit, "ridge": 1.0}
    model = completion(**options).fit(known[:-2])
    before = model.row_factors_.copy()
    model.partial_fit(known[-2:])
    assert model.row_factors_.shape[0] == M
    np.testing.assert_array_equal(model.row_factors_[:-2], before)
    alone = model.transform(known[-2:])
    np.testing.assert_allclose(model.row_factors_[-2:], alone[:, 1:], atol=1e-9)
    # A row that was cold has its features still.
    j = np.arange(6, 30)
    model.partial_fit((np.zeros(j.size, int), j, X[0, 6:30]))
    table = np.full((1, N), np.nan)
    table[0, j] = X[0, 6:30]
    np.testing.assert_allclose(model.transform(table, features=left[:1])[:, 1:], model.row_factors_[:1], atol=1e-9)
    model.partial_fit((np.arange(20, 40), np.full(20, N), X[20:40, 7]))
    assert model.components_.shape[1] == N + 1


def test_more_clicks_for_a_fit():
    chosen, (left, right) = clicks()[1], features()
    model = recommender(user_features=left, item_features=right).fit(chosen)
    assert not model.model_.rows.base.known[0][0]
    model.partial_fit((np.zeros(4, int), np.array([7, 8, 9, 10]), np.ones(4)))
    assert model.model_.rows.base.known[0][0]
    by_features = model.observations_.row_features[[0]] @ model.model_.rows.side.rows
    assert np.linalg.norm(model.row_factors_[[0]] - by_features) > 1e-3


def test_an_explanation_leaves_the_rest_to_features():
    chosen, (left, right) = clicks()[1], features()
    model = recommender(user_features=left, item_features=right).fit(chosen)
    row = int(np.argmax(np.diff(chosen.indptr)))
    col = int(np.setdiff1d(np.arange(6, N), chosen.indices[chosen.indptr[row] : chosen.indptr[row + 1]])[0])
    _, parts, _ = model.explain(row, col, n=N)
    without = model.transform(chosen[[row]]) @ model.components_[:, col]
    assert parts.sum() == pytest.approx(without[0], rel=1e-6)


def test_which_entries_are_known_may_count_as_features():
    rng = np.random.default_rng(0)
    taste, kind = rng.standard_normal((200, 2)), rng.standard_normal((60, 2))
    X = taste @ kind.T
    known = rng.random(X.shape) < 0.25 / (1 + np.exp(-3 * X))  # people rate what they like
    table = np.where(known, X + 0.5 * rng.standard_normal(X.shape), np.nan)
    errors = [
        np.linalg.norm(
            (completion(n_components=2, ridge=2.0, implicit_features=flag).fit(table).complete() - X)[~known]
        )
        for flag in (False, True)
    ]
    assert errors[1] < 0.95 * errors[0]


def test_a_fit_may_begin_where_another_ended():
    known, (left, right) = ratings()[1], features()
    model = completion(user_features=left, item_features=right, warm_start=True).fit(known)
    first, factors = model.n_iter_, model.row_factors_ @ model.components_
    model.fit(known)
    assert model.n_iter_ < first / 2
    np.testing.assert_allclose(model.row_factors_ @ model.components_, factors, atol=1e-3)
    model.set_params(user_features=None).fit(known)
    assert model.model_.rows.side.rows is None


def test_estimators_can_be_cloned_and_features_stay_as_they_were():
    left, right = features()
    kept = left.copy()
    model = clone(completion(user_features=left, item_features=right)).fit(ratings()[1])
    np.testing.assert_array_equal(model.user_features, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_data(dtype):
    left, right = features()
    model = completion(user_features=left, item_features=right, tol=1e-4).fit(ratings()[1].astype(dtype))
    assert model.row_factors_.dtype == dtype
    assert model.model_.rows.side.rows.dtype == dtype
    assert model.transform(ratings()[1].astype(dtype), features=left).dtype == dtype


def test_mistakes():
    known, (left, right) = ratings()[1], features()
    with pytest.raises(InputError, match="user_features has 79 lines, but X has 80 rows"):
        completion(user_features=left[:-1]).fit(known)
    with pytest.raises(InputError, match="user_features holds 80 NaN"):
        completion(user_features=np.full((M, 1), np.nan)).fit(known)
    with pytest.raises(InputError, match="matrix without names"):
        completion(user_features=left).fit_long(long_form(known))
    with pytest.raises(InputError, match="no column besides the names"):
        completion(user_features=pd.DataFrame({"user": ["u1"]})).fit_long(long_form(known))
    with pytest.raises(InputError, match="implicit_features"):
        completion(implicit_features=1).fit(known)
    model = completion(user_features=left, item_features=right).fit(known)
    with pytest.raises(InputError, match="features has 5 columns, but the fit had 6"):
        model.transform(known, features=left[:, 1:])
    with pytest.raises(InputError, match="features has 79 lines, but there are 80 rows"):
        model.transform(known, features=left[1:])
    with pytest.raises(InputError, match="was a matrix in the fit"):
        model.transform(known, features=pd.DataFrame(left))
    with pytest.raises(InputError, match="The fit has no features of rows"):
        completion().fit(known).transform(known, features=left)
    framed = completion(user_features=pd.DataFrame(left, columns=list("abcdef"))).fit(known)
    with pytest.raises(InputError, match="is not a table of columns, unlike in the fit"):
        framed.transform(known, features=left)
    with pytest.raises(InputError, match="lacks the column 'a' of the fit"):
        framed.transform(known, features=pd.DataFrame(left, columns=list("xbcdef")))
    chosen = clicks()[1]
    with pytest.raises(InputError, match="features are for new users"):
        recommender(user_features=left).fit(chosen).recommend([1], features=left[:1])


def test_a_posterior_tells_of_cold_rows_by_their_features(tmp_path):
    rng = np.random.default_rng(0)
    F, A, V = (rng.standard_normal(shape) for shape in ((120, 4), (4, 3), (60, 3)))
    X = (F @ A + 0.3 * rng.standard_normal((120, 3))) @ V.T
    i, j = np.nonzero(rng.random((100, 60)) < 0.3)  # of the last 20 rows nothing is known but features
    y = X[i, j] + 0.3 * rng.standard_normal(i.size)
    model = bf.MatrixCompletion(n_components=3, user_features=F, random_state=0).fit((i, j, y))
    rows, cols = np.divmod(np.arange(20 * 60), 60)
    rows += 100
    told, std = model.predict(rows, cols, return_std=True)
    off = told - X[rows, cols]
    assert np.sqrt(np.mean(off**2)) < 0.25 * X[100:].std()
    assert 0.8 < np.mean(np.abs(off) < 1.645 * std) < 0.99
    unseen = model.transform(np.full((2, 60), np.nan), features=F[100:102])
    np.testing.assert_allclose(unseen[:, 1:], model.row_factors_[100:102], atol=1e-9)
    model.save(tmp_path / "fit")
    np.testing.assert_array_equal(bf.load(tmp_path / "fit").predict(rows, cols), told)
