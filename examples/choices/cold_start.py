"""
Cold start: films without ratings
=================================

Features of users and items shift the means of their factors. So a film without a single rating is predicted from its
genres, with an error bar that shows how informative they are.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bifactor as bf

rng = np.random.default_rng(0)
genres = np.array(["Drama", "Comedy", "War", "Horror"])
films = pd.DataFrame(
    {"film": range(120), "genre": rng.choice(genres, 120), "year": rng.integers(1950, 2020, 120)}
)
taste = rng.standard_normal((250, 5))
about = np.column_stack(
    [films["genre"] == genre for genre in genres] + [(films["year"] - 1985) / 20]
).astype(float)
stars = 3 + taste @ about.T + 0.3 * rng.standard_normal((250, 120))

i, j = np.nonzero(rng.random(stars.shape) < 0.15)
cold = j < 20  # the first twenty films have no ratings
ratings = pd.DataFrame({"user": i, "film": j, "stars": stars[i, j]})

model = bf.MatrixCompletion(n_components=6, item_features=films, random_state=0)
model.fit_long(ratings[~cold], row="user", col="film", value="stars")
value, std = model.predict(i[cold], j[cold], return_std=True)
rmse = np.sqrt(np.mean((value - stars[i, j][cold]) ** 2))
plain = np.sqrt(np.mean((ratings["stars"][~cold].mean() - stars[i, j][cold]) ** 2))
print(f"RMSE at films without ratings: {rmse:.2f}, by the mean of all: {plain:.2f}")

# %%
# Ratings of films without ratings in the fit.

fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
ax.errorbar(stars[i, j][cold], value, yerr=std, fmt=".", alpha=0.4, elinewidth=0.7)
ax.axline((3, 3), slope=1, color="black", linewidth=0.8)
ax.set(xlabel="rating", ylabel="prediction ± standard deviation")
