"""The transform behind noiselets against SciPy's DCT of the same length, 2²³, both with all cores."""

import statistics
from typing import Any

import numpy as np
from scipy import fft

import bifactor as bf
from benchmarks.measure import side_by_side, summary
from bifactor import kernels
from bifactor.kernels.pool import threads

SHAPE = (2048, 4096)


def run(repeats: int = 7) -> list[dict[str, Any]]:
    table = []
    for dtype in (np.float64, np.float32):
        x = np.random.default_rng(0).standard_normal(SHAPE[0] * SHAPE[1]).astype(dtype)
        work, out = x.copy(), np.empty_like(x)
        op = bf.operators.Noiselet(SHAPE, 600_000, 0)
        signs = op.table.astype(dtype)

        def transform(work: np.ndarray = work, x: np.ndarray = x) -> None:
            kernels.transforms().walsh_hadamard(work)

        def permuted(work: np.ndarray = work, out: np.ndarray = out, signs: np.ndarray = signs, op: Any = op) -> None:
            kernels.transforms().place(work, op._to, op._code_to, signs, out)
            kernels.transforms().walsh_hadamard(out)

        def cosine(x: np.ndarray = x) -> None:
            fft.dct(x, norm="ortho", workers=threads())

        def reset(work: np.ndarray = work, x: np.ndarray = x) -> None:
            work[:] = x  # repeated transforms in place would overflow

        seconds = side_by_side({"noiselet": transform, "permuted": permuted, "DCT": cosine}, repeats, reset)
        median = {name: statistics.median(times) for name, times in seconds.items()}
        table.append(
            {
                "dtype": dtype.__name__,
                "noiselet transform": summary(seconds["noiselet"]),
                "with random permutation": summary(seconds["permuted"]),
                "SciPy DCT": summary(seconds["DCT"]),
                "transform/DCT": f"{median['noiselet'] / median['DCT']:.2f}",
                "permuted/DCT": f"{median['permuted'] / median['DCT']:.2f}",
            }
        )
    return table
