"""
Dynamic MRI: a beating phantom from a quarter of its frequencies
================================================================

A scanner measures Fourier coefficients of each frame, but has no time for all of them. Pixels × frames is a matrix of
low rank, since a beating heart repeats a few motions. `operators.Linear` takes any operator of pylops: here a Fourier
transform of each frame, restricted to lines that differ from frame to frame.
"""

import matplotlib.pyplot as plt
import numpy as np
import pylops

import bifactor as bf

rng = np.random.default_rng(0)
size, frames = 32, 30
y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
body = 0.6 * (x**2 / 0.8 + y**2 / 0.6 < 1) + 0.2 * (x**2 + (y + 0.4) ** 2 < 0.04)
beat = 0.5 + 0.5 * np.sin(2 * np.pi * np.arange(frames) / 10)
radius = np.hypot(x - 0.2, y - 0.1)
truth = np.array([body + 0.4 / (1 + np.exp((radius - 0.25 - 0.12 * b) / 0.04)) for b in beat])

# %%
# X has one row per frame, so vec(X) is the sequence of frames. Lines near the centre are measured more often.

lines = np.zeros((frames, size), bool)
for frame in lines:
    distance = np.minimum(np.arange(size), size - np.arange(size))
    chance = 1 / (1 + distance**1.5)
    frame[rng.choice(size, size // 4, replace=False, p=chance / chance.sum())] = True
mask = np.repeat(lines, size, axis=1).reshape(frames, size, size)
transform = pylops.signalprocessing.FFT2D(dims=(size, size), norm="ortho", dtype="complex128")
scanner = pylops.Restriction(
    truth.size, np.flatnonzero(mask), dtype="complex128"
) @ pylops.BlockDiag([transform] * frames)
measured = scanner @ (truth.ravel() + 0j)
measured += 0.01 * (rng.standard_normal(measured.size) + 1j * rng.standard_normal(measured.size))

operator = bf.operators.Linear(scanner, shape=(frames, size**2))
problem = bf.Problem("squared", operator, measured, penalty=bf.penalties.Ridge(0.02))
result = bf.solve(problem, rank=6, rng=0, max_iter=200, tol=1e-4)
found = abs(result.matrix()).reshape(truth.shape)
zero_filled = abs(scanner.H @ measured).reshape(truth.shape)
for name, movie in {"zero-filled": zero_filled, "low rank": found}.items():
    print(f"{name}: relative error {np.linalg.norm(movie - truth) / np.linalg.norm(truth):.3f}")

# %%
# One frame, and one column of pixels over time.

fig, axes = plt.subplots(2, 4, figsize=(10, 4.8), layout="constrained")
columns = {"lines measured": mask, "zero-filled": zero_filled, "low rank": found, "truth": truth}
for (top, bottom), (name, movie) in zip(axes.T, columns.items(), strict=True):
    top.imshow(
        np.fft.fftshift(movie[7]) if movie is mask else movie[7], cmap="gray", vmin=0, vmax=1
    )
    bottom.imshow(movie[:, :, 19].T, cmap="gray", vmin=0, vmax=1, aspect="auto")
    top.set(title=name, xticks=[], yticks=[])
    bottom.set(xticks=[], yticks=[], xlabel="time")
