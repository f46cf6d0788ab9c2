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

# --- Dataset ---
data = bf.data.read(ratings)
print(isinstance(data, bf.data.Dataset), data.summary().mean, data.counts()[0])

# --- BlockDataset ---
whole = data.in_blocks()
print(isinstance(whole, bf.data.BlockDataset), len(whole.parts))  # True 1

# --- BlockView ---
view = data.in_blocks().split(bf.data.RandomCells(0.5, 1))[1]
print(isinstance(view, bf.data.BlockView), view.size)

# --- Summary ---
about = data.summary()
print(isinstance(about, bf.data.Summary), about.least, about.largest, about.levels)


# --- CellMask ---
def first_column(rows, cols):
    return cols == 0


mask: bf.data.CellMask = first_column
rest, held = data.split(mask)

# --- RandomCells ---
train, held = data.split(bf.data.RandomCells(0.5, seed=0))
print(train.size + held.size)  # 3

# --- RandomLines ---
train, held = data.split(bf.data.RandomLines(0.5, seed=0))  # whole rows

# --- RowTails ---
mask = bf.data.RowTails(0.1, seed=0, columns=20, first=12)
print(mask.share)  # a third of the rows lose all cells from a column in 12, …, 19 on

# --- Rectangles ---
mask = bf.data.Rectangles(0.1, seed=0, rows=0.2)
print(mask.shares)  # a random fifth of the rows times a random half of the columns

# --- holes_like ---
known = np.ones((20, 30), bool)
known[:5, 18:] = False  # five units of a panel have left it
mask = bf.data.holes_like(*np.nonzero(known), known.shape, 0.1, rng=0)
print(type(mask).__name__)  # RowTails


# --- Recoding ---
class Halved:
    def observations(self, data):
        return data.replaced(data.values / 2)

    def block(self, loaded):
        return loaded._replace(y=loaded.y / 2)

    def summary(self, summary):
        return None  # computed by a pass

    def is_weighted(self, before):
        return before


halved: bf.data.Recoding = Halved()
print(data.recode(halved).values)  # [2.5 2.  0.5]
