"""Notebooks show scikit-learn's diagram and, once there is one, a card of the fit."""

import warnings
from html import escape

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bifactor as bf

CARD = '<div class="bifactor-card">'

RNG = np.random.default_rng(0)
CHOICES = {"n_components": 2, "ridge": 0.01, "unobserved": 0.1}
TABLE = RNG.standard_normal((30, 2)) @ RNG.standard_normal((2, 12)) + 0.1 * RNG.standard_normal((30, 12))
HOLES = np.where(RNG.random(TABLE.shape) < 0.8, TABLE, np.nan)
COUNTS = RNG.multinomial(50, [0.4, 0.1, 0.1, 0.4], size=9)
BASES = [a + b for a in "XYZ" for b in "XYZ"]

FITS = {
    "MatrixCompletion": lambda: bf.MatrixCompletion(n_components=2).fit(HOLES),
    "MatrixCompletion, ridge": lambda: bf.MatrixCompletion(n_components=2, ridge="auto", max_iter=20).fit(HOLES),
    "OneBitCompletion": lambda: bf.OneBitCompletion(n_components=1, ridge=1.0).fit(np.sign(HOLES)),
    "LogisticPCA": lambda: bf.LogisticPCA(1, ridge=1.0).fit(TABLE > 0),
    "PoissonPCA": lambda: bf.PoissonPCA(1, ridge=1.0).fit(np.exp(np.clip(TABLE, -2, 2)).round()),
    "Recommender": lambda: bf.Recommender(**CHOICES).fit(sparse.csr_array(TABLE > 0.5)),
    "FactorAnalysis": lambda: bf.FactorAnalysis().fit(HOLES),
    "TableImputer": lambda: bf.TableImputer(effort="fast").fit(HOLES),
    "ImageCompletion": lambda: bf.ImageCompletion().fit(HOLES),
    "StateTomography": lambda: bf.StateTomography(rank=1).fit_counts(BASES, COUNTS),
}


@pytest.fixture(scope="module")
def fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that are too short, or that do not explain these numbers
        return {name: fit() for name, fit in FITS.items()}


def test_every_estimator_is_here():
    assert {name.split(",")[0] for name in FITS} == {
        name for name in bf.estimators.__all__ if hasattr(getattr(bf.estimators, name), "get_params")
    }


@pytest.mark.parametrize("name", FITS)
def test_a_card_comes_with_the_diagram_once_there_is_a_fit(fits, name):
    estimator = fits[name]
    for html in (estimator._repr_html_(), estimator._repr_mimebundle_(include=None, exclude=None)["text/html"]):
        diagram, fitted = html.split(CARD)
        assert "sk-top-container" in diagram
        assert f"{type(estimator).__name__}, fitted" in fitted
        assert "nan" not in fitted
    assert CARD not in type(estimator)()._repr_html_()


def test_the_card_has_what_was_fitted(fits):
    html = fits["MatrixCompletion, ridge"]._repr_html_()
    assert html.count("<svg") - bf.MatrixCompletion()._repr_html_().count("<svg") == 3
    assert escape(str(fits["MatrixCompletion"].result_.status)) in fits["MatrixCompletion"]._repr_html_()


def test_text_stays_text(fits):
    with config_context(display="text"):
        for estimator in fits.values():
            assert not hasattr(estimator, "_repr_html_")
            assert set(estimator._repr_mimebundle_()) == {"text/plain"}


def test_pipelines_keep_their_diagram(fits):
    pipeline = make_pipeline(StandardScaler(), bf.FactorAnalysis()).fit(TABLE)
    assert CARD not in pipeline._repr_html_()


def test_fits_and_models_print_in_one_line(fits):
    fit = fits["MatrixCompletion"].fit_
    assert repr(fit) == f"Fit(30×12, 2 components, Squared(), {np.count_nonzero(~np.isnan(HOLES))} pairs)"
    assert repr(fit.model) == "Model(30×12, 2 components, Squared())"
    assert fit._repr_html_().startswith(CARD)
    assert fit.model._repr_html_().startswith(CARD)
