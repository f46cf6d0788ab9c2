"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

counts = np.random.default_rng(0).poisson(2.0, (60, 30)).astype(float)

# --- pca ---
from anndata import AnnData  # noqa: E402

adata = AnnData(counts)
bf.anndata.pca(adata, n_comps=2, ridge=1.0)
print(adata.obsm["X_bifactor"].shape)  # (60, 2)
