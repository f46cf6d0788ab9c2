"""Clicks, plays and purchases, as users have them."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import bifactor as bf
from bifactor.errors import InputError
from bifactor.models.completion import fitting
from bifactor.ranking import by_entry, by_user, evaluate


def choices(m=300, n=120, seed=0):
    rng = np.random.default_rng(seed)
    taste = rng.standard_normal((m, 4)) @ rng.standard_normal((4, n)) + 0.5 * rng.standard_normal(n)
    return sparse.csr_array((rng.random((m, n)) < 1 / (1 + np.exp(4 - 1.5 * taste))).astype(float))


@pytest.fixture(scope="module")
def chosen():
    return choices()


@pytest.fixture(scope="module")
def exact(chosen):
    """Settings given, fitted to the end."""
    ends = {"tol": 1e-13, "max_iter": 5000, "random_state": 0}
    return bf.Recommender(n_components=12, unobserved=0.2, ridge=0.01, item_share=0, **ends).fit(chosen)


class Popular:
    def __init__(self, train):
        self.train, self.counts = train, np.asarray(train.sum(axis=0))

    def recommend(self, rows, n):
        known = rows if sparse.issparse(rows) else self.train[rows]
        scores = np.where(known.toarray() > 0, -np.inf, self.counts)
        order = np.argsort(-scores, axis=1)[:, :n]
        return order, np.take_along_axis(scores, order, 1)


@pytest.mark.parametrize("split", [by_entry, by_user])
def test_it_ranks_better_than_popularity(chosen, split):
    parts = split(chosen, seed=1)
    model = bf.Recommender(n_components=12, unobserved=0.5, ridge=0.03, item_share=0, random_state=0).fit(parts.train)
    found, popular = (evaluate(one, parts, 10)["ndcg@10"] for one in (model, Popular(parts.train)))
    assert found > popular + 0.1


def test_the_unit_of_weights_does_not_matter():
    """The weight of other entries that is chosen is relative to it."""
    chosen = choices(180, 30, seed=2)
    weights = 1.0 + np.random.default_rng(0).random(chosen.nnz)
    fits = []
    for unit in (1.0, 1e-6):
        model = bf.Recommender(n_components=3, ridge=0.03, item_share=0, random_state=0)
        fits.append(model.fit(chosen.tocoo().coords, sample_weight=unit * weights))
        assert model.weight_search_.score.size > 3
        assert model.unobserved_ / unit == pytest.approx(fits[0].unobserved_)
    one, other = (model.row_factors_ @ model.components_ for model in fits)
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_settings_are_chosen_by_what_is_held_out(monkeypatch):
    everyone = choices(400, 60)
    train, fresh = everyone[:200], everyone[200:]
    shown = []
    monkeypatch.setattr(fitting, "choice_bar", lambda wanted: nullcontext(lambda *step: shown.append(step)))
    model = bf.Recommender(n_components=6, random_state=0).fit(train)
    poor = bf.Recommender(n_components=6, unobserved=10, ridge=0.1, item_share=0, random_state=0).fit(train)
    assert model.score(fresh) > poor.score(fresh) + 0.05
    assert model.weight_search_.score.size > 3
    assert model.ridge_search_ is None
    search = model.weight_search_
    assert search["users"][search.index] == search["users"].max()
    best = search.chosen
    assert (model.unobserved_, model.ridge_) == (best["unobserved"], best["ridge"])
    assert (model.item_share_, model.item_ridge_) == pytest.approx((best["item_share"], best["item_ridge"]))
    # Each trial is told of when it is done, and each search before its first.
    weights = [step for step in shown if step[0] == "choosing weights"]
    items = [step for step in shown if step[0] == "choosing item-to-item scores"]
    assert shown == weights + items
    assert weights[0][1] == items[0][1] == 0
    assert weights[-1][1] + items[-1][1] + 1 == model.weight_search_.score.size  # one is without item-to-item scores
    assert all(done <= most for _, done, most in shown)


def test_a_choice_is_shown_on_request(capsys):
    for verbose in (0, 1):
        bf.Recommender(n_components=2, unobserved=0.2, item_share=0, verbose=verbose).fit(choices(240, 40))
        assert ("choosing weights" in capsys.readouterr().out) == bool(verbose)


def test_the_objective_is_that_of_dense_sums(chosen, exact):
    X, (m, n) = chosen.toarray(), chosen.shape
    Z = exact.row_factors_ @ exact.components_
    a, b = X.sum(axis=1) + 0.2 * n, X.sum(axis=0) + 0.2 * m
    U, V = exact.row_factors_, exact.components_.T
    value = 0.5 * np.sum(X * (Z - 1) ** 2) + 0.1 * np.sum(Z**2)
    value += 0.005 * (np.sum(a * np.sum(U**2, axis=1)) + np.sum(b * np.sum(V**2, axis=1)))
    assert exact.result_.objective == pytest.approx(value, rel=1e-10)
    gradient = (X * (Z - 1) + 0.2 * Z) @ V + 0.01 * a[:, None] * U
    assert np.abs(gradient).max() < 1e-4


def item_to_item(X, ridge):
    """Each column of X regressed on the others, in the textbook's way."""
    often = X.sum(axis=0)
    ridges = ridge * np.sqrt(np.maximum(often / often.mean(), 0.2))
    B = np.zeros((X.shape[1],) * 2)
    for j in range(X.shape[1]):
        others = np.arange(X.shape[1]) != j
        A = X[:, others]
        B[others, j] = np.linalg.solve(A.T @ A + np.diag(ridges[others]), A.T @ X[:, j])
    return B


@pytest.fixture(scope="module")
def mixed():
    chosen = choices(200, 40, seed=3)
    settings = {"unobserved": 0.2, "ridge": 0.01, "item_share": 0.4, "item_ridge": 20.0}
    return chosen, bf.Recommender(n_components=40, **settings, tol=1e-12, max_iter=5000, random_state=0).fit(chosen)


def test_item_to_item_scores_are_regressions_on_other_columns(mixed):
    chosen, model = mixed
    alone = bf.Recommender(n_components=40, unobserved=0.2, ridge=0.01, item_share=0, tol=1e-12, max_iter=5000)
    X, Z = chosen.toarray(), alone.fit(chosen).row_factors_ @ alone.components_
    expected = 0.6 * Z + 0.4 * X @ item_to_item(X, 20.0)
    found = model.row_factors_ @ model.components_
    unseen = X == 0  # a column that was chosen adds to its own score as well
    np.testing.assert_allclose(found[unseen], expected[unseen], atol=2e-4)


def test_item_to_item_scores_go_everywhere(mixed, tmp_path):
    chosen, model = mixed
    np.testing.assert_allclose(model.transform(chosen), model.row_factors_, atol=1e-4)
    ids, _ = model.recommend([5], 3)
    because, _, rest = model.explain(5, ids[0, 0], n=40)
    assert because.size == chosen[[5]].nnz
    assert rest == pytest.approx(0, abs=1e-4)
    model.save(tmp_path / "fit")
    loaded = bf.load(tmp_path / "fit")
    again = loaded.recommend([5], 3)
    np.testing.assert_array_equal(again[0], ids)
    new = bf.data.Observations(*chosen[[5]].tocoo().coords, np.ones(chosen[[5]].nnz), (1, 40))
    folded = loaded.fold_in(new).recommend([200], 3)
    np.testing.assert_array_equal(folded[0], ids)


def test_rows_and_columns_join_item_to_item_scores(mixed):
    chosen, model = mixed
    longer = clone(model).set_params(warm_start=True).fit(chosen)
    rows, cols = np.array([200, 200, 200, 3, 7]), np.array([1, 2, 40, 40, 40])
    longer.partial_fit((rows, cols, np.ones(5)))
    assert longer.row_factors_.shape == (201, longer.n_components_)
    assert longer.components_.shape[1] == 41
    history = sparse.csr_array((np.ones(2), ([0, 0], [1, 2])), shape=(1, 41))
    np.testing.assert_allclose(longer.transform(history)[0], longer.row_factors_[200], atol=0.1)
    assert np.all(np.isfinite(longer.recommend([200, 3], 5)[1]))


def test_item_to_item_scores_serve_where_things_go_together():
    """Pairs of things, and no more to tell."""
    rng = np.random.default_rng(6)
    X = (rng.random((900, 40)) < 0.06).astype(float)
    X[:, 1::2] = np.where(X[:, ::2] > 0, rng.random((900, 20)) < 0.7, X[:, 1::2])
    parts = by_entry(sparse.csr_array(X), seed=0)
    settings = {"n_components": 20, "unobserved": 0.2, "ridge": 0.03, "random_state": 0}
    model, alone = (bf.Recommender(**settings, item_share=share).fit(parts.train) for share in ("auto", 0))
    assert model.item_share_ > 0
    assert alone.item_share_ == 0
    found, without = (evaluate(one, parts, 5)["ndcg@5"] for one in (model, alone))
    assert found > without


def test_strangers_are_found_as_rows_of_the_fit(chosen, exact):
    np.testing.assert_allclose(exact.transform(chosen), exact.row_factors_, atol=1e-5)
    ids, scores = exact.recommend(np.arange(20), 7)
    again, same = exact.recommend(chosen[:20], 7)
    np.testing.assert_array_equal(ids, again)
    np.testing.assert_allclose(scores, same, atol=1e-5)


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("filter_seen", [True, False])
def test_those_who_chose_nothing_get_what_is_popular_and_are_told(chosen, exact, others, filter_seen):
    histories = sparse.vstack([chosen[:others], sparse.csr_array((1, chosen.shape[1]))]).tocsr()
    assert not exact.transform(histories)[-1].any()
    with pytest.warns(UserWarning, match="1 row without any choice: the most popular"):
        ids, scores = exact.recommend(histories, 3, filter_seen=filter_seen)
    assert ids.shape == (others + 1, 3)
    shares = (chosen > 0).sum(axis=0) / chosen.shape[0]
    np.testing.assert_allclose(scores[-1], np.sort(shares)[::-1][:3])
    np.testing.assert_allclose(shares[ids[-1]], scores[-1])
    with pytest.warns(UserWarning, match="popular"):
        (some,), _ = exact.recommend(histories[[-1]], 2, items=[7, 9, 30])
    assert set(some.tolist()) < {7, 9, 30}
    assert shares[some[0]] == shares[[7, 9, 30]].max()
    if others:  # who are served as ever
        np.testing.assert_array_equal(ids[:others], exact.recommend(chosen[:others], 3, filter_seen=filter_seen)[0])


def test_rows_of_the_fit_without_a_choice_get_what_is_popular(chosen, tmp_path):
    X = sparse.vstack([chosen, sparse.csr_array((2, chosen.shape[1]))]).tocsr()
    model = bf.Recommender(n_components=5, unobserved=0.2, ridge=0.01, random_state=0).fit(X)
    model.save(tmp_path / "fit")
    for one in (model, bf.load(tmp_path / "fit")):
        with pytest.warns(UserWarning, match="2 rows without any choice"):
            ids, scores = one.recommend([300, 0, 301], 4)
        np.testing.assert_array_equal(ids[0], ids[2])
        np.testing.assert_allclose(scores[0], np.sort((chosen > 0).sum(axis=0))[::-1][:4] / 300)
        np.testing.assert_array_equal(ids[[1]], one.recommend([0], 4)[0])


def test_items_to_choose_from_count_once(exact):
    ids, scores = exact.recommend([3, 5], 10, items=[1, 1, 2, 2], filter_seen=False)
    assert ids.shape == (2, 2)
    assert np.all(ids >= 0)
    assert np.all(np.isfinite(scores))
    with pytest.raises(InputError, match="items is empty"):
        exact.recommend([3], 2, items=[])


def test_a_mask_says_which_items_and_which_users(exact):
    """Not the items 0 and 1, which True and False are equal to."""
    items, users = np.arange(exact.n_features_in_) % 2 == 0, np.zeros(len(exact.row_factors_), bool)
    users[[3, 5]] = True
    by_mask, by_place = exact.recommend(users, 4, items=items), exact.recommend([3, 5], 4, items=np.flatnonzero(items))
    for one, other in zip(by_mask, by_place, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InputError, match="mask has 3 elements"):
        exact.recommend([3], 2, items=[True, False, True])


def test_histories_may_be_dense(exact, chosen):
    some = chosen[:3]
    np.testing.assert_array_equal(exact.recommend(some.toarray(), 4)[0], exact.recommend(some, 4)[0])
    with pytest.raises(InputError, match="2 dimensions"):
        exact.fit_.recommend(some.toarray(), 4)


def test_a_folder_explains_as_the_model_does(chosen, tmp_path):
    plays = chosen.copy()
    plays.data = 1.0 + np.arange(plays.nnz) % 5
    model = bf.Recommender(n_components=12, unobserved=0.2, ridge=0.01, tol=1e-12, max_iter=5000, random_state=0)
    model.fit(plays).save(tmp_path / "fit")
    loaded = bf.load(tmp_path / "fit")
    (ids,), (scores,) = loaded.recommend([3], 1)
    names, parts, rest = loaded.explain(3, ids[0], n=1000)
    assert parts.sum() + rest == pytest.approx(scores[0], rel=1e-12)
    assert rest == pytest.approx(0, abs=1e-4)
    np.testing.assert_array_equal(names, model.explain(3, ids[0], n=1000)[0])
    np.testing.assert_allclose(parts, model.explain(3, ids[0], n=1000)[1], rtol=1e-12)
    history = bf.data.Observations(
        np.zeros(plays[[3]].nnz, int), plays[[3]].indices, plays[[3]].data, (1, plays.shape[1])
    )
    again = loaded.fold_in(history)
    np.testing.assert_allclose(again.explain(300, ids[0], n=1000)[1], parts, rtol=1e-5)
    with pytest.raises(InputError, match="Only recommendations from clicks"):
        bf.MatrixCompletion(n_components=1, ridge=1.0).fit((np.arange(3), np.arange(3), np.arange(3.0))).fit_.explain(
            0, 1
        )


EXPLAINED = {
    "stopped early": {"max_iter": 2},
    "single precision": {"dtype": np.float32},
    "item-to-item": {"item_share": 0.4, "item_ridge": 20.0},
    "features": {"user_features": np.eye(120)[np.arange(120) % 5, :4]},
    "everything": {"user_features": np.ones((120, 1)), "item_features": np.eye(40, 3), "item_share": 0.3},
    "no ridge, too many components": {"ridge": 0, "n_components": 40},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", EXPLAINED)
def test_parts_and_rest_add_up_to_the_prediction(name, tmp_path):
    """Of the fit and of its folder, for every n; new rows are exact, so that only features are left for the rest."""
    settings = {"n_components": 6, "unobserved": 0.2, "ridge": 0.01, "item_share": 0, "item_ridge": 20.0}
    settings |= {"tol": 1e-3, "random_state": 0} | EXPLAINED[name]
    chosen = choices(120, 40, seed=5).astype(settings.pop("dtype", np.float64))
    model = bf.Recommender(**settings).fit(chosen)
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    features = model._features(settings["user_features"][:2] if "user_features" in settings else None, 2)
    history = chosen[[3, 8]].tocoo()
    folded = fit.fold_in(bf.data.Observations(*history.coords, history.data, history.shape, row_features=features))
    tol = 20 * float(np.finfo(chosen.dtype).eps)
    for one, rows in ((model, (3, 8)), (fit, (3, 8)), (folded, (120, 121))):
        for row, col in zip(rows, (2, 7), strict=True):
            for n in (1, 3, 40):
                _, parts, rest = one.explain(row, col, n)
                assert parts.sum() + rest == pytest.approx(one.predict(row, col), abs=tol)
            if one is folded and features is None and name[:2] != "no":
                assert rest == pytest.approx(0, abs=1e3 * tol)


def test_what_was_chosen_is_left_out_unless_asked_for(chosen, exact):
    ids, scores = exact.recommend([3, 5], 10)
    assert ids.shape == scores.shape == (2, 10)
    for row, found in zip((3, 5), ids, strict=True):
        assert not set(found.tolist()) & set(chosen[[row]].indices.tolist())
    assert np.all(np.diff(scores, axis=1) <= 0)
    ids, _ = exact.recommend([3], 10, filter_seen=False)
    assert set(ids[0].tolist()) & set(chosen[[3]].indices.tolist())
    ids, _ = exact.recommend([3, 5], 10, items=[1, 2, 7, 9], filter_seen=False)
    assert set(ids.ravel().tolist()) == {1, 2, 7, 9}


def test_what_carries_a_recommendation_adds_up(chosen, exact):
    (ids,), (scores,) = exact.recommend([3], 1)
    names, parts, _ = exact.explain(3, ids[0], n=1000)
    assert set(names.tolist()) == set(chosen[[3]].indices.tolist())
    assert parts.sum() == pytest.approx(scores[0], rel=1e-4)
    assert np.all(np.diff(parts) <= 0)
    few, _, _ = exact.explain(3, ids[0], n=2)
    np.testing.assert_array_equal(few, names[:2])


def test_neighbours(chosen):
    twice = sparse.hstack([chosen, chosen[:, [4]]]).tocsr()
    model = bf.Recommender(n_components=12, unobserved=0.2, ridge=0.01, item_share=0).fit(twice)
    ids, cosines = model.similar_items([4], 3)
    assert ids[0, 0] == chosen.shape[1]
    assert cosines[0, 0] == pytest.approx(1, abs=1e-3)
    users, cosines = model.similar_users(7, 1000)
    assert users.shape == (1, chosen.shape[0] - 1)
    assert 7 not in users
    assert np.all(np.diff(cosines[0]) <= 1e-12)


def test_kinds_of_input_agree(chosen):
    settings = {"n_components": 6, "unobserved": 0.2, "ridge": 0.01, "item_share": 0, "random_state": 0}
    rows, cols = chosen.tocoo().coords
    expected = bf.Recommender(**settings).fit(chosen).row_factors_
    frame = pd.DataFrame({"user": rows, "item": cols})
    kinds = [chosen.tocsc(), chosen.toarray(), (rows, cols), (rows, cols, np.ones(rows.size)), frame]
    kinds += [np.where(chosen.toarray() > 0, 1, np.nan), chosen.astype(np.float64)]
    for kind in kinds:
        np.testing.assert_allclose(bf.Recommender(**settings).fit(kind).row_factors_, expected, rtol=1e-6, atol=1e-9)
    single = bf.Recommender(**settings).fit(chosen.astype(np.float32))
    assert single.row_factors_.dtype == np.float32
    np.testing.assert_allclose(np.abs(single.row_factors_), np.abs(expected), atol=1e-2)  # signs are arbitrary


def test_counts_and_weights(chosen):
    rows, cols = chosen.tocoo().coords
    again = np.concatenate([rows, rows[:50]]), np.concatenate([cols, cols[:50]])
    counts = np.ones(rows.size)
    counts[:50] = 2
    settings = {"n_components": 6, "unobserved": 0.2, "ridge": 0.01, "item_share": 0, "random_state": 0}
    one, two = (bf.Recommender(**settings).fit(X) for X in (again, (rows, cols, counts)))
    np.testing.assert_allclose(one.row_factors_, two.row_factors_)
    np.testing.assert_allclose(np.sort(two.observations_.weights)[-50:], 1 + np.log(2))
    half = bf.Recommender(**settings).fit((rows, cols), sample_weight=np.full(rows.size, 0.5))
    np.testing.assert_allclose(half.observations_.weights, 0.5)
    zeros = bf.Recommender(**settings).fit((rows, cols, np.where(np.arange(rows.size) < 5, 0.0, 1.0)))
    assert zeros.observations_.values.size == rows.size - 5


def test_names_files_and_folders(chosen, tmp_path):
    rows, cols = chosen.tocoo().coords
    lines = pd.DataFrame({"user": [f"u{i}" for i in rows], "item": [f"film {j}" for j in cols], "plays": 3})
    lines[["user", "item"]].to_csv(tmp_path / "clicks.csv", index=False)
    settings = {"n_components": 6, "unobserved": 0.2, "ridge": 0.01, "item_share": 0, "random_state": 0}
    model = bf.Recommender(**settings).fit_long(tmp_path / "clicks.csv")
    framed = bf.Recommender(**settings).fit_long(lines, row="user", col="item")
    ids, scores = model.recommend(["u3", "u0"], 4)
    np.testing.assert_array_equal(ids, framed.recommend(["u3", "u0"], 4)[0])
    assert ids[0, 0].startswith("film ")
    counted = bf.Recommender(**settings).fit_long(lines, row="user", col="item", value="plays")
    assert np.allclose(counted.observations_.weights, 1 + np.log(3))
    recent = lines.assign(recent=[0.0, *[0.5] * (len(lines) - 1)])
    weighed = bf.Recommender(**settings).fit_long(recent, row="user", col="item", weight="recent")
    assert np.allclose(weighed.observations_.weights, 0.5)
    assert weighed.observations_.values.size == rows.size - 1
    model.save(tmp_path / "fit")
    loaded = bf.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.recommend(["u3", "u0"], 4)[1], scores)
    assert loaded.model.rows.base.unobserved == 0.2
    assert 0 < model.score_long(lines[["user", "item"]]) <= 1
    newcomer = lines[lines["user"] == "u3"].assign(user="new")
    plain = bf.data.read(newcomer, row="user", col="item", values=False)
    counts = bf.data.read(newcomer, row="user", col="item", value="plays")
    for history, plays in ((plain, 1.0), (counts, 3.0)):
        known = sparse.csr_array(plays * (chosen[[3]] > 0))
        # Columns are in the order of their names here.
        order = np.array([int(name.split()[1]) for name in model.column_names_.values])
        expected = model.transform(known[:, order])
        np.testing.assert_allclose(loaded.fold_in(history).model.U[-1:], expected, atol=1e-6)


def test_more_is_taken_in(chosen):
    model = bf.Recommender(n_components=6, unobserved=0.2, ridge=0.01, item_share=0, tol=1e-12, max_iter=3000)
    model.fit(chosen[:290])
    model.partial_fit(chosen[290:])
    assert model.row_factors_.shape[0] == 300
    np.testing.assert_allclose(model.row_factors_[290:], model.transform(chosen[290:]), atol=1e-6)
    model.partial_fit((np.array([0, 301]), np.array([119, 3]), np.ones(2)))
    assert model.row_factors_.shape[0] == 302
    assert 119 not in model.recommend([0], 50)[0]


def test_few_users_choose_no_settings():
    model = bf.Recommender(n_components=3, random_state=0).fit(choices(20, 15))
    assert model.weight_search_ is None
    assert (model.unobserved_, model.ridge_) == (0.2, 0.01)


def test_rank_and_edges():
    one = bf.Recommender(n_components=500, unobserved=0.5, ridge=0.1, item_share=0, random_state=0).fit(
        sparse.csr_array([[1.0]])
    )
    assert one.n_components_ == 1
    assert one.recommend([0], 3)[0].shape == (1, 0)
    X = sparse.csr_array(([1.0, 1.0], ([0, 0], [0, 1])), shape=(3, 4))
    model = bf.Recommender(n_components=2, unobserved=0.5, ridge=0.1, item_share=0, random_state=0).fit(X)
    assert not model.row_factors_[1:].any()  # nothing is known of these


def test_scikit_learn_may_clone_it(chosen):
    model = clone(bf.Recommender(n_components=5, unobserved=0.3, ridge=0.02, random_state=1))
    assert model.set_params(item_share=0).fit_transform(chosen).shape == (300, 5)
    assert model.get_feature_names_out().size == 5
    assert 0 < model.score(chosen) <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unobserved": 0}, "above 0"),
        ({"unobserved": "much"}, "above 0"),
        ({"unobserved": np.nan}, "above 0"),
        ({"ridge": -1}, "ridge"),
        ({"ridge": None}, "posterior"),
        ({"n_components": 0}, "integer"),
        ({"n_components": "auto"}, "integer"),
        ({"max_iter": 0}, "max_iter"),
        ({"item_share": 1}, "and < 1"),
        ({"item_share": -0.1}, "and < 1"),
        ({"item_share": "some"}, "and < 1"),
        ({"item_share": np.nan}, "and < 1"),
        ({"item_ridge": 0}, "above 0"),
    ],
)
def test_wrong_settings(chosen, settings, message):
    with pytest.raises(InputError, match=message):
        bf.Recommender(**settings).fit(chosen)


def test_wrong_data(chosen, exact):
    with pytest.raises(InputError, match="above 0"):
        bf.Recommender().fit(-chosen)
    with pytest.raises(InputError, match="There are no choices"):
        bf.Recommender().fit(sparse.csr_array(([0.0], ([0], [0])), shape=(5, 4)))
    with pytest.raises(InputError, match="infinity"):
        bf.Recommender().fit(np.array([[1.0, np.inf], [0.0, 1.0]]))
    with pytest.raises(InputError, match="fit_long"):
        bf.Recommender().fit(pd.DataFrame({"user": [0, 1], "item": [1, 0]}), sample_weight=np.ones(2))
    with pytest.raises(ValueError, match="features"):
        exact.recommend(chosen[:, :50], 3)
    with pytest.raises(InputError, match="no row named 900"):
        exact.recommend([900], 3)
    with pytest.raises(InputError, match="no column named 900"):
        exact.recommend([0], 3, items=[900])
    with pytest.raises(InputError, match="n=0"):
        exact.recommend([0], 0)
    with pytest.raises(InputError, match="no column named 900"):
        exact.explain(0, 900)
    with pytest.raises(InputError, match="Only one recommendation"):
        exact.explain([0, 1], 3)
    with pytest.raises(InputError, match="no row"):
        exact.similar_users([900])


def test_one_value_asks_for_it(chosen):
    rows, cols = chosen.tocoo().coords
    with pytest.warns(UserWarning, match="Recommender"):
        bf.MatrixCompletion(n_components=1, ridge=1.0).fit((rows, cols, np.ones(rows.size)))
    with pytest.warns(UserWarning, match="Recommender"):
        bf.OneBitCompletion(n_components=1, ridge=1.0).fit((rows, cols, np.ones(rows.size)))
