"""Examples of the API reference; see docs/_ext/api_examples.py."""

import warnings

import numpy as np

import bifactor as bf
from bifactor.estimators import MisfitWarning, linear_inversion, nearest_state

settings = ["XX", "XY", "XZ", "YX", "YY", "YZ", "ZX", "ZY", "ZZ"]
bell = [{"XX": 1, "YY": -1, "ZZ": 1}.get(setting, 0) for setting in settings]
counts = np.array(
    [[250 * (1 + e), 250 * (1 - e), 250 * (1 - e), 250 * (1 + e)] for e in bell]
).astype(int)

# --- MisfitWarning ---
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", MisfitWarning)
    bf.StateTomography(rank=1, random_state=0).fit_counts(
        ["ZZ", "XX"], [[500, 0, 0, 0], [500, 0, 0, 0]]
    )
print([str(warning.message) for warning in caught])

# --- linear_inversion ---
rho = linear_inversion(settings, counts)
print(np.trace(rho).real)  # 1

# --- nearest_state ---
rho = nearest_state(np.diag([0.7, 0.5, -0.1, -0.1]))
print(np.linalg.eigvalsh(rho))  # none below 0, their sum is 1
