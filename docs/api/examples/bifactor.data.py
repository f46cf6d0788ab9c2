"""Examples of the API reference; see docs/_ext/api_examples.py."""

from pathlib import Path

import numpy as np
import pandas as pd

import bifactor as bf

ratings = pd.DataFrame(
    {"user": ["ann", "bob", "bob"], "film": [10, 10, 30], "stars": [5.0, 4.0, 1.0]}
)

# --- read ---
ratings.to_csv("ratings.csv", index=False)
data = bf.data.read("ratings.csv")  # or the frame itself
print(data.shape, data.values)  # (2, 2) [5. 4. 1.]

# --- read_counts ---
Path("counts.csv").write_text(
    "setting,outcome,count\nXX,00,520\nXX,11,480\nZZ,00,490\nZZ,11,510\n"
)
settings, counts = bf.data.read_counts("counts.csv")

# --- Observations ---
data = bf.data.Observations(
    np.array([0, 1]), np.array([2, 0]), np.array([3.0, 4.0]), shape=(2, 3)
)
print(data.shape)

# --- Names ---
names = bf.data.read(ratings).row_names
# True ann True 2
print(isinstance(names, bf.data.Names), names[0], "bob" in names, len(names))

# --- Origin ---
origin = bf.data.read(ratings).origin
print(isinstance(origin, bf.data.Origin), origin.layout)

# --- partition ---
# or "ratings/*.parquet", of any size
store = bf.data.partition(ratings, "blocks", force=True)
print(store.shape, store.size)  # (2, 2) 3

# --- BlockStore ---
bf.data.partition(ratings, "blocks", force=True)
store = bf.data.BlockStore.open("blocks")
train, held = store.split(bf.data.RandomCells(0.5, 0))  # by a hash of row and column

# --- Part ---
part = bf.data.partition(ratings, "blocks", force=True).parts[0]
print(isinstance(part, bf.data.Part), part.start, part.stop, part.size)
