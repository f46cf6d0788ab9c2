"""
A photograph from a third of its pixels
=======================================

`ImageCompletion` fills in missing pixels from groups of patches that look alike, and shows where the result is
uncertain. Known pixels stay as they are, bit for bit. The picture comes with scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import bifactor as bf

picture = load_sample_image("china.jpg")[90:250, 230:450]
known = np.random.default_rng(0).random(picture.shape[:2]) < 0.3
model = bf.ImageCompletion()
full = model.fit_transform(picture, known)
error = np.sqrt(np.mean((full[~known].astype(float) - picture[~known]) ** 2))
print(f"hidden pixels: {20 * np.log10(255 / error):.1f} dB")

# %%
# The known pixels, the result, the original, and the uncertainty.

doubt = model.uncertainty_
pictures = {
    "30 % known": np.where(known[:, :, None], picture, 255),
    "completed": full,
    "original": picture,
    "where it is rough": doubt if doubt.ndim == 2 else doubt.mean(axis=2),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 6.8), layout="constrained")
for ax, (name, shown) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(shown, cmap="magma")
    ax.set(title=name, xticks=[], yticks=[])
