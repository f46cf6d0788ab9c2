"""States by name and from files."""

import numpy as np
import pytest

from bifactor.errors import FileError, InputError
from bifactor.models.tomography.states import target_state


@pytest.mark.parametrize(("name", "sizes"), [("ghz", (1, 2, 5)), ("W", (1, 3, 5)), ("singlet", (2, 4))])
def test_names_are_normalised_states(name, sizes):
    for n in sizes:
        state = target_state(name, n)
        assert state.shape == (2**n,)
        assert np.linalg.norm(state) == pytest.approx(1)


@pytest.mark.parametrize("n", [2, 4])
def test_singlets_have_no_spin(n):
    up = np.array([[0, 1], [0, 0]])
    raising = sum(np.kron(np.kron(np.eye(2**k), up), np.eye(2 ** (n - 1 - k))) for k in range(n))
    np.testing.assert_allclose(raising @ target_state("singlet", n), 0, atol=1e-15)
    np.testing.assert_allclose(raising.T @ target_state("singlet", n), 0, atol=1e-15)


def test_files_hold_vectors_or_matrices(tmp_path):
    rho = np.diag([0.75, 0.25])
    np.save(tmp_path / "rho.npy", rho)
    np.savez(tmp_path / "both.npz", other=np.ones(3), rho=rho)
    np.savez(tmp_path / "one.npz", rho[0] / 0.75)
    for name, wanted in (("rho.npy", rho), ("both.npz", rho), ("one.npz", rho[0] / 0.75)):
        np.testing.assert_array_equal(target_state(tmp_path / name, 1), wanted)


def test_what_is_no_state_is_refused(tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((2, 3)))
    np.save(tmp_path / "large.npy", np.ones(2))
    (tmp_path / "empty.npz").write_bytes(b"")
    for name, message in (("wide.npy", r"shape \(2, 3\)"), ("large.npy", "Normalise")):
        with pytest.raises(InputError, match=message):
            target_state(tmp_path / name, 1)
    with pytest.raises(InputError, match=r"is unknown\. Pass ghz, w, singlet"):
        target_state("bell", 2)
    with pytest.raises(InputError, match="not for 3"):
        target_state("singlet", 3)
    with pytest.raises(FileError, match="is empty"):
        target_state(tmp_path / "empty.npz", 1)
