"""Examples of the API reference; see docs/_ext/api_examples.py."""

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
