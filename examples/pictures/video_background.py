"""
Robust PCA of a video: background and moving objects
====================================================

Each frame is a column. The background changes little from frame to frame, so it is a matrix of low rank; moving objects
cover few pixels at a time. With the Huber loss, minimising over X alone is equivalent to splitting the video into a
matrix of low rank and a sparse remainder, which is the part of the residual beyond δ.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
height, width, frames = 48, 64, 80
y, x = np.mgrid[:height, :width]
scene = 0.5 + 0.2 * np.sin(x / 9) + 0.2 * (y > 30) + 0.1 * np.cos(y / 5)
lamp = np.exp(-((x - 50) ** 2 + (y - 12) ** 2) / 60)
video = np.array(
    [scene * (1 + 0.15 * np.sin(t / 12)) + 0.3 * np.sin(t / 7) * lamp for t in range(frames)]
)
for t in range(frames):  # two objects move through the picture
    video[t][(abs(x - 1.2 * t + 10) < 5) & (abs(y - 35) < 4)] = 1.2
    video[t][(x - 60 + 0.9 * t) ** 2 + (y - 20 - 6 * np.sin(t / 8)) ** 2 < 16] = 0.0
video += 0.02 * rng.standard_normal(video.shape)

M = video.reshape(frames, -1).T
problem = bf.Problem(bf.losses.Huber(0.06), bf.operators.Full(M.shape), M)
result = bf.solve(problem, rank=3, rng=0)
print(result.status)
residual = M - result.matrix()
moving = np.sign(residual) * np.maximum(abs(residual) - 0.06, 0)
print(f"{np.mean(moving != 0):.1%} of the pixels move")

# %%
# Three frames: the original, the background, and the moving objects.

fig, axes = plt.subplots(3, 3, figsize=(9, 6.6), layout="constrained")
for row, t in zip(axes, (15, 40, 65), strict=True):
    for ax, part in zip(row, (M, result.matrix(), moving), strict=True):
        low, high = (0, 1.3) if part is not moving else (-0.8, 0.8)
        ax.imshow(
            part[:, t].reshape(height, width),
            cmap="gray" if low == 0 else "coolwarm",
            vmin=low,
            vmax=high,
        )
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"frame {t}")
for ax, name in zip(axes[0], ("video", "low rank", "sparse"), strict=True):
    ax.set_title(name)
