"""Recover a matrix from permuted, sub-sampled noiselets: the paper's main experiment, small.

Each measurement mixes all entries of X. There are far fewer of them than entries, but more than a matrix of this rank
has degrees of freedom, so X comes back exactly, from a random start.
"""

import numpy as np

import bifactor as bf


def main(m: int = 128, n: int = 128, rank: int = 6, oversampling: int = 5, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))

    operator = bf.operators.Noiselet((m, n), size=oversampling * max(m, n) * rank, rng=rng)
    y = operator.forward(U, V)
    problem = bf.Problem(bf.losses.Squared(), operator, y)
    result = bf.solve(problem, rank, init=bf.inits.Random(norm=np.linalg.norm(y)), rng=rng)

    error = bf.metrics.relative_error(result.U, result.V, U, V)
    print(f"{operator.size} measurements of {m * n} entries: relative error {error:.1e}, {result.n_iter} iterations")
    print(result.status)
    return error


if __name__ == "__main__":
    main()
