"""The choice of the rank, and what is said of fits that explain little."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.qubits import drawn_state, labels, matrix, sample

from bifactor.models.tomography import fit
from bifactor.models.tomography.fit import (
    Prediction,
    TomographySettings,
    _as_good_as_the_best,
    fit_state,
    misfit_warning,
    search_rank,
)
from bifactor.models.tomography.measurements import Counts, Expectations
from bifactor.running.result import Status
from bifactor.solvers import PCG

HOW = TomographySettings(PCG(), 1000, 1e-6, seed=0)


def counted(rho, n, shots=300, reverse=False, seed=0):
    return Counts.of(labels(n), sample(rho, labels(n), shots, seed), None, reverse)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rank", [1, 2])
def test_the_rank_of_a_state_is_found(rank, seed):
    search = search_rank(counted(drawn_state(3, rank, seed), 3, 1000), HOW)
    assert search.chosen == {"rank": rank}
    assert search["rank"].tolist() == [2**k for k in range(rank + 1)]  # the next one was tried, and is worse
    assert search.score[search.index] == pytest.approx(search.score.max(), abs=1e-4)
    assert search.standard_error[np.argmax(search.score)] == 0
    assert not search.interrupted


@pytest.mark.parametrize(("explained", "tried", "wanted"), [({8}, [1, 2, 4, 8], 8), ({1, 8}, [1, 2], 1)])
def test_ranks_that_explain_nothing_do_not_end_the_choice(explained, tried, wanted, monkeypatch):
    """Of a very mixed state, rank 2 may predict worse than rank 1, and rank 8 better than both."""
    values = {1: -2.6, 2: -2.8, 4: -2.3, 8: -2.1}

    def predictions(data, rank, folds, how):
        return Prediction(np.full(len(data.labels), values[rank]), rank in explained)

    monkeypatch.setattr(fit, "predict_held_out", predictions)
    search = search_rank(counted(np.eye(8) / 8, 3), HOW)
    assert search.chosen == {"rank": wanted}
    assert search["rank"].tolist() == tried


def test_mixed_states_have_the_full_rank():
    assert search_rank(counted(np.eye(8) / 8, 3, 1000), HOW).chosen["rank"] == 8


def test_a_lower_rank_has_to_predict_as_well():
    """One standard error of the difference is allowed, and no rank is taken that explains less."""
    rng = np.random.default_rng(0)
    best = Prediction(rng.standard_normal(50), True)
    near, far = best.values - 0.1 + rng.standard_normal(50), best.values - 0.1
    for values, explained, wanted in ((near, True, 0), (near, False, 1), (far, True, 1), (near - np.inf, True, 1)):
        assert _as_good_as_the_best([Prediction(values, explained), best]) == wanted
    unexplained = replace(best, explained=False)
    assert _as_good_as_the_best([Prediction(near, False), unexplained]) == 0
    nowhere = Prediction(np.full(50, -np.inf), False)
    assert _as_good_as_the_best([nowhere, nowhere]) == 0


def test_values_have_ranks_too():
    rho, strings, rng = drawn_state(2, 1), labels(2, "IXYZ")[1:], np.random.default_rng(0)
    values = np.array([np.trace(matrix(s) @ rho).real for s in strings]) + 0.05 * rng.standard_normal(15)
    search = search_rank(Expectations.of(strings, values, np.full(15, 0.05), None), HOW)
    assert search.chosen == {"rank": 1}
    assert np.all(search.score < 0)


def test_few_settings_have_the_full_rank():
    assert search_rank(counted(drawn_state(2, 1), 2), HOW) is None  # nine


@pytest.mark.parametrize(("fits", "tried"), [(7, [1]), (3, [])])
def test_ctrl_c_ends_the_choice(fits, tried, monkeypatch):
    calls = []

    def interrupted(data, rank, how):
        state = fit_state(data, rank, how)
        calls.append(rank)
        broken = replace(state.result, status=Status.INTERRUPTED)
        return replace(state, result=broken) if len(calls) == fits else state

    monkeypatch.setattr(fit, "fit_state", interrupted)
    data = counted(drawn_state(3, 1), 3)
    if not tried:
        with pytest.raises(KeyboardInterrupt):
            search_rank(data, HOW)
        return
    search = search_rank(data, HOW)
    assert len(calls) == fits
    assert (search.chosen, search["rank"].tolist(), search.interrupted) == ({"rank": 1}, tried, True)


def said(data, rank, bit_order="same"):
    return misfit_warning(fit_state(data, rank, HOW), data, HOW, bit_order)


def test_a_good_fit_is_passed_over_in_silence():
    assert said(counted(drawn_state(2, 2), 2), 2) is None
    assert said(Expectations.of(["XX", "ZZ"], [5.0, -5.0], None, None), 4) is None  # errors are not known


def test_a_rank_too_low_is_said():
    text = said(counted(drawn_state(2, 4), 2), 1)
    assert "not explained by a state of rank 1: χ² = " in text
    assert re.search(r"on 21 degrees of freedom, p = \S+\. Try a higher rank\. Check", text)
    assert "reversed" not in text


@pytest.mark.parametrize(("n", "rank", "shots"), [(2, 1, 200), (3, 2, 100), (3, 8, 2000), (4, 1, 30)])
def test_reversed_bits_are_found_out(n, rank, shots):
    rho = drawn_state(n, rank)
    for order, other in (("same", "reversed"), ("reversed", "same")):
        text = said(counted(rho, n, shots, reverse=True), rank, order)
        assert "With the bits of outcomes reversed, the log-likelihood per shot is" in text
        assert f"pass bit_order='{other}' (--bit-order {other})." in text


def test_counts_of_no_state_get_no_wrong_hint():
    """+1 with certainty in all directions: no state, and the same with reversed bits."""
    text = said(Counts.of(labels(2), [[100, 0, 0, 0]] * 9, None, False), 4)
    assert "not explained by any state of 2 qubits" in text
    assert re.search(r"degrees of freedom, p = \S+\. Check that labels and values belong together", text)
    single = said(Counts.of(["X", "Y", "Z"], [[100, 0]] * 3, None, False), 2)
    assert "any state of 1 qubit:" in single


def test_values_of_no_state_are_said():
    text = said(Expectations.of(["XX", "ZZ", "YY"], [1, 1, 1], [0.01] * 3, None), 4)
    assert "The expectation values are not explained by any state of 2 qubits" in text
    assert "χ² = 13,333.3 with no degrees of freedom left. Check" in text


def test_an_interrupted_fit_is_not_tried_in_reverse(monkeypatch):
    data = counted(drawn_state(2, 1), 2, 1000, reverse=True)
    state = fit_state(data, 1, HOW)
    broken = replace(state, result=replace(state.result, status=Status.INTERRUPTED))
    monkeypatch.setattr(fit, "fit_state", None)
    assert "higher rank" in misfit_warning(broken, data, HOW, "same")
