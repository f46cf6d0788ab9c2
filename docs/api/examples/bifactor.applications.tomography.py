"""Examples of the API reference; see docs/_ext/api_examples.py."""

import bifactor as bf

counts = {
    "XX": {"00": 512, "01": 9, "10": 11, "11": 492},
    "YY": {"00": 7, "01": 508, "10": 499, "11": 10},
    "ZZ": {"00": 500, "01": 3, "10": 4, "11": 517},
}

# --- tomography ---
found = bf.tomography.tomography(counts, rank=1, target="ghz")
print(found.card["purity"], found.scores["fidelity"])

# --- EstimatedState ---
found = bf.tomography.tomography(counts, rank=1, output="state.npz")
print(isinstance(found, bf.tomography.EstimatedState), found.density_matrix.shape)
