"""Quantum state tomography: laws, an independent method, bad input, and measured data where they are at hand."""

import csv
import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import sqrtm

from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.estimators.linear_inversion import eigenvectors, linear_inversion, nearest_state, pauli_sum, symplectic
from bifactor.estimators.state_tomography import Centred, StateTomography
from bifactor.operators.pauli import Pauli
from bifactor.solvers import BFGD, FGD, SPG, Newton
from bifactor.steps import Backtracking, Constant
from bifactor.testing import check_operator

MATRICES = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}
BELL = np.array([1, 0, 0, 1]) / np.sqrt(2)


def data(*parts: str) -> Path:
    """A file of measured data: under BIFACTOR_DATA, or in shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("BIFACTOR_DATA", beside)).joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{path} is not there: point BIFACTOR_DATA to the folder of measured data")
    return path


def labels(n, letters="XYZ"):
    return ["".join(letter) for letter in product(letters, repeat=n)]


def matrix(label):
    out = np.eye(1)
    for letter in label:
        out = np.kron(out, MATRICES[letter])
    return out


def random_state(n, rank, seed=0):
    U = gaussian(np.random.default_rng(seed), (2**n, rank), np.complex128)
    U = U / np.linalg.norm(U)
    return U @ U.conj().T


def probabilities(rho, settings):
    a = eigenvectors(settings)
    p = ((a.conj() @ rho) * a).sum(axis=1).real
    return p.reshape(len(settings), -1)


def sample(rho, settings, shots, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(shots, p / p.sum()) for p in probabilities(rho, settings).clip(0)])


def fixed_point(settings, counts, iterations=1000):
    """Hradil's RρR, which knows neither factors nor gradients."""
    a = eigenvectors(settings)
    d = a.shape[1]
    rho = np.eye(d) / d
    for _ in range(iterations):
        ratio = counts.ravel() / counts.sum() / probabilities(rho, settings).ravel()
        R = (a.T * ratio) @ a.conj()
        rho = R @ rho @ R
        rho = rho / np.trace(rho).real
    return rho


def per_shot(rho, settings, counts):
    return float((counts * np.log(probabilities(rho, settings))).sum() / counts.sum())


def uhlmann(rho, sigma):
    root = sqrtm(rho)
    return np.trace(sqrtm(root @ sigma @ root)).real ** 2


@pytest.mark.parametrize("setting", ["X", "Y", "Z", "XZ", "YX", "ZYX"])
def test_outcomes_follow_the_conventions(setting):
    vectors = eigenvectors([setting])
    for outcome, vector in zip(product([1, -1], repeat=len(setting)), vectors, strict=True):
        for place, sign in enumerate(outcome):
            one = "I" * place + setting[place] + "I" * (len(setting) - place - 1)
            np.testing.assert_allclose(matrix(one) @ vector, sign * vector, atol=1e-12)
    np.testing.assert_allclose(vectors.conj() @ vectors.T, np.eye(2 ** len(setting)), atol=1e-12)


def test_a_sum_of_paulis_is_what_it_says():
    strings = labels(2, "IXYZ")
    values = np.random.default_rng(0).standard_normal(16)
    coefficients = np.zeros((4, 4))
    coefficients[symplectic(strings)] = values
    wanted = sum(v * matrix(s) for v, s in zip(values, strings, strict=True)) / 4
    np.testing.assert_allclose(pauli_sum(coefficients), wanted, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_linear_inversion_is_exact_on_exact_frequencies(n):
    rho = random_state(n, 2)
    settings = labels(n)
    np.testing.assert_allclose(linear_inversion(settings, 1000 * probabilities(rho, settings)), rho, atol=1e-12)


def test_linear_inversion_is_least_squares():
    settings, counts = labels(2)[:7], np.random.default_rng(0).integers(0, 50, (7, 4))
    shots = counts.sum(axis=1, keepdims=True)
    a = eigenvectors(settings)
    design = np.einsum("ij,ik->ijk", a.conj(), a).reshape(28, 16) * np.sqrt(shots).repeat(4, axis=1).reshape(-1, 1)
    wanted = np.linalg.lstsq(design, (counts / np.sqrt(shots)).ravel(), rcond=None)[0]
    np.testing.assert_allclose(linear_inversion(settings, counts).ravel(), wanted, atol=1e-10)


def test_the_nearest_state_is_a_state_and_nearest():
    rng = np.random.default_rng(0)
    G = gaussian(rng, (6, 6), np.complex128)
    H = np.eye(6) / 6 + 0.2 * (G + G.conj().T)
    rho = nearest_state(H)
    assert np.linalg.eigvalsh(rho)[0] > -1e-12
    np.testing.assert_allclose(np.trace(rho), 1)
    for seed in range(20):  # the projection P onto a convex set has ⟨H − PH, σ − PH⟩ ≤ 0 for its every point σ
        other = gaussian(np.random.default_rng(seed), (6, 2), np.complex128)
        other = other @ other.conj().T / np.linalg.norm(other) ** 2
        assert np.vdot(H - rho, other - rho).real < 1e-12
    np.testing.assert_allclose(nearest_state(rho), rho, atol=1e-12)


@pytest.mark.parametrize(("n", "rank"), [(1, 2), (2, 4), (3, 8)])
def test_full_rank_is_the_fixed_point_of_the_classical_iteration(n, rank):
    settings = labels(n)
    counts = sample(0.9 * random_state(n, 1) + 0.1 * random_state(n, rank, 1), settings, 500)
    fit = StateTomography(n, rank, tol=1e-8, rng=0).fit_counts(settings, counts)
    classical = fixed_point(settings, counts)
    np.testing.assert_allclose(fit.density_matrix(), classical, atol=2e-4)
    assert fit.log_likelihood(settings, counts) >= per_shot(classical, settings, counts) - 1e-8


@pytest.mark.parametrize("rank", [1, 2, 3, 8])
def test_the_trace_is_one_without_being_asked_for(rank):
    settings = labels(3)[::2]
    fit = StateTomography(3, rank, rng=0).fit_counts(settings, sample(random_state(3, 3), settings, 300))
    np.testing.assert_allclose(np.linalg.norm(fit.result_.U) ** 2, 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(fit.factor_), 1)
    gram = fit.factor_.conj().T @ fit.factor_
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    assert np.all(np.diff(np.diag(gram).real) <= 0)


@pytest.mark.parametrize(("n", "rank", "n_settings"), [(2, 1, 9), (3, 2, 27), (4, 2, 40), (6, 1, 20), (6, 2, 30)])
def test_states_are_recovered_from_many_shots(n, rank, n_settings):
    rho = random_state(n, rank)
    settings = list(np.random.default_rng(1).permutation(labels(n))[:n_settings])
    counts = sample(rho, settings, 4000)
    fit = StateTomography(n, rank, rng=0).fit_counts(settings, counts)
    assert fit.result_.status.converged
    assert fit.fidelity(rho) > 0.995
    assert fit.log_likelihood(settings, counts) >= per_shot(rho, settings, counts)


def test_more_rank_never_explains_less():
    settings = labels(2)
    counts = sample(random_state(2, 3), settings, 1000)
    fits = [StateTomography(2, r, rng=0).fit_counts(settings, counts) for r in (1, 2, 3, 4)]
    values = np.array([fit.log_likelihood(settings, counts) for fit in fits])
    assert np.all(np.diff(values) > -1e-7)


def test_impossible_outcomes_and_empty_settings_do_no_harm():
    settings = ["ZZ", "XX", "YY", "XZ"]
    counts = np.array([[50, 0, 0, 50], [50, 0, 0, 50], [0, 50, 50, 0], [0, 0, 0, 0]])
    fit = StateTomography(2, 1, rng=0).fit_counts(settings, counts)
    assert fit.fidelity(BELL) > 0.999
    assert np.isfinite(fit.log_likelihood(settings, counts))


def test_dictionaries_are_counts_too():
    settings = ["ZZ", "XX", "YY"]
    table = np.array([[40, 3, 0, 57], [45, 0, 5, 50], [0, 50, 48, 2]])
    dictionaries = [{"00": 40, "01": 3, "11": 57}, {"00": 45, "10": 5, "11": 50}, {"01": 50, "10": 48, "11": 2}]
    first, second = (StateTomography(2, 2, rng=0).fit_counts(settings, c) for c in (table, dictionaries))
    np.testing.assert_array_equal(first.factor_, second.factor_)


def test_order_and_number_of_shots_do_not_matter():
    settings = labels(2)
    counts = sample(random_state(2, 4), settings, 300)
    fit = StateTomography(2, 4, tol=1e-9, rng=0).fit_counts(settings, counts)
    order = np.random.default_rng(0).permutation(9)
    other = StateTomography(2, 4, tol=1e-9, rng=1).fit_counts([settings[i] for i in order], 7 * counts[order])
    np.testing.assert_allclose(fit.density_matrix(), other.density_matrix(), atol=1e-4)


def test_exchanging_qubits_exchanges_them_in_the_state():
    settings = labels(2)
    counts = sample(random_state(2, 4), settings, 300)
    fit = StateTomography(2, 4, tol=1e-9, rng=0).fit_counts(settings, counts)
    swapped = StateTomography(2, 4, tol=1e-9, rng=0).fit_counts([s[::-1] for s in settings], counts[:, [0, 2, 1, 3]])
    there = [0, 2, 1, 3]
    np.testing.assert_allclose(swapped.density_matrix(), fit.density_matrix()[np.ix_(there, there)], atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_expectations_at_full_rank_give_the_projection_of_linear_inversion(n):
    # Over all strings Σ (tr ρP − v)² = 2ⁿ‖ρ − ρ_linear‖²_F: so this also proves that the unit trace is exact.
    strings = labels(n, "IXYZ")[1:]
    rng = np.random.default_rng(0)
    rho = random_state(n, 1)
    values = np.array([np.trace(matrix(s) @ rho).real for s in strings]) + 0.1 * rng.standard_normal(len(strings))
    linear = (np.eye(2**n) + sum(v * matrix(s) for v, s in zip(values, strings, strict=True))) / 2**n
    fit = StateTomography(n, 2**n, tol=1e-10, rng=0).fit_expectations(strings, values)
    np.testing.assert_allclose(fit.density_matrix(), nearest_state(linear), atol=1e-4)


@pytest.mark.parametrize(("n", "rank", "size"), [(2, 1, 15), (3, 2, 60), (6, 1, 800), (6, 2, 1500)])
def test_states_are_recovered_from_expectations(n, rank, size):
    rho = random_state(n, rank)
    rng = np.random.default_rng(0)
    strings = list(rng.permutation(labels(n, "IXYZ")[1:])[:size])
    values = Pauli(n, strings).forward(rho, np.eye(2**n, dtype=rho.dtype))
    fit = StateTomography(n, rank, rng=0).fit_expectations(strings, values + 0.01 * rng.standard_normal(size))
    assert fit.fidelity(rho) > 0.99


def test_exact_values_weigh_more():
    strings, values = ["XX", "ZZ", "YY", "XX"], [1.0, 1.0, -1.0, -1.0]
    careful = StateTomography(2, 4, tol=1e-5, rng=0).fit_expectations(strings, values, [0.01, 0.01, 0.01, 1.0])
    assert careful.fidelity(BELL) > 0.99
    assert StateTomography(2, 4, rng=0).fit_expectations(strings, values).fidelity(BELL) < 0.9


def test_the_identity_may_be_among_the_strings():
    first = StateTomography(1, 1, rng=0).fit_expectations(["X", "Y", "Z"], [0.6, 0.1, 0.8])
    second = StateTomography(1, 1, rng=0).fit_expectations(["X", "I", "Y", "Z"], [0.6, 1.0, 0.1, 0.8])
    np.testing.assert_allclose(first.factor_, second.factor_, atol=1e-12)


def test_the_centred_operator_keeps_the_laws():
    check_operator(Centred(Pauli(2, ["II", "XY", "ZI", "YY"]), np.array([0.3, -0.5, 0.9])), np.complex128)
    check_operator(Centred(Pauli(2, ["II", "XY", "ZI", "YY"]), np.array([0.3, -0.5, 0.9])), np.complex64)


def fitted(n, rank, seed=0):
    settings = labels(n)
    counts = sample(random_state(n, 2, seed), settings, 99)
    return StateTomography(n, rank, rng=0, max_iter=50).fit_counts(settings, counts)


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_fidelity_is_uhlmanns(rank):
    fit, other, ket = fitted(2, rank), fitted(2, 3, seed=5), gaussian(np.random.default_rng(0), (4,), np.complex128)
    ket = ket / np.linalg.norm(ket)
    rho, sigma = fit.density_matrix(), random_state(2, 4, 3)
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
    counts = sample(random_state(2, 1), settings, 1000)
    classical = FGD(Constant(0.5 / counts.sum()))  # the diluted iteration of Řeháček et al. (2007)
    fit = StateTomography(2, 1, classical, rng=0).fit_counts(settings, counts)
    np.testing.assert_allclose(fit.fidelity(StateTomography(2, 1, rng=0).fit_counts(settings, counts)), 1, atol=1e-6)
    for solver in (BFGD(Backtracking()), Newton()):  # which follow the problem
        other = StateTomography(2, 1, solver, rng=0).fit_counts(settings, counts)
        np.testing.assert_allclose(fit.fidelity(other), 1, atol=1e-6)
        np.testing.assert_array_equal(other.result_.U, other.result_.V)
    with pytest.raises(InputError, match=r"X = UVᴴ.*PCG"):
        StateTomography(2, 1, SPG(1.0)).fit_counts(settings, counts)


def test_the_habits_of_scikit_learn():
    base = pytest.importorskip("sklearn.base")
    solver = FGD(Constant(1e-3))
    estimator = StateTomography(3, 2, solver, tol=1e-5)
    twin = base.clone(estimator)
    assert twin is not estimator
    assert twin.get_params() == estimator.get_params()
    assert twin.set_params(rank=4).rank == 4
    with pytest.raises(ValueError, match="ranks"):
        twin.set_params(ranks=4)
    with pytest.raises(InputError, match="not fitted"):
        twin.purity()


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
    ],
)
def test_bad_counts_are_refused(n, rank, settings, counts, message):
    with pytest.raises(InputError, match=message):
        StateTomography(n, rank).fit_counts(settings, counts)


@pytest.mark.parametrize(
    ("paulis", "values", "errors", "message"),
    [
        (["XX"], [0.5, 0.5], None, "values has shape"),
        (["XX"], [np.inf], None, "infinite"),
        (["XX"], [0.5j], None, "real numbers"),
        (["XX"], [0.5], [0.0], "errors holds 0"),
        (["XX"], [0.5], [0.1, 0.1], "errors has shape"),
        (["XQ"], [0.5], None, "'XQ'"),
        (["X"], [0.5], None, "2 letters"),
        (["II"], [1.0], None, "nothing but the identity"),
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
        (np.diag([1.5, -0.5, 0, 0]), "least eigenvalue -0.5"),
        (np.array([[1, 1], [0, 0.0]]), "no state"),
        (np.ones((4, 2)), "no state"),
        ([np.nan, 0, 0, 1], "NaN"),
    ],
)
def test_what_is_no_state_has_no_fidelity(state, message):
    with pytest.raises(InputError, match=message):
        fitted(2, 1).fidelity(state)


@pytest.mark.parametrize("rho", [np.ones(3), np.ones((2, 3)), np.full((2, 2), np.nan), np.empty((0, 0))])
def test_what_is_no_square_matrix_has_no_nearest_state(rho):
    with pytest.raises(InputError):
        nearest_state(rho)


def held_out(n, rank, settings, counts, every=5):
    """Log-likelihood per shot of each fifth setting, from the others: ours and projected linear inversion."""
    test = np.arange(len(settings)) % every == 2
    learn = [s for s, t in zip(settings, test, strict=True) if not t]
    kept = [s for s, t in zip(settings, test, strict=True) if t]
    fit = StateTomography(n, rank, rng=0, max_iter=100).fit_counts(learn, counts[~test])
    baseline = nearest_state(linear_inversion(learn, counts[~test]))
    return fit, fit.log_likelihood(kept, counts[test]), per_shot(baseline, kept, counts[test])


@pytest.mark.parametrize("run", [0, 20])
def test_four_superconducting_qubits(run):
    table = np.load(data("quantum-ibm-4q-singlet", "ibm-4q-singlet.npz"))
    settings, counts = [str(s) for s in table["setting"]], table["count"][run].astype(float)
    _, ours, baseline = held_out(4, 8, settings, counts)
    assert ours > baseline
    target = table["target_state"]
    linear = nearest_state(linear_inversion(settings, counts))
    whole = StateTomography(4, 4, rng=0, max_iter=100).fit_counts(settings, counts)
    assert abs(whole.fidelity(target) - target @ linear.real @ target) < 0.1
    assert 0.3 < whole.purity() < 0.9


@pytest.mark.parametrize("state", [0, 4, 9])
def test_three_trapped_ions(state):
    table = np.load(data("quantum-ions-3q", "ions-3q.npz"))
    settings = [str(s) for s in table["setting"]]
    for name in ("count_a", "count_b"):
        fit, ours, baseline = held_out(3, 3, settings, table[name][state].astype(float))
        assert ours > baseline
        assert fit.purity() > 0.75


def test_two_transmons_from_expectations():
    with data("quantum-rigetti-2q", "bell-state-tomography.csv").open() as file:
        rows = list(csv.DictReader(file))

    def label(row):
        letters = {int(q): letter for letter, q in re.findall(r"([XYZ])(\d)", row["setting"].split("*")[-1])}
        return "".join(letters.get(q, "I") for q in range(2))

    values, errors = ([float(row[key]) for row in rows] for key in ("expectation", "std_err"))
    fit = StateTomography(2, 2, rng=0).fit_expectations([label(row) for row in rows], values, errors)
    assert fit.fidelity(BELL) > 0.95
    assert fit.purity() > 0.95


def test_two_photons():
    text = data("quantum-photon-2q", "bell_psi_data.txt").read_text()
    rows = [row.split(",") for row in re.findall(r"\[([^\[\]]+)\]", text.split("intensity")[0])]
    letters = {"0": "Z", "0.707107": "X", "0+0.707107j": "Y"}
    settings = [letters[row[10]] + letters[row[12]] for row in rows]
    counts = np.array([row[5:9] for row in rows], dtype=float)
    assert sorted(settings) == labels(2)
    fit = StateTomography(2, 4, tol=1e-9, rng=0).fit_counts(settings, counts)
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
    fit = StateTomography(2, 4, rng=0).fit_counts(settings, counts)
    assert fit.result_.status.converged
    assert 1 - fit.fidelity(rho) < 30 / shots
