"""Eigenvectors, Pauli sums, linear inversion and the nearest state, against their definitions."""

from itertools import product

import numpy as np
import pytest
from tests.qubits import drawn_state, labels, matrix, probabilities

from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.models.tomography.measurements import (
    eigenvectors,
    linear_inversion,
    nearest_state,
    outcome_probabilities,
    pauli_sum,
    state_factor,
    symplectic,
)


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


def test_probabilities_are_those_of_the_density_matrix():
    rho, settings = drawn_state(3, 2), ["XYZ", "ZZX"]
    np.testing.assert_allclose(
        outcome_probabilities(state_factor(rho), settings), probabilities(rho, settings), atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("shots", [1e-3, 1, 1000])
def test_linear_inversion_is_exact_on_exact_frequencies(n, shots):
    rho = drawn_state(n, 2)
    settings = labels(n)
    np.testing.assert_allclose(linear_inversion(settings, shots * probabilities(rho, settings)), rho, atol=1e-12)


def test_linear_inversion_is_least_squares():
    settings, counts = labels(2)[:7], np.random.default_rng(0).integers(0, 50, (7, 4))
    shots = counts.sum(axis=1, keepdims=True)
    a = eigenvectors(settings)
    design = np.einsum("ij,ik->ijk", a.conj(), a).reshape(28, 16) * np.sqrt(shots).repeat(4, axis=1).reshape(-1, 1)
    wanted = np.linalg.lstsq(design, (counts / np.sqrt(shots)).ravel(), rcond=None)[0]
    np.testing.assert_allclose(linear_inversion(settings, counts).ravel(), wanted, atol=1e-10)


def test_linear_inversion_takes_a_mapping():
    counts = {"X": {"0": 3, "1": 1}, "Z": {"0": 4}}
    np.testing.assert_array_equal(linear_inversion(counts), linear_inversion(["X", "Z"], [[3, 1], [4, 0]]))


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


@pytest.mark.parametrize("rho", [np.ones(3), np.ones((2, 3)), np.full((2, 2), np.nan), np.empty((0, 0))])
def test_what_is_no_square_matrix_has_no_nearest_state(rho):
    with pytest.raises(InputError):
        nearest_state(rho)
