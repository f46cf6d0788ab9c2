"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np
import pandas as pd

import bifactor as bf

ratings = pd.DataFrame(
    {
        "user": ["ann", "ann", "bob", "bob", "eve"],
        "film": [10, 20, 10, 30, 20],
        "stars": [5.0, 3.0, 4.0, 1.0, 2.0],
    }
)
bf.MatrixCompletion(n_components=1, random_state=0).fit_long(ratings).save("films", force=True)

# --- Fit ---
fit = bf.load("films")
print(isinstance(fit, bf.models.Fit), fit.predict(["eve"], [10]))
fit.recommend(["bob"], n=1)

# --- Model ---
model = bf.load("films").model
print(isinstance(model, bf.models.Model), model.U.shape)  # factors without names

# --- Prediction ---
here = bf.load("films").at(["eve", "eve"], [10, 30])
assert isinstance(here, bf.models.Prediction)
print(here.mean, here.std)
low, high = here.interval(0.9)

# --- Link ---
link = bf.load("films").model.link
assert isinstance(link, bf.models.Link)
print(link.loss, link.intercept, link.clip)

# --- RowModel ---
rows = bf.load(
    "films"
).model.rows  # finds factors of new rows: with a ridge, or from a posterior
print(isinstance(rows, bf.models.RowModel), rows.ridge, rows.posterior)

# --- PredictiveDistribution ---
distribution = bf.load("films").model.predictive
assert isinstance(distribution, bf.models.PredictiveDistribution)  # None with a ridge
std = distribution.std(np.array([0, 0]), np.array([0, -1]))  # -1 stands for an unknown column
