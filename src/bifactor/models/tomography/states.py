"""States for comparison, by name or from files."""

import os
from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.data.npz import stored_arrays
from bifactor.data.text import require_file
from bifactor.errors import FileError, InputError
from bifactor.models.tomography.measurements import state_factor


def target_state(name: str | os.PathLike[str], n: int) -> Array:
    """Vector or density matrix of a state of n qubits.

    Parameters
    ----------
    name : {"ghz", "w", "singlet"} or path
        Name of a state, or an npy or npz file; of an npz file, the array `rho` or else the first one.
    n : int
        Number of qubits.
    """
    known = {"ghz": ghz, "w": w, "singlet": singlet}
    if str(name).lower() in known:
        return known[str(name).lower()](n)
    path = Path(name)
    if path.suffix not in (".npy", ".npz"):
        raise InputError(f"The state {str(name)!r} is unknown. Pass {', '.join(known)}, or an npy or npz file.")
    loaded = _loaded(path)
    if loaded.dtype.kind not in "iufc" or loaded.shape not in ((2**n,), (2**n, 2**n)):
        raise InputError(f"{path} contains an array of shape {loaded.shape}. Pass {2**n} numbers, or {2**n}×{2**n}.")
    state_factor(loaded)  # raises if it is not a state
    return loaded


def _loaded(path: Path) -> Array:
    require_file(path)
    arrays = stored_arrays(path)
    if not arrays:
        raise FileError(f"{path} contains no array. Save it again with NumPy.")
    return arrays["rho"] if "rho" in arrays else next(iter(arrays.values()))


def ghz(n: int) -> Array:
    """(|0…0⟩ + |1…1⟩)/√2."""
    state = np.zeros(2**n)
    state[[0, -1]] = 2**-0.5
    return state


def w(n: int) -> Array:
    """Equal superposition of all states with a single 1."""
    state = np.zeros(2**n)
    state[2 ** np.arange(n)] = n**-0.5
    return state


def singlet(n: int) -> Array:
    """Total spin 0, of two spins, or of two pairs with spin 1 each."""
    if n == 2:
        return np.array([0, 1, -1, 0]) / 2**0.5
    if n == 4:
        state = np.zeros(16)
        state[[0b0011, 0b1100]], state[[0b0101, 0b0110, 0b1001, 0b1010]] = 2, -1
        return state / 12**0.5
    raise InputError(f"singlet is known for 2 and 4 qubits, not for {n}. Pass a file.")
