"""
Filling in a table of numbers and text
======================================

`TableImputer` takes numbers, grades, booleans and categories without encoding, and returns the same kind of frame. This
example hides three in ten cells of scikit-learn's table of wines, with one numeric column converted to grades.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.impute import KNNImputer, SimpleImputer

import bifactor as bf

wine = load_wine(as_frame=True)
table = wine.data.rename(columns={"od280/od315_of_diluted_wines": "od280"})
table["grower"] = pd.Categorical(wine.target.map({0: "north", 1: "middle", 2: "south"}))
table["colour"] = pd.Categorical(
    pd.qcut(table.pop("color_intensity"), 4, labels=["pale", "light", "deep", "dark"]), ordered=True
)
rng = np.random.default_rng(0)
hidden = pd.DataFrame(rng.random(table.shape) < 0.3, table.index, table.columns)
imputer = bf.TableImputer(random_state=0)
full = imputer.fit_transform(table.mask(hidden))
for name in ("grower", "colour"):
    right = (full[name] == table[name])[hidden[name]].mean()
    print(f"{name}: {right:.0%} of the hidden cells are right")

# %%
# Errors of the numeric columns, in standard deviations, compared with two of scikit-learn's imputers.

numbers = table.select_dtypes("number").columns
scale = table[numbers].std()
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k, (name, other) in enumerate(
    {"mean": SimpleImputer(), "10 neighbours": KNNImputer(n_neighbors=10)}.items()
):
    standard = (table[numbers] - table[numbers].mean()) / scale
    guess = pd.DataFrame(other.fit_transform(standard.mask(hidden[numbers])), table.index, numbers)
    error = np.sqrt(((guess - standard)[hidden[numbers]] ** 2).mean())
    ax.plot(error, range(len(numbers)), "so"[k], label=name)
error = np.sqrt((((full[numbers] - table[numbers]) / scale)[hidden[numbers]] ** 2).mean())
ax.plot(error, range(len(numbers)), "D", label="TableImputer")
ax.set(
    yticks=range(len(numbers)),
    yticklabels=numbers,
    xlabel="RMSE of hidden cells, in standard deviations",
)
ax.grid(alpha=0.3)
ax.legend()
