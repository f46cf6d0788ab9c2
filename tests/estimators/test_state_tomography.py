"""Quantum state tomography: laws, an independent method, bad input, and measured data where they are at hand."""

import csv
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.qubits import (
    BELL,
    bit_strings,
    drawn_state,
    fixed_point,
    labels,
    matrix,
    measured,
    per_shot,
    probabilities,
    sample,
)

from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.estimators import MisfitWarning, StateTomography, linear_inversion, nearest_state
from bifactor.models.tomography.measurements import eigenvectors
from bifactor.operators.pauli import Pauli
from bifactor.running.result import Status
from bifactor.running.search import Search
from bifactor.solvers import BFGD, FGD, PCG, SPG, Newton
from bifactor.steps import Backtracking, Constant


def uhlmann(rho, sigma):
    root = sqrtm(rho)
    return np.trace(sqrtm(root @ sigma @ root)).real ** 2


@pytest.mark.parametrize(("n", "rank"), [(1, 2), (2, 4), (3, 8)])
def test_full_rank_is_the_fixed_point_of_the_classical_iteration(n, rank):
    settings = labels(n)
    counts = sample(0.9 * drawn_state(n, 1) + 0.1 * drawn_state(n, rank, 1), settings, 500)
    fit = StateTomography(n, rank, tol=1e-8, random_state=0).fit_counts(settings, counts)
    classical = fixed_point(settings, counts)
    np.testing.assert_allclose(fit.density_matrix(), classical, atol=2e-4)
    assert fit.log_likelihood(settings, counts) >= per_shot(classical, settings, counts) - 1e-8


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
def test_the_trace_is_one_without_being_asked_for(rank):
    settings = labels(3)[::2]
    counts = sample(drawn_state(3, rank), settings, 300)
    fit = StateTomography(3, rank, random_state=0).fit_counts(settings, counts)
    np.testing.assert_allclose(np.linalg.norm(fit.result_.U) ** 2, 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(fit.factor_), 1)
    gram = fit.factor_.conj().T @ fit.factor_
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    assert np.all(np.diff(np.diag(gram).real) <= 0)


@pytest.mark.parametrize(("n", "rank", "n_settings"), [(2, 1, 9), (3, 2, 27), (4, 2, 40), (6, 1, 20), (6, 2, 30)])
def test_states_are_recovered_from_many_shots(n, rank, n_settings):
    rho = drawn_state(n, rank)
    settings = list(np.random.default_rng(1).permutation(labels(n))[:n_settings])
    counts = sample(rho, settings, 4000)
    fit = StateTomography(n, rank, random_state=0).fit_counts(settings, counts)
    assert fit.result_.status.converged
    assert fit.fidelity(rho) > 0.995
    assert fit.log_likelihood(settings, counts) >= per_shot(rho, settings, counts)


@pytest.mark.filterwarnings("ignore::bifactor.estimators.MisfitWarning")
def test_more_rank_never_explains_less():
    settings = labels(2)
    counts = sample(drawn_state(2, 3), settings, 1000)
    fits = [StateTomography(2, r, random_state=0).fit_counts(settings, counts) for r in (1, 2, 3, 4)]
    values = np.array([fit.log_likelihood(settings, counts) for fit in fits])
    assert np.all(np.diff(values) > -1e-7)


def test_impossible_outcomes_and_empty_settings_do_no_harm():
    settings = ["ZZ", "XX", "YY", "XZ"]
    counts = np.array([[50, 0, 0, 50], [50, 0, 0, 50], [0, 50, 50, 0], [0, 0, 0, 0]])
    fit = StateTomography(2, 1, random_state=0).fit_counts(settings, counts)
    assert fit.fidelity(BELL) > 0.999
    assert np.isfinite(fit.log_likelihood(settings, counts))


def test_every_form_of_counts_is_the_same_fit():
    settings = ["ZZ", "XX", "YY"]
    table = np.array([[40, 3, 0, 57], [45, 0, 5, 50], [0, 50, 48, 2]])
    bits = [{"00": 40, "01": 3, "11": 57}, {"00": 45, "10": 5, "11": 50}, {"01": 50, "10": 48, "11": 2}]
    numbers = [{"0x0": 40, 1: 3, "0x3": 57}, {0: 45, "1 0": 5, 3: 50}, {"0 1": 50, "0x2": 48, "11": 2}]
    first = StateTomography(2, 2, random_state=0).fit_counts(settings, table)
    forms = [(settings, bits), (settings, numbers), (dict(zip(settings, bits, strict=True)),)]
    for form in forms:
        other = StateTomography(2, 2, random_state=0).fit_counts(*form)
        np.testing.assert_array_equal(first.factor_, other.factor_)
        assert other.log_likelihood(*form) == first.log_likelihood(settings, table)


def test_labels_tell_how_many_qubits_there_are():
    settings, counts = labels(2), sample(drawn_state(2, 1), labels(2), 100)
    fit, told = (StateTomography(n, 1, random_state=0).fit_counts(settings, counts) for n in (None, 2))
    assert fit.n_qubits_ == told.n_qubits_ == 2
    assert fit.n_qubits is None
    np.testing.assert_array_equal(fit.factor_, told.factor_)
    assert StateTomography(rank=1, random_state=1).fit_expectations(["XII", "IZI"], [1, 1]).n_qubits_ == 3
    with pytest.raises(InputError, match=r"'XXX'.*2 letters"):
        fit.probabilities(["XXX"])


def test_the_rank_is_left_to_settings_held_out():
    settings, counts = labels(3), sample(drawn_state(3, 2), labels(3), 1000)
    fit = StateTomography(random_state=0).fit_counts(settings, counts)
    assert fit.rank_ == 2
    assert fit.rank_search_["rank"].tolist() == [1, 2, 4]
    assert not fit.rank_search_.interrupted
    told = StateTomography(rank=2, random_state=0).fit_counts(settings, counts)
    np.testing.assert_array_equal(fit.factor_, told.factor_)
    assert told.rank_search_ is None
    few = StateTomography(random_state=0).fit_counts(settings[:9], counts[:9])
    assert (few.rank_, few.rank_search_) == (8, None)


def test_a_choice_of_the_rank_cut_short_is_said(monkeypatch):
    from bifactor.estimators import state_tomography as module

    search = Search("rank", {"rank": np.array([1, 2])}, np.array([-0.5, -0.4]), 1, interrupted=True)
    monkeypatch.setattr(module, "search_rank", lambda data, how: search)
    with pytest.warns(ConvergenceWarning, match="The choice of the rank was interrupted at 2"):
        fit = StateTomography(random_state=0).fit_counts(labels(2), sample(drawn_state(2, 2), labels(2), 100))
    assert (fit.rank_, fit.rank_search_) == (2, search)


@pytest.mark.parametrize(
    "source", [lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)], ids=["int", "old", "new"]
)
def test_one_source_of_randomness_one_answer(source):
    settings, counts = labels(3), sample(drawn_state(3, 1), labels(3), 50)
    first, second = (StateTomography(3, random_state=source()).fit_counts(settings, counts) for _ in range(2))
    np.testing.assert_array_equal(first.factor_, second.factor_)
    assert (first.rank_search_ is None) == (second.rank_search_ is None)


def test_a_generator_moves_on():
    settings, counts = labels(2), sample(drawn_state(2, 4), labels(2), 50)
    rng = np.random.default_rng(0)
    first, second = (StateTomography(2, 4, tol=0.1, random_state=rng).fit_counts(settings, counts) for _ in range(2))
    assert not np.array_equal(first.factor_, second.factor_)


def test_order_and_number_of_shots_do_not_matter():
    settings = labels(2)
    counts = sample(drawn_state(2, 4), settings, 300)
    fit = StateTomography(2, 4, tol=1e-9, random_state=0).fit_counts(settings, counts)
    order = np.random.default_rng(0).permutation(9)
    other = StateTomography(2, 4, tol=1e-9, random_state=1).fit_counts([settings[i] for i in order], 2 * counts[order])
    np.testing.assert_allclose(fit.density_matrix(), other.density_matrix(), atol=1e-4)


def test_exchanging_qubits_exchanges_them_in_the_state():
    settings = labels(2)
    counts = sample(drawn_state(2, 4), settings, 300)
    fit = StateTomography(2, 4, tol=1e-9, random_state=0).fit_counts(settings, counts)
    there = [0, 2, 1, 3]
    other = StateTomography(2, 4, tol=1e-9, random_state=0).fit_counts([s[::-1] for s in settings], counts[:, there])
    np.testing.assert_allclose(other.density_matrix(), swapped(fit.density_matrix()), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_expectations_at_full_rank_give_the_projection_of_linear_inversion(n):
    # Over all strings Σ (tr ρP − v)² = 2ⁿ‖ρ − ρ_linear‖²_F: so this also proves that the unit trace is exact.
    strings = labels(n, "IXYZ")[1:]
    rng = np.random.default_rng(0)
    rho = drawn_state(n, 1)
    values = np.array([np.trace(matrix(s) @ rho).real for s in strings]) + 0.1 * rng.standard_normal(len(strings))
    linear = (np.eye(2**n) + sum(v * matrix(s) for v, s in zip(values, strings, strict=True))) / 2**n
    fit = StateTomography(n, 2**n, tol=1e-10, random_state=0).fit_expectations(strings, values)
    np.testing.assert_allclose(fit.density_matrix(), nearest_state(linear), atol=1e-4)


@pytest.mark.parametrize(("n", "rank", "size"), [(2, 1, 15), (3, 2, 60), (6, 1, 800), (6, 2, 1500)])
def test_states_are_recovered_from_expectations(n, rank, size):
    rho = drawn_state(n, rank)
    rng = np.random.default_rng(0)
    strings = list(rng.permutation(labels(n, "IXYZ")[1:])[:size])
    values = Pauli(n, strings).forward(rho, np.eye(2**n, dtype=rho.dtype))
    fit = StateTomography(n, rank, random_state=0).fit_expectations(strings, values + 0.01 * rng.standard_normal(size))
    assert fit.fidelity(rho) > 0.99


def test_exact_values_weigh_more():
    strings, values = ["XX", "ZZ", "YY", "XX"], [1.0, 1.0, -1.0, -1.0]
    careful = StateTomography(2, 4, tol=1e-5, random_state=0).fit_expectations(strings, values, [0.01] * 3 + [1.0])
    assert careful.fidelity(BELL) > 0.99
    assert StateTomography(2, 4, random_state=0).fit_expectations(strings, values).fidelity(BELL) < 0.9


def test_the_identity_may_be_among_the_strings():
    first = StateTomography(1, 1, random_state=0).fit_expectations(["X", "Y", "Z"], [0.6, 0.1, 0.8])
    second = StateTomography(1, 1, random_state=0).fit_expectations(["X", "I", "Y", "Z"], [0.6, 1.0, 0.1, 0.8])
    np.testing.assert_allclose(first.factor_, second.factor_, atol=1e-12)


def fitted(n, rank, seed=0):
    settings = labels(n)
    counts = sample(drawn_state(n, min(rank, 2), seed), settings, 99)
    return StateTomography(n, rank, random_state=0, tol=1e-4).fit_counts(settings, counts)


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_fidelity_is_uhlmanns(rank):
    fit, other, ket = fitted(2, rank), fitted(2, 3, seed=5), gaussian(np.random.default_rng(0), (4,), np.complex128)
    ket = ket / np.linalg.norm(ket)
    rho, sigma = fit.density_matrix(), drawn_state(2, 4, 3)
    np.testing.assert_allclose(fit.fidelity(sigma), uhlmann(sigma, rho), rtol=1e-6)
    np.testing.assert_allclose(fit.fidelity(other), fit.fidelity(other.density_matrix()), rtol=1e-6)
    np.testing.assert_allclose(fit.fidelity(other), other.fidelity(fit), rtol=1e-10)
    np.testing.assert_allclose(fit.fidelity(ket), (ket.conj() @ rho @ ket).real, rtol=1e-10)
    np.testing.assert_allclose(fit.fidelity(np.outer(ket, ket.conj())), fit.fidelity(ket), rtol=1e-6)
    np.testing.assert_allclose(fit.fidelity(fit), 1)


def test_purity_and_probabilities_are_those_of_the_density_matrix():
    fit = fitted(3, 3)
    rho, settings = fit.density_matrix(), ["XYZ", "ZZX"]
    np.testing.assert_allclose(fit.purity(), np.trace(rho @ rho).real)
    np.testing.assert_allclose(fit.probabilities(settings), probabilities(rho, settings), atol=1e-12)
    np.testing.assert_allclose(fit.probabilities(settings).sum(axis=1), 1)
    counts = np.arange(16).reshape(2, 8)
    np.testing.assert_allclose(fit.log_likelihood(settings, counts), per_shot(rho, settings, counts))


def test_other_solvers_serve_and_unfit_ones_are_refused():
    settings = labels(2)
    counts = sample(drawn_state(2, 1), settings, 1000)
    classical = FGD(Constant(0.5 / counts.sum()))  # the diluted iteration of Řeháček et al. (2007)
    fit = StateTomography(2, 1, classical, random_state=0).fit_counts(settings, counts)
    for solver in (None, BFGD(Backtracking()), Newton()):  # which follow the problem
        other = StateTomography(2, 1, solver, random_state=0).fit_counts(settings, counts)
        np.testing.assert_allclose(fit.fidelity(other), 1, atol=1e-6)
        np.testing.assert_array_equal(other.result_.U, other.result_.V)
    with pytest.raises(InputError, match=r"X = UVᴴ.*PCG"):
        StateTomography(2, 1, SPG(1.0)).fit_counts(settings, counts)


def test_the_habits_of_scikit_learn():
    solver = FGD(Constant(1e-3))
    estimator = StateTomography(3, 2, solver, tol=1e-5, bit_order="reversed", random_state=4)
    assert estimator.get_params().keys() == vars(estimator).keys()  # nothing but what was passed
    twin = clone(estimator)
    assert twin is not estimator
    assert twin.get_params() == estimator.get_params()
    assert twin.set_params(rank=4).rank == 4
    with pytest.raises(ValueError, match="ranks"):
        twin.set_params(ranks=4)
    with pytest.raises(ValueError, match="rng"):
        twin.set_params(rng=0)
    for use in (twin.purity, lambda: twin.save("state.npz"), lambda: twin.log_likelihood(["X"], [[1, 1]])):
        with pytest.raises(InputError, match="not fitted"):
            use()
    fit = fitted(2, 1)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.density_matrix(), fit.density_matrix())
    assert again.goodness_of_fit_ == fit.goodness_of_fit_
    assert fit.n_iter_ == fit.result_.n_iter


@pytest.mark.parametrize(
    ("n", "rank", "settings", "counts", "message"),
    [
        (0, 1, ["X"], [[1, 1]], "n_qubits=0"),
        (1.5, 1, ["X"], [[1, 1]], "n_qubits=1.5"),
        (1, 0, ["X"], [[1, 1]], "rank=0"),
        (1, 3, ["X"], [[1, 1]], "from 1 to 2"),
        (1, 1, "X", [[1, 1]], "list of strings"),
        (1, 1, [], [], "empty"),
        (1, 1, ["I"], [[1, 1]], "'I'.*XYZ"),
        (1, 1, ["x"], [[1, 1]], "'x'"),
        (2, 1, ["XY", "X"], np.ones((2, 4)), "'X'.*2 letters"),
        (2, 1, ["XY"], [[1, 1]], r"shape \(1, 2\)"),
        (1, 1, ["X", "Y"], [[1, 1]], r"2 settings"),
        (1, 1, ["X"], 3, "shape"),
        (1, 1, ["X"], [[1, -1]], "negative"),
        (1, 1, ["X"], [[1, 1j]], "complex"),
        (1, 1, ["X"], [[1, np.nan]], "NaN"),
        (1, 1, ["X"], [[0, 0]], "all zero"),
        (1, 1, ["X"], [["a", "b"]], "dtype"),
        (1, 1, ["X"], [{"2": 1}], "outcome '2'"),
        (1, 1, ["X"], [{"00": 1}], "outcome '00'"),
        (1, 1, ["X", "Y"], [{"0": 1}], "2 settings"),
        (None, "some", ["X"], [[1, 1]], "rank='some' is not an integer ≥ 1. Pass such an integer, or 'auto'"),
        (None, 3, ["X"], [[1, 1]], "from 1 to 2, or 'auto'"),
        (2, "auto", ["X"], [[1, 1]], "2 letters"),
        (None, 1, {"X": {"0": 1}}, [[1, 1]], "already holds the counts"),
    ],
)
def test_bad_counts_are_refused(n, rank, settings, counts, message):
    with pytest.raises(InputError, match=message):
        StateTomography(n, rank).fit_counts(settings, counts)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"bit_order": "last"}, "bit_order='last' is unknown. Pass one of same, reversed"),
        ({"bit_order": None}, "bit_order=None"),
        ({"random_state": -1}, "random_state=-1 is not a seed"),
        ({"random_state": "a"}, "random_state='a'"),
        ({"tol": -1}, "tol=-1"),
        ({"tol": "small"}, "tol='small'"),
        ({"max_iter": 1.5}, "max_iter=1.5"),
        ({"solver": PCG}, "solver"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    for rank in (1, "auto"):
        with pytest.raises(InputError, match=message):
            StateTomography(rank=rank, **setting).fit_counts(labels(3), np.ones((27, 8)))


@pytest.mark.parametrize(
    ("paulis", "values", "errors", "message"),
    [
        (["XX"], [0.5, 0.5], None, "values has shape"),
        (["XX"], [np.inf], None, "infinite"),
        (["XX"], [0.5j], None, "real numbers"),
        (["XX"], [0.5], [0.0], "errors contains 0"),
        (["XX"], [0.5], [0.1, 0.1], "errors has shape"),
        (["XQ"], [0.5], None, "'XQ'"),
        (["X"], [0.5], None, "2 letters"),
        (["II"], [1.0], None, "only the identity"),
        (["II", "XX"], [0.9, 0.5], None, "identity"),
    ],
)
def test_bad_expectations_are_refused(paulis, values, errors, message):
    with pytest.raises(InputError, match=message):
        StateTomography(2, 1).fit_expectations(paulis, values, errors)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (np.ones(2) / np.sqrt(2), "dimension 2"),
        (np.ones(4), "trace 4"),
        (np.diag([1.5, -0.5, 0, 0]), "smallest eigenvalue -0.5"),
        (np.array([[1, 1], [0, 0.0]]), "not a state"),
        (np.ones((4, 2)), "not a state"),
        ([np.nan, 0, 0, 1], "NaN"),
    ],
)
def test_what_is_no_state_has_no_fidelity(state, message):
    with pytest.raises(InputError, match=message):
        fitted(2, 1).fidelity(state)


def swapped(rho):
    """The same with the qubits in the opposite order."""
    n = int(np.log2(len(rho)))
    axes = [*range(n)[::-1], *range(n, 2 * n)[::-1]]
    return rho.reshape((2,) * (2 * n)).transpose(axes).reshape(rho.shape)


@pytest.mark.parametrize("n", [2, 3])
def test_bits_are_read_in_either_order(n):
    """Reversed bits of the outcomes are reversed letters of the settings, up to the names of the qubits."""
    settings, counts = labels(n), sample(drawn_state(n, 1), labels(n), 200)
    plain = StateTomography(rank=1, tol=1e-9, random_state=0).fit_counts(settings, counts)
    model = StateTomography(rank=1, tol=1e-9, bit_order="reversed", random_state=0)
    strings = bit_strings(n)
    turned_bits = [b[::-1] for b in strings]
    dictionaries = {s: dict(zip(turned_bits, y, strict=True)) for s, y in zip(settings, counts, strict=True)}
    turned = model.fit_counts(dictionaries)
    np.testing.assert_array_equal(turned.factor_, plain.factor_)
    assert turned.log_likelihood(dictionaries) == plain.log_likelihood(settings, counts)
    order = [strings.index(b) for b in turned_bits]
    np.testing.assert_array_equal(turned.probabilities(settings), plain.probabilities(settings)[:, order])
    letters = clone(model).fit_counts([s[::-1] for s in settings], counts)
    np.testing.assert_allclose(letters.density_matrix(), swapped(plain.density_matrix()), atol=1e-6)


def test_the_example_of_the_bit_order_is_true():
    """Of "XZ" and "01" in the same order X gave +1 and Z gave −1: |+⟩ ⊗ |1⟩; reversed, |−⟩ ⊗ |0⟩."""
    counts = {"XZ": {"01": 100}, "YX": {"00": 25, "01": 25, "10": 25, "11": 25}}
    same, reverse = (StateTomography(rank=1, bit_order=o, random_state=0) for o in ("same", "reversed"))
    assert same.fit_counts(counts).fidelity(np.kron([1, 1], [0, 1]) / np.sqrt(2)) > 0.99
    assert reverse.fit_counts(counts).fidelity(np.kron([1, -1], [1, 0]) / np.sqrt(2)) > 0.99


def test_labels_and_counts_of_qiskit_need_no_reversal():
    """Qiskit's |q1 q0⟩: of a circuit that flips qubit 0 it says "01" where both are measured in Z, a label "ZZ".

    With qubit 0 measured in X and prepared in |+⟩ the label is "ZX", and the last bit is 0.
    """
    counts = {"ZX": {"10": 100}, "ZZ": {"10": 51, "11": 49}}  # qubit 1 flipped, qubit 0 in |+⟩
    fit = StateTomography(rank=1, random_state=0).fit_counts(counts)
    assert fit.fidelity(np.kron([0, 1], [1, 1]) / np.sqrt(2)) > 0.99


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_goodness_of_fit_has_the_degrees_of_freedom_of_a_state(rank):
    settings, counts = labels(2), sample(drawn_state(2, rank), labels(2), 5000)
    fit = StateTomography(rank=rank, random_state=0).fit_counts(settings, counts)
    expected = 5000 * fit.probabilities(settings)
    assert fit.goodness_of_fit_.dof == 9 * 3 - (2 * 4 * rank - rank**2 - 1)
    np.testing.assert_allclose(fit.goodness_of_fit_.chi2, ((counts - expected) ** 2 / expected).sum())
    assert fit.goodness_of_fit_.p_value > 1e-3


@pytest.mark.parametrize("shots", [10, 100, 10_000])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (2, 1), (2, 2)])
def test_data_of_a_state_are_seldom_said_to_be_of_none(n, rank, shots):
    """At most one in 100; p-values are what they say up to the sparseness of counts."""
    fired, values, settings = 0, [], labels(n)
    for seed in range(100):
        counts = sample(drawn_state(n, rank, seed), settings, shots, seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MisfitWarning)
            fit = StateTomography(rank=rank, tol=1e-5, random_state=0).fit_counts(settings, counts)
        fired += len(caught)
        values.append(fit.goodness_of_fit_.p_value)
    assert fired <= 1
    if shots > 10:
        known = np.array([value for value in values if value is not None])
        assert np.mean(known < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / known.size)


def test_reversed_bits_are_found_out():
    settings, counts = labels(3), sample(drawn_state(3, 1), labels(3), 200)
    good = StateTomography(rank=1, random_state=0).fit_counts(settings, counts)
    with pytest.warns(MisfitWarning, match=r"With the bits of outcomes reversed, .* pass bit_order='same'") as caught:
        bad = StateTomography(rank=1, bit_order="reversed", random_state=0).fit_counts(settings, counts)
    assert caught[0].filename == __file__
    assert f"{good.log_likelihood(settings, counts):.4f} instead of" in str(caught[0].message)
    assert not bad.goodness_of_fit_.explained
    assert good.goodness_of_fit_.explained


def test_values_have_a_goodness_of_fit_where_errors_are_known():
    strings, rho = labels(2, "IXYZ")[1:], drawn_state(2, 2)
    exact = np.array([np.trace(matrix(s) @ rho).real for s in strings])
    values = exact + 0.02 * np.random.default_rng(0).standard_normal(15)
    assert StateTomography(rank=2, random_state=0).fit_expectations(strings, values).goodness_of_fit_ is None
    fit = StateTomography(rank=2, random_state=0).fit_expectations(strings, values, np.full(15, 0.02))
    away = np.array([np.trace(matrix(s) @ fit.density_matrix()).real for s in strings]) - values
    np.testing.assert_allclose(fit.goodness_of_fit_.chi2, np.sum((away / 0.02) ** 2), rtol=1e-6)
    assert fit.goodness_of_fit_.dof == 15 - 11
    with pytest.warns(MisfitWarning, match="The expectation values are not explained by a state of rank 1"):
        StateTomography(rank=1, random_state=0).fit_expectations(strings, values, np.full(15, 0.02))


def test_strings_held_out_choose_a_rank():
    strings = labels(2, "IXYZ")[1:]
    values = [np.trace(matrix(s) @ drawn_state(2, 1)).real for s in strings]
    fit = StateTomography(random_state=0).fit_expectations(strings, values, np.full(15, 0.01))
    assert fit.rank_ == 1
    assert fit.rank_search_["rank"].tolist() == [1, 2]


def test_a_run_cut_short_is_said():
    with pytest.warns(ConvergenceWarning, match="The fit has stopped at max_iter"):
        fit = StateTomography(rank=2, max_iter=2, random_state=0).fit_counts(*mixed())
    assert fit.result_.status is Status.MAX_ITER


def mixed():
    return labels(2), sample(drawn_state(2, 2), labels(2), 50)


def test_what_is_saved_is_the_state(tmp_path):
    fit = StateTomography(rank=2, random_state=0).fit_counts(*mixed())
    fit.save(tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz") as state:
        assert sorted(state.files) == ["eigenvalues", "factor", "rho"]
        np.testing.assert_array_equal(state["rho"], fit.density_matrix())
        np.testing.assert_array_equal(state["factor"], fit.factor_)
        np.testing.assert_array_equal(state["eigenvalues"], fit.eigenvalues_)
    np.testing.assert_allclose(fit.eigenvalues_.sum(), 1)
    assert fit.fidelity(tmp_path / "state.npz") == pytest.approx(1)
    with pytest.raises(InputError, match=r"does not end in \.npz"):
        fit.save(tmp_path / "state.txt")
    with pytest.raises(OSError, match="Cannot write"):
        fit.save(tmp_path / "none" / "state.npz")


def test_states_have_names():
    fit = StateTomography(rank=1, random_state=0).fit_counts({"ZZ": {"00": 50, "11": 50}, "XX": {"00": 49, "11": 51}})
    assert fit.fidelity("ghz") == pytest.approx(fit.fidelity(BELL))
    assert fit.fidelity("singlet") < 0.1
    with pytest.raises(InputError, match=r"is unknown\. Pass ghz, w, singlet"):
        fit.fidelity("bell")


def held_out(n, rank, settings, counts, every=5):
    """Log-likelihood per shot of each fifth setting, from the others: ours and projected linear inversion."""
    test = np.arange(len(settings)) % every == 2
    learn = [s for s, t in zip(settings, test, strict=True) if not t]
    kept = [s for s, t in zip(settings, test, strict=True) if t]
    fit = StateTomography(n, rank, tol=1e-4, random_state=0).fit_counts(learn, counts[~test])
    baseline = nearest_state(linear_inversion(learn, counts[~test]))
    return fit, fit.log_likelihood(kept, counts[test]), per_shot(baseline, kept, counts[test])


@pytest.mark.parametrize("run", [0, 20])
def test_four_superconducting_qubits(run):
    table = np.load(measured("quantum-ibm-4q-singlet", "ibm-4q-singlet.npz"))
    settings, counts = [str(s) for s in table["setting"]], table["count"][run].astype(float)
    _, ours, baseline = held_out(4, 16, settings, counts)
    assert ours > baseline
    target = table["target_state"]
    linear = nearest_state(linear_inversion(settings, counts))
    whole = StateTomography(rank=16, tol=1e-5, random_state=0).fit_counts(settings, counts)
    assert abs(whole.fidelity(target) - target @ linear.real @ target) < 0.1
    assert 0.3 < whole.purity() < 0.9
    assert whole.goodness_of_fit_.p_value > 1e-3
    with pytest.warns(MisfitWarning, match="pass bit_order='same'"):
        StateTomography(rank=16, tol=1e-4, bit_order="reversed", random_state=0).fit_counts(settings, counts)


@pytest.mark.parametrize("state", [0, 4, 9])
def test_three_trapped_ions(state):
    table = np.load(measured("quantum-ions-3q", "ions-3q.npz"))
    settings = [str(s) for s in table["setting"]]
    for name in ("count_a", "count_b"):
        fit, ours, baseline = held_out(3, 3, settings, table[name][state].astype(float))
        assert ours > baseline
        assert fit.purity() > 0.75
        assert fit.goodness_of_fit_.explained


def test_two_transmons_from_expectations():
    with measured("quantum-rigetti-2q", "bell-state-tomography.csv").open() as file:
        rows = list(csv.DictReader(file))

    def label(row):
        letters = {int(q): letter for letter, q in re.findall(r"([XYZ])(\d)", row["setting"].split("*")[-1])}
        return "".join(letters.get(q, "I") for q in range(2))

    values, errors = ([float(row[key]) for row in rows] for key in ("expectation", "std_err"))
    with pytest.warns(MisfitWarning, match="expectation values"):  # XX = 1.010(5) and XI = −0.050(8): of no state
        fit = StateTomography(2, 2, random_state=0).fit_expectations([label(row) for row in rows], values, errors)
    assert fit.fidelity(BELL) > 0.95
    assert fit.purity() > 0.95


def test_two_photons():
    text = measured("quantum-photon-2q", "bell_psi_data.txt").read_text()
    rows = [row.split(",") for row in re.findall(r"\[([^\[\]]+)\]", text.split("intensity")[0])]
    letters = {"0": "Z", "0.707107": "X", "0+0.707107j": "Y"}
    settings = [letters[row[10]] + letters[row[12]] for row in rows]
    counts = np.array([row[5:9] for row in rows], dtype=float)
    assert sorted(settings) == labels(2)
    with pytest.warns(MisfitWarning, match="any state of 2 qubits"):  # unequal detectors are a part of it
        fit = StateTomography(2, 4, tol=1e-9, random_state=0).fit_counts(settings, counts)
    assert fit.fidelity(np.array([0, 1, 1, 0]) / np.sqrt(2)) > 0.75
    np.testing.assert_allclose(fit.density_matrix(), fixed_point(settings, counts), atol=1e-3)


@pytest.mark.parametrize("shots", [1e3, 1e5, 1e7])
def test_many_shots_do_not_stop_it_short(shots):
    rng = np.random.default_rng(0)
    truth = np.zeros(4, complex)
    truth[[0, 3]] = 0.5**0.5
    rho = 0.9 * np.outer(truth, truth.conj()) + 0.1 * np.eye(4) / 4
    settings = labels(2)
    p = np.array([np.einsum("ij,jk,ik->i", a.conj(), rho, a).real for a in map(eigenvectors, [[s] for s in settings])])
    counts = np.array([rng.multinomial(int(shots), row / row.sum()) for row in p])
    fit = StateTomography(2, 4, random_state=0).fit_counts(settings, counts)
    assert fit.result_.status.converged
    assert 1 - fit.fidelity(rho) < 30 / shots
