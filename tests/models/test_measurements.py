"""Counts and expectation values as problems: laws of the operator, of parts, and of reversal."""

import numpy as np
import pytest
from tests.qubits import drawn_state, labels, per_shot, sample

from bifactor.models.tomography.measurements import Centred, Counts, Expectations, state_factor
from bifactor.operators.pauli import Pauli
from bifactor.testing import check_operator

RHO = drawn_state(2, 2)


def counts(reverse=False):
    return Counts.of(labels(2), sample(RHO, labels(2), 100), None, reverse)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_the_centred_operator_keeps_the_laws(dtype):
    check_operator(Centred(Pauli(2, ["II", "XY", "ZI", "YY"]), np.array([0.3, -0.5, 0.9])), dtype)


def test_settings_without_shots_are_left_out():
    data = Counts.of(["XX", "YY", "ZZ"], [[1, 0, 0, 2], [0, 0, 0, 0], [0, 4, 0, 0]], None, False)
    assert data.labels == ["XX", "ZZ"]
    assert data.total == 7


def test_reversal_exchanges_qubits():
    """The counts of a state, reversed, are those of the state with its qubits in the opposite order."""
    swapped = RHO.reshape(2, 2, 2, 2).transpose(1, 0, 3, 2).reshape(4, 4)
    data, turned = counts(), counts(reverse=True)
    np.testing.assert_array_equal(turned.reversed().table, data.table)
    settings = [label[::-1] for label in turned.labels]
    np.testing.assert_allclose(per_shot(swapped, settings, turned.table), data.log_likelihood(state_factor(RHO)))


def test_parts_add_up():
    values = Expectations.of(["XX", "II", "ZI", "IY"], [0.3, 1, 0.1, -0.2], [0.1, 1, 0.2, 0.1], None)
    assert values.labels == ["XX", "ZI", "IY"]
    U = state_factor(RHO)
    for data in (counts(), values):
        first, second = data.part(np.array([1])), data.part(np.array([0, 2, *range(3, len(data.labels))]))
        both = first.log_likelihood(U) * first.total + second.log_likelihood(U) * second.total
        np.testing.assert_allclose(both, data.log_likelihood(U) * data.total)


def test_chi_squared_of_values_is_minus_twice_their_log_likelihood():
    values = Expectations.of(["XX", "ZI", "IY"], [0.3, 0.1, -0.2], [0.1, 0.2, 0.1], 2)
    U = state_factor(RHO)[:, -1:]
    fit = values.goodness_of_fit(U / np.linalg.norm(U))
    np.testing.assert_allclose(fit.chi2, -2 * values.total * values.log_likelihood(U / np.linalg.norm(U)))
    assert fit.dof == 3 - 6
    assert Expectations.of(["XX"], [0.3], None, 2).goodness_of_fit(U) is None
