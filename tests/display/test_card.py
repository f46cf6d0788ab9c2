"""Cards for notebooks: whole, escaped, and without scripts or requests, whatever they show."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import bifactor as bf
from bifactor.display.card import BAD, FAIR, GOOD, card, charts, figures, sentence
from bifactor.display.svg import CARD, bar_chart, line_chart, thinned

HOSTILE = '<script>alert("1")</script>&'


def require_sound(html):
    """Well-formed, and nothing in it that runs or is loaded."""
    ElementTree.fromstring(html)
    assert not re.search(r"<script|javascript:|https?:|url\(|@import|<img|<link|\bon\w+=", html)
    assert not re.search(r"\bnan\b|\binf\b", html)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    rows, cols = np.nonzero(rng.random(X.shape) < 0.7)
    return bf.Problem("squared", bf.operators.Entries(rows, cols, X.shape), X[rows, cols])


@pytest.fixture(scope="module")
def result(problem):
    return bf.solve(problem, "auto", rng=0)


def test_texts_are_escaped():
    html = card(HOSTILE, HOSTILE, sentence(HOSTILE, GOOD), figures([(HOSTILE, HOSTILE), (None, HOSTILE)]))
    assert html.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;") == 5
    require_sound(html)
    require_sound(card("", "", charts()))


def test_a_problem_shows_its_sizes(problem):
    rich = problem.penalized(bf.penalties.Ridge(0.25, rows=np.ones(30))) + bf.all_cells(0.5)
    html = rich._repr_html_()
    require_sound(html)
    for text in ("30×20", f"{problem.y.size:,}", "Entries", "Squared()", "Ridge(rho=0.25, rows=…)", "all_cells(0.5)"):
        assert text in html
    labels = np.array([1.0, -1.0, 1.0, 1.0])
    for loss in ("logistic", bf.losses.Huber(0.5)):
        require_sound(bf.Problem(loss, bf.operators.Full((2, 2)), labels, weights=np.ones(4))._repr_html_())


def test_functions_and_objectives_have_cards():
    f = bf.Function(lambda X: 0.5 * np.sum(X**2), lambda X: X, (3, 4))
    assert repr(f) == "Function(3×4, float64)"
    table = bf.operators.FullTable("poisson", np.ones((3, 4)))
    assert repr(table) == "FullTable(3×4, float64)"
    for shown in (f, table, bf.Objective(f), bf.Objective(table)):
        require_sound(shown._repr_html_())
    assert "Poisson()" in table._repr_html_()


def test_a_result_shows_how_it_ended_and_how_it_went(result):
    html = result._repr_html_()
    require_sound(html)
    assert str(result.status) in html
    assert GOOD in html
    assert html.count("<svg") == 3  # the objective, the spectrum and the ranks
    assert html.count('class="bar"') == result.rank
    assert f"{result.misfit:.3g}" in html


def test_a_result_without_a_problem_or_a_path(problem, tmp_path):
    solved = bf.solve(problem, 2, rng=0)
    solved.save(tmp_path / "result.safetensors")
    html = bf.Result.load(tmp_path / "result.safetensors")._repr_html_()
    require_sound(html)
    assert html.count("<svg") == 2
    assert "misfit" not in html


@pytest.mark.parametrize("rank", [0, 1])
def test_offsets_alone_can_be_shown(rank):
    rng = np.random.default_rng(0)
    problem = bf.Problem("squared", bf.operators.Full((5, 4)), rng.standard_normal((5, 4)), offsets=True)
    require_sound(bf.solve(problem, rank, rng=0, max_iter=3)._repr_html_())


def test_the_sign_tells_good_from_bad():
    for status in bf.Status:
        html = status._repr_html_()
        require_sound(html)
        colour = GOOD if status.converged else BAD if status is bf.Status.DIVERGED else FAIR
        assert f"background:{colour}" in html


def test_complex_matrices_can_be_shown():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((5, 4)) + 1j * rng.standard_normal((5, 4))
    problem = bf.Problem("squared", bf.operators.Full((5, 4)), y)
    require_sound(problem._repr_html_())
    require_sound(bf.solve(problem, 2, rng=0)._repr_html_())


def test_long_curves_are_thinned_and_keep_their_ends():
    for count in (1, 200, 201, 5000):
        some = thinned(count)
        assert some[0] == 0
        assert some[-1] == count - 1
        assert len(some) <= 200


def test_charts_of_cards_stay_inside_their_frame():
    rng = np.random.default_rng(0)
    for chart in (
        line_chart(np.arange(90), np.exp(-np.arange(90)), "iteration", "objective", log_y=True, frame=CARD),
        bar_chart(rng.random(50), "component", "singular value", CARD),
    ):
        assert f'viewBox="0 0 {CARD.width} {CARD.height}"' in chart
        for name, limit in (("x", CARD.width), ("y", CARD.height)):
            assert all(0 <= float(value) <= limit for value in re.findall(rf' {name}="([\d.]+)"', chart))
