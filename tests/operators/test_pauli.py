"""Pauli expectations against Kronecker products, and states recovered from them."""

from functools import reduce
from itertools import product

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError

MATRICES = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}


def kron(label):
    return reduce(np.kron, [MATRICES[letter] for letter in label])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_expectations_and_combinations_by_kronecker_products(n):
    rng = np.random.default_rng(n)
    labels = ["".join(s) for s in product("IXYZ", repeat=n)]
    rng.shuffle(labels)
    op = bf.operators.Pauli(n, labels)
    assert op.labels == labels
    U, V = gaussian(rng, (2**n, 2), complex), gaussian(rng, (2**n, 2), complex)
    wanted = [np.trace(kron(label) @ U @ V.conj().T).real for label in labels]
    np.testing.assert_allclose(op.forward(U, V), wanted, atol=1e-12)
    w = rng.standard_normal(len(labels))
    G = sum(weight * kron(label) for weight, label in zip(w, labels, strict=True))
    np.testing.assert_allclose(op.adjoint(w) @ V, G @ V, atol=1e-12)


def test_all_strings_form_a_basis():
    op = bf.operators.Pauli(3)
    assert op.size == 64
    assert len(set(op.labels)) == 64
    U = gaussian(np.random.default_rng(0), (8, 3), complex)
    rho = U @ U.conj().T
    np.testing.assert_allclose(op.adjoint(op.forward(U, U)) @ np.eye(8) / 8, rho, atol=1e-12)


def test_random_strings_are_distinct_also_where_there_are_many():
    for n, count in ((3, 64), (4, 100), (12, 5000)):
        op = bf.operators.Pauli(n, count, 0)
        assert len(set(zip(op.x, op.z, strict=True))) == count
    assert max(op.labels.count(label) for label in op.labels[:5]) == 1


def test_hermitian_expectations_keep_the_norm_on_average():
    op = bf.operators.Pauli(5, 300, 0, normalize=True)
    ratios = []
    for seed in range(20):
        U = gaussian(np.random.default_rng(seed), (32, 2), complex)
        rho = U @ U.conj().T
        rho -= np.trace(rho) / 32 * np.eye(32)  # the identity is one string of many, but weighs most
        vectors = np.linalg.eigh(rho)
        left = vectors.eigenvectors * vectors.eigenvalues
        ratios.append(np.linalg.norm(op.forward(left, vectors.eigenvectors)) ** 2 / np.linalg.norm(rho) ** 2)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pure_state_from_few_strings(dtype):
    rng = np.random.default_rng(1)
    psi = gaussian(rng, (32, 1), complex)
    psi /= np.linalg.norm(psi)
    op = bf.operators.Pauli(5, 350, 2)
    y = (op.forward(psi, psi) + 1e-3 * rng.standard_normal(350)).astype(dtype)
    problem = bf.Problem(bf.losses.Squared(), op, y, symmetric=True)
    assert problem.dtype == np.result_type(dtype, np.complex64)
    result = bf.solve(problem, 1, bf.solvers.FGD(bf.steps.Backtracking()), bf.inits.Random(), rng=0)
    fidelity = np.abs(psi.conj().T @ result.U).item() ** 2 / np.linalg.norm(result.U) ** 2
    assert fidelity > 0.999


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("n_qubits=0", lambda P: P(0)),
        ("n_qubits=2.0", lambda P: P(2.0)),
        ("Choose 1 to 16", lambda P: P(2, 17)),
        ("Choose 1 to 16", lambda P: P(2, 0)),
        ("2 of the letters I, X, Y and Z", lambda P: P(2, ["XYZ"])),
        ("'xy' is not a Pauli string", lambda P: P(2, ["xy"])),
        ("not a Pauli string", lambda P: P(2, [3])),
        ("no strings", lambda P: P(2, [])),
    ],
)
def test_mistakes_get_one_clear_error(message, make):
    with pytest.raises(InputError, match=message):
        make(bf.operators.Pauli)
