"""
A hyperspectral picture from a fifth of its values
==================================================

Each pixel has a spectrum of 60 bands, and the spectra are mixtures of a few materials. So pixels × bands is a matrix
of low rank, and a fifth of its values is enough to recover the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
size, bands, materials = 48, 60, 5
y, x = np.mgrid[:size, :size]
centres = rng.uniform(0, size, (materials, 2))
closeness = np.exp(-((x - centres[:, :1, None]) ** 2 + (y - centres[:, 1:, None]) ** 2) / 300)
shares = (closeness / closeness.sum(axis=0)).reshape(materials, -1).T
wave = np.linspace(0, 1, bands)
spectra = np.array([0.3 + np.exp(-((wave - c) ** 2) / 0.02) for c in rng.uniform(0, 1, materials)])
truth = shares @ spectra
seen = np.where(
    rng.random(truth.shape) < 0.2, truth + 0.02 * rng.standard_normal(truth.shape), np.nan
)

model = bf.MatrixCompletion(n_components=6, noise="one", random_state=0).fit(seen)
full = model.complete()
print(f"RMSE {np.sqrt(np.mean((full - truth) ** 2)):.4f} at a noise of 0.02")

# %%
# One band, and the spectrum of one pixel with its error bars.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
band, pixel = int(np.argmax(truth.std(axis=0))), 30 * size + 20
for ax, (name, part) in zip(
    axes, {"one band, 20 % known": seen, "completed": full}.items(), strict=False
):
    ax.imshow(part[:, band].reshape(size, size), vmin=truth.min(), vmax=truth.max())
    ax.set(title=name, xticks=[], yticks=[])
value, std = model.predict(np.full(bands, pixel), np.arange(bands), return_std=True)
axes[2].plot(wave, truth[pixel], "k", label="truth")
axes[2].fill_between(wave, value - 2 * std, value + 2 * std, alpha=0.3, label="prediction ± 2 std")
axes[2].plot(wave, seen[pixel], "ko", markersize=4, label="known")
axes[2].set(title="one pixel", xlabel="wavelength")
axes[2].legend(fontsize=8)
