"""Numbers that belong to entries: uniform, independent, and the same however they are computed."""

import numpy as np
import pytest

from bifactor.data import hash_numba, hash_reference

MODULES = [hash_reference, hash_numba]


def grid(m, n):
    rows, cols = np.divmod(np.arange(m * n), n)
    return rows, cols


def test_the_kernel_gives_the_bits_of_the_reference():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(1 << 31, size=10_000), rng.integers(1 << 31, size=10_000).astype(np.int32)
    for seed in (0, 1, 2**32 - 1):
        found = [module.hashed(rows, cols, seed) for module in MODULES]
        np.testing.assert_array_equal(*found)
        assert found[0].min() >= 0
        assert found[0].max() < 1


def test_the_numbers_are_those_of_splitmix64():
    """The first outputs from the state 1234567, as other programs publish them."""
    steps = np.arange(1, 4)
    found = hash_reference.integers_of(np.zeros(3, int), steps, np.uint64(1234567))
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert found.tolist() == [number >> 11 for number in wanted]


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_numbers_are_uniform_on_any_rows_and_columns(seed):
    m, n = 700, 300
    rows, cols = grid(m, n)
    u = hash_numba.hashed(rows, cols, seed)
    counts = np.bincount((u * 100).astype(int), minlength=100)
    # χ² with 99 degrees of freedom exceeds 99 + 5·√198 with probability below 1e-5.
    assert np.sum((counts - u.size / 100) ** 2) / (u.size / 100) < 99 + 5 * 198**0.5
    table = u.reshape(m, n) < 0.1
    for axis, size in ((0, m), (1, n)):
        shares = table.sum(axis=axis)
        statistic = np.sum((shares - 0.1 * size) ** 2) / (0.09 * size)
        assert abs(statistic - shares.size) < 5 * (2 * shares.size) ** 0.5


def test_neighbours_and_seeds_are_independent():
    m, n = 500, 400
    rows, cols = grid(m, n)
    u = hash_numba.hashed(rows, cols, 7).reshape(m, n)
    others = {
        "next row": (u[1:], u[:-1]),
        "next column": (u[:, 1:], u[:, :-1]),
        "transposed": (u[:400, :400], u[:400, :400].T),
        "next seed": (u, hash_numba.hashed(rows, cols, 8).reshape(m, n)),
        "powers of two": (u[:256], u[256:].repeat(2, axis=0)[:256]),
    }
    for name, (a, b) in others.items():
        off = ~np.eye(400, dtype=bool) if name == "transposed" else np.ones(a.shape, bool)
        correlation = np.corrcoef(a[off], b[off])[0, 1]
        # Pairs of a transposed grid are counted twice.
        assert abs(correlation) < 5 * (2 / np.count_nonzero(off)) ** 0.5, name
