"""The transform behind noiselets against SciPy's DCT of the same length, 2²³, both with all cores."""

import numpy as np
from scipy import fft

import bifactor as bf
from benchmarks.harness.measure import in_turns
from benchmarks.harness.rows import Row
from bifactor import kernels
from bifactor.kernels.threading import thread_count

SHAPE = (2048, 4096)


def run(repeats: int = 7) -> list[Row]:
    return [row for dtype in (np.float64, np.float32) for row in one(dtype, repeats)]


def one(dtype: type, repeats: int) -> list[Row]:
    x = np.random.default_rng(0).standard_normal(SHAPE[0] * SHAPE[1]).astype(dtype)
    work, out = x.copy(), np.empty_like(x)
    op = bf.operators.Noiselet(SHAPE, 600_000, 0)
    signs = op.table.astype(dtype)

    def transform() -> None:
        kernels.get("transforms", work, work.size).walsh_hadamard(work)

    def permuted() -> None:
        kernels.get("transforms", work, work.size).place(work, op._to, op._code_to, signs, out)
        kernels.get("transforms", out, out.size).walsh_hadamard(out)

    def cosine() -> None:
        fft.dct(x, norm="ortho", workers=thread_count())

    def reset() -> None:
        work[:] = x  # repeated transforms in place would overflow

    candidates = {"SciPy DCT": cosine, "noiselet transform": transform, "noiselet, random permutation": permuted}
    return in_turns("one transform", f"2²³ numbers, {dtype.__name__}", candidates, repeats, reset=reset)
