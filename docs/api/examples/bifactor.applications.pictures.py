"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
y, x = np.mgrid[:24, :32]
picture = (128 + 90 * np.sin(x / 7) * np.cos(y / 9)).astype(np.uint8)
known = rng.random(picture.shape) < 0.6

# --- inpaint ---
filled = bf.pictures.inpaint(picture, mask=known, truth=picture)
print(filled.scores["psnr_hidden"], filled.scores["psnr_hidden_blur"])

# --- Inpainted ---
filled = bf.pictures.inpaint(picture, keep=0.5)
print(isinstance(filled, bf.pictures.Inpainted), filled.uncertainty.max())
filled.save("whole.png")
