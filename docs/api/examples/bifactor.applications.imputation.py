"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np
import pandas as pd

import bifactor as bf

rng = np.random.default_rng(0)
a = rng.standard_normal(60)
table = pd.DataFrame({"a": a, "b": 2 * a, "c": np.where(a > 0, "yes", "no")})
table = table.mask(pd.DataFrame(rng.random(table.shape) < 0.2, columns=table.columns))

# --- impute ---
filled = bf.imputation.impute(table, effort="fast")
print(filled.table.isna().sum().sum(), filled.scores)

# --- ImputedTable ---
filled = bf.imputation.impute(table, effort="fast", output="full.parquet")
print(isinstance(filled, bf.imputation.ImputedTable), filled.card["filled"])
